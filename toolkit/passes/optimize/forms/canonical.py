"""Normal order, names and attributes: the same model gives the same bytes."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from schemas.attr_value_pb2 import AttrValue
from toolkit.errors import GraphmillError
from toolkit.graph.check import colocations
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import NEXT_ITERATION_OPS, Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.flow.functions import editable_body
from toolkit.passes.optimize.kept import Kept, kept_by, kept_in
from toolkit.passes.optimize.removal.strip_defaults import has_default
from toolkit.passes.optimize.rewriting import Optimization

#: rounds in which nodes learn of what is around loops
_ROUNDS = 2


@dataclass(frozen=True)
class Canonical(Optimization):
    """Write a graph as any other that is the same would be written.

    Nodes come in an order, and nodes that nobody names have names, that follow from what they compute and from what is
    done with it, not from the file; the same holds in functions. Attributes with defaults and static shapes go, tensors
    are written one way, control inputs are sorted, functions stand by name, and where nodes came from is forgotten.
    Variables and other nodes that are known by their own name keep it, as do loop frames.

    Attributes:
        names: give new names; without, only the order, the attributes and the tensors are made normal.
    """

    name: ClassVar[str] = "canonical"
    undoes: ClassVar[tuple[str, ...]] = ("add_default_attributes", "obfuscate_names", "sort_by_execution_order")

    names: bool = True

    def apply(self, graph: Graph) -> PassResult:
        """The report has `renamed`, how many nodes were."""
        named = self.kept.names | _fixed(graph) if self.names else frozenset(node.name for node in graph)
        order = _ends_outside(canonical_order(graph, named))
        out = graph.subgraph(())
        copies: dict[Node, Node] = {}
        taken = {node.name for node in order if node.name in named}
        counts: Counter[str] = Counter()
        renamed = 0
        for node in order:
            name = node.name
            if name not in named:
                name = _next_name(node.op, counts, taken)
                renamed += name != node.name
            attrs = {key: value for key in sorted(node.attrs) if (value := _normal(node, key)) is not None}
            copies[node] = out.add(node.op, name, attrs=attrs, device=node.device)
        for node, copy in copies.items():
            copy.inputs = [Output(copies[source], index) for source, index in node.inputs]
            copy.control_inputs = sorted({copies[source] for source in node.control_inputs}, key=lambda each: each.name)
        if not self.kept.in_function:  # a function shares its library with the graph
            out.library.sort()
        modified = _bytes(out) != _bytes(graph)
        return PassResult(out if modified else graph, modified, {"renamed": renamed})


def content_hash(meta: MetaGraph) -> str:
    """A text that is the same for the same model: the same nodes, attributes, weights, functions and signatures,
    however they are ordered and whatever the nodes are called that nobody names.

    Raises:
        GraphError: the graph has a cycle outside a loop.
    """
    graph, kept = meta.graph, kept_by(meta)
    told = hashlib.sha256()
    for each in sorted(_described(graph, kept)):
        told.update(each)
    for name in sorted(graph.library):
        told.update(name.encode())
        body = editable_body(graph, name)
        if body is None:
            told.update(graph.library.function(name).SerializeToString(deterministic=True))
            continue
        for each in sorted(_described(body.graph, kept_in(body))):
            told.update(each)
    for key in sorted(meta.signatures):
        signature = meta.signatures[key]
        for group in (signature.input_tensors(), signature.output_tensors()):
            told.update(repr((key, sorted(group.items()))).encode())
    return told.hexdigest()


def _described(graph: Graph, kept: Kept) -> Iterable[bytes]:
    return node_keys(graph, kept.names | _fixed(graph)).values()


def canonical_order(graph: Graph, named: frozenset[str]) -> list[Node]:
    """All nodes, each after its inputs, in an order that does not depend on the file's."""
    keys = node_keys(graph, named)
    consumers: dict[Node, list[Node]] = {node: [] for node in graph}
    pending: dict[Node, int] = {}
    for node in graph:
        sources = _sources(node)
        pending[node] = len(sources)
        for source in sources:
            consumers[source].append(node)
    place: dict[Node, int] = {}

    def entry(node: Node) -> tuple[Any, ...]:
        inputs = tuple((place.get(source, -1), index) for source, index in node.inputs)
        waits = tuple(sorted(place.get(source, -1) for source in node.control_inputs))
        return keys[node], inputs, waits, node.id, node

    heap = [entry(node) for node, count in pending.items() if not count]
    heapq.heapify(heap)
    order: list[Node] = []
    while heap:
        node: Node = heapq.heappop(heap)[-1]
        place[node] = len(order)
        order.append(node)
        for user in consumers[node]:
            pending[user] -= 1
            if not pending[user]:
                heapq.heappush(heap, entry(user))
    return order


def _ends_outside(order: list[Node]) -> list[Node]:
    """Arguments of a function before its other nodes and results behind them, where they are in a body that is read."""
    ends: dict[str, list[Node]] = {"_Arg": [], "": [], "_Retval": []}
    for node in order:
        ends.get(node.op, ends[""]).append(node)
    for op in ("_Arg", "_Retval"):
        ends[op].sort(key=lambda node: node.attr("index"))
    return [node for group in ends.values() for node in group]


def node_keys(graph: Graph, named: frozenset[str]) -> dict[Node, bytes]:
    """For each node a hash of what it computes and what is made of it; of equal ones any may be the first."""
    order = graph.topological_order()
    keys = {node: _digest(_local(node, node.name if node.name in named else "")) for node in order}
    for _ in range(_ROUNDS):
        before: dict[Node, bytes] = {}
        for node in order:
            parts = [keys[node]]
            parts += [before.get(source, keys[source]) + b":%d" % index for source, index in node.inputs]
            parts += sorted(b"^" + before.get(source, keys[source]) for source in node.control_inputs)
            before[node] = _digest(parts)
        users: dict[Node, list[bytes]] = {node: [] for node in order}
        after: dict[Node, bytes] = {}
        for node in reversed(order):
            mine = after[node] = _digest([before[node], *sorted(users[node])])
            for position, (source, index) in enumerate(node.inputs):
                users[source].append(b"%d:%d:" % (position, index) + mine)
            for source in node.control_inputs:
                users[source].append(b"^" + mine)
        keys = after
    return keys


def _sources(node: Node) -> list[Node]:
    """What comes before a node: back edges of loops do not count."""
    data = [source for source, _ in node.inputs if node.op != "Merge" or source.op not in NEXT_ITERATION_OPS]
    return [*data, *node.control_inputs]


def _local(node: Node, name: str) -> list[bytes]:
    parts = [node.op.encode(), node.device.encode(), name.encode()]
    for key in sorted(node.attrs):
        value = _normal(node, key)
        if value is not None:
            parts += [key.encode(), value.SerializeToString(deterministic=True)]
    return parts


def _normal(node: Node, key: str) -> AttrValue | None:
    """An attribute as it is written; None where it goes."""
    if key == "_output_shapes" or has_default(node, key):
        return None
    value = node.attrs.proto(key)
    if key != "value" or node.op != "Const":
        return value
    from toolkit.formats.arrays.tensor import dtype_of, from_array, to_array

    try:
        dtype = dtype_of(value.tensor)
        return AttrValue(tensor=from_array(to_array(value.tensor), dtype))
    except GraphmillError:  # a damaged tensor is left as it is
        return value


def names_itself(node: Node) -> bool:
    """Whether a resource is known by the name of its node: a variable or table without a shared name."""
    definition = node.graph.find_op_def(node.op)
    return (
        definition is not None
        and "shared_name" in definition.attrs
        and not node.attr_or("shared_name", b"")
    )  # fmt: skip


def _fixed(graph: Graph) -> frozenset[str]:
    """Names that say something: of resources, and of nodes that others are placed with."""
    fixed = {node.name for node in graph if names_itself(node)}
    for node in graph:
        if "_class" in node.attrs:
            fixed.update(colocations(node))
    return frozenset(fixed)


def _next_name(op: str, counts: Counter[str], taken: set[str]) -> str:
    stem = op.lstrip("_")
    while True:
        name = f"{stem}_{counts[stem]}" if counts[stem] else stem
        counts[stem] += 1
        if name not in taken:
            taken.add(name)
            return name


def _digest(parts: Iterable[bytes]) -> bytes:
    told = hashlib.sha256()
    for part in parts:
        told.update(b"%d|" % len(part))
        told.update(part)
    return told.digest()


def _bytes(graph: Graph) -> list[bytes]:
    message = graph.to_proto()
    parts: list[Any] = [*message.node, *message.library.function]
    return [part.SerializeToString(deterministic=True) for part in parts]
