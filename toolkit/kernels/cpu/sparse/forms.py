"""What ops on sparse tensors, (indices [n, rank], values [n], dense shape [rank]), ask of their arguments.

And the shapes that these lead to. Shapes are in host memory; indices and values may be in any.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from toolkit.kernels.cpu.common import np, require, require_scalar, require_vector, shape_text, to_ints
from toolkit.kernels.types import Array


def check_sparse(indices: Any, values: Any, shape: Any) -> None:
    """Raise unless the three parts of a sparse tensor fit together.

    Raises:
        InvalidArgumentError: a rank or a size is wrong.
    """
    require(indices.ndim == 2, f"Expected indices to be a matrix, got shape {shape_text(indices)}")
    require(values.ndim == 1, f"Expected values to be a vector, got shape {shape_text(values)}")
    require(shape.ndim == 1, f"Expected dense_shape to be a vector, got shape {shape_text(shape)}")
    require(indices.shape[0] == values.shape[0], f"Expected {indices.shape[0]} values, got {values.shape[0]}")
    require(
        indices.shape[1] == shape.shape[0],
        f"Expected indices with {shape.shape[0]} columns, one a dimension, got shape {shape_text(indices)}",
    )


def check_countable(shape: Array) -> None:
    """Raise unless a dense shape is one that a tensor can have.

    Raises:
        InvalidArgumentError: a negative size, or more elements than int64 counts.
    """
    sizes = to_ints(shape)
    require(min(sizes, default=0) >= 0, f"Expected shape dimensions to be non-negative, got {sizes}")
    # as TensorFlow counts, size by size: what comes before a size of 0 must be countable too
    for last in range(1, len(sizes) + 1):
        require(math.prod(sizes[:last]) < 1 << 63, f"a tensor of shape {sizes} has more elements than can be counted")


def check_dense_shape(indices: Any, shape: Array, values: Any, default: Array) -> tuple[list[int], int]:
    """The shape of a dense tensor, and how many numbers are put into it.

    Raises:
        InvalidArgumentError: there is no value, or no coordinates, for each.
    """
    require(indices.ndim <= 2, f"sparse_indices should be a scalar, vector, or matrix, got shape {shape_text(indices)}")
    require_vector(shape, "output_shape")
    require_scalar(default, "default_value")
    count = indices.shape[0] if indices.ndim else 1
    depth = indices.shape[1] if indices.ndim == 2 else 1
    require(depth == len(shape), f"output_shape has incorrect number of elements: {len(shape)} should be: {depth}")
    require(
        values.ndim == 0 or values.shape == (count,),
        f"sparse_values has incorrect shape {shape_text(values)}, should be [] or [{count}]",
    )
    require((shape >= 0).all(), f"output_shape must be non-negative, got {to_ints(shape)}")
    return to_ints(shape), count


def reshaped_sizes(indices: Any, shape: Array, wanted: Array) -> list[int]:
    """The sizes of a sparse tensor's new shape.

    Raises:
        InvalidArgumentError: it has another number of elements.
    """
    require(indices.ndim == 2, f"Input indices should be a matrix but received shape {shape_text(indices)}")
    require(shape.ndim == 1, f"Input shape should be a vector but received shape {shape_text(shape)}")
    require(wanted.ndim == 1, f"Target shape should be a vector but received shape {shape_text(wanted)}")
    require(
        indices.shape[1] == len(shape),
        f"Input tensor rank must match input shape length: {indices.shape[1]} vs {len(shape)}",
    )
    total = math.prod(to_ints(shape))
    require(abs(total) < 1 << 63, f"a tensor of shape {to_ints(shape)} has more elements than can be counted")
    sizes = to_ints(wanted)
    require(sizes.count(-1) <= 1, "only one output dimension may be -1")
    if -1 in sizes:
        known = math.prod(s for s in sizes if s != -1)
        require(
            known > 0,
            "reshape cannot infer the missing input size for an empty tensor "
            "unless all specified input sizes are non-zero",
        )
        require(
            total % known == 0,
            f"Input to reshape is a SparseTensor with {total} dense values, but the "
            f"requested shape requires a multiple of {known}",
        )
        sizes[sizes.index(-1)] = total // known
    require(min(sizes, default=0) >= 0, f"size of a dimension must be non-negative: {sizes}")
    require(
        math.prod(sizes) == total,
        f"Input to reshape is a tensor with {total} dense values, but the requested shape has {math.prod(sizes)}",
    )
    return sizes


def concatenated(
    indices: Sequence[Any], values: Sequence[Any], shapes: Sequence[Array], dim: int
) -> tuple[int, list[int], Array]:
    """(the axis, where each part begins along it, the shape) of sparse tensors one behind the other.

    Raises:
        InvalidArgumentError: there is no such axis, or other sizes differ.
    """
    for triple in zip(indices, values, shapes, strict=True):
        check_sparse(*triple)
    rank = len(shapes[0])
    require(-rank <= dim < rank, f"Concat dimension must be in range [{-rank}, {rank}), got {dim}")
    axis = dim % rank
    offsets, offset = list[int](), 0
    for i in range(len(shapes)):
        require(
            len(shapes[i]) == rank,
            f"Ranks of all input tensors must match: expected {rank} but got {len(shapes[i])} at position {i}",
        )
        for d in range(rank):
            require(
                d == axis or shapes[i][d] == shapes[0][d],
                f"Input shapes must match: expected {shapes[0][d]} for dimension {d} but got {shapes[i][d]} at "
                f"position {i}",
            )
        offsets.append(offset)
        offset += int(shapes[i][axis])
    shape = shapes[0].copy()
    shape[axis] = offset
    return axis, offsets, shape


def split_starts(axis_input: Array, indices: Any, values: Any, shape: Array, count: int) -> tuple[int, Array]:
    """The axis, and where each part of it begins with the end of the last; the first ones are one longer.

    Raises:
        InvalidArgumentError: there is no such axis, or it has fewer than so many.
    """
    require(axis_input.size == 1, f"split_dim should have a single element, got shape {shape_text(axis_input)}")
    axis = int(axis_input.reshape(()))
    check_sparse(indices, values, shape)
    rank = len(shape)
    require(0 <= axis < rank, f"Input split_dim should be between 0 and rank ({rank}), got {axis}")
    total = int(shape[axis])
    require(
        1 <= count <= total,
        f"Input num_split should be between 1 and the splitting dimension size ({total}), got {count}",
    )
    step, extra = divmod(total, count)
    lengths = [step + (i < extra) for i in range(count)]
    return axis, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def slice_lengths(indices: Any, values: Any, shape: Array, start: Array, size: Array) -> Array:
    """The shape of a slice.

    Raises:
        InvalidArgumentError: start or size is negative, or has another length than the shape.
    """
    check_sparse(indices, values, shape)
    check_countable(shape)
    rank = len(shape)
    require(start.shape == (rank,), f"Expected start to be a vector of length {rank} but got shape {shape_text(start)}")
    require(size.shape == (rank,), f"Expected size to be a vector of length {rank} but got shape {shape_text(size)}")
    require((start >= 0).all(), f"start must be non-negative, got {to_ints(start)}")
    require((size >= 0).all(), f"size must be non-negative, got {to_ints(size)}")
    return np.maximum(np.minimum(size, shape - start), 0)


def check_slice_grad(grad: Any, input_indices: Any, start: Any, output_indices: Any) -> None:
    """Raise unless the gradient of a slice fits what it is of."""
    require(grad.ndim == 1, f"Input backprop_val_grad should be a vector, got shape {shape_text(grad)}")
    require(input_indices.ndim == 2 and output_indices.ndim == 2, "input_indices and output_indices should be matrices")
    require(input_indices.shape[1] == output_indices.shape[1], "The input and output should have the same ndims")
    require(
        start.shape == (input_indices.shape[1],),
        f"input_start should have one number for each of {input_indices.shape[1]} dims, got shape {shape_text(start)}",
    )
    require(
        output_indices.shape[0] <= input_indices.shape[0],
        "# rows of output_indices should be not greater than of input_indices, "
        f"got {output_indices.shape[0]} and {input_indices.shape[0]}",
    )
    require(
        grad.shape[0] == output_indices.shape[0],
        "# elements of backprop_val_grad and # rows of output_indices should "
        f"match ({grad.shape[0]} and {output_indices.shape[0]})",
    )


def check_filled(indices: Any, values: Any, shape: Array, default: Any) -> None:
    """Raise unless these are a sparse tensor with rows, and a number for empty ones."""
    require(shape.ndim == 1, f"dense_shape must be a vector, saw: {shape_text(shape)}")
    require(indices.ndim == 2, f"indices must be a matrix, saw: {shape_text(indices)}")
    require(values.ndim == 1, f"values must be a vector, saw: {shape_text(values)}")
    require(
        indices.shape[0] == values.shape[0],
        f"The length of `values` ({values.shape[0]}) must match the first dimension of `indices` ({indices.shape[0]}).",
    )
    require_scalar(default, "default_value")
    require(len(shape) > 0, "Dense shape cannot be empty.")


def check_filled_ragged(rows: Any, values: Any, default: Any) -> None:
    """Raise unless these are a vector with rows, and a number for empty ones."""
    require_vector(rows, "value_rowids")
    require_vector(values, "values")
    require(
        rows.shape[0] == values.shape[0],
        f"The length of `values` ({values.shape[0]}) must match that of `value_rowids` ({rows.shape[0]}).",
    )
    require_scalar(default, "default_value")
