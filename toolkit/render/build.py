"""From graphs to the picture's model: scopes by name, function bodies in place, loop frames, partitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

from toolkit.errors import GraphmillError
from toolkit.graph import opdefs
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import FunctionBody, instantiate
from toolkit.graph.expansion import Expansion, expansion
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import ENTER_OPS, Node
from toolkit.render.elements import Element, Link, LinkKind, Model, Scope

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


def build_model(graphs: Graph | Mapping[str, Graph], title: str, *, functions: bool = True) -> Model:
    """Make the picture's model of a graph, or of several side by side (a partition).

    Linear in nodes and edges. A `_Recv` is linked to the `_Send` of the same tensor in another graph.

    Args:
        graphs: one graph, or graphs by the name of their part.
        functions: put the bodies of called functions where they are called.
    """
    builder = _Builder(Model(title), functions)
    if isinstance(graphs, Graph):
        builder.add_graph(graphs, builder.model.root)
    else:
        for name, graph in graphs.items():
            scope = builder.model.root.child(name, "partition")
            builder.add_graph(graph, scope)
        _join_partitions(builder.model)
    builder.model.count_sizes()
    return builder.model


def display_function_name(name: str) -> str:
    """A function's name without what tracing added: __inference_serving_default_123 is serving_default."""
    short = re.sub(r"^__(?:inference|forward|backward)_+", "", name)
    short = re.sub(r"(?:_\d+)+$", "", short)
    return short or name


class _Builder:
    def __init__(self, model: Model, functions: bool):
        self.model = model
        self.functions = functions
        self.opened = 0
        self.stack: list[str] = []
        self.expansions: dict[FunctionLibrary, Expansion] = {}
        self.shown: dict[str, str] = {}

    def add_graph(self, graph: Graph, top: Scope) -> dict[int, Element]:
        """Add the nodes of one graph under `top`; returns the elements by node id."""
        prefix = top.path
        scopes = {"": top}
        elements = [self._place(node, prefix, scopes) for node in graph.nodes]
        calls: list[tuple[Element, list[tuple[str, FuncRef]]]] = []
        for element in elements:
            if not _function_attrs(element.op) and element.op not in graph.library:
                continue
            if refs := _function_refs(element.node, graph):
                element.calls = tuple(ref.name for _, ref in refs)
                calls.append((element, refs))
        opened: dict[int, _Call] = {}
        for element, refs in calls:
            call = self._open(element, refs, graph)
            if call is not None:
                opened[element.node.id] = call
        self._link(elements, opened)
        if any(node.op in ENTER_OPS for node in graph.nodes):
            _frame_scopes(graph, elements, top)
        return {element.node.id: element for element in elements}

    def _place(self, node: Node, prefix: str, scopes: dict[str, Scope]) -> Element:
        """Add a node to its scope.

        Args:
            scopes: by the path that names begin with, as far as known; more are added.
        """
        name = node.name
        path = name[: name.rfind("/") + 1]
        scope = scopes.get(path)
        if scope is None:
            scope = scopes[""]
            for part in path.split("/")[:-1]:
                scope = scope.child(part or "(empty)")
            scopes[path] = scope
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
        self.model.move(element, scope)
        call = _Call(element, scope)
        for attr, ref, body in bodies:
            inner = scope
            if len(bodies) > 1:
                inner = scope.child(_free_name(scope, attr), "function")
            else:
                scope.detail = display_function_name(ref.name)
            inner.detail = display_function_name(ref.name)
            inner.function = ref.name
            self.shown.setdefault(ref.name, inner.path.rstrip("/"))
            self.stack.append(ref.name)
            by_node = self.add_graph(body.graph, inner)
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
        links = self.model.links
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


def _free_name(scope: Scope, name: str) -> str:
    count, free = 1, name
    while free in scope.by_name:
        free = f"{name}_{count}"
        count += 1
    return free


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


def _is_reference(src: Node, index: int) -> bool:
    attr = _PASSES_ON.get(src.op)
    if attr is not None:
        base = src.base
        if base is not None and src.changed_attrs is None:
            return base.attr[attr].type == _RESOURCE if attr in base.attr else False
        dtype = src.attr_or(attr, None)
        return dtype is not None and dtype.enum == _RESOURCE
    outputs = _reference_outputs(src.op)
    return outputs if isinstance(outputs, bool) else index in outputs


def _frame_scopes(graph: Graph, elements: Sequence[Element], top: Scope) -> None:
    """Mark the scope of every loop frame, or make one where the names do not give it."""
    from toolkit.graph.frames import assign_frames

    try:
        frames, every = assign_frames(graph, graph.topological_order())
    except GraphmillError:
        return  # a malformed loop is drawn as its nodes; `validate` says what is wrong with it
    del frames
    for frame in every:
        if not frame.name:
            continue
        members = [elements[i] for i in frame.nodes]
        if members:
            _mark_frame(members, frame.name, top)


def _mark_frame(members: list[Element], name: str, top: Scope) -> None:
    common = _common_scope(members)
    inside = sum(1 for _ in common.all_elements())
    label = name.rpartition("/")[2] or name
    # Enter and Exit nodes, and the loop's constants, usually share its name scope without being in the frame.
    if common is not top and common.kind == "scope" and inside <= 2 * len(members) + 8:
        common.kind, common.detail = "loop", f"while {name}"
        return
    chosen = {element.id for element in members}
    whole = [s for s in common.scopes if all(i in chosen for i in s.all_elements())]
    frame = Scope(f"{common.path}{_free_name(common, label)}/", label, common, "loop")
    frame.detail = f"while {name}"
    for scope in whole:
        scope.parent = frame
    frame.scopes = whole
    frame.elements = [i for i in common.elements if i in chosen]
    by_id = {element.id: element for element in members}
    for i in frame.elements:
        by_id[i].scope = frame
    common.scopes = [*(s for s in common.scopes if s.parent is common), frame]
    common.elements = [i for i in common.elements if i not in chosen]


def _common_scope(members: list[Element]) -> Scope:
    """The innermost scope that holds all of them."""

    def chain(scope: Scope) -> list[Scope]:
        found: list[Scope] = []
        current: Scope | None = scope
        while current is not None:
            found.append(current)
            current = current.parent
        return found[::-1]

    common = chain(members[0].scope)
    seen: set[int] = {id(members[0].scope)}
    for element in members:
        if id(element.scope) in seen:
            continue
        seen.add(id(element.scope))
        other = chain(element.scope)
        length = 0
        while length < min(len(common), len(other)) and common[length] is other[length]:
            length += 1
        common = common[:length]
    return common[-1]


def _join_partitions(model: Model) -> None:
    """Link every _Recv to the _Send that has the same tensor name and devices."""
    sends: dict[tuple[object, ...], int] = {}
    for element in model.elements:
        if element.op in SEND_OPS:
            sends[_rendezvous_key(element.node)] = element.id
    for element in model.elements:
        if element.op in RECV_OPS:
            src = sends.get(_rendezvous_key(element.node))
            if src is not None:
                model.links.append(Link(src, element.id, LinkKind.DATA, 0, 0))


def _rendezvous_key(node: Node) -> tuple[object, ...]:
    return tuple(node.attr_or(key, b"") for key in ("tensor_name", "send_device", "recv_device"))
