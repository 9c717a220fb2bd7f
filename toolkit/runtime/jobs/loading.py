"""Opening what `run` is given: a model, or a partition folder put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.errors import GraphError
from toolkit.formats.models.model import Model, read_model
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.runtime.devices import Device, make_device


@dataclass(slots=True)
class Loaded:
    """A model, and the devices it was made for when it came as partitions."""

    model: Model
    devices: list[Device] | None = None


def load(source: str, tags: Sequence[str] | None = None) -> Loaded:
    """Read a model file or folder, or a partition folder.

    Partitions are joined here and split again per step, for what the step needs; every device they name becomes a
    device of this process.

    Raises:
        GraphmillError: it cannot be read; see `read_model`.
    """
    model = read_model(source, tags=tags)
    return Loaded(model, _named_devices(model.graph) if model.split_by else None)


def _named_devices(graph: Graph) -> list[Device]:
    """A device for each that nodes of a placed graph name.

    Raises:
        GraphError: a node names none, or leaves parts of its name open.
    """
    first = {node.device: node for node in reversed(graph.nodes)}
    devices: list[Device] = []
    for name in sorted(first):
        spec = DeviceSpec.parse(name)
        if not spec.is_full:
            what = f"'{name}'" if name else "no device"
            told = f"it is on {what}; nodes of partitions are on devices with job, replica, task, type and number"
            raise GraphError(told, node=first[name].name)
        devices.append(make_device(spec))
    return devices
