"""Types and strides of dense tensors, as every library for them has them."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

F32 = np.dtype(np.float32)
F16 = np.dtype(np.float16)
BF16 = np.dtype(ml_dtypes.bfloat16)
#: 4 bits of exponent, 3 of mantissa, no infinity
F8 = np.dtype(ml_dtypes.float8_e4m3fn)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a dense tensor, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
