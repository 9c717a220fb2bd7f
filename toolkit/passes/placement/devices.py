"""The devices that placement can choose from."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.errors import UsageError
from toolkit.graph.device import DeviceSpec

#: types not listed come after these
_PRIORITY = ("GPU", "CPU")


class DeviceSet:
    """Full device names, best first: the default task's before others, GPUs before CPUs, then by number.

    Args:
        devices: full names.
        default: the task of nodes that name none; by default that of the first device.

    Raises:
        UsageError: there are no devices, or one is not a full name.
    """

    def __init__(self, devices: Sequence[DeviceSpec], default: DeviceSpec | None = None):
        if not devices:
            raise UsageError("there are no devices to place nodes on")
        for device in devices:
            if not device.is_full:
                raise UsageError(
                    f"'{device}' is not a full device name such as /job:worker/replica:0/task:0/device:CPU:0"
                )
        first = devices[0]
        self.default = default or DeviceSpec(first.job, first.replica, first.task)
        self.devices = sorted(dict.fromkeys(devices), key=self._order)
        self._matching: dict[DeviceSpec, list[DeviceSpec]] = {}
        self.types = list(dict.fromkeys(device.device_type for device in self.devices))

    def _order(self, device: DeviceSpec) -> tuple[object, ...]:
        kind = device.device_type
        rank = _PRIORITY.index(kind) if kind in _PRIORITY else len(_PRIORITY)
        is_default = self.default.matches(device)
        return (rank, not is_default, device.job, device.replica, device.task, kind, device.device_index)

    def matching(self, spec: DeviceSpec) -> list[DeviceSpec]:
        """The devices that fit a spec, best first; do not change the list."""
        found = self._matching.get(spec)
        if found is None:
            found = self._matching[spec] = [device for device in self.devices if spec.matches(device)]
        return found

    def listed(self) -> str:
        """The names for a message."""
        names = [str(device) for device in sorted(self.devices, key=str)]
        return ", ".join(names) if len(names) <= 12 else ", ".join(names[:12]) + f", ... ({len(names) - 12} more)"
