"""Arithmetic on sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require, require_scalar, shape_text, to_ints, wide
from toolkit.kernels.cpu.math.binary import truncate_divide
from toolkit.kernels.cpu.math.reduction import lowest
from toolkit.kernels.cpu.sparse.basic import check_bounds, linear, unlinear
from toolkit.kernels.cpu.sparse.forms import check_sparse
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array


@kernel("SparseTensorDenseMatMul")
def sparse_dense_matmul(op: KernelNode) -> Compute:
    """A sparse matrix times a dense one, either as its adjoint."""
    adjoint_a, adjoint_b = bool(op.attr("adjoint_a")), bool(op.attr("adjoint_b"))

    def compute(indices: Array, values: Array, shape: Array, b: Array) -> Array:
        out_rows, inner, _ = check_product(indices, values, shape, b, adjoint_a, adjoint_b)
        rows, columns = indices[:, 0], indices[:, 1]
        if adjoint_a:
            rows, columns = columns, rows
            values = np.conj(values) if values.dtype.kind == "c" else values
        if adjoint_b:
            b = np.conj(b.T) if b.dtype.kind == "c" else b.T
        check_columns(columns, inner)
        require(
            not len(rows) or (rows.min() >= 0 and rows.max() < out_rows),
            f"m ({rows.max(initial=0)}) from index is out of bounds of {out_rows}",
        )
        out = np.zeros((out_rows, b.shape[1]), wide(b).dtype)
        np.add.at(out, rows, wide(values)[:, None] * wide(b)[columns])
        return out.astype(b.dtype)

    return compute


def check_product(
    indices: Any, values: Any, shape: Array, b: Any, adjoint_a: bool, adjoint_b: bool
) -> tuple[int, int, int]:
    """Rows of the product of a sparse matrix and a dense one, what is added up, and columns.

    Raises:
        InvalidArgumentError: they do not fit, or are none.
    """
    require(b.ndim == 2, f"Tensor 'b' is not a matrix: {shape_text(b)}")
    require(shape.ndim == 1, "Tensor 'a_shape' is not a vector")
    require(len(shape) == 2, f"Tensor 'a_shape' must have 2 elements, got {len(shape)}")
    require(values.ndim == 1, "Tensor 'a_values' is not a vector")
    require(indices.ndim == 2, "Tensor 'a_indices' is not a matrix")
    require(
        indices.shape[0] == values.shape[0],
        "Number of rows of a_indices does not match number of entries in a_values",
    )
    require(
        indices.shape[1] == 2,
        f"Number of columns of a_indices does not match number of entries in a_shape: {indices.shape[1]} vs. 2",
    )
    rows, inner = to_ints(shape)
    require(min(rows, inner) >= 0, f"Expected shape dimensions to be non-negative, got {[rows, inner]}")
    if adjoint_a:
        rows, inner = inner, rows
    height, columns = b.shape[::-1] if adjoint_b else b.shape
    require(inner == height, f"Cannot multiply A and B because inner dimension does not match: {inner} vs. {height}")
    return rows, inner, columns


def check_columns(columns: Array, limit: int) -> None:
    if len(columns) and (columns.min() < 0 or columns.max() >= limit):
        raise InvalidArgumentError(f"k ({columns.max()}) from index is out of bounds (>={limit})")


# -- reductions ------------------------------------------------------------------------------------------


def _grouped(
    op_name: str, indices: Array, values: Array, shape: Array, axes_input: Array
) -> tuple[Array, Array, list[int], list[int]]:
    """(keys of the groups that exist, their reduced values, kept axes, reduced axes)."""
    check_sparse(indices, values, shape)
    check_bounds(indices, shape)
    rank = len(shape)
    require(axes_input.ndim <= 1, f"reduction axes must be a scalar or a vector, got {shape_text(axes_input)}")
    axes: list[int] = []
    for axis in to_ints(axes_input):
        require(-rank <= axis < rank, f"Invalid reduction dimension {axis}, for input with {rank} dimensions.")
        axes.append(axis % rank)
    kept = [d for d in range(rank) if d not in axes]
    keys, position = np.unique(linear(indices[:, kept], shape[kept]), return_inverse=True)
    data = wide(values)
    if "Max" in op_name:
        out = np.full(len(keys), lowest(data.dtype), data.dtype)
        np.maximum.at(out, position.reshape(-1), data)
    else:
        out = np.zeros(len(keys), data.dtype)
        np.add.at(out, position.reshape(-1), data)
    return keys, out.astype(values.dtype), kept, sorted(set(axes))


@kernel("SparseReduceSum", "SparseReduceMax")
def sparse_reduce(op: KernelNode) -> Compute:
    """To a dense tensor; what has no values is 0."""
    keep = bool(op.attr("keep_dims"))

    def compute(indices: Array, values: Array, shape: Array, axes: Array) -> Array:
        keys, reduced, kept, gone = _grouped(op.op, indices, values, shape, axes)
        sizes = [int(shape[d]) for d in kept]
        require(min(sizes, default=0) >= 0, f"sizes of the dense shape must not be negative, got {shape.tolist()}")
        out = np.zeros(int(np.prod(sizes, dtype=np.int64)), values.dtype)
        out[keys] = reduced
        return out.reshape([1 if d in gone else int(shape[d]) for d in range(len(shape))] if keep else sizes)

    return compute


@kernel("SparseReduceSumSparse", "SparseReduceMaxSparse")
def sparse_reduce_sparse(op: KernelNode) -> Compute:
    keep = bool(op.attr("keep_dims"))

    def compute(indices: Array, values: Array, shape: Array, axes: Array) -> tuple[Array, Array, Array]:
        keys, reduced, kept, gone = _grouped(op.op, indices, values, shape, axes)
        rows = unlinear(keys, shape[kept])
        if not keep:
            return rows, reduced, shape[kept].astype(np.int64)
        out = np.zeros((len(keys), len(shape)), np.int64)
        out[:, kept] = rows
        full = shape.copy()
        full[gone] = 1
        return out, reduced, full

    return compute


# -- two operands ----------------------------------------------------------------------------------------


def _union(a: Array, b: Array, shape: Array) -> tuple[Array, Array, Array]:
    """(all positions that either has, where each of a's and b's went)."""
    keys_a, keys_b = linear(a, shape), linear(b, shape)
    keys, position = np.unique(np.concatenate([keys_a, keys_b]), return_inverse=True)
    position = position.reshape(-1)
    return keys, position[: len(a)], position[len(a) :]


def _check_same_shapes(a: tuple[Array, Array, Array], b: tuple[Array, Array, Array]) -> None:
    check_sparse(*a)
    check_sparse(*b)
    require(len(a[2]) == len(b[2]), f"Ranks of input tensors must match, but saw {len(a[2])} and {len(b[2])}")
    require((a[2] == b[2]).all(), f"Input shapes do not match: {to_ints(a[2])} vs. {to_ints(b[2])}")


def _check_pair(a: tuple[Array, Array, Array], b: tuple[Array, Array, Array]) -> None:
    _check_same_shapes(a, b)
    check_bounds(a[0], a[2])
    check_bounds(b[0], b[2])


@simple("SparseAdd")
def sparse_add(
    a_indices: Array, a_values: Array, a_shape: Array, b_indices: Array, b_values: Array, b_shape: Array, thresh: Array
) -> tuple[Array, Array, Array]:
    """Where both have a value and the sum is smaller in size than `thresh`, it is left out."""
    _check_same_shapes((a_indices, a_values, a_shape), (b_indices, b_values, b_shape))
    require_scalar(thresh, "thresh")
    both = np.concatenate([a_indices, b_indices])
    _, ranks = np.unique(both, axis=0, return_inverse=True) if both.shape[1] else (None, np.zeros(len(both), np.int64))
    ranks = ranks.reshape(-1)
    of_a, of_b = ranks[: len(a_indices)], ranks[len(a_indices) :]
    if all((np.diff(of) > 0).all() for of in (of_a, of_b)):
        order = np.argsort(ranks, kind="stable")  # a's before b's
        ordered = ranks[order]
        repeats = np.concatenate([[False], ordered[1:] == ordered[:-1]]).astype(bool)[: len(order)]
        taken, partner = order[~repeats], np.full(len(both), -1, np.int64)
        partner[order[:-1][repeats[1:]]] = order[1:][repeats[1:]]
    else:
        taken, partner = _merged(of_a.tolist(), of_b.tolist())
    values = np.concatenate([a_values, b_values])
    other = partner[taken]
    shared = other >= 0
    total = values[taken]
    total[shared] += values[other[shared]]
    keep = ~shared | (np.abs(total) >= thresh)
    return both[taken[keep]], total[keep], a_shape


def _merged(a: list[int], b: list[int]) -> tuple[Array, Array]:
    """What a merge of two lists takes from a + b, and what each is added to; -1 for nothing.

    Of lists that are not in order, it makes what TensorFlow makes of them: heads are compared, nothing is sorted.
    """
    taken: list[int] = []
    partner = np.full(len(a) + len(b), -1, np.int64)
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            taken.append(i)
            if a[i] == b[j]:
                partner[i] = len(a) + j
                j += 1
            i += 1
        else:
            taken.append(len(a) + j)
            j += 1
    taken += [*range(i, len(a)), *range(len(a) + j, len(a) + len(b))]
    return np.array(taken, np.int64), partner


@simple("SparseAddGrad")
def sparse_add_grad(grad: Array, a_indices: Array, b_indices: Array, sum_indices: Array) -> tuple[Array, Array]:
    require(
        a_indices.ndim == b_indices.ndim == sum_indices.ndim == 2,
        "a_indices, b_indices and sum_indices must be matrices",
    )
    require(grad.ndim == 1, f"backprop_val_grad must be a vector, got shape {shape_text(grad)}")
    require(
        a_indices.shape[1] == b_indices.shape[1] == sum_indices.shape[1],
        "The densified shapes of a, b and the sum must have the same rank",
    )
    require(
        len(grad) == len(sum_indices),
        f"# elements of backprop_val_grad and # rows of sum_indices should match ({len(grad)} and {len(sum_indices)})",
    )
    every = np.concatenate([a_indices, b_indices, sum_indices])
    extent = every.max(axis=0, initial=0) + 1
    keys = linear(sum_indices, extent)

    def spread(indices: Array) -> Array:
        wanted = linear(indices, extent)
        order = np.argsort(keys, kind="stable")
        place = np.minimum(np.searchsorted(keys[order], wanted), max(len(keys) - 1, 0))
        if not len(keys):
            return np.zeros(len(indices), grad.dtype)
        found = keys[order][place] == wanted
        return np.where(found, grad[order[place]], np.zeros((), grad.dtype))

    return spread(a_indices), spread(b_indices)


@kernel("SparseSparseMaximum", "SparseSparseMinimum")
def sparse_extreme(op: KernelNode) -> Compute:
    """Where only one operand has a value, the other's is 0."""
    function = np.maximum if op.op == "SparseSparseMaximum" else np.minimum

    def compute(a_i: Array, a_v: Array, a_s: Array, b_i: Array, b_v: Array, b_s: Array) -> tuple[Array, Array]:
        _check_pair((a_i, a_v, a_s), (b_i, b_v, b_s))
        keys, at_a, at_b = _union(a_i, b_i, a_s)
        left, right = np.zeros(len(keys), a_v.dtype), np.zeros(len(keys), a_v.dtype)
        left[at_a], right[at_b] = a_v, b_v
        return unlinear(keys, a_s), function(left, right)

    return compute


def _divide(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        if (y == 0).any():
            raise InvalidArgumentError("SparseDenseCwiseDiv: integer division by zero")
        return truncate_divide(x, y)
    return np.true_divide(x, y)


_CWISE: dict[str, Callable[[Array, Array], Array]] = {
    "SparseDenseCwiseMul": np.multiply, "SparseDenseCwiseDiv": _divide, "SparseDenseCwiseAdd": np.add,
}  # fmt: skip


@kernel(*_CWISE)
def sparse_dense_cwise(op: KernelNode) -> Compute:
    """The sparse values with the dense ones at their places, to which the dense side broadcasts."""
    function = _CWISE[op.op]

    def compute(indices: Array, values: Array, shape: Array, dense: Array) -> Array:
        check_sparse(indices, values, shape)
        try:
            whole = np.broadcast_to(dense, to_ints(shape))
        except ValueError:
            raise InvalidArgumentError(
                f"SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
                f"[{','.join(map(str, to_ints(shape)))}] vs. {shape_text(dense)}"
            ) from None
        check_bounds(indices, shape)
        return function(values, whole[tuple(indices.T)]).astype(values.dtype)

    return compute


@simple("SparseTensorDenseAdd")
def sparse_tensor_dense_add(indices: Array, values: Array, shape: Array, dense: Array) -> Array:
    check_sparse(indices, values, shape)
    require(len(shape) == dense.ndim, f"Two operands have different ranks; received: {len(shape)} and {dense.ndim}")
    require(
        tuple(to_ints(shape)) == dense.shape,
        f"Dimensions do not equal (no broadcasting is supported): {to_ints(shape)} vs {shape_text(dense)}",
    )
    check_bounds(indices, shape)
    out = dense.copy()
    np.add.at(out, tuple(indices.T), values)
    return out


@simple("SparseSoftmax")
def sparse_softmax(indices: Array, values: Array, shape: Array) -> Array:
    """Softmax over the values that share all coordinates but the last."""
    check_sparse(indices, values, shape)
    require(len(shape) >= 2, f"Input should have rank >= 2, but received shape of rank {len(shape)}")
    check_bounds(indices, shape)
    if not len(values):
        return values
    keys, group = np.unique(linear(indices[:, :-1], shape[:-1]), return_inverse=True)
    group = group.reshape(-1)
    data = wide(values)
    peak = np.full(len(keys), -np.inf, data.dtype)
    np.maximum.at(peak, group, data)
    raised = np.exp(data - peak[group])
    total = np.zeros(len(keys), data.dtype)
    np.add.at(total, group, raised)
    return (raised / total[group]).astype(values.dtype)
