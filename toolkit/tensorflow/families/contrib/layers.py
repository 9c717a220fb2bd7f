# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.layers: what has to know tf.train's optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client.scoped_layers import optimizing
from toolkit.tensorflow import names

_OPTIMIZERS = {
    "Adagrad": "AdagradOptimizer", "Adam": "AdamOptimizer", "Ftrl": "FtrlOptimizer", "Momentum": "MomentumOptimizer",
    "RMSProp": "RMSPropOptimizer", "SGD": "GradientDescentOptimizer",
}  # fmt: skip


def _momentum(learning_rate: Any) -> Any:
    return names.resolve("train.MomentumOptimizer")(learning_rate, momentum=0.9)


#: what optimize_loss knows by name; programs call them with their own options, too
OPTIMIZER_CLS_NAMES: dict[str, Callable[..., Any]] = {
    name: _momentum if name == "Momentum" else names.resolve(f"train.{kind}") for name, kind in _OPTIMIZERS.items()
}
OPTIMIZER_SUMMARIES = optimizing.SUMMARIES


def optimize_loss(
    loss: Any, global_step: Any, learning_rate: Any, optimizer: Any, gradient_noise_scale: Any = None,
    gradient_multipliers: Any = None, clip_gradients: Any = None, learning_rate_decay_fn: Any = None,
    update_ops: Any = None, variables: Any = None, name: Any = None, summaries: Any = None,
    colocate_gradients_with_ops: bool = False, increment_global_step: bool = True,
) -> Any:  # fmt: skip
    return optimizing.optimize_loss(
        loss, global_step, learning_rate, optimizer, OPTIMIZER_CLS_NAMES, gradient_noise_scale, gradient_multipliers,
        clip_gradients, learning_rate_decay_fn, update_ops, variables, name, summaries, colocate_gradients_with_ops,
        increment_global_step,
    )  # fmt: skip
