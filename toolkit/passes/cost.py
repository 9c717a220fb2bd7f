"""A static cost model: what a node takes and what moving a tensor takes, in microseconds, before anything ran.

The constants are orders of magnitude, good enough to choose between devices: a few GFLOP/s per CPU core times its
cores, a GPU a hundred times that, memory-bound work at memory speed, a step over PCIe or the network for transfers.
"""

from __future__ import annotations

from toolkit.errors import GraphmillError
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.infer import infer
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import UNKNOWN, Shape

_FLOPS_PER_US = {"CPU": 1e5, "GPU": 1e7}
_BYTES_PER_US = {"CPU": 1e4, "GPU": 5e5}
_OVERHEAD_US = {"CPU": 5.0, "GPU": 8.0}
_LOCAL_TRANSFER = (10.0, 1e4)  # latency in us, bytes per us
_REMOTE_TRANSFER = (100.0, 1e3)
_GUESS = 32  # an unknown size, usually a batch


class StaticCost:
    """Costs of the nodes of one graph from its statically known shapes."""

    def __init__(self, graph: Graph):
        try:
            self._shapes = infer(graph)
        except GraphmillError:  # a contradiction is for `validate` to report; the guess below still works
            self._shapes = None

    def _elements(self, output: Output) -> int:
        shape: Shape = UNKNOWN if self._shapes is None else self._shapes[output]
        if shape.dims is None:
            return _GUESS
        product = 1
        for size in shape.dims:
            product *= _GUESS if size is None else size
        return product

    def output_bytes(self, node: Node, index: int) -> int:
        """The size of one output."""
        return self._elements(Output(node, index)) * max(1, node.output_types[index].size)

    def flops(self, node: Node) -> float:
        """A rough count of floating-point operations: products count twice, everything else once per element."""
        outputs = sum(self._elements(Output(node, i)) for i in range(node.num_outputs))
        if node.op.startswith(("Conv", "DepthwiseConv")) and len(node.inputs) > 1:
            channels = max(1, self._last(node.inputs[1], 1))
            return 2.0 * outputs * self._elements(node.inputs[1]) / channels
        if node.op in ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"):
            inner = self._elements(node.inputs[0]) / max(1, self._last(Output(node, 0), 2))
            return 2.0 * outputs * max(1.0, inner)
        return float(outputs)

    def _last(self, output: Output, back: int) -> int:
        shape: Shape = UNKNOWN if self._shapes is None else self._shapes[output]
        if shape.dims is None or len(shape.dims) < back:
            return 1
        return shape.dims[-back] or _GUESS

    def compute(self, node: Node, device: DeviceSpec) -> float:
        """The time a node takes on a device."""
        kind = device.device_type or "CPU"
        moved = sum(self.output_bytes(node, i) for i in range(node.num_outputs))
        return _OVERHEAD_US.get(kind, 5.0) + max(
            self.flops(node) / _FLOPS_PER_US.get(kind, 1e5), moved / _BYTES_PER_US.get(kind, 1e4)
        )

    def transfer(self, src: Node, index: int, origin: DeviceSpec, target: DeviceSpec) -> float:
        """The time an output takes from one device to another; nothing when they are the same."""
        if origin == target:
            return 0.0
        latency, speed = _LOCAL_TRANSFER if origin.task_name == target.task_name else _REMOTE_TRANSFER
        return latency + self.output_bytes(src, index) / speed
