"""Joining and splitting along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import contiguous_slices, np, require, shape_text, to_ints, wrap_axis
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


@kernel("Pack")
def pack(op: KernelNode) -> Compute:
    axis = op.attr("axis")

    def compute(*values: Array) -> Array:
        at = pack_axis(values, axis)
        first = values[0]
        if not first.shape and first.dtype.kind in "biuf":  # sizes, as a rule
            return np.array(values, first.dtype)
        return np.stack(values, axis=at)

    return compute


def pack_axis(values: Sequence[Any], axis: int) -> int:
    """The axis that tensors are stacked along, which have one shape.

    Raises:
        InvalidArgumentError: they do not, or there is no such axis.
    """
    first = values[0].shape
    position = wrap_axis(axis, len(first) + 1)
    for i, value in enumerate(values):
        if value.shape != first:
            raise InvalidArgumentError(
                f"Shapes of all inputs must match: values[0].shape = {shape_text(first)} != values[{i}].shape = "
                f"{shape_text(value)}"
            )
    return position


@kernel("Unpack")
def unpack(op: KernelNode) -> Compute:
    axis, count = op.attr("axis"), op.attr("num")

    def compute(x: Array) -> list[Array]:
        position = wrap_axis(axis, x.ndim)
        if x.shape[position] != count:
            raise InvalidArgumentError(f"Input shape axis {position} must equal {count}, got shape {shape_text(x)}")
        moved = np.moveaxis(x, position, 0)
        return [np.asarray(moved[i, ...]) for i in range(count)]

    return compute


def concatenate(values: tuple[Array, ...], axis_input: Array) -> Array:
    """Join along an axis.

    Raises:
        InvalidArgumentError: ranks or sizes differ, or the axis does not exist.
    """
    return np.concatenate(values, axis=concat_axis(values, axis_input))


def concat_axis(values: Sequence[Any], axis_input: Array) -> int:
    """The axis that tensors are joined along.

    Raises:
        InvalidArgumentError: ranks or sizes differ, or the axis does not exist.
    """
    if axis_input.size != 1:
        raise InvalidArgumentError(f"Concat dim tensor should be a scalar, but got shape {shape_text(axis_input)}")
    axis = int(axis_input.reshape(()))
    first = values[0]
    rank = first.ndim
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"Expected concatenating dimensions in the range [{-rank}, {rank}), but got {axis}")
    axis %= rank
    for i, value in enumerate(values):
        if value.ndim != rank:
            raise InvalidArgumentError(
                f"Ranks of all input tensors should match: shape[0] = {shape_text(first)} vs. shape[{i}] = "
                f"{shape_text(value)}"
            )
        for d in range(rank):
            if d != axis and value.shape[d] != first.shape[d]:
                raise InvalidArgumentError(
                    f"Dimension {d} in both shapes must be equal: shape[0] = {shape_text(first)} vs. shape[{i}] = "
                    f"{shape_text(value)}"
                )
    return axis


@kernel("Concat", "ConcatV2")
def concat(op: KernelNode) -> Compute:
    axis_first = op.op == "Concat"

    def compute(*args: Array) -> Array:
        return concatenate(args[1:], args[0]) if axis_first else concatenate(args[:-1], args[-1])

    return compute


@kernel("ConcatOffset")
def concat_offset(op: KernelNode) -> Compute:
    """Where each part begins in the joined tensor, given all their shapes."""

    def compute(axis_input: Array, *shapes: Array) -> list[Array]:
        require(axis_input.ndim == 0, f"Concat dim tensor should be a scalar, but got shape {shape_text(axis_input)}")
        first = shapes[0]
        for i, shape in enumerate(shapes):
            require(shape.ndim == 1, f"input {i} should be a vector, but got shape {shape_text(shape)}")
        axis = int(axis_input)
        rank = len(first)
        require(-rank <= axis < rank, f"Concat dim is out of range: {axis} vs. {rank}")
        axis %= rank
        offset = 0
        out: list[Array] = []
        for i, shape in enumerate(shapes):
            require(len(shape) == rank, f"input {i} should contain {rank} elements, but got {len(shape)}")
            for d in range(rank):
                require(
                    d == axis or shape[d] == first[d],
                    f"All dimensions except {axis} must match. Input {i} has shape {to_ints(shape)} and doesn't "
                    f"match input 0 with shape {to_ints(first)}.",
                )
            start = np.zeros(rank, first.dtype)
            start[axis] = offset
            offset += int(shape[axis])
            out.append(start)
        return out

    return compute


@kernel("Split")
def split(op: KernelNode) -> Compute:
    count = op.attr("num_split")

    def compute(axis_input: Array, x: Array) -> list[Array]:
        if axis_input.size != 1:
            raise InvalidArgumentError(f"split_dim_tensor must have exactly one element, got {shape_text(axis_input)}")
        axis = int(axis_input.reshape(()))
        if not -x.ndim <= axis < x.ndim:
            raise InvalidArgumentError(f"-input rank(-{x.ndim}) <= split_dim < input rank ({x.ndim}), but got {axis}")
        axis %= x.ndim
        step, rest = divmod(x.shape[axis], count)
        if rest:
            raise InvalidArgumentError(
                f"Number of ways to split should evenly divide the split dimension, but got split_dim {axis} "
                f"(size = {x.shape[axis]}) and num_split {count}"
            )
        lead = (slice(None),) * axis
        return [x[(*lead, slice(at, at + step))] for at in range(0, count * step, step)] if step else [x] * count

    return compute


@kernel("SplitV")
def split_v(op: KernelNode) -> Compute:
    """Parts of given sizes; one of them may be -1 and takes what is left."""
    count = op.attr("num_split")

    def compute(x: Array, sizes_input: Array, axis_input: Array) -> list[Array]:
        require(axis_input.size == 1, f"split_dim_tensor must have exactly one element, got {shape_text(axis_input)}")
        axis = int(axis_input.reshape(()))
        require(sizes_input.ndim == 1 and len(sizes_input) == count, f"size_splits must be a vector of {count} sizes")
        require(
            -x.ndim <= axis < x.ndim, f"-input rank(-{x.ndim}) <= split_dim < input rank ({x.ndim}), but got {axis}"
        )
        axis %= x.ndim
        sizes, total = to_ints(sizes_input), x.shape[axis]
        require(sizes.count(-1) <= 1, "There can only be one -1 in the input.")
        if -1 in sizes:
            left = total - sum(s for s in sizes if s != -1)
            require(left >= 0, f"size_splits {sizes} exceed the size {total} of dimension {axis}")
            sizes[sizes.index(-1)] = left
        require(min(sizes) >= 0, f"Split size at index {sizes.index(min(sizes))} must be >= 0. Got: {min(sizes)}")
        require(
            sum(sizes) == total,
            f"Determined shape must either match input shape along split_dim exactly if fully specified, or be less "
            f"than the size of the input along split_dim if not fully specified. Got: {sum(sizes)}",
        )
        ends = np.cumsum(sizes).tolist()
        return [
            x[contiguous_slices(x.ndim, axis, slice(end - size, end))] for size, end in zip(sizes, ends, strict=True)
        ]

    return compute


@kernel("ParallelConcat")
def parallel_concat(op: KernelNode) -> Compute:
    """Rows, each with a first dimension of 1, joined."""
    dims = op.attr("shape").as_list()

    def compute(*values: Array) -> Array:
        check_rows(values, dims)
        return np.concatenate(values, axis=0)

    return compute


def check_rows(values: Sequence[Any], dims: Sequence[int]) -> None:
    """Refuse what are not the rows of a tensor of a shape.

    Raises:
        InvalidArgumentError: there are more or fewer, or one has another shape.
    """
    for i, value in enumerate(values):
        require(
            list(dims[:1]) == [len(values)] and value.shape == (1, *dims[1:]),
            f"input {i} of shape {shape_text(value)} is not one of {len(values)} rows of a tensor of shape "
            f"{dims}, the attribute's",
        )
