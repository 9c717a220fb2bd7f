"""Resources other than variables that a graph has to make before it runs (tf.resources): trees, accumulators of trees.

Who makes one adds it to the collection `resources` (shared by all sessions of a job) or `local_resources`; it has
`handle`, `create` and `is_initialized`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import constant
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import device, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.graph import dtypes

SHARED, LOCAL = "resources", "local_resources"


def shared_resources() -> list[Any]:
    """The resources that all sessions of a job share."""
    return get_default_graph().get_collection(SHARED)


def local_resources() -> list[Any]:
    """The resources that each session has for itself."""
    return get_default_graph().get_collection(LOCAL)


def initialize_resources(resource_list: Sequence[Any], name: str = "init") -> Operation:
    """The operation that makes them; one that does nothing where there are none."""
    return group([each.create for each in resource_list], name=name) if resource_list else ops.no_op(name=name)


def report_uninitialized_resources(
    resource_list: Sequence[Any] | None = None, name: str = "report_uninitialized_resources"
) -> Tensor:
    """string [n]: the names of those that are not there yet; default: all that the graph lists."""
    if resource_list is None:
        resource_list = shared_resources() + local_resources()
    with name_scope(name), device("/cpu:0"):
        if not resource_list:
            return constant([], dtypes.string)
        missing = ops.logical_not(array_ops.stack([each.is_initialized for each in resource_list]))
        return array_ops.boolean_mask(constant([each.handle.name for each in resource_list]), missing)
