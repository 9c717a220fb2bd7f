"""Operations, parameters and bytes of a graph by op and by scope, and the memory it needs at its peak.

Calls are followed: a function counts once for every call, with the shapes of that call's arguments; the body of a
loop counts once, of a branch the costlier side. Everything is an estimate from static shapes; unknown first sizes
count as the batch. Each function is measured once for the same arguments, after those it calls, however deep calls
nest. What cannot be known (recursion, functions that cannot be built, shapes without a rank) is listed, and the
numbers are then "at least".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from toolkit.errors import GraphmillError
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import instantiate
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.infer import HandleData, ShapeMap
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.graph.shapes.calls import Calls
from toolkit.graph.shapes.nested import infer_nested
from toolkit.passes.operations import VIEWS, is_countable, operations, size

_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
_BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
#: nodes of functions that are looked at for shapes of their own, and how often all of those that there are
_MAX_NODES, _MAX_TIMES = 10_000, 10
#: scopes of one name that are summed up
_MAX_SCOPES = 200
#: functions that are named where all that is unknown is listed
_MAX_NAMES = 10


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
        unknown: what is not in the numbers, a sentence each; when there is any, they are "at least".
    """

    total: Cost = field(default_factory=Cost)
    by_op: dict[str, Cost] = field(default_factory=dict[str, Cost])
    by_scope: dict[str, Cost] = field(default_factory=dict[str, Cost])
    peak_bytes: int = 0
    weight_bytes: int = 0
    unknown: list[str] = field(default_factory=list[str])


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
    known = run.shapes(graph) if shapes is None else shapes
    main = _run(run.body(graph, known, wanted))
    assert main is not None
    out.peak_bytes = main.peak
    for body, times in run.executions(main):
        for name, op, cost in body.entries:
            cost = cost.times(times)
            out.by_op.setdefault(op, Cost()).add(cost)
            out.total.add(cost)
            for scope in _scopes(name):
                out.by_scope.setdefault(scope, Cost()).add(cost)
    out.weight_bytes = run.weight_bytes
    out.unknown = run.unknown()
    return out


def call_costs(graph: Graph, shapes: ShapeMap, *, batch: int = 1, calls: Calls | None = None) -> dict[Node, Cost]:
    """What the functions cost that each node of a graph calls, for one run of the node; nodes that call none are out.

    Args:
        shapes, batch, calls: as for `measure`.
    """
    if not len(graph.library):
        return {}
    run = _Measuring(graph, batch, calls or Calls())
    _run(run.body(graph, shapes, None))
    return {node: cost for node, cost in run.by_call.items() if node.graph is graph}


def _run(first: _Task) -> _Body | None:
    """The result of a task. Tasks give out those whose results they need, so nesting takes no stack of Python's."""
    tasks = [first]
    result: _Body | None = None
    error: GraphmillError | None = None
    while tasks:
        try:
            if error is not None:
                raised, error = error, None
                needed = tasks[-1].throw(raised)
            else:
                needed = tasks[-1].send(result)
            tasks.append(needed)
            result = None
        except StopIteration as end:
            tasks.pop()
            result = end.value
        except GraphmillError as raised:
            tasks.pop()
            if not tasks:
                raise
            error = raised
    return result


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
        total: of its nodes and of all that it calls.
        peak: the most bytes alive at once, those of calls included.
    """

    entries: list[tuple[str, str, Cost]] = field(default_factory=list[tuple[str, str, Cost]])
    calls: Counter[_Body] = field(default_factory=Counter["_Body"])
    total: Cost = field(default_factory=Cost)
    peak: int = 0


_Task = Generator["_Task", _Body | None, _Body | None]


class _Measuring:
    """Every function is looked at once for the same arguments, however often it is called."""

    def __init__(self, graph: Graph, batch: int, calls: Calls):
        self.batch = batch
        self.calls = calls
        self.weight_bytes = 0
        self.by_call: dict[Node, Cost] = {}
        self.variables: set[tuple[str, bytes, bytes]] = set()
        self.known: dict[tuple[Any, ...], _Body] = {}
        self.by_name: dict[str, _Body] = {}
        self.finished: list[_Body] = []
        self.active: set[str] = set()  # functions that are being measured, each for one of those that call it
        self.recursive: dict[str, None] = {}
        self.unbuilt: dict[str, None] = {}
        self.reused: dict[str, None] = {}
        self.shapeless = 0
        self.is_cut = False
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

    def shapes(self, graph: Graph, arguments: dict[Output, tuple[Shape, HandleData | None]] | None = None) -> ShapeMap:
        found = infer_nested(graph, self.calls, arguments)
        self.is_cut |= self.calls.is_cut
        return found

    def unknown(self) -> list[str]:
        """What could not be counted, a sentence each."""
        found: list[str] = []
        if self.recursive:
            found.append(
                f"functions that call themselves count once each time they are called: {_names(self.recursive)}"
            )
        if self.unbuilt:
            found.append(f"functions that cannot be built are not counted: {_names(self.unbuilt)}")
        if self.reused:
            found.append(
                f"functions called with too many shapes to follow count as in their first call: {_names(self.reused)}"
            )
        if self.shapeless:
            found.append(f"nodes whose shapes are not known before a run are not counted: {self.shapeless:,}")
        elif self.is_cut and not self.recursive:
            found.append("there are more calls than shapes can be followed through")
        return found

    def body(self, graph: Graph, shapes: ShapeMap, wanted: set[int] | None) -> _Task:
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
            body.total.add(cost)
            self.shapeless += not cost.flops and not is_countable(node, shapes)
            called: list[_Body] = []
            for ref in _called(node):
                found = yield self._function(node, ref, shapes)
                if found is not None:
                    called.append(found)
            if node.op in _BRANCHES and called:
                called = [max(called, key=lambda each: each.total.flops)]
            for inner in called:
                body.calls[inner] += 1
                body.total.add(inner.total)
                inside = max(inside, inner.peak)
                self.by_call.setdefault(node, Cost()).add(inner.total)
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
        if node.op != "Const" or node.head is None or "value" not in node.head.attr:
            return 0
        dtype = node.attr_or("dtype", None)
        shape = Shape([dim.size for dim in node.head.attr["value"].tensor.tensor_shape.dim])
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

    def _function(self, node: Node, ref: FuncRef, shapes: ShapeMap) -> _Task:
        """A function for the arguments of a call; None where its body cannot be built, so costs what nobody knows."""
        skipped = 1 if node.op in _BRANCHES else 0  # the predicate or index
        sources = node.inputs[skipped:]
        handles = [shapes.handle(source) for source in sources]
        held = tuple(None if handle is None else tuple(handle) for handle in handles)
        key = (ref.name, str(sorted(ref.attrs.items())), tuple(shapes[source] for source in sources), held)
        known = self.known.get(key)
        if known is not None:
            return known
        if ref.name in self.active:
            self.recursive[ref.name] = None
            return None
        if self.nodes_left < 0:  # too many shapes for too many functions: what the first call cost has to do
            self.reused[ref.name] = None
            return self.by_name.get(ref.name)
        self.active.add(ref.name)
        try:
            body = instantiate(node.graph.library, ref)
            self.nodes_left -= 1 + len(body.graph)
            arguments: dict[Output, tuple[Shape, HandleData | None]] = {
                arg.output(): (shapes[source], handle)
                for arg, source, handle in zip(body.args, sources, handles, strict=False)
            }
            result = yield self.body(body.graph, self.shapes(body.graph, arguments), None)
            assert result is not None
        except GraphmillError:
            self.unbuilt[ref.name] = None
            return None
        finally:
            self.active.discard(ref.name)
        self.known[key] = result
        self.by_name.setdefault(ref.name, result)
        return result


def _names(names: Iterable[str]) -> str:
    names = sorted(names)
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(f"'{name}'" for name in names[:_MAX_NAMES]) + more


def _called(node: Node) -> Iterator[FuncRef]:
    library = node.graph.library
    kind = node.kind
    if not len(library) or (kind is not None and not kind.names_functions):
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
