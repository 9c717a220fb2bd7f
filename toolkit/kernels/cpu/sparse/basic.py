"""Sparse tensors, as (indices [n, rank], values [n], dense shape [rank]): order, shape, parts, rows."""

from __future__ import annotations

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import integer, np, require, require_vector, to_ints
from toolkit.kernels.cpu.sparse.forms import (
    check_dense_shape,
    check_filled,
    check_filled_ragged,
    check_slice_grad,
    check_sparse,
    concatenated,
    reshaped_sizes,
    slice_lengths,
    split_starts,
)
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array


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
    sizes = reshaped_sizes(indices, shape, wanted)
    out_shape = np.array(sizes, np.int64)
    return unlinear(linear(indices, shape), out_shape), out_shape


@kernel("SparseConcat")
def sparse_concat(op: KernelNode) -> Compute:
    count, dim = op.attr("N"), op.attr("concat_dim")

    def compute(*args: Array) -> tuple[Array, Array, Array]:
        indices, values, shapes = args[:count], args[count : 2 * count], args[2 * count :]
        axis, offsets, shape = concatenated(indices, values, shapes, dim)
        shifted: list[Array] = []
        for part, offset in zip(indices, offsets, strict=True):
            moved = part.copy()
            moved[:, axis] += offset
            shifted.append(moved)
        all_indices, all_values = np.concatenate(shifted), np.concatenate(values)
        order = sorted_order(all_indices)
        return all_indices[order], all_values[order], shape

    return compute


@kernel("SparseSplit")
def sparse_split(op: KernelNode) -> Compute:
    """Parts of a dimension; when it does not divide evenly the first ones are one longer."""
    count = op.attr("num_split")

    def compute(axis_input: Array, indices: Array, values: Array, shape: Array) -> list[Array]:
        axis, starts = split_starts(axis_input, indices, values, shape, count)
        part = np.searchsorted(starts, indices[:, axis], side="right") - 1
        out: tuple[list[Array], list[Array], list[Array]] = ([], [], [])
        for i in range(count):
            chosen = indices[part == i].copy()
            chosen[:, axis] -= starts[i]
            own = shape.copy()
            own[axis] = starts[i + 1] - starts[i]
            out[0].append(chosen)
            out[1].append(values[part == i])
            out[2].append(own)
        return [*out[0], *out[1], *out[2]]

    return compute


@simple("SparseSlice")
def sparse_slice(indices: Array, values: Array, shape: Array, start: Array, size: Array) -> tuple[Array, Array, Array]:
    length = slice_lengths(indices, values, shape, start, size)
    inside = ((indices >= start) & (indices < start + length)).all(axis=1)
    return indices[inside] - start, values[inside], length


@simple("SparseSliceGrad")
def sparse_slice_grad(grad: Array, input_indices: Array, start: Array, output_indices: Array) -> Array:
    """The gradient of each value of the slice at its place in the input, 0 at the others."""
    check_slice_grad(grad, input_indices, start, output_indices)
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
    check_filled(indices, values, shape, default)
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
    check_filled_ragged(rows, values, default)
    out_ids, order, empty = fill_rows(rows, integer(count, "nrows"))
    kept = np.flatnonzero(order >= 0)
    out = np.empty(len(out_ids), values.dtype)
    out[...] = default[()]
    out[kept] = values[order[kept]]
    reverse = np.empty(len(values), np.int64)
    reverse[order[kept]] = kept
    return out_ids, out, empty, reverse
