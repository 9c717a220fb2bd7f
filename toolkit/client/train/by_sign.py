"""Optimizers that step further where gradients keep their sign: AddSign, PowerSign (Bello et al., arXiv 1709.07417)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.train.optimizer import GradientAndVariable, Optimizer
from toolkit.client.variables.base import BaseVariable

SignDecay = Callable[[Any], TensorLike]


class _BySign(Optimizer):
    """Averages of gradients, and how much their signs count, which may decay with the global step."""

    def __init__(
        self, learning_rate: TensorLike, beta: TensorLike, sign_decay_fn: SignDecay | None, use_locking: bool, name: str
    ):
        super().__init__(use_locking, name)
        self._rate, self._beta, self._sign_decay = learning_rate, beta, sign_decay_fn
        self._step: Any = None

    def create_slots(self, var_list: Sequence[BaseVariable]) -> None:
        for v in var_list:
            self.slot_zeros(v, "m")

    def apply_gradients(
        self, grads_and_vars: Sequence[GradientAndVariable], global_step: Any = None, name: str | None = None
    ) -> Operation:
        self._step = global_step
        return super().apply_gradients(grads_and_vars, global_step, name)

    def prepare(self) -> None:
        self._rate_t = self.tensor(self._rate, "learning_rate")
        self._beta_t = self.tensor(self._beta, "beta")
        self._decay_t = self.tensor(1.0 if self._sign_decay is None else self._sign_decay(self._step), "sign_decay")

    def own_hyper(self, v: BaseVariable) -> Tensor:
        """The hyper-parameter that the rule has of its own."""
        raise NotImplementedError

    def factor(self, own: Tensor, agreement: Tensor) -> Tensor:
        """What a gradient is multiplied by, of the decayed product of signs."""
        raise NotImplementedError

    def dense(self, op: str, grad: Tensor, v: BaseVariable) -> Operation:
        hypers = [self.hyper(self._rate_t, v), self.own_hyper(v), self.hyper(self._decay_t, v)]
        return self.run_update(op, v, [self.slot_zeros(v, "m"), *hypers, self.hyper(self._beta_t, v), grad])

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        """All rows of the average decay; rows of the variable change that have a gradient."""
        rate, beta, decay = (self.hyper(t, v) for t in (self._rate_t, self._beta_t, self._decay_t))
        m: Any = self.slot_zeros(v, "m")
        whole = IndexedSlices(grad.values, grad.indices, array_ops.shape(v)).to_tensor()
        average = m.assign(m.to_tensor() * beta + whole * (1 - beta), use_locking=self.use_locking)
        agreement = array_ops.gather(ops.sign(average), grad.indices) * ops.sign(grad.values)
        factor = self.factor(self.own_hyper(v), decay * agreement)
        target: Any = v
        changed = target.scatter("ScatterSub", IndexedSlices(rate * factor * grad.values, grad.indices))
        return group([changed, average])


class AddSign(_BySign):
    """Gradients multiplied by alpha + sign_decay * sign(gradient) * sign(average).

    Args:
        sign_decay_fn: of the global step; 1 without.
    """

    def __init__(
        self, learning_rate: TensorLike = 0.1, alpha: TensorLike = 1.0, beta: TensorLike = 0.9,
        sign_decay_fn: SignDecay | None = None, use_locking: bool = False, name: str = "AddSignOptimizer",
    ):  # fmt: skip
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._alpha = alpha

    def prepare(self) -> None:
        super().prepare()
        self._alpha_t = self.tensor(self._alpha, "alpha")

    def own_hyper(self, v: BaseVariable) -> Tensor:
        return self.hyper(self._alpha_t, v)

    def factor(self, own: Tensor, agreement: Tensor) -> Tensor:
        return own + agreement

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        return self.dense("ApplyAddSign", grad, v)


class PowerSign(_BySign):
    """Gradients multiplied by base ** (sign_decay * sign(gradient) * sign(average)).

    Args:
        sign_decay_fn: of the global step; 1 without.
    """

    def __init__(
        self, learning_rate: TensorLike = 0.1, base: float = math.e, beta: TensorLike = 0.9,
        sign_decay_fn: SignDecay | None = None, use_locking: bool = False, name: str = "PowerSignOptimizer",
    ):  # fmt: skip
        super().__init__(learning_rate, beta, sign_decay_fn, use_locking, name)
        self._log = math.log(base)

    def prepare(self) -> None:
        super().prepare()
        self._log_t = self.tensor(self._log, "logbase")

    def own_hyper(self, v: BaseVariable) -> Tensor:
        return self.hyper(self._log_t, v)

    def factor(self, own: Tensor, agreement: Tensor) -> Tensor:
        return ops.exp(own * agreement)

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        return self.dense("ApplyPowerSign", grad, v)
