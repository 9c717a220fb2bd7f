"""Dropout taken out of a graph that was made for training, whichever form it was written in.

Dropout multiplies what it keeps by 1 / keep_prob, so its mean is its input: that is what a trained network is used
with. It is known by the mask: random numbers compared with a rate, or added to keep_prob and rounded down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs

_RANDOM = frozenset({"RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2"})
#: what random numbers may go through between the generator and the mask: scaled to [0, 1), handed on
_SCALED = frozenset({"Mul", "Add", "AddV2", "Sub", "Identity", "Cast", "StopGradient"})
_MOST = 12


@dataclass(frozen=True)
class RemoveDropout(Optimization):
    """Let what a dropout's input gives pass.

    Results change, as they are meant to: they no longer depend on chance. The report has `removed`: the names of the
    nodes that were the ends of dropouts.
    """

    name: ClassVar[str] = "remove_dropout"

    def apply(self, graph: Graph) -> PassResult:
        found = Subgraphs(graph, self.kept)
        removed: list[str] = []
        for node in found.each("Mul", "SelectV2", "Select"):
            if found.is_fed(node):
                continue
            source = _of_product(found, node) if node.op == "Mul" else _of_choice(found, node)
            if source is None or source.dtype.base != node.output_types[0]:
                continue
            removed.append(node.name)
            shapes = node.attr_proto("_output_shapes")
            found.turn_identity(node, source)
            if shapes is not None:
                node.attrs["_output_shapes"] = shapes
        return found.result({"removed": removed})


def _of_product(found: Subgraphs, node: Node) -> Output | None:
    """x of `x / keep * mask` and `x * (1 / keep) * mask`, in either order."""
    for value, mask in (node.inputs, node.inputs[::-1]):
        if _is_mask(mask):
            return _unscaled(found, value)
    return None


def _of_choice(found: Subgraphs, node: Node) -> Output | None:
    """x of `where(mask, x / keep, 0)`."""
    zero = found.array(node.inputs[2])
    if zero is None or zero.any() or not _is_comparison(node.inputs[0]):
        return None
    return _unscaled(found, node.inputs[1])


def _unscaled(found: Subgraphs, value: Output) -> Output | None:
    """x of x / keep and x * (1 / keep), where keep is one number."""
    node = value.node
    if node.op in ("RealDiv", "Div"):
        return node.inputs[0] if _is_number(found, node.inputs[1]) else None
    if node.op == "Mul":
        for source, factor in (node.inputs, node.inputs[::-1]):
            if _is_number(found, factor):
                return source
    return None


def _is_number(found: Subgraphs, output: Output) -> bool:
    """Whether an output is one number: a constant, or made from a placeholder for keep_prob."""
    value = found.array(output)
    if value is not None:
        return bool(value.size == 1)
    return _is_scalar_input(found, output, _MOST)


def _is_scalar_input(found: Subgraphs, output: Output, left: int) -> bool:
    node = output.node
    value = found.array(output)
    if value is not None:
        return bool(value.size == 1)
    if node.op in ("Placeholder", "PlaceholderWithDefault"):
        shape = node.attr_or("shape", None)
        return shape is not None and shape.rank == 0
    if left <= 0 or node.op not in ("RealDiv", "Div", "Sub", "Identity", "Cast", "Reciprocal"):
        return False
    return all(_is_scalar_input(found, source, left - 4) for source in node.inputs)


def _is_mask(output: Output) -> bool:
    """Whether an output is 0 or 1 by chance: a comparison as a number, or floor(keep + random)."""
    node = output.node
    if node.op == "Cast" and node.inputs:
        return _is_comparison(node.inputs[0])
    if node.op == "Floor":
        total = node.inputs[0].node
        return total.op in ("Add", "AddV2") and any(_is_random(source) for source in total.inputs)
    return False


def _is_comparison(output: Output) -> bool:
    """Whether an output says where random numbers are on one side of a rate."""
    node = output.node
    if node.op not in ("GreaterEqual", "Greater", "Less", "LessEqual"):
        return False
    return any(_is_random(source) for source in node.inputs)


def _is_random(output: Output) -> bool:
    """Whether an output is made of one generator of uniform numbers and of nothing that is computed from data."""
    node = output.node
    for _ in range(_MOST):
        if node.op in _RANDOM:
            return True
        if node.op not in _SCALED:
            return False
        others = [source.node for source in node.inputs if source.node.op != "Const"]
        if len(others) != 1:
            others = [other for other in others if other.op in _RANDOM or other.op in _SCALED]
            others = [other for other in others if not _is_range(other)]
        if len(others) != 1:
            return False
        node = others[0]
    return False


def _is_range(node: Node) -> bool:
    """Whether a node is the width of the interval that random numbers are scaled to."""
    return node.op == "Sub" and all(source.node.op == "Const" for source in node.inputs)
