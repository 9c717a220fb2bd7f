"""Static cost estimates for placement: seconds per node and per transfer (white paper, section 3.2.1).

They are guesses from shapes alone, good enough to weigh a transfer against the work it spreads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from toolkit.graph.device import DeviceSpec
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape

#: what an unknown first size (the batch) and any other unknown size count as
_BATCH, _UNKNOWN_SIZE = 32, 1
_UNKNOWN_ELEMENTS = 1024
#: ops that move no data
_FREE = frozenset({
    "Const", "Placeholder", "PlaceholderWithDefault", "Identity", "IdentityN", "NoOp", "VariableV2", "Variable",
    "VarHandleOp", "ReadVariableOp", "Reshape", "ExpandDims", "Squeeze", "StopGradient", "Shape", "Size", "Rank",
    "_Arg", "_Retval", "Enter", "Exit", "NextIteration", "Switch", "Merge", "LoopCond", "ControlTrigger",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rates:
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

    def __init__(self, shapes: ShapeMap, rates: Rates | None = None):
        self.shapes = shapes
        self.rates = rates or Rates()

    def bytes_of(self, output: Output) -> int:
        """The size of a tensor; strings and handles count 64 bytes each element."""
        size = output.dtype.size or 64
        return elements(self.shapes[output]) * size

    def seconds(self, node: Node, device_type: str) -> float:
        """The time a node takes on a device type."""
        rates = self.rates
        if node.op in _FREE:
            return rates.node_overhead
        moved = sum(self.bytes_of(source) for source in node.inputs)
        moved += sum(self.bytes_of(Output(node, i)) for i in range(node.num_outputs))
        compute = self.operations(node) / rates.flops.get(device_type, rates.flops["CPU"])
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

    def operations(self, node: Node) -> float:
        """A guess at the floating-point operations of a node."""
        if not node.num_outputs:
            return 0.0
        out = elements(self.shapes[Output(node, 0)])
        ins = [self.shapes[source] for source in node.inputs]
        op = node.op
        if op in ("Conv2D", "Conv3D", "DepthwiseConv2dNative") and len(ins) > 1:
            kernel = elements(ins[1])
            filters = (ins[1].dims or (1,))[-1] or 1
            if op == "DepthwiseConv2dNative":
                spatial = (ins[1].dims or (1, 1))[:2]
                return 2.0 * out * math.prod(d or 1 for d in spatial)
            return 2.0 * out * kernel / max(filters, 1)
        if op.startswith(("Conv2DBackprop", "Conv3DBackprop")) and len(ins) > 2:
            kernel_shape = self.shapes[Output(node, 0)] if "Filter" in op else ins[1]
            filters = (kernel_shape.dims or (1,))[-1] or 1
            return 2.0 * elements(ins[2]) * elements(kernel_shape) / max(filters, 1)
        if "MatMul" in op and ins and ins[0].dims:
            transposed = node.attr_or("transpose_a", node.attr_or("adj_x", False))
            inner = ins[0][max(-2, -len(ins[0].dims)) if transposed else -1] or _UNKNOWN_SIZE
            return 2.0 * out * inner
        return float(out) * (20 if op in ("Exp", "Tanh", "Sigmoid", "Softmax", "Log", "Erf", "Pow") else 1)


def elements(shape: Shape) -> int:
    """The number of elements, unknown sizes guessed."""
    if shape.dims is None:
        return _UNKNOWN_ELEMENTS
    return math.prod((_BATCH if i == 0 else _UNKNOWN_SIZE) if d is None else d for i, d in enumerate(shape.dims))
