"""What `Session.run` was asked for: any nesting of lists, tuples, dicts and named tuples of tensors and ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from toolkit.client.construction.elements import Composite, GraphElement
from toolkit.client.construction.tensor import IndexedSlices
from toolkit.client.structures.values import IndexedSlicesValue
from toolkit.errors import ArgumentTypeError, ArgumentValueError
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.graph.tensorref import parse_input
from toolkit.runtime.sessions import conversions

Rebuild = Callable[[Sequence[Any]], Any]


class Fetches:
    """A fetch structure taken apart.

    Attributes:
        outputs: the distinct tensors to compute, in order of appearance.
        targets: the distinct nodes to run for their effect.
    """

    def __init__(self, graph: Graph, structure: Any):
        self._graph = graph
        self._positions: dict[Output, int] = {}
        self._targets: dict[Node, None] = {}
        self._rebuild = self._take(structure)
        self.outputs: list[Output] = list(self._positions)
        self.targets: list[Node] = list(self._targets)

    def build(self, values: Sequence[Any]) -> Any:
        """The caller's structure with values in place of `outputs` (None in place of ops)."""
        return self._rebuild(values)

    def _take(self, structure: Any) -> Rebuild:
        if isinstance(structure, list | tuple) and not isinstance(structure, Output):
            make: Any = type(cast("object", structure))
            parts = [self._take(item) for item in cast("Sequence[Any]", structure)]
            if make is list:
                return lambda values: [part(values) for part in parts]
            if hasattr(make, "_fields"):
                return lambda values: make(*(part(values) for part in parts))
            return lambda values: tuple(part(values) for part in parts)
        if isinstance(structure, Mapping):
            mapping = cast("Mapping[Any, Any]", structure)
            items = [(key, self._take(value)) for key, value in mapping.items()]
            make_mapping: Any = type(mapping)
            return lambda values: make_mapping((key, part(values)) for key, part in items)
        composite = _composite_parts(structure)
        if composite is not None:
            make_value, parts_of = composite
            parts = [self._take(part) for part in parts_of]
            return lambda values: make_value(*(part(values) for part in parts))
        conversion = conversions.of(structure)
        if conversion is not None:
            tensors, contract = conversion.fetched(structure)
            parts = [self._take(part) for part in tensors]
            return lambda values: contract([part(values) for part in parts])
        element = graph_element(self._graph, structure)
        if isinstance(element, Node):
            self._targets[element] = None
            return lambda values: None
        position = self._positions.setdefault(element, len(self._positions))
        return lambda values: values[position]


def graph_element(graph: Graph, thing: Any, *, names_are_tensors: bool = False) -> Output | Node:
    """The endpoint or node that a fetch, feed or target names.

    Args:
        thing: "name:0" (a tensor), "name" (an operation), an Output, a Node, a client Tensor, Operation or
            variable.
        names_are_tensors: "name" means "name:0" instead.

    Raises:
        UsageError: it is None or of a type that names nothing in a graph.
        GraphError: the graph has no such node or output.
    """
    if isinstance(thing, str | bytes):
        text = thing.decode() if isinstance(thing, bytes) else thing
        ref = parse_input(text)
        if ref.is_control:
            return graph.node(ref.node)
        if ":" in text or names_are_tensors:
            return graph.output(ref)
        return graph.node(text)
    if isinstance(thing, GraphElement):
        thing = thing.endpoint()
    if isinstance(thing, Output | Node):
        return _same_graph(graph, thing)
    raise ArgumentTypeError(
        f"{thing!r} ({type(thing).__name__}) cannot be fetched or fed; expected a tensor, an operation or a name"
    )


def _same_graph(graph: Graph, thing: Output | Node) -> Output | Node:
    owner = thing.node.graph if isinstance(thing, Output) else thing.graph
    if owner is not graph:
        raise ArgumentValueError(f"{thing!r} is not an element of this graph")
    return thing


def _composite_parts(thing: Any) -> tuple[Callable[..., Any], list[Any]] | None:
    """Sparse tensors and IndexedSlices are fetched part by part and come back as a tuple of values."""
    if isinstance(thing, Composite):
        make, tensors = thing.parts()
        return make, list(tensors)
    if not isinstance(thing, IndexedSlices):
        return None
    shape = [] if thing.dense_shape is None else [thing.dense_shape]
    return IndexedSlicesValue, [thing.values, thing.indices, *shape]
