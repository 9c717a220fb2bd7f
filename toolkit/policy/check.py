"""A graph against a policy, before it is placed, folded or run: function bodies included.

What is denied altogether is refused here, as is a constant path that is not allowed. Other paths are known only when
the kernel runs, and judged by `access.Files` then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.policy import outside
from toolkit.policy.access import Access
from toolkit.policy.outside import Row

#: what passes a constant on as it is
_PASS = frozenset({"Identity", "Snapshot", "StopGradient", "PlaceholderWithDefault"})


def check_graph(graph: Graph, access: Access, runs: Callable[[str], bool]) -> None:
    """Refuse a graph that would touch what its policy does not allow.

    Args:
        graph: what a step needs, and nothing else.
        runs: whether an op has a kernel; one that has none cannot reach anything.

    Raises:
        RefusedError: so; it names the node, the op, the path where it is known, and the switch.
    """
    if access.policy.is_everything:
        return
    for node in graph:
        found = outside.rows(node.op)
        if found and node.op not in graph.library and runs(node.op):
            for row in found:
                _judge(row, node.op, node.name, known_paths(node, row), access)
    library = graph.library
    if len(library):
        seen: set[str] = set()
        for node in graph:
            for name in _called(node.op, map(_function_names, _function_attrs(node)), library):
                _check_function(library, name, seen, access, runs)


def _check_function(
    library: FunctionLibrary, start: str, seen: set[str], access: Access, runs: Callable[[str], bool]
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
            if found and node.op not in library and runs(node.op):
                shown = f"{node.name}' of function '{name}"
                for row in found:
                    _judge(row, node.op, shown, _paths_in_body(node, row, nodes), access)
            waiting += _called(node.op, map(_message_functions, node.attr.values()), library)
        if name in library.gradients:
            waiting.append(library.gradients[name])


def _called(op: str, attrs: Iterable[Iterable[str]], library: FunctionLibrary) -> Iterator[str]:
    if op in library:
        yield op
    for names in attrs:
        yield from names


def _judge(row: Row, op: str, node: str, paths: list[str] | None, access: Access) -> None:
    """Refuse one row of one node; `paths` are those it has, None when they are not known yet."""
    if row.through or (row.late and paths is None):
        return
    if paths is None or not row.reach.on_paths:
        if paths is None or any(map(row.applies, paths)) or not (row.attr or row.input is not None):
            access.require(row.reach, node, op, before=True)
        return
    for path in paths:
        if row.applies(path):
            access.place(row.reach, path, node, op, before=True)


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


def _function_attrs(node: Node) -> Iterator[Any]:
    """The values of the attributes that name functions."""
    op_def = node.graph.find_op_def(node.op)
    if op_def is not None:
        for name, attr in op_def.attrs.items():
            if attr.type in ("func", "list(func)"):
                yield node.attr(name, None)


def _function_names(value: Any) -> Iterator[str]:
    from toolkit.graph.attrs import FuncRef

    if isinstance(value, FuncRef):
        yield value.name
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _function_names(item)


def _message_functions(value: Any) -> Iterator[str]:
    if value.HasField("func"):
        yield value.func.name
    elif value.HasField("list"):
        for item in value.list.func:
            yield item.name
