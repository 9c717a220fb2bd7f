"""AdaMax, Adam that counts with the global step, and Adagrad whose sums may be left alone."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with, control_dependencies
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.train.decoupled import LazyAdam
from toolkit.client.train.optimizers import Adagrad, Adam
from toolkit.client.variables.base import BaseVariable
from toolkit.graph import dtypes


class AdaMax(Adam):
    """Adam with the largest gradient in place of the mean of squares (Kingma and Ba, arXiv 1412.6980, section 7)."""

    def __init__(
        self, learning_rate: TensorLike = 0.001, beta1: TensorLike = 0.9, beta2: TensorLike = 0.999,
        epsilon: TensorLike = 1e-8, use_locking: bool = False, name: str = "AdaMax",
    ):  # fmt: skip
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _power(self) -> BaseVariable:
        return self.shared_variable(self._beta1, "beta1_power", self._first)

    def create_slots(self, var_list: Sequence[BaseVariable]) -> None:
        self._first = min(var_list, key=lambda v: v.name)
        self._power()
        for v in var_list:
            self.slot_zeros(v, "m")
            self.slot_zeros(v, "v")

    def _hypers(self, v: BaseVariable) -> list[Tensor]:
        rest = (self._rate_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        return [self.hyper(t, v) for t in (self._power().to_tensor(), *rest)]

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        given = [self.slot_zeros(v, "m"), self.slot_zeros(v, "v"), *self._hypers(v), grad]
        return self.run_update("ApplyAdaMax", v, given)

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        """Slots change in the rows that have a gradient."""
        power, rate, beta1, beta2, epsilon = self._hypers(v)
        first: Any = self.slot_zeros(v, "m")
        largest: Any = self.slot_zeros(v, "v")
        new_first = array_ops.gather(first, grad.indices) * beta1 + grad.values * (1 - beta1)
        new_largest = ops.maximum(array_ops.gather(largest, grad.indices) * beta2, ops.abs(grad.values))
        step = rate / (1 - power) * (new_first / (new_largest + epsilon))
        target: Any = v
        return group([
            first.scatter("ScatterUpdate", IndexedSlices(new_first, grad.indices)),
            largest.scatter("ScatterUpdate", IndexedSlices(new_largest, grad.indices)),
            target.scatter("ScatterSub", IndexedSlices(step, grad.indices)),
        ])  # fmt: skip

    def finish(self, updates: Sequence[Any], name: str) -> Operation:
        with control_dependencies(updates):
            power = self._power()
            with colocate_with(power):
                following = power.assign(power.to_tensor() * self._beta1_t, use_locking=self.use_locking)
        return group([*updates, following], name=name)


class StepCountingAdam(Adam):
    """Adam whose powers of beta follow from the global step, so that no worker keeps them.

    Args:
        global_step: how many updates there were.
    """

    def __init__(self, global_step: Any = 0, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._count = global_step

    def create_slots(self, var_list: Sequence[BaseVariable]) -> None:
        for v in var_list:
            self.slot_zeros(v, "m")
            self.slot_zeros(v, "v")

    def prepare(self) -> None:
        super().prepare()
        following = math_ops.cast(array_ops.identity(self._count) + 1, dtypes.float32)
        self._powers_t = [_Power(ops.pow(beta, following)) for beta in (self._beta1_t, self._beta2_t)]

    def _powers(self) -> Any:
        return self._powers_t

    def finish(self, updates: Sequence[Any], name: str) -> Operation:
        return group(updates, name=name)


class _Power:
    """A tensor where Adam has a variable."""

    def __init__(self, tensor: Tensor):
        self._tensor = tensor

    def to_tensor(self) -> Tensor:
        return self._tensor


class LazyStepCountingAdam(StepCountingAdam, LazyAdam):
    """The same, with slots that only change in the rows that have a gradient."""


class RegAdagrad(Adagrad):
    """Adagrad whose sums of squares stay as they are inside `avoid_updating_slots()`."""

    def __init__(
        self, learning_rate: TensorLike, initial_accumulator_value: float = 0.1, use_locking: bool = False,
        name: str = "RegAdagrad",
    ):  # fmt: skip
        super().__init__(learning_rate, initial_accumulator_value, use_locking, name)
        self._adds = True

    @contextmanager
    def avoid_updating_slots(self) -> Generator[None]:
        """Updates that are made inside leave the sums alone."""
        before, self._adds = self._adds, False
        try:
            yield
        finally:
            self._adds = before

    def run_update(self, op: str, v: BaseVariable, inputs: Sequence[Any], **attrs: Any) -> Operation:
        return super().run_update(op, v, inputs, update_slots=self._adds, **attrs)
