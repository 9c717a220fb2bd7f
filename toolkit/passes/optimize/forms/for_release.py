"""Graphs that older releases of TensorFlow load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from toolkit.errors import GraphError, UsageError, did_you_mean
from toolkit.graph import releases
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.arithmetic.constants import same_shape
from toolkit.passes.optimize.removal.strip_defaults import has_default
from toolkit.passes.optimize.rewriting import Optimization, Rewriting

#: attributes without effect
_FOR_PEOPLE = frozenset({"debug_name"})
#: what is said of at most
_NAMED = 5


@dataclass(frozen=True)
class ForRelease(Optimization):
    """Take out what an older release does not know, by the table of releases in which each op and attribute appeared.

    Attributes of later releases go that have their default, or that only people read. AddV2, BatchMatMulV2 and V3,
    SelectV2, FusedBatchNormV3 and LeakyRelu are replaced by what there was before, where that is the same, and
    DisableCopyOnRead by nothing. What is left is an error that names it: functions and functional control flow go with
    `inline_functions` and `lower_control_flow`, which come before.

    Attributes:
        release: "1.15".
    """

    name: ClassVar[str] = "for_release"

    release: str

    def __post_init__(self) -> None:
        known = releases.releases()
        if self.release not in known:
            raise UsageError(
                f"there is no release '{self.release}' in the table"
                + did_you_mean(self.release, known, then=f"it has {known[0]} to {known[-1]}")
            )

    def apply(self, graph: Graph) -> PassResult:
        """The report has `attributes` and `replaced`, how many.

        Raises:
            GraphError: something is left that the release does not know.
        """
        work = Rewriting(graph, self.kept)
        attributes = replaced = 0
        for node in list(work.graph):
            late = releases.later_than(node.op, self.release)
            if late.is_op and node.op in _OLDER and not work.is_fed(node):
                replaced += _OLDER[node.op](work, node)
                late = releases.later_than(node.op, self.release)
            for key in late.attrs:
                if key in node.attrs and (has_default(node, key) or key in _FOR_PEOPLE):
                    del node.attrs[key]
                    work.changes += 1
                    attributes += 1
        left: dict[str, str] = {}
        for node in work.graph:
            late = releases.later_than(node.op, self.release)
            if late.is_op:
                left.setdefault(f"{node.op} (from {late.since} on)", node.name)
            for key, since in late.attrs.items():
                if key in node.attrs:
                    left.setdefault(f"attribute '{key}' of {node.op} (from {since} on)", node.name)
        if left:
            shown = ", ".join(f"{what} at '{name}'" for what, name in list(left.items())[:_NAMED])
            more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
            raise GraphError(f"TensorFlow {self.release} does not know {shown}{more}")
        return work.result({"attributes": attributes, "replaced": replaced})


def _like(op: str) -> Callable[[Rewriting, Node], bool]:
    """An older op of the same inputs and meaning."""

    def rule(work: Rewriting, node: Node) -> bool:
        work.turn(node, op, node.inputs, {"T": node.output_types[0].base})
        return True

    return rule


def _product(work: Rewriting, node: Node) -> bool:
    """BatchMatMul of TensorFlow 1 does not broadcast."""
    first, second = (work.shape(source).dims for source in node.inputs)
    if first is None or second is None or len(first) != len(second) or first[:-2] != second[:-2] or None in first[:-2]:
        return False
    dtype = node.inputs[0].dtype.base
    if node.inputs[1].dtype.base is not dtype or node.output_types[0].base is not dtype:
        return False
    attrs = {"T": dtype, "adj_x": node.attr("adj_x"), "adj_y": node.attr("adj_y")}
    work.turn(node, "BatchMatMul", node.inputs, attrs)
    return True


def _choice(work: Rewriting, node: Node) -> bool:
    """Select takes a condition of the same shape, or a single one."""
    condition, first, second = (work.shape(source) for source in node.inputs)
    if not same_shape(first, second) or not (condition == first or condition.dims == ()):
        return False
    work.turn(node, "Select", node.inputs, {"T": node.output_types[0].base})
    return True


def _batch_norm(work: Rewriting, node: Node) -> bool:
    """Version 3 has one output more, which only a gradient of its own takes; the first has no types of its own."""
    extra = [node.output(i) for i in range(5, node.num_outputs)]
    if any(work.takers(output) or work.is_asked_for(output) for output in extra):
        return False
    keys = ("T", "U", "epsilon", "data_format", "is_training")
    attrs = {key: node.attr(key) for key in keys}
    if node.op_def.attrs.get("exponential_avg_factor") is not None and node.attr("exponential_avg_factor") != 1.0:
        return False
    work.turn(node, "FusedBatchNormV2", node.inputs, attrs)
    return True


def _leaky(work: Rewriting, node: Node) -> bool:
    """The larger of x and x * alpha, where alpha is at most one."""
    alpha = node.attr("alpha")
    if not 0 <= alpha <= 1:
        return False
    import numpy as np

    from toolkit.formats.arrays.tensor import from_array

    dtype = node.output_types[0].base
    value = from_array(np.asarray(alpha, dtype.numpy), dtype)
    waits = [] if work.is_plain(node.inputs[0].node) else [node.inputs[0].node]
    if waits and waits[0].op == "Switch":
        return False
    factor = work.add(
        "Const", f"{node.name}/alpha", control_inputs=waits, attrs={"dtype": dtype, "value": value}, device=node.device
    )
    inputs = [node.inputs[0], factor.output()]
    scaled = work.add("Mul", f"{node.name}/scaled", inputs, attrs={"T": dtype}, device=node.device)
    work.turn(node, "Maximum", [scaled.output(), node.inputs[0]], {"T": dtype})
    return True


def _copies(work: Rewriting, node: Node) -> bool:
    """What ends a way of reading that older variables do not have."""
    work.turn(node, "NoOp", (), {}, node.control_inputs)
    return True


_OLDER: dict[str, Callable[[Rewriting, Node], bool]] = {
    "AddV2": _like("Add"), "BatchMatMulV2": _product, "BatchMatMulV3": _product, "SelectV2": _choice,
    "FusedBatchNormV3": _batch_norm, "LeakyRelu": _leaky,
    "DisableCopyOnRead": _copies,
}  # fmt: skip
