"""How large functions are with everything they call put in the place of the calls, without doing that.

Forty functions that each call the next one twice are 8 KB in a file and 2^40 nodes when expanded. Whoever walks calls,
puts bodies in the place of calls or draws them asks here first. One pass over the library: each function is looked at
once, however often it is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from schemas.attr_value_pb2 import AttrValue
from schemas.node_def_pb2 import NodeDef
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph

#: sizes stop growing here; a size of this much means "at least"
SATURATED = 1 << 62


@dataclass(frozen=True, slots=True)
class Expansion:
    """What functions are when expanded.

    Attributes:
        nodes: function to the nodes of its body and of everything called from there, a body once for each call;
            `SATURATED` at most, and for whatever reaches a recursive function.
        depth: function to the longest chain of calls that starts with it; 1 where nothing is called, `SATURATED`
            where recursion is reached.
        recursive: functions that call themselves, through others perhaps.
    """

    nodes: Mapping[str, int]
    depth: Mapping[str, int]
    recursive: frozenset[str]

    def graph_nodes(self, graph: Graph) -> int:
        """The nodes of a graph with all its calls expanded, `SATURATED` at most."""
        total = len(graph)
        for node in graph.nodes:
            attrs: Iterable[AttrValue] = (node.attrs.proto(key) for key in node.attrs)
            for name in called(node.op, attrs, graph.library):
                total += self.nodes[name]
        return min(total, SATURATED)


def called(op: str, attrs: Iterable[AttrValue], library: FunctionLibrary) -> Iterator[str]:
    """The functions of the library that a node calls, by its op or through its attributes, once for each mention."""
    if op in library:
        yield op
    for value in attrs:
        kind = value.WhichOneof("value")
        if kind == "func":
            if value.func.name in library:
                yield value.func.name
        elif kind == "list" and value.list.func:
            yield from (func.name for func in value.list.func if func.name in library)


def _called_by(nodes: Iterable[NodeDef], library: FunctionLibrary) -> Counter[str]:
    return Counter(name for node in nodes for name in called(node.op, node.attr.values(), library))


def expansion(library: FunctionLibrary) -> Expansion:
    """The expanded sizes of all functions of a library. Takes time in proportion to its nodes."""
    calls = {name: _called_by(library.function(name).node_def, library) for name in library}
    order, recursive = callees_first(calls)
    nodes: dict[str, int] = {}
    depth: dict[str, int] = {}
    for name in order:
        if name in recursive:
            nodes[name] = depth[name] = SATURATED
            continue
        total, longest = len(library.function(name).node_def), 0
        for callee, times in calls[name].items():
            total += nodes[callee] * times
            longest = max(longest, depth[callee])
        nodes[name], depth[name] = min(total, SATURATED), min(longest + 1, SATURATED)
    return Expansion(nodes, depth, recursive)


def callees_first(calls: Mapping[str, Iterable[str]]) -> tuple[list[str], frozenset[str]]:
    """All functions, each after those it calls as far as there is no recursion, and those that call themselves.

    Strongly connected components by Tarjan's algorithm, without recursion of our own.
    """
    order: list[str] = []
    recursive: set[str] = set()
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: list[str] = []
    is_open: set[str] = set()
    for start in calls:
        if start in number:
            continue
        number[start] = lowest[start] = len(number)
        open_.append(start)
        is_open.add(start)
        walk = [(start, iter(calls[start]))]
        while walk:
            name, rest = walk[-1]
            for callee in rest:
                if callee == name:
                    recursive.add(name)
                if callee not in number:
                    number[callee] = lowest[callee] = len(number)
                    open_.append(callee)
                    is_open.add(callee)
                    walk.append((callee, iter(calls[callee])))
                    break
                if callee in is_open:
                    lowest[name] = min(lowest[name], number[callee])
            else:
                walk.pop()
                if walk:
                    caller = walk[-1][0]
                    lowest[caller] = min(lowest[caller], lowest[name])
                if lowest[name] == number[name]:
                    component = [open_.pop()]
                    while component[-1] != name:
                        component.append(open_.pop())
                    is_open.difference_update(component)
                    order += component
                    if len(component) > 1:
                        recursive.update(component)
    return order, frozenset(recursive)


__all__ = ["SATURATED", "Expansion", "called", "callees_first", "expansion"]
