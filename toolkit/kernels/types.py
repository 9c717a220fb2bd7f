"""Names for what flows between kernels."""

from __future__ import annotations

from typing import Any

#: A numpy (or cupy) array. Kernels are generic over dtypes, which numpy's own annotations cannot say, so the
#: checker is told nothing rather than something false.
Array = Any


def is_array(value: Any) -> bool:
    """Whether a value is a numpy array or scalar. (isinstance would narrow `Any` to an array of unknown dtype.)"""
    import numpy as np

    return isinstance(value, np.ndarray | np.generic)
