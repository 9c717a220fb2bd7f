"""What is known of a tensor's value while the graph is made."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client.construction.tensor import Tensor, TensorLike


def static_value(value: TensorLike) -> np.ndarray[Any, Any] | None:
    """The value of a tensor that constants determine, or None; anything but a tensor is its own value."""
    if not isinstance(value, Tensor):
        return np.asarray(value)
    found: Any = value.graph.shapes.constant(value.output)
    if found is None:
        return None
    array: np.ndarray[Any, Any] = np.asarray(found)
    if array.dtype == object and any(item is None for item in array.flat):
        return None  # known in part
    return array if array.dtype == object else array.astype(value.dtype.base.numpy)
