"""How fast the devices of a cluster and the links between them are: two sections of a cluster file.

    speeds:                             # by device type, or by a device name in whole or part; later rows win
      CPU: {flops: 50G, bandwidth: 10GB, memory: 8G, overhead: 5us}
      /job:worker/device:GPU: {flops: 5T, memory: 16G}
    links:                              # one tensor's way; later rows win
      local: {latency: 100us, bandwidth: 10GB}        # between devices of one task
      remote: {latency: 200us, bandwidth: 1GB}        # between tasks
      /job:worker -> /job:ps: {bandwidth: 100MB}      # from what fits one name to what fits the other; or <->

`flops` are operations per second, `bandwidth` bytes per second, `memory` bytes (by default without bound), `overhead`
what a node costs besides its work, `latency` what a transfer costs besides its bytes, `startup` what it costs a step
to use one more device, `cores` how many kernels the CPU devices of one task run at once (by default without bound).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from toolkit.formats.settings.quantities import BYTES, COUNT, SECONDS
from toolkit.graph.device import DeviceSpec


@dataclass(frozen=True, slots=True)
class Speed:
    """What a device can do.

    Attributes:
        flops: floating-point operations per second.
        bandwidth: bytes per second from and to its memory.
        memory: bytes; infinite where nobody says.
        overhead: seconds a node takes besides its work.
        startup: seconds that a step takes longer because it uses this device beside another.
        cores: how many kernels the CPU devices of its task run at once.
    """

    flops: float = 5e10
    bandwidth: float = 1e10
    memory: float = float("inf")
    overhead: float = 5e-6
    startup: float = 1e-4
    cores: float = float("inf")


@dataclass(frozen=True, slots=True)
class Link:
    """What a transfer costs: seconds besides its bytes, and bytes per second."""

    latency: float
    bandwidth: float


#: what a field is written in, and an example
SPEED_UNITS: Mapping[str, tuple[Mapping[str, float], str]] = {
    "flops": (COUNT, "50G"), "bandwidth": (BYTES, "10GB"), "memory": (BYTES, "8G"), "overhead": (SECONDS, "5us"),
    "startup": (SECONDS, "100us"), "cores": (COUNT, "8"),
}  # fmt: skip
LINK_UNITS: Mapping[str, tuple[Mapping[str, float], str]] = {
    "latency": (SECONDS, "100us"), "bandwidth": (BYTES, "1GB"),
}  # fmt: skip
_BY_TYPE = {"GPU": Speed(flops=5e12, bandwidth=5e11)}
_LOCAL, _REMOTE = Link(1e-4, 1e10), Link(2e-4, 1e9)


@dataclass(frozen=True)
class LinkRow:
    """What a file says of links: from what fits one spec to what fits the other; `scope` is "local", "remote" or ""."""

    scope: str
    source: DeviceSpec
    target: DeviceSpec
    given: Mapping[str, float]

    def fits(self, source: DeviceSpec, target: DeviceSpec) -> bool:
        is_local = (source.job, source.replica, source.task) == (target.job, target.replica, target.task)
        if self.scope:
            return (self.scope == "local") == is_local
        return self.source.matches(source) and self.target.matches(target)


@dataclass
class Speeds:
    """What a cluster file says of speeds; without any, defaults by device type.

    Attributes:
        devices: rows of spec and the fields that it gives; later ones win.
        links: rows; later ones win.
    """

    devices: Sequence[tuple[DeviceSpec, Mapping[str, float]]] = ()
    links: Sequence[LinkRow] = ()
    _known: dict[DeviceSpec, Speed] = field(default_factory=dict[DeviceSpec, Speed], repr=False)
    _ways: dict[tuple[DeviceSpec, DeviceSpec], Link] = field(
        default_factory=dict[tuple[DeviceSpec, DeviceSpec], Link], repr=False
    )

    def of(self, device: DeviceSpec) -> Speed:
        """The speed of a device."""
        found = self._known.get(device)
        if found is None:
            found = _BY_TYPE.get(device.device_type or "", Speed())
            for spec, given in self.devices:
                if spec.matches(device):
                    found = replace(found, **given)
            self._known[device] = found
        return found

    def link(self, source: DeviceSpec, target: DeviceSpec) -> Link:
        """The way from a device to another one."""
        found = self._ways.get((source, target))
        if found is None:
            is_local = source.task_name == target.task_name
            found = _LOCAL if is_local else _REMOTE
            for row in self.links:
                if row.fits(source, target):
                    found = replace(found, **row.given)
            self._ways[source, target] = found
        return found

    @property
    def bounds_memory(self) -> bool:
        """Whether some device's memory is given."""
        return any("memory" in given for _, given in self.devices)


assert {each.name for each in fields(Speed)} == set(SPEED_UNITS)
