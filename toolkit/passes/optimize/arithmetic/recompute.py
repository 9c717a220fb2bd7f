"""Compute cheap results of the forward pass again for their gradients, instead of keeping them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.measuring.measure import measure
from toolkit.passes.measuring.operations import size
from toolkit.passes.optimize.rewriting import Optimization, Rewriting, is_pure

#: ops that cost about as much as writing and reading their result
_CHEAP = frozenset({
    "Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Softplus", "Sigmoid", "Tanh", "Add", "AddV2", "Sub", "Mul", "RealDiv",
    "BiasAdd", "Neg", "Square", "SquaredDifference", "Sqrt", "Rsqrt", "Exp", "Log", "Maximum", "Minimum", "Cast",
    "Select", "SelectV2", "GreaterEqual", "Greater", "Less", "LessEqual", "Tile", "Fill", "BroadcastTo", "ZerosLike",
    "OnesLike", "Transpose", "Pad", "ConcatV2", "Floor", "Abs", "Erf", "Reshape", "Identity", "ExpandDims", "Squeeze",
})  # fmt: skip
#: marks the copies, so that nobody merges them with what they are copies of
_MARK = "_recomputed"


@dataclass(frozen=True)
class Recompute(Optimization):
    """Give gradients their own copies of cheap nodes of the forward pass, computed when the gradient is about to need
    them, so that their results need not be kept from the forward to the backward pass.

    A copy waits for another gradient that its user takes. Of a chain of cheap nodes the copies take copies. Only pure
    nodes outside of loops, so results are the same bit for bit.

    Attributes:
        scope: names of gradient nodes begin so.
        min_bytes: results that are smaller are kept; unknown first sizes count as `batch`.
        batch: what an unknown first size counts as.
    """

    name: ClassVar[str] = "recompute"
    in_functions: ClassVar[bool] = False

    scope: str = "gradients"
    min_bytes: int = 4096
    batch: int = 32

    def apply(self, graph: Graph) -> PassResult:
        """The report has `recomputed`, `bytes` (of results that are no longer kept), `peak_before` and `peak_after`:
        the most bytes alive when nodes run one after the other."""
        work = Rewriting(graph, self.kept)
        order = graph.topological_order()
        place = {node.name: position for position, node in enumerate(order)}
        backward = {node.name for node in order if _is_in(node.name, self.scope)}
        first: dict[Node, Node] = {}  # node -> the gradient that needs it first
        chosen: dict[Node, list[Node]] = {}
        saved = 0
        for original in reversed(order):
            node = work.graph.node(original.name)
            if node.name in backward or not self._is_cheap(work, node):
                continue
            users = [user for user in work.takers(node.output()) if user.name in backward and _MARK not in user.attrs]
            forward = [user for user in work.takers(node.output()) if user.name not in backward]
            copied = [user for user in forward if user in chosen]
            if not forward or not (users or copied):
                continue
            nbytes = self._bytes(work, node)
            if nbytes < self.min_bytes and not copied:
                continue
            earliest = min([*users, *(first[user] for user in copied)], key=lambda each: place[each.name])
            if _trigger(work, earliest, node, backward, place) is None:
                continue
            first[node] = earliest
            chosen[node] = users
            saved += nbytes if users else 0
        copies: dict[Node, Node] = {}
        for original in order:
            node = work.graph.get(original.name)
            if node is None or node not in chosen:
                continue
            trigger = _trigger(work, first[node], node, backward, place)
            inputs = [Output(copies.get(source, source), index) for source, index in node.inputs]
            waits = [*node.control_inputs, *([trigger] if trigger is not None else [])]
            copy = copies[node] = work.add_copy(node, f"recompute/{node.name}", inputs, waits)
            copy.attrs[_MARK] = True
            for user in chosen[node]:
                work.set_inputs(
                    user, [copy.output() if source == node.output() else source for source in user.inputs]
                )  # fmt: skip
        report: dict[str, Any] = {"recomputed": len(copies), "bytes": saved}
        result = work.result(report)
        if copies:
            report = {"recomputed": len(copies), "bytes": saved}
            report["peak_before"] = measure(graph, batch=self.batch).peak_bytes
            report["peak_after"] = measure(result.graph, batch=self.batch).peak_bytes
            result.report.update(report)
        return result

    def _is_cheap(self, work: Rewriting, node: Node) -> bool:
        return (
            node.op in _CHEAP
            and _MARK not in node.attrs
            and is_pure(node)
            and not work.is_fed(node)
            and node.num_outputs == 1
            and not any(source.op in ("Switch", "Enter", "Merge") for source, _ in node.inputs)
        )

    def _bytes(self, work: Rewriting, node: Node) -> int:
        return size(work.shape(node.output()), self.batch) * node.output_types[0].size


def _is_in(name: str, scope: str) -> bool:
    return any(part == scope or part.startswith(f"{scope}_") for part in name.split("/")[:-1])


def _trigger(work: Rewriting, user: Node, node: Node, backward: set[str], place: dict[str, int]) -> Node | None:
    """The gradient that `user` takes beside `node` and that comes last; all of what a copy waits for comes before."""
    sources = [source for source, _ in user.inputs if source.name in backward and source is not node]
    found = [source for source in sources if source.op not in ("Const", "Switch") and source.name in place]
    return max(found, key=lambda each: place[each.name], default=None)
