"""Changes of rows of a variable."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.variables.base import BaseVariable


def scatter(
    kind: str, variable: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """The op `kind` (ScatterAdd, ScatterUpdate, ...) on a variable's rows; its new value.

    Args:
        variable: a variable, or a reference to one.
    """
    if isinstance(variable, BaseVariable) and variable.is_resource:
        made = ops.function("Resource" + kind)(variable.handle, indices, updates, name=name)
        with variable.graph.control_dependencies([made]):
            return array_ops.identity(variable.value())
    handle = variable.handle if isinstance(variable, BaseVariable) else variable
    return ops.function(kind)(handle, indices, updates, use_locking=use_locking, name=name)


def scatter_nd(
    kind: str, variable: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """The op `kind` (ScatterNdAdd, ScatterNdUpdate, ...) on elements or slices of a variable; its new value."""
    if isinstance(variable, BaseVariable) and variable.is_resource:
        updates = convert_to_tensor(updates, variable.dtype.base)
        made = ops.function("Resource" + kind)(variable.handle, indices, updates, name=name)
        with variable.graph.control_dependencies([made]):
            return variable.value()
    return scatter(kind, variable, indices, updates, use_locking, name)
