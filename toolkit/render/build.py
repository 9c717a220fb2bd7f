"""From graphs to the picture's model: scopes by name, function bodies in place, loop frames, partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from toolkit.errors import GraphmillError
from toolkit.graph import opdefs
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import FunctionBody, instantiate
from toolkit.graph.expansion import Expansion, expansion
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node
from toolkit.render.elements import Element, Link, LinkKind, Model, Scope
from toolkit.render.frame_scopes import frame_scopes, free_name

if TYPE_CHECKING:
    from toolkit.render.link_table import LinkTable

#: function bodies are put in place until this many elements came from them; later calls stay closed
FUNCTION_BUDGET = 200_000

#: a function of at least this many nodes, with what it calls, is drawn where it is called first, and only named
#: after that; so what is drawn is linear in the file, however often small functions call one another
SHOWN_ONCE = 30

#: calls inside calls deeper than this stay closed
MAX_DEPTH = 100

SEND_OPS, RECV_OPS = frozenset({"_Send", "_HostSend"}), frozenset({"_Recv", "_HostRecv"})

# Ops that hand on whatever they are given; the type attribute says whether that is a handle.
_PASSES_ON = {
    "_Arg": "T", "_Retval": "T", "Identity": "T", "Enter": "T", "Exit": "T", "Switch": "T", "Merge": "T",
    "NextIteration": "T", "Placeholder": "dtype", "_Recv": "tensor_type", "_HostRecv": "tensor_type",
}  # fmt: skip
_RESOURCE = 20

# Which inputs of a calling op go to which of its functions: attribute -> first input that is passed on.
_CALLS: dict[str, dict[str, int]] = {
    "PartitionedCall": {"f": 0},
    "StatefulPartitionedCall": {"f": 0},
    "SymbolicGradient": {},
    "If": {"then_branch": 1, "else_branch": 1},
    "StatelessIf": {"then_branch": 1, "else_branch": 1},
    "Case": {"branches": 1},
    "StatelessCase": {"branches": 1},
    "While": {"cond": 0, "body": 0},
    "StatelessWhile": {"cond": 0, "body": 0},
    "RemoteCall": {"f": 1},
}


def build_model(
    graphs: Graph | Mapping[str, Graph], title: str, *, functions: bool = True, tables: bool = False
) -> Model:
    """Make the picture's model of a graph, or of several side by side (a partition).

    Linear in nodes and edges. A `_Recv` is linked to the `_Send` of the same tensor in another graph.

    Args:
        graphs: one graph, or graphs by the name of their part.
        functions: put the bodies of called functions where they are called.
        tables: make no nodes of graphs that are tables; for pictures that show some of them.
    """
    builder = _Builder(Model(title), functions, tables)
    if isinstance(graphs, Graph):
        builder.add(graphs, builder.model.root)
    else:
        for name, graph in graphs.items():
            scope = builder.model.root.child(name, "partition")
            builder.add(graph, scope)
        builder.links += _join_partitions(builder.model)
    builder.finish()
    builder.model.count_sizes()
    return builder.model


def display_function_name(name: str) -> str:
    """A function's name without what tracing added: __inference_serving_default_123 is serving_default."""
    short = re.sub(r"^__(?:inference|forward|backward)_+", "", name)
    short = re.sub(r"(?:_\d+)+$", "", short)
    return short or name


class _Builder:
    def __init__(self, model: Model, functions: bool, takes_tables: bool):
        self.model = model
        self.functions = functions
        self.takes_tables = takes_tables
        self.opened = 0
        self.stack: list[str] = []
        self.expansions: dict[FunctionLibrary, Expansion] = {}
        self.shown: dict[str, str] = {}
        self.links: list[Link] = []
        self.tables: list[LinkTable] = []  # all links before these

    def add(self, graph: Graph, top: Scope) -> None:
        """Add the nodes of one graph under `top`."""
        if not self.takes_tables or graph.unmade is None or len(graph) <= self.model.shapes.most:
            self.add_nodes(graph, top)
        else:
            self._add_table(graph, top)

    def finish(self) -> None:
        """Give the model its links."""
        if not self.tables:
            self.model.links = self.links
            return
        from toolkit.render.link_table import LinkTable

        self.model.links = LinkTable.joined([*self.tables, LinkTable.of(self.links)])

    def add_nodes(self, graph: Graph, top: Scope) -> dict[int, Element]:
        """Add the nodes of one graph under `top`; returns the elements by node id."""
        prefix = top.path
        scopes = {"": top}
        begin = len(self.model.elements)
        elements = [self._place(node, prefix, scopes) for node in graph.nodes]
        opened = self._open_calls(
            graph, (e for e in elements if _function_attrs(e.op) or e.op in graph.library)
        )  # fmt: skip
        self._link(elements, opened)
        frame_scopes(self.model, graph, begin, top)
        return {element.node.id: element for element in elements}

    def _add_table(self, graph: Graph, top: Scope) -> None:
        from toolkit.render import model_table
        from toolkit.render.link_table import LinkTable

        model, begin = self.model, len(self.model.elements)
        scopes = {"": top}
        model_table.place(model, graph, top.path, lambda path: _scope_at(path, scopes))
        calling = {op for op in set(model.ops[begin:]) if _function_attrs(op) or op in graph.library}
        calls = (model.elements[begin + number] for number in model_table.nodes_of(graph, calling))
        opened = self._open_calls(graph, calls)
        links = model_table.links_of(graph, begin, {begin + i: call for i, call in opened.items()}, _references)
        self.tables += [LinkTable.of(self.links), links]
        self.links = []
        frame_scopes(model, graph, begin, top)

    def _open_calls(self, graph: Graph, elements: Iterable[Element]) -> dict[int, _Call]:
        """Put the functions that some elements call in their places; returns those that were, by node id."""
        calls: list[tuple[Element, list[tuple[str, FuncRef]]]] = []
        for element in elements:
            if refs := _function_refs(element.node, graph):
                element.calls = tuple(ref.name for _, ref in refs)
                calls.append((element, refs))
        opened: dict[int, _Call] = {}
        for element, refs in calls:
            call = self._open(element, refs, graph)
            if call is not None:
                opened[element.node.id] = call
        return opened

    def _place(self, node: Node, prefix: str, scopes: dict[str, Scope]) -> Element:
        """Add a node to its scope.

        Args:
            scopes: see `_scope_at`.
        """
        name = node.name
        path = name[: name.rfind("/") + 1]
        scope = scopes.get(path) or _scope_at(path, scopes)
        return self.model.add(prefix + name if prefix else name, node, scope)

    def _size(self, library: FunctionLibrary, name: str) -> int:
        """The nodes of a function and of what it calls."""
        if library not in self.expansions:
            self.expansions[library] = expansion(library)
        return self.expansions[library].nodes[name]

    def _open(self, element: Element, refs: list[tuple[str, FuncRef]], graph: Graph) -> _Call | None:
        """Put the functions that a node calls into a scope of the node's name."""
        if not self.functions:
            return None
        passed_on = _CALLS.get(element.op, {} if element.op not in graph.library else {"": 0})
        bodies: list[tuple[str, FuncRef, FunctionBody]] = []
        for attr, ref in refs:
            if ref.name in self.stack:
                element.note = "calls itself"
                return None
            if ref.name in self.shown and self._size(graph.library, ref.name) >= SHOWN_ONCE:
                element.note = f"as in {self.shown[ref.name]}"
                return None
            if self.opened > FUNCTION_BUDGET:
                element.note = "not opened: the picture has too many nodes"
                return None
            if len(self.stack) >= MAX_DEPTH:
                element.note = "not opened: it is too deep inside other calls"
                return None
            try:
                body = instantiate(graph.library, ref)
            except GraphmillError as error:
                self.model.messages.append(f"the function '{ref.name}' cannot be drawn: {error}")
                return None
            bodies.append((attr, ref, body))
            self.opened += len(body.graph)
        name = element.node.name.rpartition("/")[2]
        scope = element.scope.child(name)
        scope.kind, scope.lead = "function", element.id
        self.model.move(element.id, scope)
        call = _Call(element, scope)
        for attr, ref, body in bodies:
            inner = scope
            if len(bodies) > 1:
                inner = scope.child(free_name(scope, attr), "function")
            else:
                scope.detail = display_function_name(ref.name)
            inner.detail = display_function_name(ref.name)
            inner.function = ref.name
            self.shown.setdefault(ref.name, inner.path.rstrip("/"))
            self.stack.append(ref.name)
            by_node = self.add_nodes(body.graph, inner)
            self.stack.pop()
            first = passed_on.get(attr.partition("[")[0])
            if first is not None:
                call.arguments.append((first, [by_node[n.id].id for n in body.args]))
                if attr != "cond":
                    call.results.append([by_node[n.id].id for n in body.results])
                if attr == "body":
                    for argument, result in zip(body.args, body.results, strict=False):
                        by_node[result.id].note = f"next {argument.name}"
        return call

    def _link(self, elements: Sequence[Element], opened: Mapping[int, _Call]) -> None:
        """Add the links of one graph. Element ids follow node ids up to an offset that calls break up."""
        links = self.links
        ids = {element.node.id: element.id for element in elements}
        kinds: dict[tuple[str, object, int], LinkKind] = {}  # by what nodes have in common
        new = cast("Any", tuple).__new__
        for element in elements:
            node, target = element.node, element.id
            call = opened.get(node.id) if opened else None
            for position, (src, index) in enumerate(node.inputs):
                source = src.source
                is_alike = isinstance(source, NodeKind) and src.changed_attrs is None
                key = (src.op, source if is_alike else src, index)
                kind = kinds.get(key)
                if kind is None:
                    kind = kinds[key] = LinkKind.REFERENCE if _is_reference(src, index) else LinkKind.DATA
                if call is None and src.id not in opened:  # as nearly always
                    links.append(new(Link, (ids[src.id], target, kind, index, position)))
                    continue
                sources = [(ids[src.id], index)]
                source_call = opened.get(src.id)
                if source_call is not None:
                    sources = source_call.sources(index)
                targets = [(element.id, position)] if call is None else call.targets(position)
                for src_id, src_output in sources:
                    for dst_id, dst_input in targets:
                        links.append(Link(src_id, dst_id, kind, src_output, dst_input))
            for src in node.control_inputs:
                links.append(Link(ids[src.id], element.id, LinkKind.CONTROL, -1, -1))


class _Call:
    """A node whose functions were put in place: where its inputs and outputs lead."""

    def __init__(self, element: Element, scope: Scope):
        self.element = element
        self.scope = scope
        self.arguments: list[tuple[int, list[int]]] = []
        self.results: list[list[int]] = []

    def targets(self, position: int) -> list[tuple[int, int]]:
        found = [(args[position - first], 0) for first, args in self.arguments if 0 <= position - first < len(args)]
        return found or [(self.element.id, position)]

    def sources(self, index: int) -> list[tuple[int, int]]:
        found = [(results[index], 0) for results in self.results if index < len(results)]
        return found or [(self.element.id, index)]


def _scope_at(path: str, scopes: dict[str, Scope]) -> Scope:
    """The scope of a path that names begin with.

    Args:
        scopes: by path, as far as known; more are added.
    """
    last = path.rfind("/", 0, -1) + 1
    scope = scopes.get(path[:last])
    if scope is None:
        scope = scopes[""]
        for part in path.split("/")[:-1]:
            scope = scope.child(part or "(empty)")
    else:
        scope = scope.child(path[last:-1] or "(empty)") if path else scope
    scopes[path] = scope
    return scope


@cache
def _function_attrs(op: str) -> tuple[str, ...]:
    """The attributes of a registered op that hold functions."""
    definition = opdefs.find(op)
    if definition is None:
        return ()
    return tuple(a.name for a in definition.attrs.values() if a.type in ("func", "list(func)"))


def _function_refs(node: Node, graph: Graph) -> list[tuple[str, FuncRef]]:
    """The functions of the library that a node calls, with the attribute that names each."""
    if node.op in graph.library:
        return [("", FuncRef(node.op, dict(node.attrs)))]
    refs: list[tuple[str, FuncRef]] = []
    for attr in _function_attrs(node.op):
        value = node.attr_or(attr, None)
        if isinstance(value, FuncRef):
            refs.append((attr, value))
        elif isinstance(value, list):
            for position, ref in enumerate(value):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
                if isinstance(ref, FuncRef):
                    refs.append((f"{attr}[{position}]", ref))
    return [(attr, ref) for attr, ref in refs if ref.name in graph.library]


@cache
def _reference_outputs(op: str) -> bool | frozenset[int]:
    """Which outputs of an op are references or handles by its OpDef; True when all, False when none."""
    definition = opdefs.find(op)
    if definition is None:
        return False
    chosen = frozenset(
        position
        for position, arg in enumerate(definition.outputs)
        if arg.is_ref or (arg.type is not None and (arg.type.is_ref or arg.type.enum == _RESOURCE))
    )
    return True if len(chosen) == len(definition.outputs) and chosen else chosen or False


def _references(src: Node) -> bool | frozenset[int]:
    """Which outputs of a node are references or handles: all, none or these."""
    attr = _PASSES_ON.get(src.op)
    if attr is None:
        return _reference_outputs(src.op)
    head = src.head
    if head is not None and src.changed_attrs is None:
        return head.attr[attr].type == _RESOURCE if attr in head.attr else False
    dtype = src.attr_or(attr, None)
    return dtype is not None and dtype.enum == _RESOURCE


def _is_reference(src: Node, index: int) -> bool:
    found = _references(src)
    return found if isinstance(found, bool) else index in found


def _join_partitions(model: Model) -> list[Link]:
    """A link to every _Recv from the _Send that has the same tensor name and devices."""
    sends = {_rendezvous_key(model.elements[i].node): i for i in model.of_op(SEND_OPS)}
    receives = ((i, sends.get(_rendezvous_key(model.elements[i].node))) for i in model.of_op(RECV_OPS))
    return [Link(src, i, LinkKind.DATA, 0, 0) for i, src in receives if src is not None]


def _rendezvous_key(node: Node) -> tuple[object, ...]:
    return tuple(node.attr_or(key, b"") for key in ("tensor_name", "send_device", "recv_device"))
