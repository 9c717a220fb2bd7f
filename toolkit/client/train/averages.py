"""Moving averages of variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.grouping import group
from toolkit.client.construction.scopes import colocate_with, device, init_scope, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow import control_flow
from toolkit.client.math import math_ops
from toolkit.client.train.slots import create_slot, zeros_slot
from toolkit.client.variables import initializers
from toolkit.client.variables.base import BaseVariable
from toolkit.client.variables.by_collection import global_variables, trainable_variables
from toolkit.client.variables.store import get_variable, get_variable_scope, variable_scope
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys


class ExponentialMovingAverage:
    """shadow = decay * shadow + (1 - decay) * value, for variables and tensors.

    Args:
        num_updates: a step count; the decay is then min(decay, (1 + n) / (10 + n)), so that it starts faster.
        zero_debias: divide the averages of tensors by what is missing because they started at zero.
    """

    def __init__(
        self, decay: TensorLike, num_updates: TensorLike | None = None, name: str = "ExponentialMovingAverage",
        zero_debias: bool = False,
    ):  # fmt: skip
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self.name = name
        self._averages: dict[Any, BaseVariable] = {}

    def apply(self, var_list: Sequence[Any] | None = None) -> Any:
        """The operation that updates the averages; the shadow variables are made at the first call.

        Raises:
            GraphError: a value is of no floating point type.
        """
        chosen = trainable_variables() if var_list is None else list(var_list)
        from_zero: set[Any] = set()
        for value in chosen:
            if not value.dtype.base.is_floating:
                raise GraphError(f"'{value.name}' has type {value.dtype.base}; averages are of floating point values")
            if value not in self._averages:
                self._averages[value] = self._make(value)
                if self._zero_debias and not isinstance(value, BaseVariable):
                    from_zero.add(value)
        with name_scope(self.name) as scope:
            decay = convert_to_tensor(self._decay, dtypes.float32, name="decay")
            if self._num_updates is not None:
                count = math_ops.cast(self._num_updates, dtypes.float32, name="num_updates")
                decay = ops.minimum(decay, (1.0 + count) / (10.0 + count))
            updates: list[Any] = []
            for value in chosen:
                average = self._averages[value]
                update = assign_moving_average(average, value, decay, value in from_zero)
                # what reads the new value of a resource variable waits for the update
                updates.append(update.op.control_inputs[0] if average.is_resource else update)
            return group(updates, name=scope)

    def _make(self, value: Any) -> BaseVariable:
        with init_scope():
            if isinstance(value, BaseVariable):
                with device(value.device or None):
                    start = control_flow.cond(value.is_initialized(), value.read_value, lambda: value.initial_value)
                average = create_slot(value, start, self.name)
                value.graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, value)
                return average
            return zeros_slot(value, self.name, colocate=value.op.type in ("Variable", "VariableV2", "VarHandleOp"))

    def average(self, value: Any) -> BaseVariable | None:
        """The shadow variable of a value, or None."""
        return self._averages.get(value)

    def average_name(self, value: Any) -> str:
        """The name of the shadow variable, or the one that it would get."""
        found = self._averages.get(value)
        if found is not None:
            return found.op.name
        return get_default_graph().unique_name(f"{value.op.name}/{self.name}", mark_as_used=False)

    def variables_to_restore(self, averaged: Sequence[BaseVariable] | None = None) -> dict[str, BaseVariable]:
        """A mapping for Saver that loads the averages into the variables themselves, and all others as they are.

        Args:
            averaged: the variables that have averages; default: the trainable ones, and those that averages are
                kept of in this graph.
        """
        if averaged is None:
            kept: list[BaseVariable] = get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES)
            averaged = trainable_variables() + kept
        found: dict[str, BaseVariable] = {self.average_name(v): v for v in dict.fromkeys(averaged)}
        names = {v.name for v in averaged}
        for v in global_variables():
            if v.name not in names:
                found.setdefault(v.op.name, v)
        return found


def assign_moving_average(
    variable: BaseVariable, value: TensorLike, decay: TensorLike, zero_debias: bool = False, name: str | None = None
) -> Any:
    """variable -= (1 - decay) * (variable - value).

    Args:
        zero_debias: the variable started at zero: keep the average in a variable of its own, and give `variable` that,
            divided by 1 - decay ** n after n updates.
    """
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope:
        remainder: Any = 1.0 - decay  # a number or a tensor
        rest = convert_to_tensor(remainder, name="decay")
        rest = math_ops.cast(rest, variable.dtype.base)
        if zero_debias:
            return _assign_unbiased(variable, value, rest)
        if variable.is_resource:
            return variable.assign_sub((variable.to_tensor() - value) * rest)
        return variable.assign_sub((variable.to_tensor() - value) * rest, name=scope)


def _assign_unbiased(variable: BaseVariable, value: TensorLike, rest: Tensor) -> Any:
    """`rest` is 1 - decay (Kingma and Ba, arXiv 1412.6980, section 3)."""
    with variable_scope(variable.op.name):
        with init_scope():
            start, start_count = initializers.Zeros(), initializers.Zeros()
        with colocate_with(variable):
            dtype, shape = variable.dtype.base, variable.static_shape
            biased = get_variable(_free("biased"), shape, dtype, start, trainable=False)
            count = get_variable(_free("local_step"), [], dtype, start_count, trainable=False)
    kept = biased.assign_sub((biased.to_tensor() - value) * rest)
    counted = count.assign_add(1)
    missing = 1 - ops.pow(1.0 - rest, counted)
    return variable.assign(kept / missing, use_locking=True, name=get_default_graph().get_name_scope() + "/")


def _free(name: str) -> str:
    """A variable's name that the scope does not have yet, unless it reuses its variables."""
    scope = get_variable_scope()
    if scope.reuse:
        return name
    taken = {v.op.name for v in global_variables()}
    number, found = 0, name
    while f"{scope.name}/{found}" in taken:
        number += 1
        found = f"{name}_{number}"
    return found
