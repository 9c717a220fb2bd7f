"""The optimizers: gradient descent, momentum, Adam, Adagrad, Adadelta, RMSProp, Ftrl.

Each update is one Apply op of the op registry; the formulas are in its kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with, control_dependencies
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.train.optimizer import Optimizer
from toolkit.client.variables import initializers
from toolkit.client.variables.base import BaseVariable
from toolkit.errors import UsageError, did_you_mean


class GradientDescent(Optimizer):
    """var -= learning_rate * grad."""

    def __init__(self, learning_rate: TensorLike, use_locking: bool = False, name: str = "GradientDescent"):
        super().__init__(use_locking, name)
        self._rate = learning_rate

    def prepare(self) -> None:
        self._rate_t = self.tensor(self._rate, "learning_rate")

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        return self.run_update("ApplyGradientDescent", v, [self.hyper(self._rate_t, v), grad])

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        return self.apply_sparse_duplicates(grad, v)

    def apply_sparse_duplicates(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        """What is added up by the scatter need not be added up before."""
        if v.is_resource:
            rate = self._rate() if callable(self._rate) else self._rate
            return ops.resource_scatter_add(v.handle, grad.indices, -grad.values * rate)
        rate = self.hyper(self._rate_t, v)
        return ops.scatter_sub(v.handle, grad.indices, grad.values * rate, use_locking=self.use_locking).op


class Momentum(Optimizer):
    """accum = momentum * accum + grad; var -= learning_rate * accum (or Nesterov's variant)."""

    def __init__(
        self, learning_rate: TensorLike, momentum: TensorLike, use_locking: bool = False, name: str = "Momentum",
        use_nesterov: bool = False,
    ):  # fmt: skip
        super().__init__(use_locking, name)
        self._rate = learning_rate
        self._momentum = momentum
        self._nesterov = use_nesterov

    def create_slots(self, var_list: Sequence[BaseVariable]) -> None:
        for v in var_list:
            self.slot_zeros(v, "momentum")

    def prepare(self) -> None:
        self._rate_t = self.tensor(self._rate, "learning_rate")
        self._momentum_t = self.tensor(self._momentum, "momentum")

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        inputs = [self.slot_zeros(v, "momentum"), self.hyper(self._rate_t, v), grad, self.hyper(self._momentum_t, v)]
        return self.run_update("ApplyMomentum", v, inputs, use_nesterov=self._nesterov)

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        inputs = [
            self.slot_zeros(v, "momentum"), self.hyper(self._rate_t, v), grad.values, grad.indices,
            self.hyper(self._momentum_t, v),
        ]  # fmt: skip
        return _sparse(self, "Momentum", v, inputs, use_nesterov=self._nesterov)


class Adam(Optimizer):
    """Kingma and Ba (arXiv 1412.6980), in the form with the bias correction in the learning rate."""

    def __init__(
        self, learning_rate: TensorLike = 0.001, beta1: TensorLike = 0.9, beta2: TensorLike = 0.999,
        epsilon: TensorLike = 1e-8, use_locking: bool = False, name: str = "Adam",
    ):  # fmt: skip
        super().__init__(use_locking, name)
        self._rate, self._beta1, self._beta2, self._epsilon = learning_rate, beta1, beta2, epsilon

    def create_slots(self, var_list: Sequence[BaseVariable]) -> None:
        self._first = min(var_list, key=lambda v: v.name)  # the same in every process, so the powers are too
        self._powers()
        for v in var_list:
            self.slot_zeros(v, "m")
            self.slot_zeros(v, "v")

    def _powers(self) -> tuple[BaseVariable, BaseVariable]:
        return (
            self.shared_variable(self._beta1, "beta1_power", self._first),
            self.shared_variable(self._beta2, "beta2_power", self._first),
        )

    def prepare(self) -> None:
        self._rate_t = self.tensor(self._rate, "learning_rate")
        self._beta1_t = self.tensor(self._beta1, "beta1")
        self._beta2_t = self.tensor(self._beta2, "beta2")
        self._epsilon_t = self.tensor(self._epsilon, "epsilon")

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        powers = [self.hyper(power.to_tensor(), v) for power in self._powers()]
        rest = [self.hyper(t, v) for t in (self._rate_t, self._beta1_t, self._beta2_t, self._epsilon_t)]
        return self.run_update("ApplyAdam", v, [self.slot_zeros(v, "m"), self.slot_zeros(v, "v"), *powers, *rest, grad])

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        """All rows of the slots decay; the rows of the gradient are added in."""
        power1, power2 = (self.hyper(power.to_tensor(), v) for power in self._powers())
        rate, beta1, beta2, epsilon = (
            self.hyper(t, v) for t in (self._rate_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        )
        rate = rate * math_ops.sqrt(1 - power2) / (1 - power1)

        def decayed(slot: Any, beta: Tensor, values: Tensor) -> Tensor:
            kept = slot.assign(slot.to_tensor() * beta, use_locking=self.use_locking)
            with control_dependencies([kept]):
                added = slot.scatter("ScatterAdd", IndexedSlices(values, grad.indices))
            if isinstance(added, Operation):
                with control_dependencies([added]):
                    return slot.read_value()
            return added

        m = decayed(self.slot_zeros(v, "m"), beta1, grad.values * (1 - beta1))
        second = decayed(self.slot_zeros(v, "v"), beta2, grad.values * grad.values * (1 - beta2))
        root = math_ops.sqrt(second)
        changed = v.assign_sub(rate * m / (root + epsilon), use_locking=self.use_locking)
        return group([changed, m, second])

    def finish(self, updates: Sequence[Any], name: str) -> Operation:
        """The powers move on after all variables have used them."""
        with control_dependencies(updates):
            power1, power2 = self._powers()
            with colocate_with(power1):
                next1 = power1.assign(power1.to_tensor() * self._beta1_t, use_locking=self.use_locking)
                next2 = power2.assign(power2.to_tensor() * self._beta2_t, use_locking=self.use_locking)
        return group([*updates, next1, next2], name=name)


class Adagrad(Optimizer):
    """accum += grad**2; var -= learning_rate * grad / sqrt(accum) (Duchi et al., 2011)."""

    def __init__(
        self, learning_rate: TensorLike, initial_accumulator_value: float = 0.1, use_locking: bool = False,
        name: str = "Adagrad",
    ):  # fmt: skip
        if initial_accumulator_value <= 0:
            raise UsageError(f"initial_accumulator_value must be positive, not {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._rate = learning_rate
        self._initial = initial_accumulator_value

    def _accumulator(self, v: BaseVariable) -> BaseVariable:
        return self.slot_filled(v, initializers.Constant(self._initial), "accumulator")

    def create_slots(self, var_list: Sequence[BaseVariable]) -> None:
        for v in var_list:
            self._accumulator(v)

    def prepare(self) -> None:
        self._rate_t = self.tensor(self._rate, "learning_rate")

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        return self.run_update("ApplyAdagrad", v, [self._accumulator(v), self.hyper(self._rate_t, v), grad])

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        inputs = [self._accumulator(v), self.hyper(self._rate_t, v), grad.values, grad.indices]
        return _sparse(self, "Adagrad", v, inputs)


class Adadelta(Optimizer):
    """Zeiler (arXiv 1212.5701)."""

    def __init__(
        self, learning_rate: TensorLike = 0.001, rho: TensorLike = 0.95, epsilon: TensorLike = 1e-8,
        use_locking: bool = False, name: str = "Adadelta",
    ):  # fmt: skip
        super().__init__(use_locking, name)
        self._rate, self._rho, self._epsilon = learning_rate, rho, epsilon

    def create_slots(self, var_list: Sequence[BaseVariable]) -> None:
        for v in var_list:
            self.slot_zeros(v, "accum")
            self.slot_zeros(v, "accum_update")

    def prepare(self) -> None:
        self._rate_t = self.tensor(self._rate, "lr")
        self._rho_t = self.tensor(self._rho, "rho")
        self._epsilon_t = self.tensor(self._epsilon, "epsilon")

    def _inputs(self, v: BaseVariable) -> list[Any]:
        hypers = [self.hyper(t, v) for t in (self._rate_t, self._rho_t, self._epsilon_t)]
        return [self.slot_zeros(v, "accum"), self.slot_zeros(v, "accum_update"), *hypers]

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        return self.run_update("ApplyAdadelta", v, [*self._inputs(v), grad])

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        return _sparse(self, "Adadelta", v, [*self._inputs(v), grad.values, grad.indices])


class RMSProp(Optimizer):
    """Hinton's lecture 6e: the gradient divided by the root of its running mean square, with momentum."""

    def __init__(
        self, learning_rate: TensorLike, decay: TensorLike = 0.9, momentum: TensorLike = 0.0,
        epsilon: TensorLike = 1e-10, use_locking: bool = False, centered: bool = False, name: str = "RMSProp",
    ):  # fmt: skip
        super().__init__(use_locking, name)
        self._rate, self._decay, self._momentum, self._epsilon = learning_rate, decay, momentum, epsilon
        self._centered = centered

    def create_slots(self, var_list: Sequence[BaseVariable]) -> None:
        for v in var_list:
            self._kept(v)

    def _kept(self, v: BaseVariable) -> list[Any]:
        rms = self.slot_filled(v, initializers.Ones(), "rms")
        mean = [self.slot_zeros(v, "mg")] if self._centered else []
        return [*mean, rms, self.slot_zeros(v, "momentum")]

    def prepare(self) -> None:
        self._rate_t = self.tensor(self._rate, "learning_rate")
        self._decay_t = self.tensor(self._decay, "decay")
        self._momentum_t = self.tensor(self._momentum, "momentum")
        self._epsilon_t = self.tensor(self._epsilon, "epsilon")

    def _inputs(self, v: BaseVariable) -> list[Any]:
        hypers = (self._rate_t, self._decay_t, self._momentum_t, self._epsilon_t)
        return [*self._kept(v), *[self.hyper(t, v) for t in hypers]]

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        return self.run_update(
            "ApplyCenteredRMSProp" if self._centered else "ApplyRMSProp", v, [*self._inputs(v), grad]
        )

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        kind = "CenteredRMSProp" if self._centered else "RMSProp"
        return _sparse(self, kind, v, [*self._inputs(v), grad.values, grad.indices])


class _Filled:
    """A number in all places, as a product with ones."""

    def __init__(self, value: float):
        self._value = value

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return array_ops.ones(shape, dtype) * self._value


class Ftrl(Optimizer):
    """McMahan et al. (2013): follow the regularized leader.

    Args:
        accum_name, linear_name: what the slots are called; default: as the optimizer.
        l2_shrinkage_regularization_strength: an L2 penalty on the gradient as well.
        beta: added to the root of the accumulator, as an L2 penalty that shrinks with the learning rate.

    Raises:
        UsageError: a number is out of its range.
    """

    def __init__(
        self, learning_rate: TensorLike, learning_rate_power: TensorLike = -0.5,
        initial_accumulator_value: float = 0.1, l1_regularization_strength: TensorLike = 0.0,
        l2_regularization_strength: TensorLike = 0.0, use_locking: bool = False, name: str = "Ftrl",
        accum_name: str | None = None, linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0, beta: float | None = None,
    ):  # fmt: skip
        if initial_accumulator_value < 0:
            raise UsageError(f"initial_accumulator_value must not be negative, not {initial_accumulator_value}")
        if isinstance(learning_rate_power, float) and learning_rate_power > 0:
            raise UsageError(f"learning_rate_power must not be positive, not {learning_rate_power}")
        if l2_shrinkage_regularization_strength < 0:
            raise UsageError(
                f"l2_shrinkage_regularization_strength must not be negative, not {l2_shrinkage_regularization_strength}"
            )
        super().__init__(use_locking, name)
        self._rate, self._power = learning_rate, learning_rate_power
        self._l1, self._l2 = l1_regularization_strength, l2_regularization_strength
        self._initial = initial_accumulator_value
        self._accumulator_name, self._linear_name = accum_name or name, linear_name or name
        self._shrinkage, self._beta = l2_shrinkage_regularization_strength, 0.0 if beta is None else beta

    def _kept(self, v: BaseVariable) -> list[Any]:
        accumulator = self.slot_filled(
            v, _Filled(self._initial), "accum", self._accumulator_name, v.static_shape, v.dtype.base
        )
        return [accumulator, self.slot_zeros(v, "linear", self._linear_name)]

    def create_slots(self, var_list: Sequence[BaseVariable]) -> None:
        for v in var_list:
            self._kept(v)

    def prepare(self) -> None:
        self._rate_t = self.tensor(self._rate, "learning_rate")
        self._l1_t = self.tensor(self._l1, "l1_regularization_strength")
        # the smallest rate that is told from none in float32
        extra = self._beta / (2.0 * ops.maximum(self._rate, 1e-36))
        self._l2_t = self.tensor(self._l2 + extra, "adjusted_l2_regularization_strength")
        self.tensor(self._beta, "beta")
        self._shrinkage_t = self.tensor(self._shrinkage, "l2_shrinkage_regularization_strength")
        self._power_t = self.tensor(self._power, "learning_rate_power")

    def _hypers(self, v: BaseVariable) -> tuple[str, list[Tensor]]:
        """The version of the op, and its numbers."""
        shrinkage = [self._shrinkage_t] if self._shrinkage > 0 else []
        hypers = (self._rate_t, self._l1_t, self._l2_t, *shrinkage, self._power_t)
        return "V2" if shrinkage else "", [self.hyper(t, v) for t in hypers]

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        version, hypers = self._hypers(v)
        return self.run_update("ApplyFtrl" + version, v, [*self._kept(v), grad, *hypers])

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        version, hypers = self._hypers(v)
        return _sparse(self, "Ftrl" + version, v, [*self._kept(v), grad.values, grad.indices, *hypers])


def _sparse(optimizer: Optimizer, kind: str, v: BaseVariable, inputs: Sequence[Any], **attrs: Any) -> Operation:
    """`SparseApplyX` or `ResourceSparseApplyX`."""
    return optimizer.run_update(f"SparseApply{kind}", v, inputs, **attrs)


#: optimizers by the names that specs use
BY_NAME: dict[str, type[Optimizer]] = {
    "sgd": GradientDescent,
    "momentum": Momentum,
    "adam": Adam,
    "adagrad": Adagrad,
    "adadelta": Adadelta,
    "rmsprop": RMSProp,
    "ftrl": Ftrl,
}


def by_name(name: str) -> type[Optimizer]:
    """The optimizer class of a spec's name.

    Raises:
        UsageError: there is none; close names are suggested.
    """
    try:
        return BY_NAME[name]
    except KeyError:
        hint = did_you_mean(name, BY_NAME)
        raise UsageError(f"there is no optimizer '{name}'{hint} (there are: {', '.join(BY_NAME)})") from None
