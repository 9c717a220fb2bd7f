"""Moving averages of variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import math_ops, ops
from toolkit.client.convert import convert_to_tensor
from toolkit.client.grouping import group
from toolkit.client.scopes import colocate_with, init_scope, name_scope
from toolkit.client.tensor import Tensor, TensorLike
from toolkit.client.train.slots import create_slot, zeros_slot
from toolkit.client.variables import BaseVariable, trainable_variables
from toolkit.errors import GraphError
from toolkit.graph.metagraph import GraphKeys


class ExponentialMovingAverage:
    """shadow = decay * shadow + (1 - decay) * value, for variables and tensors.

    Args:
        num_updates: a step count; the decay is then min(decay, (1 + n) / (10 + n)), so that it starts faster.
        zero_debias: divide the averages of tensors by what is missing because they started at zero.
    """

    def __init__(self, decay: float, num_updates: TensorLike | None = None, name: str = "ExponentialMovingAverage"):
        self._decay = decay
        self._num_updates = num_updates
        self.name = name
        self._averages: dict[Any, BaseVariable] = {}

    def apply(self, var_list: Sequence[Any] | None = None) -> Any:
        """The operation that updates the averages; the shadow variables are made at the first call.

        Raises:
            GraphError: a value is of no floating point type.
        """
        chosen = trainable_variables() if var_list is None else list(var_list)
        for value in chosen:
            if not value.dtype.base.is_floating:
                raise GraphError(f"'{value.name}' has type {value.dtype.base}; averages are of floating point values")
            if value not in self._averages:
                self._averages[value] = self._make(value)
        with name_scope(self.name) as scope:
            decay = convert_to_tensor(self._decay, name="decay")
            if self._num_updates is not None:
                count = math_ops.cast(self._num_updates, decay.dtype, name="num_updates")
                decay = ops.minimum(decay, (1.0 + count) / (10.0 + count))
            updates = [assign_moving_average(self._averages[value], value, decay) for value in chosen]
            return group(updates, name=scope)

    def _make(self, value: Any) -> BaseVariable:
        with init_scope():
            if isinstance(value, BaseVariable):
                average = create_slot(value, value.initialized_value(), self.name)
                value.graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, value)
                return average
            return zeros_slot(value, self.name, colocate=value.op.type in ("Variable", "VariableV2", "VarHandleOp"))

    def average(self, value: Any) -> BaseVariable | None:
        """The shadow variable of a value, or None."""
        return self._averages.get(value)

    def average_name(self, value: Any) -> str:
        """The name of the shadow variable, whether or not it exists."""
        found = self._averages.get(value)
        return found.op.name if found is not None else f"{value.op.name}/{self.name}"

    def variables_to_restore(self, variables: Sequence[BaseVariable]) -> dict[str, BaseVariable]:
        """A mapping for Saver that loads the averages into the variables themselves."""
        return {self.average_name(v) if v.trainable else v.op.name: v for v in variables}


def assign_moving_average(variable: BaseVariable, value: TensorLike, decay: TensorLike, name: str | None = None) -> Any:
    """variable -= (1 - decay) * (variable - value)."""
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope:
        decay = convert_to_tensor(1.0, variable.dtype.base) - decay if not isinstance(decay, Tensor) else 1.0 - decay
        decay = math_ops.cast(decay, variable.dtype.base)
        delta = (variable.to_tensor() - convert_to_tensor(value)) * decay
        with colocate_with(variable):
            return variable.assign_sub(delta, name=scope)
