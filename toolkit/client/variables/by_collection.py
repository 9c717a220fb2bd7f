"""The variables of a graph by its collections, and the operations that initialize them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.variables.base import BaseVariable
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys

if TYPE_CHECKING:
    pass


def global_variables(scope: str | None = None) -> list[BaseVariable]:
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[BaseVariable]:
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[BaseVariable]:
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def variables_initializer(variables: Sequence[BaseVariable], name: str = "init") -> Operation:
    """An operation that initializes these variables."""
    return group([v.initializer for v in variables if v.initializer is not None], name=name)


def global_variables_initializer() -> Operation:
    """Initializes all global variables; `init`."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """Initializes all local variables; `init`, `init_1`, ..."""
    return variables_initializer(local_variables())


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """Initializes all lookup tables."""
    return group(get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)


def report_uninitialized_variables(
    variables: Sequence[BaseVariable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of variables that have no value yet, as a string vector."""
    checked = list(variables) if variables is not None else [*global_variables(), *local_variables()]
    with name_scope(name), get_default_graph().device("/cpu:0"):
        if not checked:
            return array_ops.constant([], dtypes.string)
        missing = ops.logical_not(array_ops.stack([v.is_initialized() for v in checked]))
        names = array_ops.constant([v.op.name for v in checked])
        return array_ops.boolean_mask(names, missing)
