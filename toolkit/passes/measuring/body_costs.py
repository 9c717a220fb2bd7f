"""What the nodes of one graph cost, or of one function for certain arguments; functions once for the same arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from toolkit.errors import GraphmillError
from toolkit.formats.models.protoscan import varint_bytes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import instantiate
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.infer import HandleData, ShapeMap
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.graph.shapes.calls import Calls
from toolkit.graph.shapes.nested import infer_nested
from toolkit.passes.measuring.operations import VIEWS, is_countable, operations, size

VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
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


def scopes_of(name: str) -> Iterator[str]:
    """The scopes that a node is in, the innermost first, "" last."""
    place = name.rfind("/")
    for _ in range(_MAX_SCOPES):
        if place < 0:
            break
        yield name[:place]
        place = name.rfind("/", 0, place)
    if name:
        yield ""


class Weights(NamedTuple):
    """What a variable or a constant holds: elements that count as parameters, and bytes."""

    parameters: int
    bytes: int


def constant_weights(node: Node) -> Weights:
    """What a Const holds; a number by itself is no parameter.

    Raises:
        GraphmillError: its value has no shape that there can be.
    """
    if node.head is None or "value" not in node.head.attr:
        return Weights(0, 0)
    dtype = node.attr_or("dtype", None)
    shape = Shape([dim.size for dim in node.head.attr["value"].tensor.tensor_shape.dim])
    count = shape.num_elements or 0
    if not isinstance(dtype, DType):  # a damaged file
        return Weights(0, 0)
    return Weights(count if dtype.is_floating and count > 1 else 0, count * dtype.size)


def constant_bytes(node: Node) -> int | None:
    """The bytes of a Const's value as a message; None where it has none."""
    if node.head is None or "value" not in node.head.attr:
        return None
    size: int = node.head.attr["value"].tensor.ByteSize()
    if node.packed is None:
        return size
    content = len(node.packed.content)
    return size + 1 + len(varint_bytes(content)) + content  # the tag of what the head lacks, its length and itself


class Variable(NamedTuple):
    """The variable that a node stands for.

    Attributes:
        shared_name: None where that is the node's own.
    """

    op: str
    container: bytes
    shared_name: bytes | None
    weights: Weights

    @classmethod
    def of(cls, node: Node) -> Variable:
        """The variable of a node with one of the ops `VARIABLES`."""
        container, shared = (node.attr_or(key, b"") for key in ("container", "shared_name"))
        shape, dtype = node.attr_or("shape", None), node.attr_or("dtype", None)
        count = (shape.num_elements if isinstance(shape, Shape) else 0) or 0
        weights = Weights(count, count * (dtype.size if isinstance(dtype, DType) else 0))
        # what is no text is in a damaged file
        name = (shared if isinstance(shared, bytes) else b"") if shared else None
        return cls(node.op, container if isinstance(container, bytes) else b"", name, weights)


class BodyCosts(ABC):
    """A graph, or a function for certain shapes of its arguments.

    Attributes:
        own: of all its own nodes together.
        calls: what it calls, and how often.
        total: of its nodes and of all that it calls.
        peak: the most bytes alive at once, those of calls included.
    """

    def __init__(self) -> None:
        self.own = Cost()
        self.calls: Counter[BodyCosts] = Counter()
        self.total = Cost()
        self.peak = 0

    @abstractmethod
    def by_op(self) -> Iterator[tuple[str, Cost]]:
        """What its own nodes cost, with their ops; an op may come several times."""

    @abstractmethod
    def by_scope(self) -> Iterator[tuple[str, Cost]]:
        """What its own nodes cost, with each scope that they are in; a scope may come several times."""

    def take_call(self, inner: BodyCosts) -> None:
        """Count a call of another body."""
        self.calls[inner] += 1
        self.total.add(inner.total)


class BodyOfNodes(BodyCosts):
    """A graph whose nodes were looked at one by one.

    Attributes:
        entries: name, op and cost of each.
    """

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[tuple[str, str, Cost]] = []

    def by_op(self) -> Iterator[tuple[str, Cost]]:
        return ((op, cost) for _, op, cost in self.entries)

    def by_scope(self) -> Iterator[tuple[str, Cost]]:
        return ((scope, cost) for name, _, cost in self.entries for scope in scopes_of(name))


#: gives out the tasks whose results it needs, and returns its own; None where a body cannot be built
Task = Generator["Task", BodyCosts | None, BodyCosts | None]


class Measuring:
    """Every function is looked at once for the same arguments, however often it is called."""

    def __init__(self, graph: Graph, batch: int, calls: Calls):
        self.batch = batch
        self.calls = calls
        self.weight_bytes = 0
        self.by_call: dict[Node, Cost] = {}
        self.variables: set[tuple[str, bytes, bytes]] = set()
        self.known: dict[tuple[Any, ...], BodyCosts] = {}
        self.by_name: dict[str, BodyCosts] = {}
        self.finished: list[BodyCosts] = []
        self.active: set[str] = set()  # functions that are being measured, each for one of those that call it
        self.recursive: dict[str, None] = {}
        self.unbuilt: dict[str, None] = {}
        self.reused: dict[str, None] = {}
        self.shapeless = 0
        self.is_cut = False
        library = graph.library
        self.nodes_left = _MAX_NODES + _MAX_TIMES * sum(len(library.function(name).node_def) for name in library)

    def executions(self, main: BodyCosts) -> Iterator[tuple[BodyCosts, int]]:
        """How often each body runs when the main one runs once; callers come first."""
        times = Counter({main: 1})
        for body in reversed(self.finished):  # a body is finished after all that it calls
            count = times[body]
            if count:
                yield body, count
                for inner, calls in body.calls.items():
                    times[inner] += calls * count

    def shapes(
        self, graph: Graph, arguments: Mapping[Output, tuple[Shape, HandleData | None]] | None, order: list[Node]
    ) -> ShapeMap:
        """The shapes of a graph's outputs.

        Args:
            arguments: what is known of some from outside.
            order: the graph's topological order.
        """
        found = infer_nested(graph, self.calls, arguments, order)
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

    def body(self, graph: Graph, shapes: ShapeMap, order: list[Node]) -> Task:
        """The cost of nodes of a graph, and the peak of the bytes alive.

        Args:
            order: these nodes in topological order.
        """
        readers = [0] * len(graph)
        for node in order:
            for source, _ in node.inputs:
                readers[source.id] += 1
        body = BodyOfNodes()
        held = [0] * len(graph)
        alive = peak = 0
        for node in order:
            cost = Cost(1, operations(node, shapes, self.batch), self._parameters(node), self.bytes_of(node, shapes))
            inside = 0
            body.entries.append((node.name, node.op, cost))
            body.own.add(cost)
            self.shapeless += not cost.flops and not is_countable(node, shapes)
            found: list[BodyCosts] = []
            for ref in called_by(node):
                inner = yield self.function(node, ref, shapes)
                if inner is not None:
                    found.append(inner)
            for inner in counted_of(node.op, found):
                body.take_call(inner)
                inside = max(inside, inner.peak)
                self.by_call.setdefault(node, Cost()).add(inner.total)
            if node.op not in VIEWS:
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
        body.total.add(body.own)
        self.finished.append(body)
        return body

    def bytes_of(self, node: Node, shapes: ShapeMap) -> int:
        """The bytes of a node's results."""
        try:
            kinds = Counter(zip(shapes.of(node), node.output_types, strict=False))
            return sum(size(shape, self.batch) * dtype.size * count for (shape, dtype), count in kinds.items())
        except GraphmillError:
            return 0

    def _parameters(self, node: Node) -> int:
        """The elements of a variable or a constant that count as parameters."""
        if node.op in VARIABLES:
            return self.first_use(Variable.of(node), node.name)
        return self.hold(constant_weights(node)) if node.op == "Const" else 0

    def first_use(self, variable: Variable, name: str) -> int:
        """The elements of a variable that a node stands for; 0 where one before did, for handles may share a name."""
        key = (variable.op, variable.container, name.encode() if variable.shared_name is None else variable.shared_name)
        if key in self.variables:
            return 0
        self.variables.add(key)
        return self.hold(variable.weights)

    def hold(self, weights: Weights, times: int = 1) -> int:
        """Count bytes of weights that some nodes hold; the parameters of one."""
        self.weight_bytes += weights.bytes * times
        return weights.parameters

    def function(self, node: Node, ref: FuncRef, shapes: ShapeMap) -> Task:
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
            order = body.graph.topological_order()
            result = yield self.body(body.graph, self.shapes(body.graph, arguments, order), order)
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


def counted_of(op: str, called: list[BodyCosts]) -> list[BodyCosts]:
    """Those that count of the bodies that a node calls: of branches the costlier one."""
    return [max(called, key=lambda each: each.total.flops)] if op in _BRANCHES and called else called


def called_by(node: Node) -> Iterator[FuncRef]:
    """The functions of its graph that a node calls: by its op, and through its attributes."""
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
