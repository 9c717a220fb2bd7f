"""Names that somebody may have meant who named what a graph does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from toolkit.errors import hint
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node

_SHOWN = 3
#: beyond so many nodes only exact parts of names are looked for: comparing letter by letter takes too long
_MANY = 20_000


def suggest(graph: Graph, name: str, more: Iterable[str] = (), *, then: str = "") -> str:
    """A hint such as "; did you mean 'conv1/Relu'?", or "" when nothing is close.

    Looked for are, in this order: what comes out of a scope of that name, nodes with that name in another scope,
    names that look alike as a whole or in their last part.

    Args:
        more: other names that would do (inputs of a signature).
        then: see `did_you_mean`.
    """
    wanted = name.partition(":")[0].strip("/").lower()
    names = [*more, *(node.name for node in graph)]
    found = _ends_of_scope(graph, wanted) or _same_part(names, wanted)
    if not found and len(names) <= _MANY:
        found = _alike(names, wanted)
    return hint(list(dict.fromkeys(found))[:_SHOWN], then)


def result_of_scope(graph: Graph, name: str) -> str | None:
    """The one result of a name scope, such as a layer of a spec; None where a node has the name or there are more."""
    if not name or name in graph or ":" in name:
        return None
    ends = _ends_of_scope(graph, name.lower())
    return ends[0] if len(ends) == 1 and ends[0].startswith(f"{name}/") else None


def _ends_of_scope(graph: Graph, scope: str) -> list[str]:
    """Nodes of a scope that something outside uses, or nothing at all."""
    if not scope:
        return []
    inside = [node for node in graph if node.name.lower().startswith(scope + "/")]
    if not inside:
        return []
    ids = {node.id for node in inside}
    used = {src.id for node in inside for src, _ in node.inputs if src.id in ids}
    return [node.name for node in inside if node.id not in used and not _is_plumbing(node)]


def _is_plumbing(node: Node) -> bool:
    return node.op in ("Const", "NoOp") or node.op.startswith(("Assign", "VarHandle", "VarIsInit"))


def _same_part(names: list[str], wanted: str) -> list[str]:
    """Names that end in the wanted one, then those that have it in the middle."""
    if not wanted:
        return []
    ends = [name for name in names if name.lower().endswith("/" + wanted) or name.lower() == wanted]
    return ends or [name for name in names if f"/{wanted}/" in f"/{name.lower()}"]


def _alike(names: list[str], wanted: str) -> list[str]:
    by_text: dict[str, list[str]] = {}
    for name in names:
        by_text.setdefault(name.lower(), []).append(name)
        by_text.setdefault(name.lower().rpartition("/")[2], []).append(name)
    for text in (wanted, wanted.rpartition("/")[2]):
        close = difflib.get_close_matches(text, by_text, n=_SHOWN, cutoff=0.6)
        if close:
            return [name for each in close for name in by_text[each]]
    return []
