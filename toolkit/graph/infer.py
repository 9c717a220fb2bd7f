"""Static shape inference over a node or a whole graph.

Shape functions are looked up in `toolkit.graph.shapes.registry`; ops without one have unknown outputs. Small
integer values are followed through the graph (`toolkit.graph.values`) for inputs such as shapes and axes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from toolkit.errors import BugError, GraphError, GraphmillError
from toolkit.graph import input_rules
from toolkit.graph.alike import Alike, Key, Known, key_of
from toolkit.graph.attrs import is_written
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS, Node, Output
from toolkit.graph.shape import UNKNOWN, Shape
from toolkit.graph.shapes import registry
from toolkit.graph.shapes.calls import Calls, HandleData
from toolkit.graph.shapes.registry import ShapeContext
from toolkit.graph.tensorref import parse_tensor
from toolkit.graph.values.evaluator import Evaluator, is_foldable
from toolkit.graph.values.value import Value

#: how often a loop's Merge may change its mind before its shape is given up
MAX_MERGE_UPDATES = 12
#: of how many nodes that differ in the values of their inputs alone what came of them is kept
_MOST_ALIKE = 4

Constants = Callable[[int], Any] | Mapping[int, Any] | None


def infer_node(
    node: Node,
    input_shapes: Sequence[Shape],
    constants: Constants = None,
    handles: Callable[[int], HandleData | None] | None = None,
) -> list[Shape]:
    """The shapes of a node's outputs, given those of its data inputs.

    Args:
        constants: the values of inputs that are known before running, by position: a number or (nested) lists
            with None for unknown elements. Default: found by walking back through the graph.
        handles: what resource and variant inputs hold. Default: found by walking back through the graph.

    Raises:
        GraphError: the shapes contradict what the op needs.
    """
    return _run(node, input_shapes, constants, handles)[0]


def _run(
    node: Node,
    input_shapes: Sequence[Shape],
    constants: Constants,
    handles: Callable[[int], HandleData | None] | None,
    calls: Calls | None = None,
) -> tuple[list[Shape], dict[int, HandleData]]:
    function = registry.find(node.op)
    if constants is None:
        refiner = ShapeMap()
        constants = lambda index: refiner.constant(node.inputs[index])  # noqa: E731
    elif isinstance(constants, Mapping):
        constants = cast("Mapping[int, Any]", constants).get
    if handles is None:
        handles = lambda index: handle_data(node.inputs[index])  # noqa: E731
    context = ShapeContext(node, input_shapes, cast("Callable[[int], Any]", constants), handles, calls)
    _require_inputs(node, len(input_shapes))
    count = node.num_outputs
    try:
        input_rules.require(node, input_shapes, cast("Callable[[int], Any]", constants), handles)
        if function is None:
            return [UNKNOWN] * count, {}
        shapes = list(function(context))
        if len(shapes) != count:
            raise GraphmillError(f"its attributes say {len(shapes)} shape(s) for {count} output(s)")
    except GraphmillError as error:
        if (isinstance(error, GraphError) and error.node) or isinstance(error, BugError):
            raise
        known = ", ".join(map(str, input_shapes))
        raise GraphError(f"{node.op} with inputs {known}: {error.message}", node=node.name) from None
    except (MemoryError, RecursionError):  # which whoever calls has used up
        raise
    except Exception as error:
        raise BugError(f"the shape function of {node.op}", error, node=node.name) from error
    return shapes, context.output_handles


def _require_inputs(node: Node, count: int) -> None:
    """Raise unless a node has as many data inputs as its op takes; shape functions rely on it."""
    op_def = node.op_def
    wanted = op_def.fixed_count("inputs")
    if wanted is None:
        wanted = len(node.input_types)
    if count != wanted:
        raise GraphError(f"{node.op} takes {wanted} input(s); it has {count}", node=node.name)


class ShapeMap(Mapping[Output, Shape]):
    """The shape of every output of a graph; unknown ones have `Shape(None)`.

    Nodes that were never asked about are inferred on demand, so an empty map grows with a graph that is being
    built. After a node's inputs or attributes change, call `forget`.

    Args:
        calls: what is known of functions, for as long as nobody changes a graph; by default each call is followed for
            itself.

    Attributes:
        on_contradiction: called by `visit` with a node whose shapes contradict each other and the error.
    """

    def __init__(self, calls: Calls | None = None) -> None:
        self._calls = calls
        self.on_contradiction: Callable[[Node, GraphmillError], None] | None = None
        self._shapes: dict[Node, Known] = {}
        self._handles: dict[tuple[Node, int], HandleData] = {}
        self._fed: dict[Output, Shape] = {}
        self._fed_nodes: set[Node] = set()
        self._nodes: Alike | None = None  # while a whole graph is visited
        self._inferring: set[Node] = set()
        # what comes of nodes of one kind with inputs of the same shapes, where nothing else matters but the values of
        # some inputs, which were asked for in this order
        self._alike: dict[tuple[NodeKind | Shape | None, ...], list[tuple[list[tuple[int, Any]], list[Shape]]]] = {}
        self._values = Evaluator(self.__getitem__, self._value_of)

    def of(self, node: Node) -> list[Shape]:
        """The shapes of a node's outputs; nothing is known of them while they are being inferred."""
        known = self._shapes.get(node)
        if known is None:
            if node in self._inferring:  # on a cycle that no loop makes
                return []
            self._demand(node)
            known = self._shapes[node]
        return known

    def __getitem__(self, output: Output) -> Shape:
        shapes = self.of(output.node)
        return shapes[output.index] if 0 <= output.index < len(shapes) else UNKNOWN

    def __iter__(self) -> Iterator[Output]:
        for node, shapes in self._shapes.items():
            for index in range(len(shapes)):
                yield Output(node, index)

    def __len__(self) -> int:
        return sum(map(len, self._shapes.values()))

    def constant(self, output: Output) -> Any:
        """The value of an output when it is known before running (see `toolkit.graph.values`)."""
        return None if output in self._fed else self._values(output)

    def values_of(self, node: Node) -> list[Value | None]:
        """What is known of the values of a node's outputs before running; nothing where values are not followed."""
        return [self._values.value(Output(node, i)) for i in range(len(self.of(node)))] if is_foldable(node.op) else []

    def compared(self, node: Node) -> list[Any] | None:
        """The known values of a node's outputs, to see whether they change.

        Raises:
            GraphmillError: its attributes do not say how many outputs it has.
        """
        return [self.constant(Output(node, i)) for i in range(node.num_outputs)] if is_foldable(node.op) else None

    def is_recalled(self, node: Node) -> bool:
        """Whether what is known of a node would be found again for others like it, its values among that: of others
        values are looked for when somebody asks for them (`Alike`)."""
        return self._shapes[node].values is not None

    def handle(self, output: Output) -> HandleData | None:
        """The shapes and types of what a resource or variant handle holds, when known."""
        self.of(output.node)
        return self._handles.get((output.node, output.index))

    def forget(self, node: Node) -> None:
        """Drop what is known about a node."""
        self._shapes.pop(node, None)
        self._values.forget(node)

    def feed(self, output: Output, shape: Shape, handle: HandleData | None = None) -> None:
        """From now on this output has this shape, and its value is not known."""
        self._fed[output] = shape
        self._fed_nodes.add(output.node)
        if handle is not None:
            self._handles[(output.node, output.index)] = handle
        self._values.block(output)

    def update(self, node: Node) -> list[Shape]:
        """Infer a node from what is known about its inputs, store and return it.

        Raises:
            GraphError: a contradiction.
        """
        return self._update(node, None)

    def _update(self, node: Node, as_known: Key | None) -> list[Shape]:
        """`update`, to be recalled for nodes of the same key where nothing else matters."""
        inputs = [self._known(source) for source in node.inputs]
        kind = node.kind
        key = (kind and (kind.like or kind), *inputs)
        asked: list[tuple[int, Any]] = []
        asked_handle = False

        def constant(index: int) -> Any:
            value = self.constant(node.inputs[index])
            asked.append((index, value))
            return value

        def handle(index: int) -> HandleData | None:
            nonlocal asked_handle
            asked_handle = True
            return self._handles.get(node.inputs[index])

        self._inferring.add(node)
        try:
            alike = self._alike.get(key, ()) if kind is not None else ()
            for values, known in alike:
                if all(self.constant(node.inputs[index]) == value for index, value in values):
                    self.store(node, known, {})
                    return self._keep(node, as_known)
            shapes, handles = _run(node, inputs, constant, handle, self._calls)
        finally:
            self._inferring.discard(node)
        shapes = _refined(node, shapes)
        is_alike = kind is not None and not asked_handle and not handles and registry.is_local(node.op)
        if is_alike and len(alike) < _MOST_ALIKE:
            self._alike.setdefault(key, []).append((asked, shapes))
        self.store(node, shapes, handles)
        return self._keep(node, as_known) if is_alike else self._shapes[node]

    def _keep(self, node: Node, key: Key | None) -> Known:
        """Have what was stored of a node recalled for all of its key, its values too."""
        known = self._shapes[node]
        if key is not None and self._nodes is not None:
            if known.values is None:
                values = [self._values.value(Output(node, index)) for index in range(len(known))]
                known = self._shapes[node] = self._nodes.known(known, values)
            self._nodes.keep(key, known)
        return known

    def _value_of(self, node: Node) -> list[Value | None] | None:
        """The values of a node's outputs where they were found with its shapes."""
        known = self._shapes.get(node)
        return None if known is None else known.values

    @contextmanager
    def whole_graph(self) -> Generator[None]:
        """While all nodes of a graph are visited, each after its inputs: what is fed is known, and none changes."""
        self._nodes = Alike()
        try:
            yield
        finally:
            self._nodes = None

    def visit(self, node: Node, *, strict: bool) -> list[Shape]:
        """`update` in the course of a whole graph: a Merge takes what its known inputs have in common.

        Raises:
            GraphError: a contradiction, if `strict`; else the outputs are unknown.
        """
        if node.op in MERGE_OPS:
            known = [self._known(source) for source in node.inputs if source.node in self._shapes]
            handles = [h for source in node.inputs if (h := self._handles.get(source)) is not None]
            self.store(node, [_common(known), Shape(())], {0: handles[0]} if handles else {})
            return self._shapes[node]
        key = None
        if self._nodes is not None and node not in self._fed_nodes:
            key = key_of(node, self._shapes)
            found = None if key is None else self._nodes.recall(key)
            if found is not None:
                self._shapes[node] = found
                return found
        try:
            return self._update(node, key)
        except GraphmillError as error:
            if strict:
                raise
            if self.on_contradiction is not None:
                self.on_contradiction(node, error)
            node.graph.op_def(node.op)  # an unknown op is an error, strict or not
            self.store(node, _blank(node), {})
            return self._shapes[node]

    def store(self, node: Node, shapes: list[Shape], handles: dict[int, HandleData]) -> None:
        """Note the shapes of a node's outputs; those that are fed keep their own."""
        if self._fed:
            shapes = [self._fed.get(Output(node, i), shape) for i, shape in enumerate(shapes)]
        if self._nodes is not None and not is_foldable(node.op):
            self._shapes[node] = self._nodes.known(shapes, [])
        else:
            self._shapes[node] = Known(shapes)
        for index, handle in handles.items():
            self._handles[(node, index)] = handle

    def _known(self, source: Output) -> Shape:
        shapes = self._shapes.get(source.node)
        return UNKNOWN if shapes is None or source.index >= len(shapes) else shapes[source.index]

    def _demand(self, node: Node) -> None:
        """Infer a node and what it needs, depth first; loops get no information from their back edges."""
        stack = [node]
        entered: set[Node] = set()
        while stack:
            current = stack[-1]
            if current in self._shapes:
                stack.pop()
            elif current in entered:
                try:
                    self.update(current)
                except GraphmillError:
                    self.store(current, _blank(current), {})
            else:
                entered.add(current)
                stack += [
                    src
                    for src, _ in current.inputs
                    if src not in self._shapes
                    and src not in entered
                    and src not in self._inferring
                    and src.op not in NEXT_ITERATION_OPS
                ]


def _blank(node: Node) -> list[Shape]:
    """Unknown shapes for a node's outputs; none where its attributes do not say how many there are."""
    try:
        return [UNKNOWN] * node.num_outputs
    except GraphmillError:
        return []


def _refined(node: Node, shapes: list[Shape]) -> list[Shape]:
    """Shapes merged with what the file says in `_output_shapes`.

    Raises:
        GraphError: the two contradict each other.
    """
    noted = node.attr_proto("_output_shapes")
    if noted is None:
        return shapes
    written = noted.list.shape
    if len(written) != len(shapes) or all(map(is_written, shapes, written)):
        return shapes  # nothing that is not known, as nearly always
    said: list[Shape] | None = node.attr_or("_output_shapes", None)
    if said is None:
        return shapes
    out: list[Shape] = []
    for index, (mine, theirs) in enumerate(zip(shapes, said, strict=True)):
        if not mine.is_compatible_with(theirs):
            raise GraphError(
                f"its attribute '_output_shapes' says {theirs} for output {index}, but it has shape {mine}",
                node=node.name,
            )
        out.append(mine.merge(theirs))
    return out


def handle_data(output: Output) -> HandleData | None:
    """What a resource or variant handle holds, found by walking back through the graph; None when unknown."""
    return ShapeMap().handle(output)


def constant_value(output: Output) -> Any:
    """The value of an output when it follows from constants: a number, (nested) lists, or None."""
    return ShapeMap().constant(output)


def infer(
    graph: Graph,
    feeds: Mapping[str, Shape] | None = None,
    *,
    strict: bool = True,
    arguments: Mapping[Output, tuple[Shape, HandleData | None]] | None = None,
    on_contradiction: Callable[[Node, GraphmillError], None] | None = None,
    calls: Calls | None = None,
    order: list[Node] | None = None,
) -> ShapeMap:
    """The static shape of every output of a graph.

    Loops start from what enters them and are widened until their Merge nodes no longer change.

    Args:
        feeds: shapes of tensors that will be fed, by name; they replace what would be inferred.
        strict: raise on a contradiction; else the node's outputs are unknown.
        arguments: shapes and handles of outputs that are known from outside (arguments of a function body).
        on_contradiction: with strict=False, called with each node whose shapes contradict each other, perhaps more
            than once in a loop.
        calls: see `ShapeMap`.
        order: the graph's topological order, where it is known.

    Raises:
        GraphError: a contradiction, a cycle outside a loop, or (strict or not) an unknown op.
    """
    shapes = ShapeMap(calls)
    shapes.on_contradiction = on_contradiction
    for name, shape in (feeds or {}).items():
        shapes.feed(graph.output(parse_tensor(name)), shape)
    for output, (shape, handle) in (arguments or {}).items():
        shapes.feed(output, shape, handle)
    order = graph.topological_order() if order is None else order
    with shapes.whole_graph():
        for node in order:
            shapes.visit(node, strict=strict)
        if any(node.op in NEXT_ITERATION_OPS for node in order):
            _settle_loops(graph, shapes, order, strict)
    return shapes


def _settle_loops(graph: Graph, shapes: ShapeMap, order: list[Node], strict: bool) -> None:
    """Re-infer around back edges until nothing changes."""
    position = [0] * len(order)  # in the order, by id
    for place, node in enumerate(order):
        position[node.id] = place
    # for a start who reads what goes around; of all nodes only once something has changed
    around = {node.id for node in order if node.op in NEXT_ITERATION_OPS}
    readers: dict[int, list[int]] = {}
    for node in graph.nodes:
        for source, _ in node.inputs:
            if source.id in around:
                readers.setdefault(source.id, []).append(position[node.id])
    has_all = False
    updates: dict[Node, int] = {}
    pending: list[int] = []
    queued: set[int] = set()

    def push(node: Node) -> None:
        for place in readers.get(node.id, ()):
            if place not in queued:
                queued.add(place)
                heapq.heappush(pending, place)

    for node in order:
        if node.op in NEXT_ITERATION_OPS:
            push(node)
    while pending:
        place = heapq.heappop(pending)
        queued.discard(place)
        node = order[place]
        before, value = shapes.of(node), shapes.compared(node)
        shapes.forget(node)
        after = shapes.visit(node, strict=strict)
        if node.op in MERGE_OPS and after != before:
            updates[node] = updates.get(node, 0) + 1
            if updates[node] > MAX_MERGE_UPDATES:
                after = [UNKNOWN, Shape(())]
                shapes.store(node, after, {})
        if after != before or shapes.compared(node) != value:
            if not has_all:
                has_all = True
                readers.clear()
                for reader in graph.nodes:
                    for source, _ in reader.inputs:
                        readers.setdefault(source.id, []).append(position[reader.id])
            push(node)


def _common(known: list[Shape]) -> Shape:
    out = known[0] if known else UNKNOWN
    for shape in known[1:]:
        out = out.most_specific_common(shape)
    return out


__all__ = ["ShapeMap", "constant_value", "handle_data", "infer", "infer_node"]
