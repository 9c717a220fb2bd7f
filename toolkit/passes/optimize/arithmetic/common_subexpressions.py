"""Compute once what is computed several times."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.removal.strip_defaults import has_default
from toolkit.passes.optimize.rewriting import Optimization, Rewriting, is_pure

#: ops of two inputs whose order makes no difference to any bit of the result, for numbers
_COMMUTATIVE = frozenset({
    "Add", "AddV2", "Mul", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "SquaredDifference", "ApproximateEqual",
})  # fmt: skip
#: and these for whole numbers: of 0 and -0, and of NaNs, it is the first or the second
_COMMUTATIVE_INTEGERS = frozenset({"Maximum", "Minimum"})
_HASHED = 64


@dataclass(frozen=True)
class CommonSubexpressions(Optimization):
    """Merge pure nodes of one op with the same attributes, inputs, control inputs and device.

    Constants among them, and nodes that become alike when their inputs are merged. Of two, the one that is asked for
    stays; where both are, the second becomes an Identity, constants and nodes of several outputs apart. Custom
    attributes, whose names begin with an underscore, must agree but for shapes.
    """

    name: ClassVar[str] = "common_subexpressions"

    def apply(self, graph: Graph) -> PassResult:
        """The report has `merged`, how many nodes became another's."""
        work = Rewriting(graph, self.kept)
        seen: dict[tuple[Any, ...], Node] = {}
        merged = 0
        for original in graph.topological_order():
            node = work.graph.node(original.name)
            if not is_pure(node) or work.is_fed(node):
                continue
            key = _key(node)
            first = seen.setdefault(key, node)
            if first is node:
                continue
            if work.is_kept(node) and not work.is_kept(first):
                first, node = node, first
                seen[key] = first
                if not _before(work, first, node):
                    continue
            merged += _merge(work, first, node)
        return work.result({"merged": merged})


def _before(work: Rewriting, first: Node, second: Node) -> bool:
    """Whether the users of `second` may take what `first` computes: both have the same inputs, so there is no cycle."""
    return first.inputs == second.inputs or set(first.inputs) == set(second.inputs)


def _merge(work: Rewriting, first: Node, node: Node) -> bool:
    """Have the users of a node use another one that is like it."""
    changes = work.changes
    for index in range(node.num_outputs):
        work.redirect(node.output(index), first.output(index))
    work.redirect_controls(node, [first])
    if work.is_kept(node) and node.op not in ("Const", "Identity") and node.num_outputs == 1:
        work.turn_identity(node, first.output())
    return work.changes > changes


def _key(node: Node) -> tuple[Any, ...]:
    inputs = [(source, index) for source, index in node.inputs]
    if len(inputs) == 2 and _commutes(node):
        inputs.sort(key=lambda each: (each[0].id, each[1]))
    definition = node.op_def
    attrs: list[tuple[str, bytes]] = []
    for name in {*definition.attrs, *(key for key in node.attrs if key.startswith("_") and key != "_output_shapes")}:
        value = node.attr_proto(name)
        if value is None or (name in definition.attrs and has_default(node, name)):
            continue
        data = value.SerializeToString(deterministic=True)
        attrs.append((name, hashlib.sha256(data).digest() if len(data) > _HASHED else data))
    controls = frozenset(node.control_inputs)
    return node.op, node.device, tuple(sorted(attrs)), tuple(inputs), controls


def _commutes(node: Node) -> bool:
    dtype = node.inputs[0].dtype
    if dtype.kind not in "biufc":
        return False
    return node.op in _COMMUTATIVE or (node.op in _COMMUTATIVE_INTEGERS and dtype.kind in "iu")
