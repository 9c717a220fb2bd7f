"""Mean and variance by weights, and by sums that can be added up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.graph import dtypes


def sufficient_statistics(
    x: TensorLike, axes: Sequence[int], shift: TensorLike = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """How many numbers there are over `axes`, their sum, the sum of their squares, and the shift.

    Args:
        shift: subtracted before, close to the mean, so that less is lost by rounding.
    """
    order = sorted(set(axes))
    with name_scope(name, "sufficient_statistics", [x, shift]):
        x = convert_to_tensor(x, name="x")
        shape = x.static_shape
        sizes = [None] if shape.rank is None else [shape[axis] for axis in order]
        known = [size for size in sizes if size is not None]
        if len(known) == len(sizes):
            count = constant(math.prod(known), x.dtype.base)
        else:
            array_ops.rank(x)  # a node that nothing reads, as in TensorFlow
            wanted = array_ops.gather(math_ops.cast(array_ops.shape(x), x.dtype.base), order)
            count = math_ops.reduce_prod(wanted, name="count")
        start = None if shift is None else convert_to_tensor(shift, name="shift")
        if start is None:
            sums, squares = x, ops.square(x)
        else:
            sums, squares = ops.sub(x, start), ops.squared_difference(x, start)
        total = math_ops.reduce_sum(sums, order, keepdims=keepdims, name="mean_ss")
        return count, total, math_ops.reduce_sum(squares, order, keepdims=keepdims, name="var_ss"), start


def normalize_moments(
    counts: TensorLike, mean_ss: TensorLike, variance_ss: TensorLike, shift: TensorLike = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance of what `sufficient_statistics` gave."""
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        divisor = ops.reciprocal(counts, name="divisor")
        if shift is None:
            offset = mean = ops.mul(mean_ss, divisor, name="mean")
        else:
            offset = ops.mul(mean_ss, divisor, name="shifted_mean")
            mean = math_ops.add(offset, shift, name="mean")
        return mean, ops.sub(ops.mul(variance_ss, divisor), ops.square(offset), name="variance")


def weighted_moments(
    x: TensorLike, axes: Any, frequency_weights: TensorLike, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance over `axes`, each number counted as often as its weight says."""
    with name_scope(name, "weighted_moments", [x, frequency_weights, axes]):
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(frequency_weights, name="frequency_weights")
        given = x.dtype.base
        if given is dtypes.float16:
            x = math_ops.cast(x, dtypes.float32)
        if weights.dtype.base is not x.dtype.base:
            weights = math_ops.cast(weights, x.dtype.base)
        total = math_ops.reduce_sum(weights * x, axes, True, "weighted_input_sum")
        spread_weights = weights + array_ops.zeros_like(x)
        count = math_ops.reduce_sum(spread_weights, axes, True, "sum_of_weights")
        mean = ops.div_no_nan(total, count, name="div_no_nan")
        squares = math_ops.reduce_sum(weights * ops.squared_difference(x, mean), axes, True, "weighted_distsq")
        variance = ops.div_no_nan(squares, count, name="div_no_nan")
        if not keepdims:
            mean, variance = array_ops.squeeze(mean, axes), array_ops.squeeze(variance, axes)
        if given is dtypes.float16:
            mean, variance = math_ops.cast(mean, given), math_ops.cast(variance, given)
        return mean, variance
