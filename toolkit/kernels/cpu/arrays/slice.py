"""Slices: Slice and the StridedSlice family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.arrays.shape import checked_shape
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array

Index = tuple[Any, ...]


@simple("Slice")
def slice_(x: Array, begin: Array, size: Array) -> Array:
    """`size` elements from `begin` on every axis; -1 takes the rest."""
    if begin.shape != (x.ndim,) or size.shape != (x.ndim,):
        raise InvalidArgumentError(
            f"Expected begin and size arguments to be 1-D tensors of size {x.ndim}, but got shapes {shape_text(begin)} "
            f"and {shape_text(size)} instead."
        )
    index: list[slice] = []
    for start, count, limit in zip(begin.tolist(), size.tolist(), x.shape, strict=True):
        stop = limit if count == -1 else start + count
        if not 0 <= start <= stop <= limit:
            raise _outside(len(index), start, count, limit)
        index.append(slice(start, stop))
    return x[tuple(index)]


def _outside(axis: int, start: int, count: int, limit: int) -> InvalidArgumentError:
    if not 0 <= start <= limit:
        return InvalidArgumentError(f"Expected begin[{axis}] in [0, {limit}], but got {start}")
    return InvalidArgumentError(f"Expected size[{axis}] in [0, {limit - start}], but got {count}")


def strided_index(op: KernelNode) -> Callable[[tuple[int, ...], Array, Array, Array], Index]:
    """A function from (shape, begin, end, strides) to the numpy index that the node's masks describe."""
    begin_mask, end_mask = op.attr("begin_mask"), op.attr("end_mask")
    ellipsis_mask, new_axis_mask = op.attr("ellipsis_mask"), op.attr("new_axis_mask")
    shrink_mask = op.attr("shrink_axis_mask")
    if ellipsis_mask & (ellipsis_mask - 1):

        def fail(shape: tuple[int, ...], begin: Array, end: Array, strides: Array) -> Index:
            raise InvalidArgumentError("Multiple ellipses in slice spec not allowed")

        return fail

    def build(shape: tuple[int, ...], begin: Array, end: Array, strides: Array) -> Index:
        if begin.ndim != 1 or not begin.shape == end.shape == strides.shape:
            raise InvalidArgumentError(
                f"Expected begin, end, and strides to be 1D equal size tensors, but got shapes {shape_text(begin)}, "
                f"{shape_text(end)}, and {shape_text(strides)} instead."
            )
        starts, stops, steps = begin.tolist(), end.tolist(), strides.tolist()
        count = len(starts)
        used = count - ((ellipsis_mask | new_axis_mask) & (1 << count) - 1).bit_count()
        rank = len(shape)
        if used > rank:
            raise InvalidArgumentError(f"Index out of range using input dim {rank}; input has only {rank} dims")
        index: list[Any] = []
        axis = 0
        for i in range(count):
            if ellipsis_mask >> i & 1:
                index.append(Ellipsis)
                axis += rank - used
            elif new_axis_mask >> i & 1:
                index.append(None)
            else:
                step, size = steps[i], shape[axis]
                if step == 0:
                    raise InvalidArgumentError(f"strides[{i}] must be non-zero")
                if shrink_mask >> i & 1:
                    require(step > 0, "only stride 1 allowed on non-range indexing.")
                    at = starts[i]
                    if not -size <= at < size:
                        raise InvalidArgumentError(f"slice index {at} of dimension {axis} out of bounds.")
                    index.append(at)
                else:
                    index.append(
                        slice(None if begin_mask >> i & 1 else starts[i], None if end_mask >> i & 1 else stops[i], step)
                    )
                axis += 1
        if not ellipsis_mask & (1 << count) - 1:
            index.append(Ellipsis)  # so that the result is always a view
        return tuple(index)

    return build


@kernel("StridedSlice")
def strided_slice(op: KernelNode) -> Compute:
    build = strided_index(op)

    def compute(x: Array, begin: Array, end: Array, strides: Array) -> Array:
        return np.asarray(x[build(x.shape, begin, end, strides)])

    return compute


@kernel("StridedSliceGrad")
def strided_slice_grad(op: KernelNode) -> Compute:
    """Zeros of `shape` with dy at the places that the slice took."""
    build = strided_index(op)

    def compute(shape: Array, begin: Array, end: Array, strides: Array, dy: Array) -> Array:
        out = np.zeros(checked_shape(shape), dy.dtype)
        index = build(out.shape, begin, end, strides)
        chosen = out[index]
        if chosen.shape != dy.shape:
            raise InvalidArgumentError(f"shape of dy was {shape_text(dy)} instead of {shape_text(chosen)}")
        chosen[...] = dy
        return out

    return compute


@kernel("TensorStridedSliceUpdate")
def tensor_strided_slice_update(op: KernelNode) -> Compute:
    build = strided_index(op)

    def compute(x: Array, begin: Array, end: Array, strides: Array, value: Array) -> Array:
        out = x.copy()
        assign_slice(out, build(x.shape, begin, end, strides), value)
        return out

    return compute


def assign_slice(target: Array, index: Index, value: Array) -> None:
    """target[index] = value, where value may broadcast.

    Raises:
        InvalidArgumentError: it does not fit.
    """
    chosen = target[index]
    try:
        chosen[...] = value
    except ValueError:
        raise InvalidArgumentError(
            f"Cannot update view of shape {shape_text(chosen)} with a value of shape {shape_text(value)}"
        ) from None
