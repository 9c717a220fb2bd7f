"""Optimizing the bodies of a graph's functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from schemas.function_pb2 import FunctionDef
from toolkit.errors import GraphmillError
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import FunctionBody, instantiate, to_function
from toolkit.graph.check import require_valid
from toolkit.graph.graph import Graph
from toolkit.passes.optimize.kept import kept_in
from toolkit.passes.optimize.rewriting import Optimization


def editable_body(graph: Graph, name: str) -> FunctionBody | None:
    """The body of a function as a graph of its own, where the changed graph can be written back.

    None for functions with attributes, which stand for many bodies, for those with lists among their arguments or
    results, and for those that cannot be built.
    """
    function = graph.library.function(name)
    signature = function.signature
    if signature.attr or any(
        arg.number_attr or arg.type_list_attr or arg.type_attr for arg in (*signature.input_arg, *signature.output_arg)
    ):
        return None
    try:
        body = instantiate(graph.library, FuncRef(name))
        require_valid(body.graph)
    except GraphmillError:
        return None
    return body


def optimize_functions(
    pass_: Optimization, graph: Graph, staying: frozenset[str] = frozenset()
) -> tuple[Graph, dict[str, Any]]:
    """The graph with a pass applied to each function; the one that came in where none changed.

    Args:
        staying: functions that stay although nothing may call them.

    Returns:
        also what the pass reports of each function that it changed.

    Raises:
        GraphmillError: the pass refuses a function, or broke it; it is named.
    """
    reports: dict[str, Any] = {}
    changed: list[FunctionDef] = []
    came = graph
    names = list(graph.library)
    pass_ = pass_.in_bodies(graph)
    for name in names:  # grows by functions that are made of parts of others
        body = editable_body(graph, name)
        if body is None:
            continue
        try:
            result = replace(pass_, kept=replace(kept_in(body), functions=staying)).apply(body.graph)
            if not result.modified:
                continue
            require_valid(result.graph)
        except GraphmillError as error:
            error.message = f"in function '{name}': {error.message}"
            raise
        changed.append(to_function(moved(body, result.graph), graph.library.function(name)))
        reports[name] = result.report
        new = [each for each in result.graph.library if each not in graph.library]
        if new:
            graph = graph.copy()
            for each in new:
                graph.library.add(result.graph.library.function(each))
            names += new
    if not changed:
        return came, {}
    out = graph.copy()
    for function in changed:
        out.library.replace(function)
    return out, reports


def moved(body: FunctionBody, graph: Graph) -> FunctionBody:
    """A body whose graph became another one, in which what was asked for has its name still."""
    return FunctionBody(
        graph,
        [graph.node(node.name) for node in body.args],
        [graph.node(node.name) for node in body.results],
        [graph.node(node.name) for node in body.control_results],
    )
