"""One MetaGraph under examination, and what several families of rules want to know of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.function_pb2 import FunctionDef
from schemas.graph_pb2 import GraphDef
from schemas.meta_graph_pb2 import AssetFileDef, MetaGraphDef
from toolkit.errors import GraphError, GraphmillError
from toolkit.formats.inspection.detect import ModelKind
from toolkit.formats.models import metagraph
from toolkit.graph import check
from toolkit.graph.attrs import FuncRef, decode, known_shape
from toolkit.graph.bodies import instantiate
from toolkit.graph.garbage import no_collection
from toolkit.graph.graph import Graph
from toolkit.graph.infer import HandleData, ShapeMap, infer
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.graph.shapes.calls import Calls
from toolkit.passes.validate.loose import find_cycles, function_problems, loose_graph, missing_attrs
from toolkit.passes.validate.options import Options
from toolkit.passes.validate.registry import Problem

if TYPE_CHECKING:
    from toolkit.formats.node_tables.table import NodeTable
    from toolkit.passes.validate.sizes import Sizes


@dataclass(eq=False)
class Body:
    """A graph: the main one, or the body of a function.

    Attributes:
        function: the function's name; "" for the main graph.
        graph: its nodes.
        broken: ids of nodes whose inputs could not all be resolved.
        proto: the function, of a function's body.
        calls: what is known of functions, for all bodies of a file together.
    """

    function: str
    graph: Graph
    calls: Calls
    broken: set[int] = field(default_factory=set[int])
    proto: FunctionDef | None = None

    @cached_property
    def conformance(self) -> list[check.GraphFinding]:
        """What `toolkit.graph.check` says about every node."""
        return list(check.check_nodes(self.graph))

    @property
    def table(self) -> NodeTable | None:
        """The nodes of a main graph while none has been made: `check_nodes` has found nothing wrong with any."""
        unmade = self.graph.unmade
        if unmade is None:
            return None
        from toolkit.formats.node_tables.table import NodeTable  # which has been imported then, and NumPy too

        return unmade if isinstance(unmade, NodeTable) else None

    def candidates(self, says: Callable[[Node], Iterable[object]]) -> Sequence[Node]:
        """All nodes; none where there is nothing to say of one of each kind, so that they need not be made.

        Args:
            says: what there is to say of a node, for its op and its attributes alone, but for the names in `_class`.
        """
        if self.table is not None and not any(True for node in self._examples for _ in says(node)):
            return ()
        return self.graph.nodes

    @cached_property
    def _examples(self) -> Sequence[Node]:
        return self.graph.examples()

    @cached_property
    def contradictions(self) -> dict[str, str]:
        """What contradicts itself in the shapes of `sound`: node to message."""
        table = self.table
        if table is not None and table.shapes_fit(self.graph, self.calls):
            return {}
        return self.inferred[1]

    @cached_property
    def cycles(self) -> list[list[Node]]:
        """The nodes of each cycle outside a loop, in file order."""
        return [] if self.table is not None else find_cycles(self.graph)

    @cached_property
    def unsound(self) -> set[int]:
        """Ids of nodes whose types cannot be relied on: broken, not conforming, or downstream of such a node."""
        graph = self.graph
        bad = set(self.broken)
        for finding in self.conformance:
            node = (
                graph.get(finding.node)
                if finding.node and finding.code not in ("name", "device", "colocation")
                else None
            )
            if node is not None and finding.level == check.ERROR:
                bad.add(node.id)
        bad.update(node.id for cycle in self.cycles for node in cycle)
        if not bad:
            return bad
        consumers = graph.consumers()
        todo = list(bad)
        for position in todo:
            for edge in consumers[position]:
                if edge.dst.id not in bad:
                    bad.add(edge.dst.id)
                    todo.append(edge.dst.id)
        return bad

    @cached_property
    def sound(self) -> Graph:
        """The part of the graph that can be analysed; the graph itself when nothing is wrong with it."""
        bad = self.unsound
        return self.graph.subgraph([n for n in self.graph.nodes if n.id not in bad]) if bad else self.graph

    @cached_property
    def order(self) -> list[Node]:
        """The nodes of `sound`, each after its inputs.

        Raises:
            GraphError: there is a cycle outside a loop.
        """
        return self.sound.topological_order()

    @cached_property
    def inferred(self) -> tuple[ShapeMap, dict[str, str]]:
        """The shapes of `sound`, and what contradicts itself there: node to message."""
        found: dict[str, str] = {}

        def keep(node: Node, error: GraphmillError) -> None:
            found.setdefault(error.node or node.name, error.message)

        try:
            shapes = infer(
                self.sound,
                strict=False,
                arguments=self._arguments(),
                on_contradiction=keep,
                calls=self.calls,
                order=self.order,
            )
        except GraphmillError as error:
            found.setdefault(error.node or "", error.message)
            shapes = ShapeMap(self.calls)
        return shapes, found

    def _arguments(self) -> dict[Output, tuple[Shape, HandleData | None]] | None:
        """The shapes of a function's arguments, where the function notes them."""
        if self.proto is None:
            return None
        out: dict[Output, tuple[Shape, HandleData | None]] = {}
        for position, arg in enumerate(self.proto.signature.input_arg):
            if position not in self.proto.arg_attr or "_output_shapes" not in self.proto.arg_attr[position].attr:
                continue
            noted = self.proto.arg_attr[position].attr["_output_shapes"].list.shape
            node = self.sound.get(arg.name)
            if len(noted) == 1 and node is not None and node.op == "_Arg":
                out[node.output()] = (known_shape(noted[0]), None)
        return out or None


class Subject:
    """One MetaGraph of one file, with everything the rules look at.

    Attributes:
        file: as it is reported.
        kind: of the file.
        tags: of this graph, "" when the file has only one.
        folder: the SavedModel folder, or None.
        length: bytes of the file, as far as it is one.
        meta: the MetaGraph around the main graph; its graph may lack what could not be built.
        proto: a copy of the MetaGraphDef with its signatures and collections, without the graph.
        assets: its asset files.
        bodies: the main graph, then those functions that could be built.
        problems: what stood in the way of building graphs.
    """

    def __init__(
        self,
        proto: MetaGraphDef,
        read: GraphDef | Graph,
        *,
        file: str,
        kind: ModelKind,
        options: Options,
        tags: str = "",
        folder: Path | None = None,
        length: int = 0,
    ):
        self.file = file
        self.length = length
        self.kind = kind
        self.options = options
        self.tags = tags
        self.folder = folder
        self.problems: list[Problem] = []
        self.proto = MetaGraphDef()
        self.proto.CopyFrom(proto)
        broken: set[int] = set()
        if isinstance(read, Graph):
            graph = read
        else:
            with no_collection():
                graph, broken = loose_graph(read, self.problems)
        self.calls = Calls()
        main = Body("", graph, self.calls, broken)
        if graph.unmade is not None:
            _ = main.conformance  # which is found without a node, as long as there is none
        self.meta = self._meta(proto, main.graph)
        self.assets: list[AssetFileDef] = []
        try:
            self.assets = self.meta.assets
        except GraphError as error:
            self.problems.append(Problem("structure/collection", error.message))
        self.bodies = [main, *self._function_bodies(main.graph)]

    @property
    def graph(self) -> Graph:
        return self.bodies[0].graph

    def _meta(self, proto: MetaGraphDef, graph: Graph) -> MetaGraph:
        try:
            meta = metagraph.from_proto(proto)
        except GraphmillError as error:
            self.problems.append(Problem("signatures/malformed", error.message))
            return MetaGraph(graph)
        meta.graph = graph
        return meta

    def nodes(self) -> Iterator[tuple[Body, Node]]:
        """Every node of every body."""
        for body in self.bodies:
            for node in body.graph.nodes:
                yield body, node

    def _function_bodies(self, graph: Graph) -> Iterator[Body]:
        library = graph.library
        needs_attrs = {name for name in library if library.function(name).signature.attr}
        given = dict(_bindings(graph)) if needs_attrs else {}
        for name in library:
            function = library.function(name)
            problems = list(function_problems(name, function, library))
            self.problems += problems
            if any(p.rule != "functions/return" for p in problems):
                continue
            if name in needs_attrs and name not in given:
                continue  # its types are known only where it is called, and nothing calls it
            try:
                body = instantiate(library, FuncRef(name, given[name].attrs if name in given else {}))
            except (GraphmillError, KeyError) as error:
                missing = list(missing_attrs(name, function, library))
                self.problems += missing
                if not problems and not missing:
                    message = error.message if isinstance(error, GraphmillError) else f"{error} is missing"
                    node = error.node if isinstance(error, GraphmillError) else None
                    self.problems.append(
                        Problem("functions/body", message.removeprefix(f"in function '{name}': "), node, name)
                    )
                continue
            yield Body(name, body.graph, self.calls, proto=function)

    @cached_property
    def sizes(self) -> Sizes:
        """Parameters and operations of the graph."""
        from toolkit.passes.validate.sizes import measure_subject

        return measure_subject(self)


def _bindings(graph: Graph) -> Iterator[tuple[str, FuncRef]]:
    """Generic functions with the types of one of their calls, from the graph inwards."""
    seen: set[str] = set()
    todo = [graph]
    while todo:
        for node in todo.pop().nodes:
            for ref in references(node):
                if ref.name in seen or ref.name not in graph.library:
                    continue
                seen.add(ref.name)
                yield ref.name, ref
                try:
                    todo.append(instantiate(graph.library, ref).graph)
                except (GraphmillError, KeyError):
                    continue  # what is wrong with it is reported where its body is built


def references(node: Node) -> Iterator[FuncRef]:
    """The functions a node calls: by its op, or through its attributes."""
    kind = node.kind
    if kind is not None and not kind.names_functions:
        return  # nor is its op a function
    library = node.graph.library
    if node.op in library:
        yield FuncRef(node.op, dict(node.attrs))
    base = node.base
    for key in (base.attr if base is not None else ()) if len(library) or _may_call(node) else ():
        value = base.attr[key]  # type: ignore[union-attr]
        kind = value.WhichOneof("value")
        if kind == "func":
            yield decode(value)
        elif kind == "list" and value.list.func:
            yield from decode(value)


def callers(graph: Graph) -> Iterator[Node]:
    """Nodes that may call functions: all of them, or one of each kind where none has been made."""
    for node in graph.examples():
        kind = node.kind
        if kind is None or kind.names_functions:
            yield node


def _may_call(node: Node) -> bool:
    op_def = node.graph.find_op_def(node.op)
    return op_def is not None and any("func" in attr.type for attr in op_def.attrs.values())
