"""First values whose variance follows from the sizes of a layer (tf.contrib.layers)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from toolkit.client.construction.convert import as_dtype
from toolkit.client.construction.tensor import Tensor
from toolkit.client.random import random_ops
from toolkit.client.variables.initializers import fans
from toolkit.graph import dtypes

_MODES = ("FAN_IN", "FAN_OUT", "FAN_AVG")
#: cutting a normal distribution at two standard deviations takes a part of its variance: 1 / 1.3 is left, roughly
_CUT = 1.3


def variance_scaling_initializer(
    factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False, seed: int | None = None,
    dtype: Any = dtypes.float32,
) -> Callable[..., Tensor]:  # fmt: skip
    """Random values of variance `factor / n`, n being inputs, outputs or their mean (He and others, arXiv 1502.01852).

    Raises:
        TypeError: another mode, or a type that is not floating.
    """
    default = _floating(dtype)
    if mode not in _MODES:
        raise TypeError(f"mode: expected one of {', '.join(_MODES)}, got {mode!r}")

    def initial(shape: Any, dtype: Any = default, partition_info: Any = None) -> Tensor:
        kind = _floating(dtype)
        sizes = [int(size) for size in shape]
        inputs, outputs = fans(sizes)
        count = {"FAN_IN": inputs, "FAN_OUT": outputs, "FAN_AVG": (inputs + outputs) / 2.0}[mode]
        if uniform:
            limit = math.sqrt(3.0 * factor / count)
            return random_ops.random_uniform(sizes, -limit, limit, kind, seed)
        return random_ops.truncated_normal(sizes, 0.0, math.sqrt(_CUT * factor / count), kind, seed)

    return initial


def _floating(dtype: Any) -> dtypes.DType:
    found = as_dtype(dtype).base
    if not found.is_floating:
        raise TypeError(f"dtype: variance scaling makes floating point numbers, not {found}")
    return found


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: Any = dtypes.float32
) -> Callable[..., Tensor]:
    """Glorot and Bengio's: variance_scaling_initializer of factor 1 and FAN_AVG."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)
