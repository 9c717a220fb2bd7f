"""Scopes of the default graph as functions: `name_scope`, `device`, `control_dependencies`, ..."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.create import graph_of
from toolkit.errors import UsageError


@contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None
) -> Generator[str]:
    """The scope of one op constructor: `name`, else `default_name`, in the graph that `values` are in.

    Raises:
        UsageError: values are given but no name at all.
    """
    chosen = default_name if name is None else name
    if chosen is None and values is not None:
        raise UsageError("an op constructor needs a name or a default name")
    graph = get_default_graph() if values is None else graph_of(values)
    with graph.as_default(), graph.name_scope(chosen) as scope:
        yield scope


def device(spec: Any) -> AbstractContextManager[None]:
    """`Graph.device` of the default graph."""
    return get_default_graph().device(spec)


def colocate_with(target: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """`Graph.colocate_with` of the default graph."""
    return get_default_graph().colocate_with(target, ignore_existing)


def control_dependencies(control_inputs: Sequence[Any] | None) -> AbstractContextManager[None]:
    """`Graph.control_dependencies` of the default graph."""
    return get_default_graph().control_dependencies(control_inputs)


def container(name: str) -> AbstractContextManager[str]:
    """`Graph.container` of the default graph."""
    return get_default_graph().container(name)


@contextmanager
def init_scope() -> Generator[None]:
    """Outside of conditionals, loops and control dependencies, in the same name scope: for initializers."""
    graph = get_default_graph()
    with graph.control_dependencies(None):
        yield
