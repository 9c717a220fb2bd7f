"""Optimizers with a penalty or an average of their own: proximal steps, dual averaging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with, device
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.train.optimizer import Optimizer
from toolkit.client.variables.base import BaseVariable
from toolkit.errors import UsageError


class ProximalGradientDescent(Optimizer):
    """Gradient descent followed by the proximal step of an L1 and an L2 penalty (Duchi and Singer, 2009)."""

    def __init__(
        self, learning_rate: TensorLike, l1_regularization_strength: TensorLike = 0.0,
        l2_regularization_strength: TensorLike = 0.0, use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ):  # fmt: skip
        super().__init__(use_locking, name)
        self._rate, self._l1, self._l2 = learning_rate, l1_regularization_strength, l2_regularization_strength

    def prepare(self) -> None:
        self._rate_t = self.tensor(self._rate, "learning_rate")
        self._l1_t = self.tensor(self._l1, "l1_regularization_strength")
        self._l2_t = self.tensor(self._l2, "l2_regularization_strength")

    def _hypers(self, v: BaseVariable) -> list[Any]:
        if v.is_resource:
            return [self.hyper(t, v) for t in (self._rate_t, self._l1_t, self._l2_t)]
        return [self._rate_t, self._l1_t, self._l2_t]

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        return self.run_update("ApplyProximalGradientDescent", v, [*self._hypers(v), grad])

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        given = [*self._hypers(v), grad.values, grad.indices]
        return self.run_update("SparseApplyProximalGradientDescent", v, given)


class ProximalAdagrad(Optimizer):
    """Adagrad followed by the proximal step of an L1 and an L2 penalty."""

    def __init__(
        self, learning_rate: TensorLike, initial_accumulator_value: float = 0.1,
        l1_regularization_strength: TensorLike = 0.0, l2_regularization_strength: TensorLike = 0.0,
        use_locking: bool = False, name: str = "ProximalAdagrad",
    ):  # fmt: skip
        if initial_accumulator_value <= 0:
            raise UsageError(f"initial_accumulator_value must be positive, not {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._rate, self._l1, self._l2 = learning_rate, l1_regularization_strength, l2_regularization_strength
        self._initial = initial_accumulator_value

    def _accumulator(self, v: BaseVariable) -> BaseVariable:
        return self.slot_constant(v, self._initial, "accumulator")

    def create_slots(self, var_list: Sequence[BaseVariable]) -> None:
        for v in var_list:
            self._accumulator(v)

    def prepare(self) -> None:
        self._rate_t = self.tensor(self._rate, "learning_rate")
        self._l1_t = self.tensor(self._l1, "l1_regularization_strength")
        self._l2_t = self.tensor(self._l2, "l2_regularization_strength")

    def _given(self, v: BaseVariable) -> list[Any]:
        hypers: list[Any] = [self._rate_t, self._l1_t, self._l2_t]
        if v.is_resource:
            hypers = [self.hyper(t, v) for t in hypers]
        return [self._accumulator(v), *hypers]

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        return self.run_update("ApplyProximalAdagrad", v, [*self._given(v), grad])

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        return self.run_update("SparseApplyProximalAdagrad", v, [*self._given(v), grad.values, grad.indices])


_SLOTS = ("gradient_accumulator", "gradient_squared_accumulator")


class AdagradDA(Optimizer):
    """Adagrad with dual averaging (Duchi et al., 2011): sparse linear models.

    Args:
        global_step: the step count, a variable; the averages divide by it.
    """

    def __init__(
        self, learning_rate: TensorLike, global_step: Any, initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: TensorLike = 0.0, l2_regularization_strength: TensorLike = 0.0,
        use_locking: bool = False, name: str = "AdagradDA",
    ):  # fmt: skip
        if initial_gradient_squared_accumulator_value <= 0:
            raise UsageError(
                "initial_gradient_squared_accumulator_value must be positive, not "
                f"{initial_gradient_squared_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._rate, self._l1, self._l2 = learning_rate, l1_regularization_strength, l2_regularization_strength
        self._initial = initial_gradient_squared_accumulator_value
        self._global_step = global_step

    def create_slots(self, var_list: Sequence[BaseVariable]) -> None:
        for v in var_list:
            with colocate_with(v):  # both starts come before both slots
                starts = [constant(value, v.dtype.base, v.static_shape) for value in (0.0, self._initial)]
            for slot, start in zip(_SLOTS, starts, strict=True):
                self.slot_started(v, start, slot)

    def prepare(self) -> None:
        self._rate_t = self.tensor(self._rate, "learning_rate")
        with colocate_with(self._rate_t):
            self._step = array_ops.identity(self._global_step) + 1

    def _given(self, v: BaseVariable, *gradient: Tensor) -> list[Any]:
        with device(v.device):
            step = array_ops.identity(self._step)
        dtype = v.dtype.base
        hypers = [math_ops.cast(x, dtype) for x in (self._rate_t, self._l1, self._l2)]
        return [*(self._slots[slot][v] for slot in _SLOTS), *gradient, *hypers, step]

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        return self.run_update("ApplyAdagradDA", v, self._given(v, grad))

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        return self.run_update("SparseApplyAdagradDA", v, self._given(v, grad.values, grad.indices))
