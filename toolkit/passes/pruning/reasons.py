"""Why pruning keeps a node, a function, or a node of a function."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any

from schemas.function_pb2 import FunctionDef
from toolkit.errors import GraphError, did_you_mean
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.passes.pruning.prune import Prune, called_functions, need


def why_kept(graph: Graph, options: Prune, name: str) -> list[str]:
    """The chain of names from a node to the fetch or target that needs it; empty when nothing does.

    Args:
        name: of a node, a function, or FUNCTION/NODE; of a node that only functions have, too. What is in a function
            is called FUNCTION/NODE in the chain.

    Raises:
        GraphError: there is nothing of that name.
    """
    needed = need(graph, options.feeds, options.fetches, options.targets)
    if name in graph:
        return needed.why_kept(graph.node(name))
    library = graph.library
    places = _places(library, name)
    if not places:
        everywhere = [node.name for node in library_nodes(library)]
        raise GraphError(
            f"there is no node '{name}' in the graph or its functions"
            f"{did_you_mean(name, [*(node.name for node in graph), *library, *everywhere])}"
        )
    callers = _callers(graph, needed.ids)
    for function, node in places:
        if function not in callers:
            continue
        inside = _inside(library.function(function), node) if node else []
        if inside is None:
            continue
        chain = [f"{function}/{each}" for each in inside] or [function]
        at = function
        while at:
            caller, within = callers[at]
            if not within:
                return [*chain, *needed.why_kept(graph.node(caller))]
            further = _inside(library.function(within), caller) or [caller]
            chain += [f"{within}/{each}" for each in further]
            at = within
    return []


def library_nodes(library: FunctionLibrary) -> Iterable[Any]:
    """The nodes of all functions."""
    for function in library:
        yield from library.function(function).node_def


def _places(library: FunctionLibrary, name: str) -> list[tuple[str, str]]:
    """Functions with the node that is meant, "" for the function as a whole."""
    if name in library:
        return [(name, "")]
    found = [
        (function, rest)
        for function in library
        if name.startswith(f"{function}/") and _has(library.function(function), rest := name[len(function) + 1 :])
    ]
    return found or [(function, name) for function in library if _has(library.function(function), name)]


def _has(function: FunctionDef, name: str) -> bool:
    return any(node.name == name for node in function.node_def)


def _callers(graph: Graph, ids: AbstractSet[int]) -> dict[str, tuple[str, str]]:
    """Each function that kept nodes can call, with one node that does, and the function in which that is, or ""."""
    library = graph.library
    found: dict[str, tuple[str, str]] = {}
    waiting: list[str] = []

    def note(names: Iterable[str], caller: str, within: str) -> None:
        for name in names:
            if name in library and name not in found:
                found[name] = (caller, within)
                waiting.append(name)

    for node in graph.nodes:
        if node.id in ids:
            values = [node.attrs.proto(key) for key in node.attrs]
            note([node.op, *(name for value in values for name in called_functions(value))], node.name, "")
    for function in waiting:  # grows while we walk it
        for definition in library.function(function).node_def:
            values = list(definition.attr.values())
            names = [definition.op, *(name for value in values for name in called_functions(value))]
            note(names, definition.name, function)
    return found


def _inside(function: FunctionDef, name: str) -> list[str] | None:
    """The chain from a node of a function to a result of it, or to a node that runs in any case; None for neither."""
    takers: dict[str, list[str]] = {}
    for node in function.node_def:
        for text in node.input:
            takers.setdefault(text.removeprefix("^").partition(":")[0], []).append(node.name)
    ends = {text.partition(":")[0] for text in function.ret.values()} | set(function.control_ret.values())
    before: dict[str, str] = {name: ""}
    waiting = [name]
    for at in waiting:
        if at in ends:
            chain: list[str] = []
            while at:
                chain.append(at)
                at = before[at]
            return chain[::-1]
        for taker in takers.get(at, []):
            if taker not in before:
                before[taker] = at
                waiting.append(taker)
    return None
