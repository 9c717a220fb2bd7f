# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What programs without a Keras model take from tf.keras: initializers, regularizers, categories as numbers.

Initializers are those of tf.initializers but for three, whose values lie within 0.05 (or spread by that) by default.
"""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.convert import as_dtype, constant
from toolkit.client.math import math_ops
from toolkit.graph import dtypes
from toolkit.tensorflow.families.layers.initializers import Initializer
from toolkit.tensorflow.families.layers.initializers import random_normal_initializer as _normal
from toolkit.tensorflow.families.layers.initializers import random_uniform_initializer as _uniform
from toolkit.tensorflow.families.layers.initializers import truncated_normal_initializer as _truncated

_SMALL = 0.05


class RandomNormal(Initializer):
    def __init__(self, mean: Any = 0.0, stddev: Any = _SMALL, seed: Any = None, dtype: Any = dtypes.float32):
        self._is(_normal(mean, stddev, seed, dtype).plain, dtype)


class RandomUniform(Initializer):
    def __init__(self, minval: Any = -_SMALL, maxval: Any = _SMALL, seed: Any = None, dtype: Any = dtypes.float32):
        self._is(_uniform(minval, maxval, seed, dtype).plain, dtype)


class TruncatedNormal(Initializer):
    def __init__(self, mean: Any = 0.0, stddev: Any = _SMALL, seed: Any = None, dtype: Any = dtypes.float32):
        self._is(_truncated(mean, stddev, seed, dtype).plain, dtype)


class Regularizer:
    """What a tensor of weights costs: `regularizer(x)` is a number."""


class L1L2(Regularizer):
    """l1 times the sum of absolute values, plus l2 times the sum of squares."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0):
        self.l1, self.l2 = float(l1), float(l2)

    def __call__(self, x: Any) -> Any:
        if not self.l1 and not self.l2:
            return constant(0.0)
        total: Any = 0.0
        if self.l1:
            total += self.l1 * math_ops.reduce_sum(math_ops.abs(x))
        if self.l2:
            total += self.l2 * math_ops.reduce_sum(math_ops.square(x))
        return total

    def get_config(self) -> dict[str, float]:
        return {"l1": self.l1, "l2": self.l2}

    @classmethod
    def from_config(cls, config: dict[str, float]) -> L1L2:
        return cls(**config)


def l1(l: float = 0.01) -> L1L2:  # TensorFlow's name
    return L1L2(l1=l)


def l2(l: float = 0.01) -> L1L2:  # TensorFlow's name
    return L1L2(l2=l)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    return L1L2(l1=l1, l2=l2)


def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> Any:
    """Class numbers as rows that are 1 at the class: an array [..., num_classes]; [n, 1] counts as [n].

    Raises:
        IndexError: a class is not below `num_classes`.
    """
    import numpy as np

    classes = np.asarray(y).astype(np.int64)
    shape = classes.shape[:-1] if classes.ndim > 1 and classes.shape[-1] == 1 else classes.shape
    flat = classes.ravel()
    count = num_classes or int(flat.max()) + 1
    rows = np.zeros((flat.size, count), as_dtype(dtype).numpy)
    rows[np.arange(flat.size), flat] = 1
    return rows.reshape((*shape, count))
