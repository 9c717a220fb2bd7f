"""Counting of values in sparse and ragged rows."""

from __future__ import annotations

from toolkit.kernels.cpu.common import integer, np, require, require_vector, shape_text
from toolkit.kernels.cpu.sparse.forms import check_sparse
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def rows_of_splits(splits: Array, count: int, what: str = "splits") -> Array:
    """The row of each of `count` values.

    Raises:
        InvalidArgumentError: the splits do not begin at 0, fall, or do not end at the number of values.
    """
    require_vector(splits, what)
    require(len(splits) > 0, f"{what} must not be empty")
    require(splits[0] == 0, f"{what} must start with 0, not with {splits[0]}")
    require((splits[1:] >= splits[:-1]).all(), f"{what} must be sorted in rising order")
    require(splits[-1] == count, f"{what} must end with the number of values, got {splits[-1]} instead of {count}")
    return np.repeat(np.arange(len(splits) - 1), np.diff(splits))


@kernel("SparseBincount", "RaggedBincount")
def sparse_bincount(op: KernelNode) -> Compute:
    """As DenseBincount, of a vector or the rows of a matrix."""
    binary = bool(op.attr("binary_output"))
    dtype = op.output_types[0].numpy
    ragged = op.op == "RaggedBincount"

    def compute(*args: Array) -> Array:
        if ragged:
            splits, values, size_input, weights = args
            splits, values = splits.reshape(-1), values.reshape(-1)  # as TensorFlow reads them, whatever their rank
            rows, row_count = rows_of_splits(splits, len(values)), len(splits) - 1
        else:
            indices, values, shape, size_input, weights = args
            check_sparse(indices, values, shape)
            matrix = len(shape) == 2
            rows = indices[:, 0] if matrix else np.zeros(len(values), np.int64)
            row_count = int(shape[0]) if matrix else 0
            if matrix:
                require(not len(rows) or (rows.min() >= 0 and rows.max() < row_count), "Index out of bound")
        size = integer(size_input, "size")
        require(size >= 0, f"size ({size}) must be non-negative")
        weights = weights.reshape(-1)
        require(
            weights.size in (0, values.size),
            f"weights must be empty or one for each of {values.size} values, got {weights.size}",
        )
        require(not values.size or values.min() >= 0, "Input must be non-negative")
        out = np.zeros((max(row_count, 1) if not ragged else row_count, size), dtype)
        inside = values < size
        if binary:
            out[rows[inside], values[inside]] = 1
        else:
            np.add.at(out, (rows[inside], values[inside]), weights[inside] if weights.size else np.ones((), dtype))
        return out if row_count or ragged else out[0]

    return compute


@kernel("SparseCountSparseOutput", "DenseCountSparseOutput", "RaggedCountSparseOutput")
def count_sparse_output(op: KernelNode) -> Compute:
    """Counts as a sparse tensor: (row,) value, count."""
    dtype = op.output_types[1].numpy
    least, most, binary = op.attr("minlength"), op.attr("maxlength"), bool(op.attr("binary_output"))
    form = op.op.removesuffix("CountSparseOutput")

    def compute(*args: Array) -> tuple[Array, Array, Array]:
        weights = args[-1]
        matrix = True
        if form == "Ragged":
            splits, values = args[0], args[1]
            require_vector(values, "values")
            rows, row_count = rows_of_splits(splits, len(values)), len(splits) - 1
            flat = values
        elif form == "Sparse":
            indices, values, shape = args[:3]
            check_sparse(indices, values, shape)
            matrix = len(shape) == 2
            rows = indices[:, 0] if matrix else np.zeros(len(values), np.int64)
            row_count = int(shape[0]) if matrix else 1
            flat = values
            require(
                not len(rows) or rows.max() < row_count, f"Got a value in row {rows.max(initial=0)} of {row_count} rows"
            )
        else:
            values = args[0]
            require(values.ndim in (1, 2), f"Input must be a 1 or 2-dimensional tensor, got {shape_text(values)}")
            matrix = values.ndim == 2
            row_count = values.shape[0] if matrix else 1
            flat = values.reshape(-1)
            rows = np.repeat(np.arange(row_count), values.shape[-1])
        use_weights = weights.size > 0
        if use_weights:
            require(
                weights.shape == values.shape,
                "Weights and values must have the same shape. Weight shape: "
                f"{shape_text(weights)}; values shape: {shape_text(values)}",
            )
        require(not flat.size or flat.min() >= 0, "Input values must all be non-negative")
        width = most if most >= 0 else max(int(flat.max(initial=-1)) + 1, least if least > 0 else 0)
        inside = flat < width
        keys = rows[inside] * max(width, 1) + flat[inside]
        distinct, position = np.unique(keys, return_inverse=True)
        counts = np.zeros(len(distinct), dtype)
        if binary:
            counts[:] = 1
        else:
            np.add.at(counts, position.reshape(-1), weights.reshape(-1)[inside] if use_weights else np.ones((), dtype))
        row, value = distinct // max(width, 1), distinct % max(width, 1)
        out = np.stack([row, value], axis=1) if matrix else value[:, None]
        return out.astype(np.int64), counts, np.array([row_count, width] if matrix else [width], np.int64)

    return compute
