"""Checks over a whole graph: numbers that are finite, variables that have values."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with, control_dependencies
from toolkit.client.construction.tensor import Tensor
from toolkit.client.variables.by_collection import global_variables, local_variables
from toolkit.errors import UsageError
from toolkit.graph import dtypes

_CHECKED = (dtypes.float16, dtypes.float32, dtypes.float64)


def add_check_numerics_ops() -> Operation:
    """An operation that fails where any number that the graph computes so far is infinite or not a number.

    Raises:
        UsageError: the graph has conditionals or loops.
    """
    checks: list[Tensor] = []
    for op in get_default_graph().get_operations():
        for output in op.outputs:
            if output.dtype not in _CHECKED:
                continue
            if op.context is not None:
                raise UsageError(
                    f"add_check_numerics_ops: '{op.name}' is inside of a conditional or a loop; check tensors there "
                    "with check_numerics"
                )
            with control_dependencies(checks):
                checks = [ops.check_numerics(output, message=f"{op.name}:{output.index}")]
    return group(checks)


def assert_variables_initialized(variables: Any = None) -> Tensor | None:
    """A tensor that fails where a variable has no value yet; None where there are no variables."""
    chosen: list[Any] = [*global_variables(), *local_variables()] if variables is None else list(variables)
    if not chosen:
        kinds = ("Variable", "VariableV2", "AutoReloadVariable")
        chosen = [op.outputs[0] for op in get_default_graph().get_operations() if op.type in kinds]
    ranks: list[Tensor] = []
    for variable in chosen:
        with colocate_with(variable.op):
            ranks.append(ops.rank(variable))
    if not ranks:
        return None
    return ranks[0] if len(ranks) == 1 else array_ops.stack(ranks)
