"""Operations, parameters and bytes of a graph by op and by scope, and the memory it needs at its peak.

Calls are followed: a function counts once for every call, with the shapes of that call's arguments; the body of a
loop counts once, of a branch the costlier side. Everything is an estimate from static shapes; unknown first sizes
count as the batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from toolkit.errors import GraphmillError
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import instantiate
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.infer import HandleData, ShapeMap, infer
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.graph.shapes.calls import Calls
from toolkit.passes.operations import VIEWS, operations, size

_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
_BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
#: calls deeper than this are recursion
_MAX_DEPTH = 40
#: nodes of functions that are looked at for shapes of their own, and how often all of those that there are
_MAX_NODES, _MAX_TIMES = 10_000, 10
#: scopes of one name that are summed up
_MAX_SCOPES = 200


@dataclass(slots=True)
class Cost:
    """What nodes cost.

    Attributes:
        nodes: how many there are; those of functions once for each call.
        flops: floating-point operations.
        parameters: elements of variables and of floating-point constants.
        bytes: of all results together.
    """

    nodes: int = 0
    flops: int = 0
    parameters: int = 0
    bytes: int = 0

    def add(self, other: Cost) -> None:
        self.nodes += other.nodes
        self.flops += other.flops
        self.parameters += other.parameters
        self.bytes += other.bytes

    def times(self, count: int) -> Cost:
        return Cost(self.nodes * count, self.flops * count, self.parameters * count, self.bytes * count)

    def as_json(self) -> dict[str, int]:
        return {"nodes": self.nodes, "flops": self.flops, "parameters": self.parameters, "bytes": self.bytes}


@dataclass(slots=True)
class Measured:
    """A graph's costs.

    Attributes:
        total: of one run of all measured nodes.
        by_op: op to cost, calls resolved into the ops of the functions.
        by_scope: every name scope to the cost of what is below it; "" is the total. Nodes of functions are in the
            scopes of their own names.
        peak_bytes: the most bytes of results alive at once when nodes run one after the other in topological order;
            constants and variables come on top.
        weight_bytes: bytes of constants and variables.
    """

    total: Cost = field(default_factory=Cost)
    by_op: dict[str, Cost] = field(default_factory=dict[str, Cost])
    by_scope: dict[str, Cost] = field(default_factory=dict[str, Cost])
    peak_bytes: int = 0
    weight_bytes: int = 0


def measure(
    graph: Graph,
    *,
    batch: int = 1,
    within: Iterable[Node] | None = None,
    shapes: ShapeMap | None = None,
    calls: Calls | None = None,
) -> Measured:
    """Measure a graph.

    Args:
        batch: what an unknown first size counts as.
        within: only these nodes (a signature's); default all.
        shapes: of the graph, where they are known already.
        calls: what is known of functions, where that is shared.

    Raises:
        GraphError: the graph has a cycle outside a loop or an unknown op.
    """
    run = _Measuring(graph, batch, calls or Calls())
    wanted = None if within is None else {node.id for node in within}
    out = Measured()
    known = infer(graph, strict=False, calls=run.calls) if shapes is None else shapes
    main = run.body(graph, known, wanted, 0)
    out.peak_bytes = main.peak
    for body, times in run.executions(main):
        for name, op, cost in body.entries:
            cost = cost.times(times)
            out.by_op.setdefault(op, Cost()).add(cost)
            out.total.add(cost)
            for scope in _scopes(name):
                out.by_scope.setdefault(scope, Cost()).add(cost)
    out.weight_bytes = run.weight_bytes
    return out


def _scopes(name: str) -> Iterator[str]:
    """The scopes that a node is in, the innermost first, "" last."""
    place = name.rfind("/")
    for _ in range(_MAX_SCOPES):
        if place < 0:
            break
        yield name[:place]
        place = name.rfind("/", 0, place)
    if name:
        yield ""


@dataclass(slots=True, eq=False)
class _Body:
    """A graph, or a function for certain shapes of its arguments.

    Attributes:
        entries: name, op and cost of each of its own nodes.
        calls: what it calls, and how often.
        flops: of its nodes and of all that it calls.
        peak: the most bytes alive at once, those of calls included.
    """

    entries: list[tuple[str, str, Cost]] = field(default_factory=list[tuple[str, str, Cost]])
    calls: Counter[_Body] = field(default_factory=Counter["_Body"])
    flops: int = 0
    peak: int = 0


class _Measuring:
    """Every function is looked at once for the same arguments, however often it is called."""

    def __init__(self, graph: Graph, batch: int, calls: Calls):
        self.batch = batch
        self.calls = calls
        self.weight_bytes = 0
        self.variables: set[tuple[str, bytes, bytes]] = set()
        self.known: dict[tuple[Any, ...], _Body] = {}
        self.by_name: dict[str, _Body] = {}
        self.finished: list[_Body] = []
        library = graph.library
        self.nodes_left = _MAX_NODES + _MAX_TIMES * sum(len(library.function(name).node_def) for name in library)

    def executions(self, main: _Body) -> Iterator[tuple[_Body, int]]:
        """How often each body runs when the main one runs once; callers come first."""
        times = Counter({main: 1})
        for body in reversed(self.finished):  # a body is finished after all that it calls
            count = times[body]
            if count:
                yield body, count
                for inner, calls in body.calls.items():
                    times[inner] += calls * count

    def body(self, graph: Graph, shapes: ShapeMap, wanted: set[int] | None, depth: int) -> _Body:
        """The cost of every node, and the peak of the bytes alive."""
        order = graph.topological_order()
        if wanted is not None:
            order = [node for node in order if node.id in wanted]
        readers = [0] * len(graph)
        for node in order:
            for source, _ in node.inputs:
                readers[source.id] += 1
        body = _Body()
        held = [0] * len(graph)
        alive = peak = 0
        for node in order:
            cost = Cost(1, operations(node, shapes, self.batch), self._parameters(node))
            cost.bytes = self._bytes(node, shapes)
            inside = 0
            body.entries.append((node.name, node.op, cost))
            body.flops += cost.flops
            for inner in self._calls(node, shapes, depth):
                body.calls[inner] += 1
                body.flops += inner.flops
                inside = max(inside, inner.peak)
            if node.op in VIEWS:
                held[node.id] = 0
            else:
                held[node.id] = cost.bytes
                alive += cost.bytes
            peak = max(peak, alive + inside)
            if not readers[node.id]:
                alive -= held[node.id]
            for source, _ in node.inputs:
                readers[source.id] -= 1
                if not readers[source.id]:
                    alive -= held[source.id]
        body.peak = peak
        self.finished.append(body)
        return body

    def _bytes(self, node: Node, shapes: ShapeMap) -> int:
        try:
            kinds = Counter(zip(shapes.of(node), node.output_types, strict=False))
            return sum(size(shape, self.batch) * dtype.size * count for (shape, dtype), count in kinds.items())
        except GraphmillError:
            return 0

    def _parameters(self, node: Node) -> int:
        if node.op in _VARIABLES:
            if not self._is_first(node):
                return 0
            shape, dtype = node.attr_or("shape", None), node.attr_or("dtype", None)
            count = (shape.num_elements if isinstance(shape, Shape) else 0) or 0
            self.weight_bytes += count * (dtype.size if isinstance(dtype, DType) else 0)
            return count
        if node.op != "Const" or node.base is None or "value" not in node.base.attr:
            return 0
        dtype = node.attr_or("dtype", None)
        shape = Shape([dim.size for dim in node.base.attr["value"].tensor.tensor_shape.dim])
        count = shape.num_elements or 0
        if not isinstance(dtype, DType):  # a damaged file
            return 0
        self.weight_bytes += count * dtype.size
        return count if dtype.is_floating and count > 1 else 0

    def _is_first(self, node: Node) -> bool:
        """Whether no node before stands for the same variable: handles of one shared name do."""
        names: list[Any] = [node.attr_or("container", b""), node.attr_or("shared_name", b"") or node.name.encode()]
        container, shared = (name if isinstance(name, bytes) else b"" for name in names)  # else a damaged file
        key = (node.op, container, shared)
        if key in self.variables:
            return False
        self.variables.add(key)
        return True

    def _calls(self, node: Node, shapes: ShapeMap, depth: int) -> list[_Body]:
        """The functions that run when a node does: of branches the costliest."""
        refs = list(_called(node))
        if not refs or depth > _MAX_DEPTH:
            return []
        found = [body for ref in refs if (body := self._function(node, ref, shapes, depth)) is not None]
        if node.op in _BRANCHES and found:
            return [max(found, key=lambda body: body.flops)]
        return found

    def _function(self, node: Node, ref: FuncRef, shapes: ShapeMap, depth: int) -> _Body | None:
        """A function for the arguments of a call; None where its body cannot be built, so costs what nobody knows."""
        skipped = 1 if node.op in _BRANCHES else 0  # the predicate or index
        sources = node.inputs[skipped:]
        handles = [shapes.handle(source) for source in sources]
        held = tuple(None if handle is None else tuple(handle) for handle in handles)
        key = (ref.name, str(sorted(ref.attrs.items())), tuple(shapes[source] for source in sources), held)
        known = self.known.get(key)
        if known is not None:
            return known
        if self.nodes_left < 0:  # too many shapes for too many functions: what the first call cost has to do
            return self.by_name.get(ref.name)
        try:
            body = instantiate(node.graph.library, ref)
            self.nodes_left -= 1 + len(body.graph)
            arguments: dict[Output, tuple[Shape, HandleData | None]] = {
                arg.output(): (shapes[source], handle)
                for arg, source, handle in zip(body.args, sources, handles, strict=False)
            }
            inner = infer(body.graph, strict=False, arguments=arguments, calls=self.calls)
            result = self.body(body.graph, inner, None, depth + 1)
        except GraphmillError:
            return None
        self.known[key] = result
        self.by_name.setdefault(ref.name, result)
        return result


def _called(node: Node) -> Iterator[FuncRef]:
    library = node.graph.library
    if not len(library):
        return
    if node.op in library:
        yield FuncRef(node.op, dict(node.attrs))
    for key in sorted(node.attrs):
        value = node.attrs.proto(key)
        kind = value.WhichOneof("value")
        if kind == "func" or (kind == "list" and value.list.func):
            decoded: Any = node.attr_or(key, [])
            refs = cast("list[Any]", decoded) if isinstance(decoded, list) else [decoded]
            yield from (ref for ref in refs if isinstance(ref, FuncRef) and ref.name in library)
