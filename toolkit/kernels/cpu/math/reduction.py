"""Reductions over axes, cumulative sums, arg-reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import contiguous_slices, np, require, shape_text, to_ints, wide
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def reduction_axes(x: Array, indices: Array) -> tuple[int, ...]:
    """The axes to reduce, from the `reduction_indices` input.

    Raises:
        InvalidArgumentError: an axis is out of range or given twice.
    """
    axes: list[int] = []
    for axis in to_ints(indices):
        if not -x.ndim <= axis < x.ndim:
            raise InvalidArgumentError(f"Invalid reduction dimension ({axis} for input with {x.ndim} dimension(s)")
        axis %= x.ndim
        if axis in axes:
            raise InvalidArgumentError(f"Invalid reduction arguments: Axes contains duplicate dimension: {axis}")
        axes.append(axis)
    return tuple(axes)


def lowest(dtype: Any) -> Any:
    """The identity of max in a type."""
    return -np.inf if dtype.kind not in "iu" else np.iinfo(dtype).min


def highest(dtype: Any) -> Any:
    """The identity of min in a type."""
    return np.inf if dtype.kind not in "iu" else np.iinfo(dtype).max


def _sum(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.add.reduce(x, axes, x.dtype, None, keep)


def _prod(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.multiply.reduce(x, axes, x.dtype, None, keep)


def _mean(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    total = _sum(x, axes, keep)
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    if x.dtype.kind in "iu":
        if count == 0:
            return total
        quotient = np.abs(total) // np.asarray(count, x.dtype)
        return np.where(total < 0, -quotient, quotient).astype(x.dtype) if x.dtype.kind == "i" else quotient
    return np.divide(total, np.asarray(count, x.dtype))


def _max(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.maximum.reduce(x, axes, None, None, keep, lowest(x.dtype))


def _min(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.minimum.reduce(x, axes, None, None, keep, highest(x.dtype))


def _norm(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    """Square root of the sum of squares; rounded toward zero for integers."""
    squares = np.sum((x * np.conj(x)).real, axis=axes, keepdims=keep)
    return np.sqrt(squares).astype(x.dtype)


_REDUCERS: dict[str, Callable[[Array, tuple[int, ...], bool], Array]] = {
    "Sum": _sum, "Prod": _prod, "Mean": _mean, "Max": _max, "Min": _min, "EuclideanNorm": _norm,
    "All": lambda x, axes, keep: np.all(x, axis=axes, keepdims=keep),
    "Any": lambda x, axes, keep: np.any(x, axis=axes, keepdims=keep),
}  # fmt: skip


@kernel(*_REDUCERS)
def reduce(op: KernelNode) -> Compute:
    reducer, keep = _REDUCERS[op.op], bool(op.attr("keep_dims"))

    def compute(x: Array, indices: Array) -> Array:
        axes = reduction_axes(x, indices)
        if not axes:
            return x
        # in the order in which NumPy adds what lies in a row: a view of the same numbers must not give other bits
        return np.asarray(reducer(np.ascontiguousarray(wide(x)), axes, keep), x.dtype)

    return compute


@kernel("ArgMax", "ArgMin")
def arg_reduce(op: KernelNode) -> Compute:
    """The first position of the extreme value; NaN is never extreme."""
    largest = op.op == "ArgMax"
    function = np.argmax if largest else np.argmin
    dtype = op.output_types[0].numpy

    def compute(x: Array, dimension: Array) -> Array:
        require(dimension.ndim == 0, "dim must be a scalar, but received tensor of shape: " + shape_text(dimension))
        axis = int(dimension)
        require(-x.ndim <= axis < x.ndim, f"Expected dimension in the range [{-x.ndim}, {x.ndim}), but got {axis}")
        require(x.shape[axis] > 0, f"Reduction axis {axis} is empty in shape {shape_text(x)}")
        values = wide(x)
        if values.dtype.kind == "f":
            nan = np.isnan(values)
            if nan.any():
                values = np.where(nan, -np.inf if largest else np.inf, values)
        return np.asarray(function(values, axis=axis)).astype(dtype)

    return compute


_SCANS: dict[str, tuple[Callable[..., Array], float]] = {
    "Cumsum": (np.add.accumulate, 0),
    "Cumprod": (np.multiply.accumulate, 1),
    "CumulativeLogsumexp": (np.logaddexp.accumulate, -np.inf),
}


@kernel(*_SCANS)
def scan(op: KernelNode) -> Compute:
    function, identity = _SCANS[op.op]
    exclusive, backwards = bool(op.attr("exclusive")), bool(op.attr("reverse"))

    def compute(x: Array, axis_input: Array) -> Array:
        require(axis_input.ndim == 0, "axis must be a scalar, not " + shape_text(axis_input))
        axis = int(axis_input)
        require(-x.ndim <= axis < x.ndim, f"Expected scan axis in the range [{-x.ndim}, {x.ndim}), but got {axis}")
        axis %= x.ndim
        if x.size == 0:
            return x
        values = wide(x)
        if backwards:
            values = np.flip(values, axis)
        result = function(values, axis, values.dtype)
        if exclusive:
            start = np.full_like(result[contiguous_slices(x.ndim, axis, slice(0, 1))], identity)
            result = np.concatenate([start, result[contiguous_slices(x.ndim, axis, slice(0, -1))]], axis=axis)
        if backwards:
            result = np.flip(result, axis)
        return np.asarray(result, x.dtype)

    return compute
