# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.opt: optimizers with weight decay of their own, averages of weights, Nesterov's Adam, LARS, lazy slots."""

from __future__ import annotations

from typing import Any

from toolkit.client import clip_ops
from toolkit.client.train import decoupled
from toolkit.tensorflow.families.optimizers import Optimizer


class DecoupledWeightDecayExtension(decoupled.DecoupledWeightDecay):
    """A base in front of an optimizer: its variables decay by `weight_decay` before each update."""

    def __init__(self, weight_decay: Any, **kwargs: Any):
        super().__init__(weight_decay, **kwargs)


def extend_with_decoupled_weight_decay(base_optimizer: type) -> type:
    """An optimizer class like another, with weight decay: `Extended(weight_decay=..., ...)`."""
    return type(f"OptimizerWithDecay{base_optimizer.__name__}", (DecoupledWeightDecayExtension, base_optimizer), {})


class AdamWOptimizer(decoupled.AdamW, Optimizer):
    def __init__(
        self, weight_decay: Any, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999,
        epsilon: Any = 1e-08, use_locking: bool = False, name: str = "AdamW",
    ):  # fmt: skip
        decoupled.AdamW.__init__(self, weight_decay, learning_rate, beta1, beta2, epsilon, use_locking, name)


class MomentumWOptimizer(decoupled.MomentumW, Optimizer):
    def __init__(
        self, weight_decay: Any, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "MomentumW",
        use_nesterov: bool = False,
    ):  # fmt: skip
        decoupled.MomentumW.__init__(self, weight_decay, learning_rate, momentum, use_locking, name, use_nesterov)


class NadamOptimizer(Optimizer, decoupled.Nadam):
    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-08,
        use_locking: bool = False, name: str = "Adam",
    ):  # fmt: skip
        decoupled.Nadam.__init__(self, learning_rate, beta1, beta2, epsilon, use_locking, name)


class LazyAdamOptimizer(Optimizer, decoupled.LazyAdam):
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


def clip_gradients_by_global_norm(gradients_variables: Any, clip_norm: Any = 20.0) -> tuple[list[Any], Any]:
    """Pairs of gradients and variables, the gradients scaled so that their norm together is at most `clip_norm`; and
    what the norm was."""
    pairs = list(gradients_variables)
    clipped, norm = clip_ops.clip_by_global_norm([gradient for gradient, _ in pairs], clip_norm)
    return list(zip(clipped, [variable for _, variable in pairs], strict=True)), norm
