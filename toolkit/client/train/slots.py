"""Slot variables: what an optimizer keeps for each variable, named `variable/Optimizer` and placed with it."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.variables import initializers
from toolkit.client.variables.base import BaseVariable
from toolkit.client.variables.store import get_variable, variable_scope
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape


def create_slot(
    primary: Any,
    value: TensorLike,
    name: str,
    colocate: bool = True,
    shape: Shape | None = None,
    dtype: DType | None = None,
) -> BaseVariable:
    """A variable of the value's (or the primary's) shape, not trained.

    Args:
        value: an initializer (shape, dtype) -> tensor, or a tensor.
    """
    resource = isinstance(primary, BaseVariable) and primary.is_resource
    given = None if not callable(value) else (shape if shape is not None else primary.static_shape)
    # The scope is made unique, so that a second slot of one optimizer becomes `variable/Optimizer_1`.
    with variable_scope(None, f"{primary.op.name}/{name}") as scope:
        scope.partitioner = None
        graph = get_default_graph()
        with graph.colocate_with(primary) if colocate else graph.colocate_with(None, ignore_existing=True):
            slot = get_variable(
                "", given, dtype or primary.dtype.base, value, trainable=False, use_resource=resource,
                validate_shape=not isinstance(value, Tensor) or value.static_shape.is_fully_defined,
            )  # fmt: skip
    info = getattr(primary, "slice_info", None)
    if info is not None:
        real = slot.op.name[len(primary.op.name) + 1 :]
        slot.slice_info = type(info)(f"{info.full_name}/{real}", info.full_shape, info.offset, info.shape)
    return slot


def zeros_slot(primary: Any, name: str, dtype: DType | None = None, colocate: bool = True) -> BaseVariable:
    return create_slot(primary, initializers.Zeros(), name, colocate, dtype=dtype)
