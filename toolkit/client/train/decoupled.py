"""Optimizers of tf.contrib.opt: weight decay apart from the gradient, averages of weights, Nesterov's Adam, LARS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import control_dependencies
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.train.averages import ExponentialMovingAverage
from toolkit.client.train.optimizer import GradientAndVariable, Optimizer
from toolkit.client.train.optimizers import Adam, Momentum
from toolkit.client.train.saver import Saver
from toolkit.client.variables.base import BaseVariable
from toolkit.errors import UsageError


def _scatter(variable: Any, op: str, rows: IndexedSlices) -> Any:
    return variable.scatter(op, rows)


class DecoupledWeightDecay:
    """A base beside an optimizer: variables are multiplied by 1 - weight_decay before the optimizer's own update
    (Loshchilov and Hutter, arXiv 1711.05101). The decay is not multiplied by the learning rate: give it so.

    Args:
        weight_decay: a number, a tensor, or a function of none.
    """

    def __init__(self, weight_decay: TensorLike | Callable[[], TensorLike], **kwargs: Any):
        self._decay_variables: list[Any] | None = None
        self._weight_decay = weight_decay
        self._decay_t: Any = None
        super().__init__(**kwargs)

    def minimize(
        self, loss: Tensor, *args: Any, decay_var_list: Sequence[Any] | None = None, **kwargs: Any
    ) -> Operation:
        """As of the optimizer; `decay_var_list`: the variables that decay, by default all that are changed."""
        self._decay_variables = None if decay_var_list is None else list(decay_var_list)
        return super().minimize(loss, *args, **kwargs)  # type: ignore[misc]

    def apply_gradients(
        self, grads_and_vars: Sequence[GradientAndVariable], global_step: Any = None, name: str | None = None,
        decay_var_list: Sequence[Any] | None = None,
    ) -> Operation:  # fmt: skip
        """As of the optimizer; `decay_var_list` as of `minimize`."""
        if decay_var_list is not None:
            self._decay_variables = list(decay_var_list)
        return super().apply_gradients(grads_and_vars, global_step, name)  # type: ignore[misc]

    def prepare(self) -> None:
        super().prepare()  # type: ignore[misc]
        self._decay_t = self.tensor(self._weight_decay, "weight_decay")  # type: ignore[attr-defined]

    def _decays(self, v: BaseVariable) -> bool:
        return self._decay_variables is None or v in self._decay_variables

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        waits: list[Any] = []
        if self._decays(v):
            with control_dependencies([grad]):  # the gradient is of the value before
                waits = [v.assign_sub(math_ops.cast(self._decay_t, v.dtype.base) * v.to_tensor())]
        with control_dependencies(waits):
            return super().apply_dense(grad, v)  # type: ignore[misc]

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        """Only the rows that have a gradient decay."""
        waits: list[Any] = []
        if self._decays(v):
            with control_dependencies([grad.values]):
                rows = math_ops.cast(self._decay_t, v.dtype.base) * array_ops.gather(v, grad.indices)
                waits = [_scatter(v, "ScatterSub", IndexedSlices(rows, grad.indices))]
        with control_dependencies(waits):
            return super().apply_sparse(grad, v)  # type: ignore[misc]


class AdamW(DecoupledWeightDecay, Adam):
    """Adam with decoupled weight decay."""

    def __init__(
        self, weight_decay: TensorLike, learning_rate: TensorLike = 0.001, beta1: TensorLike = 0.9,
        beta2: TensorLike = 0.999, epsilon: TensorLike = 1e-8, use_locking: bool = False, name: str = "AdamW",
    ):  # fmt: skip
        super().__init__(
            weight_decay, learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon,
            use_locking=use_locking, name=name,
        )  # fmt: skip


class MomentumW(DecoupledWeightDecay, Momentum):
    """Momentum with decoupled weight decay."""

    def __init__(
        self, weight_decay: TensorLike, learning_rate: TensorLike, momentum: TensorLike, use_locking: bool = False,
        name: str = "MomentumW", use_nesterov: bool = False,
    ):  # fmt: skip
        super().__init__(
            weight_decay, learning_rate=learning_rate, momentum=momentum, use_locking=use_locking, name=name,
            use_nesterov=use_nesterov,
        )  # fmt: skip


def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[Optimizer]:
    """An optimizer class like another, with weight decay: `Extended(weight_decay=..., ...)`."""
    return type(f"Decayed{base_optimizer.__name__}", (DecoupledWeightDecay, base_optimizer), {})


class Nadam(Adam):
    """Adam with Nesterov momentum (Dozat, 2016), by ApplyAdam's attribute; sparse gradients with the same formula."""

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        powers = [self.hyper(power.to_tensor(), v) for power in self._powers()]
        rest = [self.hyper(t, v) for t in (self._rate_t, self._beta1_t, self._beta2_t, self._epsilon_t)]
        given = [self.slot_zeros(v, "m"), self.slot_zeros(v, "v"), *powers, *rest, grad]
        return self.run_update("ApplyAdam", v, given, use_nesterov=True)

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        rate, beta1, beta2, epsilon = (
            self.hyper(t, v) for t in (self._rate_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        )
        power1, power2 = (self.hyper(power.to_tensor(), v) for power in self._powers())
        rate = rate * math_ops.sqrt(1 - power2) / (1 - power1)
        fresh = grad.values * (1 - beta1)
        m = self._decayed(self.slot_zeros(v, "m"), beta1, IndexedSlices(fresh, grad.indices))
        squares = IndexedSlices(grad.values * grad.values * (1 - beta2), grad.indices)
        second = self._decayed(self.slot_zeros(v, "v"), beta2, squares)
        dense = IndexedSlices(fresh, grad.indices, array_ops.shape(v)).to_tensor()
        bar = dense + beta1 * m
        changed = v.assign_sub(rate * bar / (math_ops.sqrt(second) + epsilon), use_locking=self.use_locking)
        return group([changed, m, second])

    def _decayed(self, slot: BaseVariable, beta: Tensor, rows: IndexedSlices) -> Tensor:
        """The slot, all of it decayed, with the rows added."""
        with control_dependencies([slot.assign(slot.to_tensor() * beta, use_locking=self.use_locking)]):
            added = _scatter(slot, "ScatterAdd", rows)
        if isinstance(added, Operation):
            with control_dependencies([added]):
                return slot.read_value()
        return added


class LazyAdam(Adam):
    """Adam whose slots only change in the rows that have a gradient."""

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        rate, beta1, beta2, epsilon = (
            self.hyper(t, v) for t in (self._rate_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        )
        power1, power2 = (self.hyper(power.to_tensor(), v) for power in self._powers())
        rate = rate * math_ops.sqrt(1 - power2) / (1 - power1)
        first, second = self.slot_zeros(v, "m"), self.slot_zeros(v, "v")
        new_first = beta1 * array_ops.gather(first, grad.indices) + (1 - beta1) * grad.values
        new_second = beta2 * array_ops.gather(second, grad.indices) + (1 - beta2) * ops.square(grad.values)
        step = rate * new_first / (math_ops.sqrt(new_second) + epsilon)
        updates = [
            _scatter(first, "ScatterUpdate", IndexedSlices(new_first, grad.indices)),
            _scatter(second, "ScatterUpdate", IndexedSlices(new_second, grad.indices)),
            _scatter(v, "ScatterSub", IndexedSlices(step, grad.indices)),
        ]
        return group(updates)


class LARS(Momentum):
    """Momentum whose rate is scaled by the norms of each variable and its gradient (You et al., arXiv 1708.03888).

    Args:
        eeta: the trust coefficient.
        skip_list: parts of names of variables that are not scaled.
    """

    def __init__(
        self, learning_rate: TensorLike, momentum: TensorLike = 0.9, weight_decay: float = 0.0001, eeta: float = 0.001,
        epsilon: float = 0.0, name: str = "LARSOptimizer", skip_list: Sequence[str] | None = None,
        use_nesterov: bool = False,
    ):  # fmt: skip
        super().__init__(learning_rate, momentum, False, name, use_nesterov)
        self._decay, self._eeta, self._small = weight_decay, eeta, epsilon
        self._skips = list(skip_list or ())

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        rate = self.hyper(self._rate_t, v)
        if not any(part in v.name for part in self._skips):
            value = v.to_tensor()
            norm, slope = (math_ops.sqrt(math_ops.reduce_sum(x * x)) for x in (value, grad))
            ratio = self._eeta * norm / (slope + self._decay * norm + self._small)
            ones = array_ops.ones_like(norm)
            trust = array_ops.where_v2(
                ops.greater(norm, 0), array_ops.where_v2(ops.greater(slope, 0), ratio, ones), ones
            )
            rate, grad = rate * trust, grad + self._decay * value
        # what is accumulated has each step's own rate
        one = math_ops.cast(1.0, v.dtype.base)
        given = [self.slot_zeros(v, "momentum"), one, grad * rate, self.hyper(self._momentum_t, v)]
        return self.run_update("ApplyMomentum", v, given, use_nesterov=self._nesterov)


class MovingAverage(Optimizer):
    """Another optimizer, with moving averages of the variables it changes, and savers that save the averages.

    Args:
        average_decay, num_updates: those of ExponentialMovingAverage.
        sequential_update: average after the update; else beside it.
    """

    def __init__(
        self, opt: Optimizer, average_decay: float = 0.9999, num_updates: Any = None, sequential_update: bool = True,
    ):  # fmt: skip
        super().__init__(opt.use_locking, opt.name)
        self._optimizer = opt
        self._ema = ExponentialMovingAverage(average_decay, num_updates)
        self._averaged: dict[str, BaseVariable] | None = None
        self._sequential = sequential_update

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[GradientAndVariable]:
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Sequence[GradientAndVariable], global_step: Any = None, name: str | None = None
    ) -> Operation:
        changed = [v for grad, v in grads_and_vars if grad is not None]
        train = self._optimizer.apply_gradients(grads_and_vars, global_step=global_step, name=name)
        with control_dependencies([train] if self._sequential else []):
            update = self._ema.apply(changed)
        self._averaged = {v.op.name: average for v in changed if (average := self._ema.average(v)) is not None}
        return group([train, update], name="train_with_avg")

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Saver:
        """A saver that writes averages under the names of the variables.

        Raises:
            UsageError: it is asked for before `apply_gradients`.
        """
        if self._averaged is None:
            raise UsageError("swapping_saver is for after apply_gradients or minimize: there are no averages yet")
        from toolkit.client.variables.by_collection import global_variables

        given = global_variables() if var_list is None else var_list
        named: dict[str, Any] = dict(cast("Any", given)) if isinstance(given, dict) else {v.op.name: v for v in given}
        swapped = {key: self._averaged.get(v.op.name, v) for key, v in named.items()}
        for key, average in self._averaged.items():
            if average.op.name in swapped and key in named:
                swapped[average.op.name] = named[key]
        return Saver(swapped, name=name, **kwargs)
