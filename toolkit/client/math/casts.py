"""Casts that keep to the range of the type they go to."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.graph.dtypes import DType


def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Another type; what lies outside of its range becomes its smallest or largest value."""
    with name_scope(name, "saturate_cast", [value]) as scope:
        value = convert_to_tensor(value, name="value")
        wanted, own = as_dtype(dtype).base, value.dtype.base
        lowest, highest = (constant(bound, own) for bound in _bounds(own, wanted))
        value = ops.clip_by_value(value, lowest, highest, name="clamp")
        return math_ops.cast(value, wanted, name=scope)


def _bounds(own: DType, wanted: DType) -> tuple[Any, Any]:
    """The least and the greatest value of the first type that the second has, too."""
    bounds: list[Any] = []
    for side, exact, outside in zip((max, min), limits(wanted), limits(own), strict=True):
        bound = np.asarray(side(exact, outside)).astype(own.numpy)
        if own.is_floating and abs(float(bound)) > abs(exact):  # rounded outwards, as 2^31 - 1 is in float32
            bound = np.nextafter(bound, np.zeros((), own.numpy), dtype=own.numpy)
        bounds.append(bound)
    return bounds[0], bounds[1]


def limits(dtype: DType) -> tuple[Any, Any]:
    """The smallest and the largest value of a type."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype.numpy)
        return int(info.min), int(info.max)
    if dtype.kind == "b":
        return False, True
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo
    found = finfo(dtype.numpy)
    return float(found.min), float(found.max)
