"""A graph against a policy, before it is placed, folded or run: function bodies included.

What is denied altogether is refused here, as is a constant path that is not allowed. Other paths are known only when
the kernel runs, and judged by `access.Files` then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.policy import outside
from toolkit.policy.access import Access, Wish
from toolkit.policy.outside import Reach, Row
from toolkit.policy.rules import listed_folder

#: what passes a constant on as it is
_PASS = frozenset({"Identity", "Snapshot", "StopGradient", "PlaceholderWithDefault"})


def check_graph(
    graph: Graph, access: Access, lacking: Callable[[str], str], nodes: Sequence[Node] | None = None
) -> None:
    """Refuse a graph that would touch what its policy does not allow.

    Args:
        graph: what a step needs, and nothing else.
        lacking: why an op has no kernel, "" when it has one; what has none is refused all the same, but told so.
        nodes: those of its nodes that are looked at; all by default.

    Raises:
        RefusedError: so; it names the node, the op, the path where it is known, and the switch.
    """
    if access.policy.is_everything:
        return
    nodes = graph.nodes if nodes is None else nodes
    reaching: dict[str, Sequence[Row]] = {}  # by op, of which there are few
    for node in nodes:
        found = reaching.get(node.op)
        if found is None:
            found = reaching[node.op] = outside.rows(node.op)
        if found and node.op not in graph.library:
            _judge([(row, known_paths(node, row)) for row in found], node.op, node.name, access, lacking)
    library = graph.library
    if len(library):
        seen: set[str] = set()
        calling: dict[str, bool] = {}  # whether nodes of an op call functions at all
        for node in nodes:
            calls = calling.get(node.op)
            if calls is None:
                calls = calling[node.op] = node.op in library or bool(_function_attrs(node))
            if not calls:
                continue
            values = [node.attr(attr, None) for attr in _function_attrs(node)]
            for name in _called(node.op, map(_function_names, values), library):
                _check_function(library, name, seen, access, lacking)


def _check_function(
    library: FunctionLibrary, start: str, seen: set[str], access: Access, lacking: Callable[[str], str]
) -> None:
    waiting = [start]
    while waiting:
        name = waiting.pop()
        function = library.get(name)
        if name in seen or function is None:
            continue
        seen.add(name)
        nodes = {node.name: node for node in function.node_def}
        for node in function.node_def:
            found = outside.rows(node.op)
            if found and node.op not in library:
                shown = f"{node.name}' of function '{name}"
                _judge([(row, _paths_in_body(node, row, nodes)) for row in found], node.op, shown, access, lacking)
            waiting += _called(node.op, map(_message_functions, node.attr.values()), library)
        if name in library.gradients:
            waiting.append(library.gradients[name])


def _called(op: str, attrs: Iterable[Iterable[str]], library: FunctionLibrary) -> Iterator[str]:
    if op in library:
        yield op
    for names in attrs:
        yield from names


def _judge(
    found: list[tuple[Row, list[str] | None]], op: str, node: str, access: Access, lacking: Callable[[str], str]
) -> None:
    """Refuse one node; with each row come the paths that it has, None when they are not known yet."""
    wishes: list[Wish] = []
    classes: list[Reach] = []
    for row, paths in found:
        if row.through or (row.late and paths is None):
            continue
        if row.reach.on_paths and paths is not None:
            wishes += [wish(row, path) for path in paths if row.applies(path)]
        elif paths is None or any(map(row.applies, paths)) or not (row.attr or row.input is not None):
            classes.append(row.reach)
    access.judge(wishes, node, op, classes=classes, lack=lacking(op), before=True)


def wish(row: Row, path: str) -> Wish:
    """What an op does with a path by a row of the table: patterns of names list the folder before their first star."""
    if row.reach is Reach.LIST:
        folder, beginning = listed_folder(path)
        return Wish(row.reach, folder, beginning=beginning)
    return Wish(row.reach, path, row.prefix)


def known_paths(node: Node, row: Row) -> list[str] | None:
    """The paths of a node where they are constants; None when they are not, or the op has none of its own."""
    if row.attr:
        value: Any = node.attr(row.attr, b"")
        return [_text(item) for item in (cast("list[Any]", value) if isinstance(value, list) else [value])]
    if row.input is None or row.input >= len(node.inputs):
        return None
    source = node.inputs[row.input].node
    seen = 0
    while source.op in _PASS and source.inputs and seen < 100:
        if source.op == "PlaceholderWithDefault":
            return None  # what is fed is judged when it comes
        source, seen = source.inputs[0].node, seen + 1
    if source.op not in ("Const", "HostConst"):
        return None
    # texts may be written in another way too, and the attribute may be no tensor: then they are not known
    return [_text(item) for item in getattr(source.attr("value", None), "string_val", ())] or None


def _paths_in_body(node: Any, row: Row, nodes: dict[str, Any]) -> list[str] | None:
    """Likewise for a NodeDef of a function body."""
    if row.attr:
        value = node.attr.get(row.attr)
        if value is None or value.placeholder:
            return None if value is not None else []
        return [_text(item) for item in (value.list.s or [value.s])]
    data = [name for name in node.input if not name.startswith("^")]
    if row.input is None or row.input >= len(data):
        return None
    source = nodes.get(data[row.input].partition(":")[0])
    if source is None or source.op not in ("Const", "HostConst"):
        return None
    value = source.attr.get("value")
    return [_text(item) for item in value.tensor.string_val] or None if value is not None else None


def _text(value: Any) -> str:
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)


def _function_attrs(node: Node) -> list[str]:
    """The attributes that name functions."""
    op_def = node.graph.find_op_def(node.op)
    if op_def is None:
        return []
    return [name for name, attr in op_def.attrs.items() if attr.type in ("func", "list(func)")]


def _function_names(value: Any) -> Iterator[str]:
    from toolkit.graph.attrs import FuncRef

    if isinstance(value, FuncRef):
        yield value.name
        for inner in value.attrs.values():  # what it calls may be one of its own attributes
            yield from _function_names(inner)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _function_names(item)


def _message_functions(value: Any) -> Iterator[str]:
    functions = [value.func] if value.HasField("func") else value.list.func
    for function in functions:
        yield function.name
        for inner in function.attr.values():
            yield from _message_functions(inner)
