"""Shapes of graphs whose calls nest deeper than one inference follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolkit.graph.graph import Graph
from toolkit.graph.infer import HandleData, ShapeMap, infer
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.graph.shapes.calls import Calls, Cut
from toolkit.graph.shapes.functional import follow


def infer_nested(
    graph: Graph,
    calls: Calls,
    arguments: Mapping[Output, tuple[Shape, HandleData | None]] | None = None,
    order: list[Node] | None = None,
) -> ShapeMap:
    """The shapes of a graph, contradictions unknown, however deep its calls nest.

    Calls that are too deep are followed on their own, the deepest first, and then those that wait for them again: the
    stack of Python grows no further, and each call is still followed once. Afterwards `calls.is_cut` says whether
    something is unknown because it was not followed: recursion, or more than anybody can follow.

    Args:
        order: the graph's topological order, where it is known.

    Raises:
        GraphError: a cycle outside a loop, or an unknown op.
    """
    is_cut = False
    while True:
        calls.start()
        shapes = infer(graph, strict=False, arguments=arguments, calls=calls, order=order)
        if not calls.cuts:
            calls.is_cut |= is_cut
            return shapes
        is_cut |= _follow_deepest_first(calls)


def _follow_deepest_first(calls: Calls) -> bool:
    """Follow the calls that were cut off; whether some of them lead back to themselves."""
    waiting: list[Cut] = list(calls.cuts.values())
    entered: set[Any] = set()
    is_recursive = False
    while waiting:
        cut = waiting[-1]
        if calls.is_known(cut.key):
            waiting.pop()
            entered.discard(cut.key)
            continue
        entered.add(cut.key)
        calls.start()
        found = follow(calls, cut.library, cut.ref, cut.inputs, cut.handles)
        deeper = [each for key, each in calls.cuts.items() if key not in entered]
        if deeper:
            waiting += deeper
            continue
        is_recursive |= bool(calls.cuts)
        calls.keep_final(cut.key, found)
    return is_recursive
