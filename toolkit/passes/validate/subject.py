"""One MetaGraph under examination.

`Graph.from_proto` refuses a graph with a dangling input or two nodes of one name, which is right for every command
but this one: here all findings are wanted. `loose_graph` builds what can be built and notes the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.function_pb2 import FunctionDef, FunctionDefLibrary
from schemas.graph_pb2 import GraphDef
from schemas.meta_graph_pb2 import MetaGraphDef
from toolkit.errors import GraphError, GraphmillError, did_you_mean
from toolkit.formats import metagraph
from toolkit.formats.detect import Kind
from toolkit.formats.graphdef import no_gc
from toolkit.graph import check
from toolkit.graph.attrs import FuncRef, decode
from toolkit.graph.functions import FunctionLibrary, instantiate
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import NEXT_ITERATION_OPS, Node, Output
from toolkit.graph.tensorref import parse_input
from toolkit.passes.validate.options import Options
from toolkit.passes.validate.registry import Problem

if TYPE_CHECKING:
    from toolkit.passes.validate.sizes import Sizes


@dataclass(eq=False)
class Body:
    """A graph: the main one, or the body of a function.

    Attributes:
        function: the function's name; "" for the main graph.
        graph: its nodes.
        broken: ids of nodes whose inputs could not all be resolved.
        proto: the function, of a function's body.
    """

    function: str
    graph: Graph
    broken: set[int] = field(default_factory=set[int])
    proto: FunctionDef | None = None

    @cached_property
    def conformance(self) -> list[check.Finding]:
        """What `toolkit.graph.check` says about every node."""
        return [finding for node in self.graph.nodes for finding in check.check_node(node)]

    @cached_property
    def cycles(self) -> list[list[Node]]:
        """The nodes of each cycle outside a loop, in file order."""
        return find_cycles(self.graph)

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
        bodies: the main graph, then those functions that could be built.
        problems: what stood in the way of building graphs.
    """

    def __init__(
        self,
        proto: MetaGraphDef,
        graph_def: GraphDef,
        *,
        file: str,
        kind: Kind,
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
        with no_gc():
            main = loose_graph(graph_def, self.problems)
        self.meta = self._meta(proto, main.graph)
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

    @cached_property
    def calls(self) -> dict[str, list[tuple[Body | None, str, FuncRef]]]:
        """Function name to its callers: the body (None when that could not be built), the node, the reference."""
        found: dict[str, list[tuple[Body | None, str, FuncRef]]] = {}
        for body, node in self.nodes():
            for ref in references(node):
                found.setdefault(ref.name, []).append((body, node.name, ref))
        return found

    def _function_bodies(self, graph: Graph) -> Iterator[Body]:
        library = graph.library
        needs_attrs = {name for name in library if library.function(name).signature.attr}
        given: dict[str, FuncRef] = {}
        if needs_attrs:
            for node in graph.nodes:
                for ref in references(node):
                    given.setdefault(ref.name, ref)
        for name in library:
            function = library.function(name)
            problems = list(_function_problems(name, function, library))
            self.problems += problems
            if any(p.rule != "functions/return" for p in problems):
                continue
            if name in needs_attrs and name not in given:
                continue  # its types are known only where it is called, and nothing calls it
            try:
                body = instantiate(library, FuncRef(name, given[name].attrs if name in given else {}))
            except (GraphmillError, KeyError) as error:
                missing = list(_missing_attrs(name, function, library))
                self.problems += missing
                if not problems and not missing:
                    message = error.message if isinstance(error, GraphmillError) else f"{error} is missing"
                    node = error.node if isinstance(error, GraphmillError) else None
                    self.problems.append(
                        Problem("functions/body", message.removeprefix(f"in function '{name}': "), node, name)
                    )
                continue
            yield Body(name, body.graph, proto=function)

    @cached_property
    def sizes(self) -> Sizes:
        """Parameters and operations of the graph."""
        from toolkit.passes.validate.sizes import measure_subject

        return measure_subject(self)


def references(node: Node) -> Iterator[FuncRef]:
    """The functions a node calls: by its op, or through its attributes."""
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


def _may_call(node: Node) -> bool:
    op_def = node.graph.find_op_def(node.op)
    return op_def is not None and any("func" in attr.type for attr in op_def.attrs.values())


# -- graphs that may be broken ---------------------------------------------------------------------------


def loose_graph(proto: GraphDef, problems: list[Problem]) -> Body:
    """Build a graph from a message (do not use it afterwards), as far as that goes.

    A second node of the same name is left out, an input that does not exist is left out and its node marked as
    broken; both are noted in `problems`.
    """
    graph = Graph()
    graph.versions.CopyFrom(proto.versions)
    graph.library = _loose_library(proto.library, problems)
    body = Body("", graph)
    nodes, by_name = graph.nodes, graph._by_name  # pyright: ignore[reportPrivateUsage]
    for definition in proto.node:
        name = definition.name
        if name in by_name:
            problems.append(Problem("structure/duplicate-name", f"two nodes are named '{name}'", name))
            continue
        node = Node(graph, len(nodes), name, definition.op, definition.device, definition)
        by_name[name] = node
        nodes.append(node)
    for node in nodes:
        _link(node, by_name, body.broken, problems)
    graph._shell = GraphDef()  # pyright: ignore[reportPrivateUsage]
    return body


def _loose_library(proto: FunctionDefLibrary, problems: list[Problem]) -> FunctionLibrary:
    library = FunctionLibrary()
    for function in proto.function:
        try:
            library.add(function)
        except GraphError as error:
            problems.append(Problem("functions/duplicate", error.message, function=function.signature.name))
    library.gradients = {g.function_name: g.gradient_func for g in proto.gradient}
    return library


def _link(node: Node, by_name: dict[str, Node], broken: set[int], problems: list[Problem]) -> None:
    assert node.base is not None
    for text in node.base.input:
        src = by_name.get(text)
        index = 0
        if src is None:
            name, index = parse_input(text)
            src = by_name.get(name)
            if src is None:
                rule = "structure/dangling-control" if index < 0 else "structure/dangling-input"
                what = "waits for" if index < 0 else "has the input"
                hint = did_you_mean(name, by_name) if len(problems) < 50 else ""  # a search through all names
                problems.append(Problem(rule, f"it {what} '{text}', which does not exist{hint}", node.name))
                if index >= 0:
                    broken.add(node.id)
                continue
            if index < 0:
                node.control_inputs.append(src)
                continue
        if node.control_inputs:
            problems.append(
                Problem("structure/input-order", f"its data input '{text}' comes after a control input", node.name)
            )
        node.inputs.append(Output(src, index))


def _function_problems(name: str, function: FunctionDef, library: FunctionLibrary) -> Iterator[Problem]:
    """What is wrong with a function's body by its names alone."""
    from toolkit.graph import opdefs

    args = {arg.name for arg in function.signature.input_arg}
    nodes: set[str] = set()
    outputs: dict[str, set[str]] = {}
    is_known = True
    for node in function.node_def:
        if node.name in nodes:
            yield Problem("structure/duplicate-name", f"two nodes are named '{node.name}'", node.name, name)
        nodes.add(node.name)
        op_def = library.op_def(node.op) or opdefs.find(node.op)
        if op_def is None:
            hint = did_you_mean(node.op, (*opdefs.names(), *library))
            yield Problem("opdef/unknown-op", f"unknown op '{node.op}'{hint}", node.name, name)
            is_known = False
        else:
            outputs[node.name] = {arg.name for arg in op_def.outputs}

    def exists(text: str) -> bool:
        node, _, rest = text.partition(":")
        if node in nodes and rest:
            return not is_known or rest.partition(":")[0] in outputs[node]
        return node in args

    for node in function.node_def:
        for text in node.input:
            if text.startswith("^"):
                if text[1:] not in nodes and text[1:] not in args:
                    message = f"it waits for '{text}', which does not exist"
                    yield Problem("structure/dangling-control", message, node.name, name)
            elif not exists(text):
                hint = did_you_mean(text.partition(":")[0], nodes | args)
                message = f"it has the input '{text}', which does not exist{hint}"
                yield Problem("structure/dangling-input", message, node.name, name)
    for arg in function.signature.output_arg:
        source = function.ret.get(arg.name)
        if source is None:
            yield Problem("functions/return", f"its result '{arg.name}' has no value in 'ret'", function=name)
        elif not exists(source):
            yield Problem(
                "functions/return", f"its result '{arg.name}' is '{source}', which does not exist", function=name
            )
    for key in sorted(function.control_ret):
        if function.control_ret[key] not in nodes:
            message = f"its control result '{key}' is '{function.control_ret[key]}', which does not exist"
            yield Problem("functions/return", message, function=name)


def _missing_attrs(name: str, function: FunctionDef, library: FunctionLibrary) -> Iterator[Problem]:
    from toolkit.graph import opdefs

    for node in function.node_def:
        op_def = library.op_def(node.op) or opdefs.find(node.op)
        for key, definition in op_def.attrs.items() if op_def is not None else ():
            if not definition.has_default and key not in node.attr:
                yield Problem("opdef/missing-attr", f"{node.op} needs the attribute '{key}'", node.name, name)


# -- cycles ----------------------------------------------------------------------------------------------


def find_cycles(graph: Graph) -> list[list[Node]]:
    """The strongly connected parts of a graph without its loops' back edges, by Tarjan's algorithm (1972)."""
    try:
        graph.topological_order()
    except GraphError:
        pass
    else:
        return []
    nodes = graph.nodes
    sources = [
        [s.id for s, _ in n.inputs if s.op not in NEXT_ITERATION_OPS]
        + [s.id for s in n.control_inputs if s.op not in NEXT_ITERATION_OPS]
        for n in nodes
    ]
    index: dict[int, int] = {}
    low = [0] * len(nodes)
    on_path = bytearray(len(nodes))
    path: list[int] = []
    found: list[list[Node]] = []
    for root in range(len(nodes)):
        if root in index:
            continue
        work = [(root, iter(sources[root]))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path[root] = 1
        while work:
            node, rest = work[-1]
            for source in rest:
                if source not in index:
                    index[source] = low[source] = len(index)
                    path.append(source)
                    on_path[source] = 1
                    work.append((source, iter(sources[source])))
                    break
                if on_path[source]:
                    low[node] = min(low[node], index[source])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    part: list[int] = []
                    while not part or part[-1] != node:
                        part.append(path.pop())
                        on_path[part[-1]] = 0
                    if len(part) > 1 or node in sources[node]:
                        found.append([nodes[i] for i in sorted(part)])
    return found
