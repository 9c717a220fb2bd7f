"""Conditionals, loops and grouping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import array_ops
from toolkit.client.context import get_default_graph
from toolkit.client.create import graph_of
from toolkit.client.operation import Operation
from toolkit.client.scopes import name_scope
from toolkit.client.tensor import IndexedSlices, Tensor
from toolkit.client.variables import group
from toolkit.errors import UsageError


def with_dependencies(dependencies: Sequence[Any], value: Any, name: str | None = None) -> Any:
    """`value` once the dependencies have run."""
    with name_scope(name, "control_dependency", [*dependencies, value]) as scope:
        graph = get_default_graph()
        with graph.colocate_with(value), graph.control_dependencies(dependencies):
            if isinstance(value, IndexedSlices):
                return IndexedSlices(
                    array_ops.identity(value.values, name=scope), value.indices, value.dense_shape
                )
            return array_ops.identity(value, name=scope)


def tuple_(tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] = ()) -> list[Any]:
    """The same tensors, each available only when all are; None entries stay None.

    Raises:
        UsageError: all entries are None.
    """
    present = [t for t in tensors if t is not None]
    if not present:
        raise UsageError("tuple_ needs at least one tensor")
    graph = graph_of(present)
    with graph.as_default(), graph.name_scope(name or "tuple"):
        gating: list[Operation] = [t if isinstance(t, Operation) else t.op for t in [*present, *control_inputs]]
        gate = group(sorted(dict.fromkeys(gating), key=lambda op: op.node.id))
        return [None if t is None else with_dependencies([gate], t) for t in tensors]
