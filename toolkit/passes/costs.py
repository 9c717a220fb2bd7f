"""Static cost estimates for placement: seconds per node and per transfer (white paper, section 3.2.1).

They are guesses from shapes alone, good enough to weigh a transfer against the work it spreads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.graph.device import DeviceSpec
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.passes.operations import FREE, operations, size

#: what an unknown first size (the batch) and a tensor of unknown rank count as
_BATCH, _UNKNOWN_ELEMENTS = 32, 1024


@dataclass(frozen=True, slots=True)
class DeviceRates:
    """How fast things are; seconds, bytes per second, floating-point operations per second."""

    node_overhead: float = 5e-6
    flops: dict[str, float] = field(default_factory=lambda: {"CPU": 5e10, "GPU": 5e12})
    memory: dict[str, float] = field(default_factory=lambda: {"CPU": 1e10, "GPU": 5e11})
    local_latency: float = 1e-4
    local_bandwidth: float = 1e10
    remote_latency: float = 2e-4
    remote_bandwidth: float = 1e9


class CostModel:
    """Estimates for one graph."""

    def __init__(self, shapes: ShapeMap, rates: DeviceRates | None = None):
        self.shapes = shapes
        self.rates = rates or DeviceRates()

    def bytes_of(self, output: Output) -> int:
        """The size of a tensor; strings and handles count 64 bytes each element."""
        size = output.dtype.size or 64
        return elements(self.shapes[output]) * size

    def seconds(self, node: Node, device_type: str) -> float:
        """The time a node takes on a device type."""
        rates = self.rates
        if node.op in FREE:
            return rates.node_overhead
        moved = sum(self.bytes_of(source) for source in node.inputs)
        moved += sum(self.bytes_of(Output(node, i)) for i in range(node.num_outputs))
        compute = operations(node, self.shapes, _BATCH) / rates.flops.get(device_type, rates.flops["CPU"])
        memory = moved / rates.memory.get(device_type, rates.memory["CPU"])
        return rates.node_overhead + max(compute, memory)

    def transfer(self, output: Output, source: DeviceSpec, target: DeviceSpec) -> float:
        """The time it takes a tensor from device to device."""
        if source == target:
            return 0.0
        size = self.bytes_of(output) if output.index >= 0 else 0
        rates = self.rates
        if source.task_name == target.task_name:
            return rates.local_latency + size / rates.local_bandwidth
        return rates.remote_latency + size / rates.remote_bandwidth


def elements(shape: Shape) -> int:
    """The number of elements, unknown sizes guessed."""
    return size(shape, _BATCH, _UNKNOWN_ELEMENTS)
