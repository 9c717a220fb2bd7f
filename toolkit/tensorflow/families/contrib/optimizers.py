# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.opt: optimizers with weight decay of their own, averages of weights, Nesterov's Adam, LARS, lazy slots."""

from __future__ import annotations

import math
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import control_dependencies
from toolkit.client.flow.control_flow import cond
from toolkit.client.math import clip_ops, math_ops
from toolkit.client.train import adam_relatives, by_sign, decoupled, wrapped
from toolkit.tensorflow.families.framework.attributes import Adams, Momenta
from toolkit.tensorflow.families.train.optimizers import Optimizer


class DecoupledWeightDecayExtension(decoupled.DecoupledWeightDecay):
    """A base in front of an optimizer: its variables decay by `weight_decay` before each update."""

    def __init__(self, weight_decay: Any, **kwargs: Any):
        super().__init__(weight_decay, **kwargs)


def extend_with_decoupled_weight_decay(base_optimizer: type) -> type:
    """An optimizer class like another, with weight decay: `Extended(weight_decay=..., ...)`."""
    return type(f"OptimizerWithDecay{base_optimizer.__name__}", (DecoupledWeightDecayExtension, base_optimizer), {})


class AdamWOptimizer(decoupled.AdamW, Optimizer, Adams):
    def __init__(
        self, weight_decay: Any, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999,
        epsilon: Any = 1e-08, use_locking: bool = False, name: str = "AdamW",
    ):  # fmt: skip
        decoupled.AdamW.__init__(self, weight_decay, learning_rate, beta1, beta2, epsilon, use_locking, name)


class MomentumWOptimizer(decoupled.MomentumW, Optimizer, Momenta):
    def __init__(
        self, weight_decay: Any, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "MomentumW",
        use_nesterov: bool = False,
    ):  # fmt: skip
        decoupled.MomentumW.__init__(self, weight_decay, learning_rate, momentum, use_locking, name, use_nesterov)


class NadamOptimizer(Optimizer, decoupled.Nadam, Adams):
    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-08,
        use_locking: bool = False, name: str = "Adam",
    ):  # fmt: skip
        decoupled.Nadam.__init__(self, learning_rate, beta1, beta2, epsilon, use_locking, name)


class LazyAdamOptimizer(Optimizer, decoupled.LazyAdam, Adams):
    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-08,
        use_locking: bool = False, name: str = "Adam",
    ):  # fmt: skip
        decoupled.LazyAdam.__init__(self, learning_rate, beta1, beta2, epsilon, use_locking, name)


class LARSOptimizer(Optimizer, decoupled.LARS):
    def __init__(
        self, learning_rate: Any, momentum: Any = 0.9, weight_decay: Any = 0.0001, eeta: Any = 0.001,
        epsilon: Any = 0.0, name: str = "LARSOptimizer", skip_list: Any = None, use_nesterov: bool = False,
    ):  # fmt: skip
        decoupled.LARS.__init__(
            self, learning_rate, momentum, weight_decay, eeta, epsilon, name, skip_list, use_nesterov
        )


class AdaMaxOptimizer(Optimizer, adam_relatives.AdaMax, Adams):
    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-08,
        use_locking: bool = False, name: str = "AdaMax",
    ):  # fmt: skip
        adam_relatives.AdaMax.__init__(self, learning_rate, beta1, beta2, epsilon, use_locking, name)


class AdamGSOptimizer(Optimizer, adam_relatives.StepCountingAdam, Adams):
    def __init__(
        self, global_step: Any = 0, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999,
        epsilon: Any = 1e-08, use_locking: bool = False, name: str = "Adam",
    ):  # fmt: skip
        adam_relatives.StepCountingAdam.__init__(
            self, global_step, learning_rate, beta1, beta2, epsilon, use_locking, name
        )


class LazyAdamGSOptimizer(AdamGSOptimizer, adam_relatives.LazyStepCountingAdam):
    pass


class RegAdagradOptimizer(Optimizer, adam_relatives.RegAdagrad):
    def __init__(
        self, learning_rate: Any, initial_accumulator_value: float = 0.1, use_locking: bool = False,
        name: str = "RegAdagrad",
    ):  # fmt: skip
        adam_relatives.RegAdagrad.__init__(self, learning_rate, initial_accumulator_value, use_locking, name)


class AddSignOptimizer(Optimizer, by_sign.AddSign):
    def __init__(
        self, learning_rate: Any = 0.1, alpha: Any = 1.0, beta: Any = 0.9, sign_decay_fn: Any = None,
        use_locking: bool = False, name: str = "AddSignOptimizer",
    ):  # fmt: skip
        by_sign.AddSign.__init__(self, learning_rate, alpha, beta, sign_decay_fn, use_locking, name)


class PowerSignOptimizer(Optimizer, by_sign.PowerSign):
    def __init__(
        self, learning_rate: Any = 0.1, base: float = math.e, beta: Any = 0.9, sign_decay_fn: Any = None,
        use_locking: bool = False, name: str = "PowerSignOptimizer",
    ):  # fmt: skip
        by_sign.PowerSign.__init__(self, learning_rate, base, beta, sign_decay_fn, use_locking, name)


class _Around(Optimizer):
    """Another optimizer computes the gradients and changes the variables."""

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super(Optimizer, self).compute_gradients(*args, **kwargs)


class MovingAverageOptimizer(_Around, decoupled.MovingAverage):
    def __init__(self, opt: Any, average_decay: Any = 0.9999, num_updates: Any = None, sequential_update: bool = True):
        decoupled.MovingAverage.__init__(self, opt, average_decay, num_updates, sequential_update)


class VariableClippingOptimizer(_Around, wrapped.VariableClipping):
    def __init__(
        self, opt: Any, vars_to_clip_dims: Any, max_norm: Any, use_locking: bool = False,
        colocate_clip_ops_with_vars: bool = False, name: str = "VariableClipping",
    ):  # fmt: skip
        wrapped.VariableClipping.__init__(
            self, opt, vars_to_clip_dims, max_norm, use_locking, colocate_clip_ops_with_vars, name
        )


class TransformingOptimizer(_Around, wrapped.TransformedGradients):
    """Another optimizer, given other gradients: what a function makes of pairs of gradients and variables."""

    def __init__(self, opt: Any, transform: Any, name: str):
        wrapped.TransformedGradients.__init__(self, opt, transform, name)


class DropStaleGradientOptimizer(_Around, wrapped.DropStaleGradient):
    def __init__(self, opt: Any, staleness: int, use_locking: bool = False, name: str = "DropStaleGradient"):
        wrapped.DropStaleGradient.__init__(self, opt, staleness, use_locking, name)


class MultitaskOptimizerWrapper:
    """An optimizer whose slots stay as they are in steps in which a variable's gradient is all zeros: another task's.

    All else is the optimizer's own.
    """

    _UPDATES = ("_apply_dense", "_resource_apply_dense", "_apply_sparse", "_resource_apply_sparse")

    def __init__(self, opt: Any):
        if not isinstance(opt, Optimizer):
            raise TypeError(f"MultitaskOptimizerWrapper wraps a tf.train.Optimizer, got {opt!r}")
        self._opt = opt
        for name in self._UPDATES:
            setattr(opt, name, _unless_zero(getattr(opt, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def _is_zero(grad: Any) -> Any:
    values = getattr(grad, "values", grad)
    return math_ops.reduce_all(ops.equal(values, array_ops.zeros_like(values)))


def _unless_zero(update: Any) -> Any:
    def changed(grad: Any, *args: Any, **kwargs: Any) -> Any:
        def run() -> Any:
            with control_dependencies([update(grad, *args, **kwargs)]):
                return ops.no_op()

        return cond(_is_zero(grad), ops.no_op, run)

    return changed


def clip_gradients_by_global_norm(gradients_variables: Any, clip_norm: Any = 20.0) -> tuple[list[Any], Any]:
    """Pairs of gradients and variables, the gradients scaled so that their norm together is at most `clip_norm`; and
    what the norm was."""
    pairs = list(gradients_variables)
    clipped, norm = clip_ops.clip_by_global_norm([gradient for gradient, _ in pairs], clip_norm)
    return list(zip(clipped, [variable for _, variable in pairs], strict=True)), norm
