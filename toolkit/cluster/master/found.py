"""What a task has told of itself."""

from __future__ import annotations

from dataclasses import dataclass

from schemas import device_attributes_pb2
from toolkit.graph.device import DeviceSpec
from toolkit.runtime.devices import Device

_SIGN = 1 << 63


@dataclass(frozen=True, slots=True)
class FoundTask:
    """A task that has answered.

    Attributes:
        attributes: of its devices, as it told them.
    """

    name: str
    attributes: tuple[device_attributes_pb2.DeviceAttributes, ...]

    @property
    def devices(self) -> list[Device]:
        """Its devices, CPUs first."""
        made = [Device(DeviceSpec.parse(each.name), signed(each.incarnation)) for each in self.attributes]
        return sorted(made, key=lambda device: (device.device_type != "CPU", device.name))

    @property
    def incarnation(self) -> tuple[int, ...]:
        """What is another one when the task has started anew."""
        return tuple(sorted(each.incarnation for each in self.attributes))


def signed(incarnation: int) -> int:
    """An incarnation as attributes of nodes hold it, which have no unsigned numbers."""
    return incarnation - 2 * _SIGN if incarnation >= _SIGN else incarnation
