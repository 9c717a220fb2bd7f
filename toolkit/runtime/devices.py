"""The devices of a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolkit.errors import UsageError
from toolkit.formats import bounds
from toolkit.graph.device import LOCAL_JOB, DeviceSpec, incarnation
from toolkit.kernels.device_options import DeviceOptions

_DIGITS = 18  # of a number of devices


@dataclass(frozen=True, slots=True)
class Device:
    """A place to run nodes.

    Attributes:
        spec: its full name.
        incarnation: a number that changes when the device restarts; part of rendezvous keys.
    """

    spec: DeviceSpec
    incarnation: int

    @property
    def name(self) -> str:
        return str(self.spec)

    @property
    def device_type(self) -> str:
        assert self.spec.device_type is not None
        return self.spec.device_type


def make_device(spec: DeviceSpec) -> Device:
    return Device(spec, incarnation(str(spec)))


def local_devices(counts: Mapping[str, int] | None = None, task: DeviceSpec | None = None) -> list[Device]:
    """Devices of one process: {"CPU": 4} gives CPU:0 to CPU:3; there is always a CPU:0.

    Raises:
        UsageError: more than any machine has.
    """
    base = task or DeviceSpec(LOCAL_JOB, 0, 0)
    wanted = {"CPU": 1} | dict(counts or {})
    if sum(wanted.values()) > bounds.DEVICES:
        raise UsageError(f"there cannot be {sum(wanted.values()):,} devices; expected at most {bounds.DEVICES:,}")
    return [
        make_device(DeviceSpec(base.job, base.replica, base.task, kind, index))
        for kind, count in wanted.items()
        for index in range(max(count, 1 if kind == "CPU" else 0))
    ]


def require_devices(devices: Iterable[Device], options: DeviceOptions | None = None) -> None:
    """Make sure that devices with a memory of their own are there, and told what is said about them.

    Raises:
        UsageError: one is not, or cannot be as it is told.
    """
    wanted: dict[str, int] = {}
    for device in devices:
        if device.device_type != "CPU":
            wanted[device.device_type] = max(wanted.get(device.device_type, 0), (device.spec.device_index or 0) + 1)
    if not wanted:
        return
    from toolkit.kernels import device_types

    for kind, count in wanted.items():
        device_types.require(kind, count, options)


def require_float8(devices: Iterable[Device]) -> None:
    """Make sure that GPUs multiply floats of 8 bits.

    Raises:
        UsageError: one does not.
    """
    gpus = [device for device in devices if device.device_type == "GPU"]
    if not gpus:
        return
    from toolkit.kernels.cuda.device import device
    from toolkit.kernels.cuda.simt.ir import lacks_float8

    for each in gpus:
        why = lacks_float8(device(each.spec.device_index or 0).properties.capability)
        if why:
            raise UsageError(f"fp8 on {each.name}: {why}; use bf16")


def parse_counts(texts: Iterable[str]) -> dict[str, int]:
    """Read `CPU=4` (also several, comma-separated).

    Raises:
        UsageError: it is not TYPE=COUNT.
    """
    counts: dict[str, int] = {}
    for text in (part for item in texts for part in item.split(",") if part):
        kind, equals, count = text.partition("=")
        if not equals or not count.isdecimal() or not count.isascii() or not kind or len(count) > _DIGITS:
            raise UsageError(f"--devices wants TYPE=COUNT such as GPU=1, not '{text}'")
        counts[kind.upper()] = int(count)
    return counts
