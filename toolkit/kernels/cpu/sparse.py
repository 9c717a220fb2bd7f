"""Sparse tensors, as (indices [n, rank], values [n], dense shape [rank]): order, shape, parts, rows."""

from __future__ import annotations

import math
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import integer, np, require, require_scalar, require_vector, shape_text, to_ints
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array


def check_sparse(indices: Array, values: Array, shape: Array) -> None:
    """Raise unless the three parts of a sparse tensor fit together.

    Raises:
        InvalidArgumentError: a rank or a size is wrong.
    """
    require(indices.ndim == 2, f"Expected indices to be a matrix, got shape {shape_text(indices)}")
    require(values.ndim == 1, f"Expected values to be a vector, got shape {shape_text(values)}")
    require(shape.ndim == 1, f"Expected dense_shape to be a vector, got shape {shape_text(shape)}")
    require(len(indices) == len(values), f"Expected {len(indices)} values, got {len(values)}")
    require(
        indices.shape[1] == len(shape),
        f"Expected indices with {len(shape)} columns, one a dimension, got shape {shape_text(indices)}",
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


def check_bounds(indices: Array, shape: Array) -> None:
    """Raise unless every index lies in the dense shape."""
    outside = ((indices < 0) | (indices >= shape)).any(axis=1)
    if outside.any():
        at = int(outside.argmax())
        raise InvalidArgumentError(f"indices[{at}] = {to_ints(indices[at])} is out of bounds of shape {to_ints(shape)}")


def check_order(indices: Array, shape: Array) -> None:
    """Raise unless the indices rise in row-major order without repeats, within bounds."""
    check_bounds(indices, shape)
    keys = linear(indices, shape)
    if len(keys) > 1:
        step = np.diff(keys)
        if (step <= 0).any():
            at = int((step <= 0).argmax()) + 1
            what = "is repeated" if step[at - 1] == 0 else "is out of order"
            raise InvalidArgumentError(f"indices[{at}] = {to_ints(indices[at])} {what}")


def linear(indices: Array, shape: Array) -> Array:
    """Row-major positions."""
    out = np.zeros(len(indices), np.int64)
    for column, size in enumerate(to_ints(shape)):
        out = out * size + indices[:, column]
    return out


def unlinear(keys: Array, shape: Array) -> Array:
    """The index matrix of row-major positions."""
    out = np.empty((len(keys), len(shape)), np.int64)
    for column in range(len(shape) - 1, -1, -1):
        size = max(int(shape[column]), 1)
        keys, out[:, column] = keys // size, keys % size
    return out


def sorted_order(indices: Array) -> Array:
    """A stable order that sorts indices row-major."""
    if indices.shape[1] == 0:
        return np.arange(len(indices))
    return np.lexsort(indices.T[::-1])


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


@kernel("SparseToDense")
def sparse_to_dense(op: KernelNode) -> Compute:
    validate = bool(op.attr("validate_indices"))

    def compute(indices: Array, shape: Array, values: Array, default: Array) -> Array:
        _, count = check_dense_shape(indices, shape, values, default)
        rows = indices.reshape(count, len(shape))
        if validate:
            check_order(rows, shape)
        else:
            check_bounds(rows, shape)
        out = np.full(to_ints(shape), default[()], values.dtype)
        out[tuple(rows.T)] = values
        return out

    return compute


@simple("SparseReorder")
def sparse_reorder(indices: Array, values: Array, shape: Array) -> tuple[Array, Array]:
    check_sparse(indices, values, shape)
    check_bounds(indices, shape)
    order = sorted_order(indices)
    return indices[order], values[order]


@simple("SparseReshape")
def sparse_reshape(indices: Array, shape: Array, wanted: Array) -> tuple[Array, Array]:
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
    out_shape = np.array(sizes, np.int64)
    return unlinear(linear(indices, shape), out_shape), out_shape


@kernel("SparseConcat")
def sparse_concat(op: KernelNode) -> Compute:
    count, dim = op.attr("N"), op.attr("concat_dim")

    def compute(*args: Array) -> tuple[Array, Array, Array]:
        indices, values, shapes = args[:count], args[count : 2 * count], args[2 * count :]
        for triple in zip(indices, values, shapes, strict=True):
            check_sparse(*triple)
        rank = len(shapes[0])
        require(-rank <= dim < rank, f"Concat dimension must be in range [{-rank}, {rank}), got {dim}")
        axis = dim % rank
        shifted: list[Array] = []
        offset = 0
        for i in range(count):
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
            moved = indices[i].copy()
            moved[:, axis] += offset
            offset += int(shapes[i][axis])
            shifted.append(moved)
        all_indices, all_values = np.concatenate(shifted), np.concatenate(values)
        order = sorted_order(all_indices)
        shape = shapes[0].copy()
        shape[axis] = offset
        return all_indices[order], all_values[order], shape

    return compute


@kernel("SparseSplit")
def sparse_split(op: KernelNode) -> Compute:
    """Parts of a dimension; when it does not divide evenly the first ones are one longer."""
    count = op.attr("num_split")

    def compute(axis_input: Array, indices: Array, values: Array, shape: Array) -> list[Array]:
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
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        part = np.searchsorted(starts, indices[:, axis], side="right") - 1
        out: tuple[list[Array], list[Array], list[Array]] = ([], [], [])
        for i in range(count):
            chosen = indices[part == i].copy()
            chosen[:, axis] -= starts[i]
            own = shape.copy()
            own[axis] = lengths[i]
            out[0].append(chosen)
            out[1].append(values[part == i])
            out[2].append(own)
        return [*out[0], *out[1], *out[2]]

    return compute


@simple("SparseSlice")
def sparse_slice(indices: Array, values: Array, shape: Array, start: Array, size: Array) -> tuple[Array, Array, Array]:
    check_sparse(indices, values, shape)
    check_countable(shape)
    rank = len(shape)
    require(start.shape == (rank,), f"Expected start to be a vector of length {rank} but got shape {shape_text(start)}")
    require(size.shape == (rank,), f"Expected size to be a vector of length {rank} but got shape {shape_text(size)}")
    require((start >= 0).all(), f"start must be non-negative, got {to_ints(start)}")
    require((size >= 0).all(), f"size must be non-negative, got {to_ints(size)}")
    length = np.maximum(np.minimum(size, shape - start), 0)
    inside = ((indices >= start) & (indices < start + length)).all(axis=1)
    return indices[inside] - start, values[inside], length


@simple("SparseSliceGrad")
def sparse_slice_grad(grad: Array, input_indices: Array, start: Array, output_indices: Array) -> Array:
    """The gradient of each value of the slice at its place in the input, 0 at the others."""
    require(grad.ndim == 1, f"Input backprop_val_grad should be a vector, got shape {shape_text(grad)}")
    require(input_indices.ndim == 2 and output_indices.ndim == 2, "input_indices and output_indices should be matrices")
    require(input_indices.shape[1] == output_indices.shape[1], "The input and output should have the same ndims")
    require(
        start.shape == (input_indices.shape[1],),
        f"input_start should have one number for each of {input_indices.shape[1]} dims, got shape {shape_text(start)}",
    )
    require(
        len(output_indices) <= len(input_indices),
        "# rows of output_indices should be not greater than of input_indices, "
        f"got {len(output_indices)} and {len(input_indices)}",
    )
    require(
        len(grad) == len(output_indices),
        "# elements of backprop_val_grad and # rows of output_indices should "
        f"match ({len(grad)} and {len(output_indices)})",
    )
    moved = output_indices + start
    both = np.concatenate([input_indices, moved])
    extent = both.max(axis=0, initial=0) + 1
    keys, wanted = linear(input_indices, extent), linear(moved, extent)
    order = np.argsort(keys, kind="stable")
    place = np.searchsorted(keys[order], wanted)
    found = place < len(keys)
    require(found.all() and (keys[order][place] == wanted).all(), "Elements of backprop_val_grad aren't all propagated")
    out = np.zeros(len(input_indices), grad.dtype)
    out[order[place]] = grad
    return out


@simple("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    indices: Array, values: Array, shape: Array, default: Array
) -> tuple[Array, Array, Array, Array]:
    """Gives each empty row one default value, in column 0."""
    require(shape.ndim == 1, f"dense_shape must be a vector, saw: {shape_text(shape)}")
    require(indices.ndim == 2, f"indices must be a matrix, saw: {shape_text(indices)}")
    require(values.ndim == 1, f"values must be a vector, saw: {shape_text(values)}")
    require(
        len(indices) == len(values),
        f"The length of `values` ({len(values)}) must match the first dimension of `indices` ({len(indices)}).",
    )
    require_scalar(default, "default_value")
    require(len(shape) > 0, "Dense shape cannot be empty.")
    count = int(shape[0])
    out_ids, order, empty = fill_rows(indices[:, 0], count)
    out = np.zeros((len(out_ids), indices.shape[1]), np.int64)
    filled = np.flatnonzero(order < 0)
    out[:, 0] = out_ids
    kept = np.flatnonzero(order >= 0)
    out[kept] = indices[order[kept]]
    out_values = np.empty(len(out_ids), values.dtype)
    out_values[kept] = values[order[kept]]
    out_values[filled] = default[()]
    reverse = np.empty(len(values), np.int64)
    reverse[order[kept]] = kept
    return out, out_values, empty, reverse


def fill_rows(rows: Array, count: int) -> tuple[Array, Array, Array]:
    """(rows of the filled tensor, the element at each place or -1 for a default, which rows were empty).

    Raises:
        InvalidArgumentError: a row lies outside of the count.
    """
    require(count > 0 or not len(rows), "Received SparseTensor with dense_shape[0] = 0 but indices that are not empty")
    outside = (rows < 0) | (rows >= count)
    if outside.any():
        at = int(outside.argmax())
        raise InvalidArgumentError(f"indices({at}, 0) is invalid: {rows[at]} >= {count}")
    empty = np.bincount(rows, minlength=count) == 0 if count else np.zeros(0, bool)
    missing = np.flatnonzero(empty)
    every = np.concatenate([rows, missing])
    source = np.concatenate([np.arange(len(rows)), np.full(len(missing), -1, np.int64)])
    order = np.argsort(every, kind="stable")
    return every[order], source[order], empty


@simple("SparseFillEmptyRowsGrad", "RaggedFillEmptyRowsGrad")
def sparse_fill_empty_rows_grad(reverse: Array, grad: Array) -> tuple[Array, Array]:
    require_vector(reverse, "reverse_index_map")
    require_vector(grad, "grad_values")
    outside = (reverse < 0) | (reverse >= len(grad))
    require(not outside.any(), f"Elements in reverse index must be in [0, {len(grad)})")
    rest = np.ones(len(grad), bool)
    rest[reverse] = False
    return grad[reverse], np.asarray(grad[rest].sum(dtype=grad.dtype))


@simple("RaggedFillEmptyRows")
def ragged_fill_empty_rows(
    rows: Array, values: Array, count: Array, default: Array
) -> tuple[Array, Array, Array, Array]:
    require_vector(rows, "value_rowids")
    require_vector(values, "values")
    require(
        len(rows) == len(values),
        f"The length of `values` ({len(values)}) must match that of `value_rowids` ({len(rows)}).",
    )
    require_scalar(default, "default_value")
    out_ids, order, empty = fill_rows(rows, integer(count, "nrows"))
    kept = np.flatnonzero(order >= 0)
    out = np.empty(len(out_ids), values.dtype)
    out[...] = default[()]
    out[kept] = values[order[kept]]
    reverse = np.empty(len(values), np.int64)
    reverse[order[kept]] = kept
    return out_ids, out, empty, reverse
