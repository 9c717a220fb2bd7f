"""Tensors made from parameters, and ops that pass a tensor on."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from toolkit.errors import FailedPreconditionError, InvalidArgumentError
from toolkit.kernels.cpu.arrays.shape import checked_shape
from toolkit.kernels.cpu.common import NARROW_FLOATS, np, require, require_scalar, shape_text, wide
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array

#: the most elements that a tensor may be said to have
_MOST = (1 << 63) - 1


@simple("Fill")
def fill(dims: Array, value: Array) -> Array:
    require(dims.ndim <= 1, f"dims must be a vector of int32, got shape {shape_text(dims)}")
    require(value.ndim == 0 or value.shape == (1,), f"value must be a scalar, got shape {shape_text(value)}")
    return np.full(checked_shape(dims.reshape(-1), what="dims"), value.reshape(())[()], value.dtype)


@simple("ZerosLike")
def zeros_like(x: Array) -> Array:
    if not isinstance(x, np.ndarray | np.generic):
        return zero_variant(x)
    if x.dtype == object:
        return np.full(x.shape, b"", object)
    return np.zeros(x.shape, x.dtype)


@runtime_checkable
class _HasZeros(Protocol):
    """Variants that may be accumulated: tensor lists, maps, ragged tensors, optionals."""

    def zeros_like(self) -> Any: ...


def zero_variant(value: Any) -> Any:
    """Zeros of a variant (a tensor list): the object knows how."""
    if not isinstance(value, _HasZeros):
        raise InvalidArgumentError(f"a variant of type {type(value).__name__} has no zeros")
    return value.zeros_like()


@simple("OnesLike")
def ones_like(x: Array) -> Array:
    return np.ones(x.shape, x.dtype)


@kernel("Empty")
def empty(op: KernelNode) -> Compute:
    """Zeros: what TensorFlow leaves undefined, we define."""
    dtype = op.output_types[0]

    def compute(shape: Array) -> Array:
        return np.full(checked_shape(shape), b"" if dtype.kind == "s" else 0, dtype.numpy)

    return compute


def range_count(start: Array, limit: Array, delta: Array) -> int:
    """How many numbers Range gives.

    Raises:
        InvalidArgumentError: an argument is no scalar, or the step leads away from the limit.
    """
    for value, name in ((start, "start"), (limit, "limit"), (delta, "delta")):
        require(value.shape in ((), (1,)), f"{name} must be a scalar, not shape {shape_text(value)}")
    start, limit, delta = start.reshape(()), limit.reshape(()), delta.reshape(())
    kind = int if start.dtype.kind in "iu" else float
    first, last, step = kind(start), kind(limit), kind(delta)
    require(step != 0, f"Requires delta != 0: {delta}")
    if step > 0:
        require(first <= last, f"Requires start <= limit when delta > 0: {start}/{limit}")
    else:
        require(first >= last, f"Requires start >= limit when delta < 0: {start}/{limit}")
    if kind is int:
        return int(-((first - last) // step) if step > 0 else -((last - first) // -step))
    with np.errstate(all="ignore"):
        size = np.ceil(np.abs(np.float64(last - first) / step))
    require(size <= _MOST, f"Requires ((limit - start) / delta) <= {_MOST}")
    return int(size)


@simple("Range")
def range_(start: Array, limit: Array, delta: Array) -> Array:
    """start, start + delta, ... before limit."""
    count = range_count(start, limit, delta)
    start, delta = start.reshape(()), delta.reshape(())
    dtype = start.dtype
    if dtype.kind in "iu":
        narrow = count <= np.iinfo(dtype).max  # products that leave the type come back to it with their sums
        places = np.arange(count, dtype=dtype if narrow else np.int64)
        np.multiply(places, np.asarray(int(delta), places.dtype), places)
        np.add(places, np.asarray(int(start), places.dtype), places)
        return places.astype(dtype, copy=False)
    steps = np.arange(count)
    if dtype in NARROW_FLOATS:
        return (float(start) + float(delta) * steps).astype(dtype)
    out = steps.astype(dtype)
    np.multiply(out, delta, out)
    return np.add(out, start, out)


@simple("LinSpace")
def lin_space(start: Array, stop: Array, num: Array) -> Array:
    for value, name in ((start, "start"), (stop, "stop"), (num, "num")):
        require_scalar(value, name)
    count = int(num)
    require(count > 0, f"Requires num > 0: {count}")
    dtype = start.dtype
    first, last = wide(start), wide(stop)
    if count == 1:
        return np.array([start], dtype)
    step = (last - first) / np.asarray(count - 1, first.dtype)
    out = first + step * np.arange(count).astype(first.dtype)
    out[-1] = last
    return out.astype(dtype)


@kernel("OneHot")
def one_hot(op: KernelNode) -> Compute:
    axis = op.attr("axis")

    def compute(indices: Array, depth: Array, on_value: Array, off_value: Array) -> Array:
        one_hot_depth(indices, depth, on_value, off_value, axis)
        flat = indices.reshape(-1)
        inside = np.flatnonzero((flat >= 0) & (flat < depth))
        out = np.full((flat.size, int(depth)), off_value, on_value.dtype)
        out[inside, flat[inside].astype(np.int64)] = on_value
        last = out.reshape(*indices.shape, int(depth))
        return last if axis in (-1, indices.ndim) else np.ascontiguousarray(np.moveaxis(last, -1, axis))

    return compute


def one_hot_depth(indices: Any, depth: Array, on_value: Any, off_value: Any, axis: int) -> int:
    """The size of the new axis.

    Raises:
        InvalidArgumentError: there is no place for it, or it is negative, or what is no scalar should be one.
    """
    require(
        axis == -1 or 0 <= axis <= indices.ndim,
        f"Expected axis to be -1 or between [0, {indices.ndim}]. But received: {axis}",
    )
    for value, name in ((depth, "depth"), (on_value, "on_value"), (off_value, "off_value")):
        require_scalar(value, name)
    require(depth >= 0, f"depth must be non-negative, got: {depth}")
    return int(depth)


def _pass(x: Array) -> Array:
    return x


simple("Identity", "StopGradient", "PreventGradient", "Snapshot")(_pass)


@simple("DeepCopy")
def deep_copy(x: Array) -> Array:
    return np.array(x)


@kernel("IdentityN")
def identity_n(op: KernelNode) -> Compute:
    return lambda *values: list(values)


@kernel("CheckNumerics", "CheckNumericsV2")
def check_numerics(op: KernelNode) -> Compute:
    message = op.attr("message").decode(errors="backslashreplace")
    signed = op.op == "CheckNumericsV2"

    def compute(x: Array) -> Array:
        values = wide(x)
        if not np.isfinite(values).all():
            found: list[str] = []
            if signed:
                found += ["-Inf"] if np.isneginf(values).any() else []
                found += ["+Inf"] if np.isposinf(values).any() else []
            elif np.isinf(values).any():
                found.append("Inf")
            found += ["NaN"] if np.isnan(values).any() else []
            raise InvalidArgumentError(f"{message} : Tensor had {' and '.join(found)} values")
        return x

    return compute


@kernel("AddN", "AccumulateNV2")
def add_n(op: KernelNode) -> Compute:
    def compute(*values: Array) -> Array:
        first = values[0]
        if not isinstance(first, np.ndarray | np.generic):
            return first.add_n(values)
        for i, value in enumerate(values):
            if value.shape != first.shape:
                raise InvalidArgumentError(
                    f"Inputs to operation {op.name} of type {op.op} must have the same size and shape. Input 0: "
                    f"{shape_text(first)} != input {i}: {shape_text(value)}"
                )
        if len(values) == 1:
            return first
        out = np.asarray(np.add(wide(first), wide(values[1])))
        for value in values[2:]:
            np.add(out, value, out)
        return np.asarray(out, first.dtype)

    return compute


@kernel("Cross")
def cross(op: KernelNode) -> Compute:
    """The vector product of the last axis, of size 3."""

    def compute(a: Array, b: Array) -> Array:
        require(a.shape == b.shape, f"Both inputs must be of same shape: {shape_text(a)} vs. {shape_text(b)}")
        require(a.ndim >= 1, f"Input must be at least 1D {shape_text(a)}")
        if a.shape[-1] != 3:
            raise FailedPreconditionError(f"Cross-products are only defined for 3-element vectors, not {shape_text(a)}")
        left, right = wide(a), wide(b)
        x, y = left[..., [1, 2, 0]], right[..., [2, 0, 1]]
        u, v = left[..., [2, 0, 1]], right[..., [1, 2, 0]]
        return (x * y - u * v).astype(a.dtype)

    return compute


@kernel("HistogramFixedWidth")
def histogram_fixed_width(op: KernelNode) -> Compute:
    """Counts in equal bins; what lies outside counts in the first or the last."""
    dtype = op.output_types[0].numpy

    def compute(values: Array, value_range: Array, nbins: Array) -> Array:
        require(
            value_range.shape == (2,), f"value_range should be a vector of 2 elements, got {shape_text(value_range)}"
        )
        require_scalar(nbins, "nbins")
        count = int(nbins)
        low, high = float(value_range[0]), float(value_range[1])
        require(low < high, f"value_range should satisfy value_range[0] < value_range[1], but got [{low}, {high}]")
        require(count > 0, f"nbins should be a positive number, but got '{count}'")
        flat = values.reshape(-1).astype(np.float64)
        require(not np.isnan(flat).any(), "Histogram values must not contain NaN")
        step = (high - low) / count
        places = np.nan_to_num(np.floor((flat - low) / step), nan=0.0)  # of a range whose width is infinite
        bins = np.clip(places, 0, count - 1).astype(np.int64)
        return np.bincount(bins, minlength=count).astype(dtype)

    return compute


def bucket_boundaries(op: KernelNode) -> Array:
    """The boundaries of a node's buckets, float32.

    Raises:
        InvalidArgumentError: they do not rise.
    """
    boundaries = np.array(op.attr("boundaries"), np.float32)
    if (boundaries[1:] < boundaries[:-1]).any():
        raise InvalidArgumentError("Expected sorted boundaries", node=op.name)
    return boundaries


@kernel("Bucketize")
def bucketize(op: KernelNode) -> Compute:
    boundaries = bucket_boundaries(op)

    def compute(x: Array) -> Array:
        return np.searchsorted(boundaries, wide(x), side="right").astype(np.int32)

    return compute
