"""One operation that waits for several, and what waits for operations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import IndexedSlices
from toolkit.errors import UsageError


def group(inputs: Iterable[Any], name: str | None = None) -> Operation:
    """A NoOp that waits for all `inputs`; inputs of several devices are gathered per device first.

    Raises:
        UsageError: an input is no operation, tensor or variable.
    """
    things = list(inputs)
    graph = get_default_graph() if not things else things[0].graph
    with graph.as_default(), graph.name_scope(name or "group_deps") as scope:
        by_device: dict[str, list[Operation]] = {}
        for thing in things:
            op = thing if isinstance(thing, Operation) else getattr(thing, "op", None)
            if op is None:
                raise UsageError(f"{thing!r} cannot be grouped; give operations or tensors")
            by_device.setdefault(op.device, []).append(op)
        if len(by_device) <= 1:
            device = next(iter(by_device), "")
            return _no_op(graph, by_device.get(device, []), device, scope)
        parts = [_no_op(graph, by_device[device], device, None) for device in sorted(by_device)]
        with graph.control_dependencies(parts):
            return ops.no_op(name=scope)


def _no_op(graph: Graph, members: list[Operation], device: str, name: str | None) -> Operation:
    with graph.control_dependencies(members):
        if not device:
            return ops.no_op(name=name)
        with graph.device(device):
            return ops.no_op(name=name)


def with_dependencies(dependencies: Sequence[Any], value: Any, name: str | None = None) -> Any:
    """`value` once the dependencies have run."""
    with name_scope(name, "control_dependency", [*dependencies, value]) as scope:
        graph = get_default_graph()
        with graph.colocate_with(value), graph.control_dependencies(dependencies):
            if isinstance(value, IndexedSlices):
                return IndexedSlices(array_ops.identity(value.values, name=scope), value.indices, value.dense_shape)
            return array_ops.identity(value, name=scope)
