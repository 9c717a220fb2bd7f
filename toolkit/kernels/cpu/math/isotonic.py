"""Isotonic regression: the nearest sequence that never rises."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.kernels.cpu.common import np, require
from toolkit.kernels.registry import FLOATING, Compute, KernelNode, kernel
from toolkit.kernels.types import Array

#: results by type of the input; floating types give themselves
_RESULTS: dict[DType, DType] = {
    dtypes.int8: dtypes.float32, dtypes.int16: dtypes.float32, dtypes.int32: dtypes.float64,
    dtypes.int64: dtypes.float64,
}  # fmt: skip


def _pools(rows: Array, dtype: Any) -> tuple[Array, Array, Array]:
    """Pool adjacent violators (Kruskal 1964) in every row at once.

    Returns (means, sizes, number): stacks [rows, n] of pools from the left, of which a row has `number`.
    """
    count, width = rows.shape
    sums, sizes = np.zeros((count, width), dtype), np.zeros((count, width), np.int64)
    means = np.zeros((count, width), dtype)
    top = np.full(count, -1)
    every = np.arange(count)
    for column in range(width):
        top += 1
        sums[every, top] = means[every, top] = rows[:, column]
        sizes[every, top] = 1
        rising = every
        while rising.size:  # the last two pools of these rows are joined while they rise
            last = top[rising]
            rises = (last > 0) & (means[rising, last] > means[rising, last - 1])
            rising, last = rising[rises], last[rises]
            sums[rising, last - 1] += sums[rising, last]
            sizes[rising, last - 1] += sizes[rising, last]
            means[rising, last - 1] = sums[rising, last - 1] / sizes[rising, last - 1].astype(dtype)
            top[rising] -= 1
    return means, sizes, top + 1


@kernel("IsotonicRegression")
def isotonic_regression(op: KernelNode) -> Compute:
    """Values and the pool that each belongs to, along the last axis."""
    given, result = op.input_types[0], op.attr("output_dtype")
    wanted = given if given in FLOATING else _RESULTS.get(given)
    require(result is wanted, f"no IsotonicRegression of {given} gives {result}")
    dtype = result.numpy

    def compute(x: Array) -> tuple[Array, Array]:
        if x.size == 0:
            return np.zeros(x.shape, dtype), np.zeros(x.shape, np.int32)
        rows = x.reshape(-1, x.shape[-1] if x.ndim else 1).astype(dtype)
        means, sizes, number = _pools(rows, dtype)
        used = np.arange(rows.shape[1]) < number[:, None]
        values = np.repeat(means[used], sizes[used])
        segments = np.repeat(np.broadcast_to(np.arange(rows.shape[1], dtype=np.int32), rows.shape)[used], sizes[used])
        return values.reshape(x.shape), segments.reshape(x.shape)

    return compute
