# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Attributes that TensorFlow calls private and programs read and set all the same: `optimizer._lr = 0.01`."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.internals import Also


class LearningRate:
    """Of most optimizers."""

    _learning_rate = Also("_rate")
    _learning_rate_tensor = Also("_rate_t", unset=None)


class Adams:
    """Of Adam and what is made of it; the tensors are there once gradients have been applied."""

    _lr = Also("_rate")
    _lr_t = Also("_rate_t", unset=None)
    _beta1_t: Any = None
    _beta2_t: Any = None
    _epsilon_t: Any = None


class Momenta(LearningRate):
    _use_nesterov = Also("_nesterov")
    _momentum_tensor = Also("_momentum_t", unset=None)


class Penalties(LearningRate):
    """Of optimizers that have an L1 and an L2 penalty."""

    _l1_regularization_strength = Also("_l1")
    _l2_regularization_strength = Also("_l2")
    _l1_regularization_strength_tensor = Also("_l1_t", unset=None)
    _l2_regularization_strength_tensor = Also("_l2_t", unset=None)
