"""Compute before a loop what is the same in each of its iterations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.errors import GraphError
from toolkit.graph.frames import StaticFrame, assign_frames, is_pivot
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, SWITCH_OPS, Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization, Rewriting, is_pure

#: ops that never fail on tensors whose shapes fit; they may be computed although the loop has no iteration
_NEVER_FAILS = frozenset({
    "Abs", "Add", "AddV2", "AddN", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Neg", "Square", "SquaredDifference",
    "Exp", "Expm1", "Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal", "Tanh", "Sigmoid", "Sin", "Cos", "Erf", "Erfc",
    "Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Softplus", "Softsign", "Softmax", "LogSoftmax", "Sign", "Floor",
    "Ceil", "Round", "Rint", "MatMul", "BatchMatMul", "BatchMatMulV2", "BiasAdd", "Cast", "Identity", "Shape", "Size",
    "Rank", "ZerosLike", "OnesLike", "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "LogicalAnd",
    "LogicalOr", "LogicalNot", "Select", "SelectV2", "Transpose", "Sum", "Mean", "Max", "Min", "Prod", "Any", "All",
    "ExpandDims", "ConcatV2", "Pack", "Conv2D", "DepthwiseConv2dNative", "StopGradient", "Pow",
})  # fmt: skip


@dataclass(frozen=True)
class HoistInvariants(Optimization):
    """Move pure nodes out of a while frame of TensorFlow 1 when all they take enters the loop as a constant.

    The result enters the loop in their place, and waits there for what they waited for, which tells the body from the
    condition. Only ops that cannot fail are moved, for the loop may have no iteration; pow of whole numbers, which can,
    stays, and so do nodes in a branch inside of the loop. Of nested loops, one is left at a time.
    """

    name: ClassVar[str] = "hoist_invariants"

    def apply(self, graph: Graph) -> PassResult:
        """The report has `hoisted`, how many nodes were."""
        if not any(node.op in ENTER_OPS for node in graph):
            return PassResult(graph, False, {"hoisted": 0})
        order = graph.topological_order()
        try:
            frames, _ = assign_frames(graph, order)
        except GraphError:
            return PassResult(graph, False, {"hoisted": 0})
        return _Hoisting(graph, self, order, frames).run()


class _Hoisting:
    def __init__(self, graph: Graph, options: HoistInvariants, order: list[Node], frames: list[StaticFrame]):
        self.work = Rewriting(graph, options.kept)
        self.order, self.frames = order, frames
        self.outside: dict[Node, Node] = {}  # what was hoisted -> its node before the loop
        self.pivots: dict[Node, dict[Node, None]] = {}  # and what it waited for

    def run(self) -> PassResult:
        entering: dict[Node, Node] = {}
        for original in self.order:
            if original.op not in _NEVER_FAILS or not self.frames[original.id].name:
                continue
            node = self.work.graph.node(original.name)
            if self._can_move(original, node):
                self.outside[node] = self._move(node)
                entering[node] = self._template(node)
        for node, enter in entering.items():
            # Whoever is hoisted as well takes it before the loop already.
            inside = [user for user in self.work.takers(node.output()) if user not in self.outside]
            if not inside and not self.work.is_kept(node):
                continue
            attrs = {key: enter.attrs.proto(key) for key in ("frame_name", "parallel_iterations") if key in enter.attrs}
            made = self.work.add(
                "Enter", f"{node.name}/enter", [self.outside[node].output()],
                attrs={"T": node.output_types[0].base, "is_constant": True, **attrs}, device=node.device,
            )  # fmt: skip
            self.work.turn_identity(node, made.output(), self.pivots[node])
        return self.work.result({"hoisted": len(self.outside)})

    def _can_move(self, original: Node, node: Node) -> bool:
        if not is_pure(node) or self.work.is_kept(node) or node.num_outputs != 1:
            return False
        constants = [source for source, _ in node.inputs if source.op == "Const"]
        waits = [each for waiting in (node, *constants) for each in waiting.control_inputs]
        if not all(is_pivot(each) for each in waits):
            return False
        if node.op == "Pow" and not node.output_types[0].is_floating:
            return False
        found = False
        for source, _ in node.inputs:
            if source in self.outside:
                found = True
            elif source.op == "Enter" and not self.work.is_fed(source):
                same_frame = source.text("frame_name") == self.frames[original.id].name
                if not source.attr("is_constant") or not same_frame or source.inputs[0].node.op in SWITCH_OPS:
                    return False
                if source.inputs[0].dtype.is_ref or source.control_inputs:
                    return False
                found = True
            elif source.op != "Const" or self.work.is_fed(source):
                return False
        if found:
            self.pivots[node] = dict.fromkeys(waits)
            for source, _ in node.inputs:
                self.pivots[node].update(self.pivots.get(source, {}))
        return found

    def _template(self, node: Node) -> Node:
        """An Enter of the node's loop."""
        at = node
        while at.op != "Enter":
            at = next(source for source, _ in at.inputs if source in self.outside or source.op == "Enter")
        return at

    def _move(self, node: Node) -> Node:
        """The node before the loop; constants that it takes go with it, and wait for something that enters too."""
        anchor = self._template(node).inputs[0].node
        inputs: list[Output] = []
        for source, index in node.inputs:
            if source in self.outside:
                inputs.append(self.outside[source].output())
            elif source.op == "Enter":
                inputs.append(source.inputs[0])
            else:
                waits = [] if self.work.is_plain(anchor) else [anchor]
                made = self.work.add_copy(source, f"{source.name}/before", (), waits)
                inputs.append(Output(made, index))
        return self.work.add_copy(node, f"{node.name}/before", inputs)
