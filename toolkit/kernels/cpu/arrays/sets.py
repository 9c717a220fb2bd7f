"""Sets in the last dimension of dense or sparse tensors."""

from __future__ import annotations

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require, shape_text, to_ints
from toolkit.kernels.cpu.sparse.basic import check_order, linear, unlinear
from toolkit.kernels.cpu.sparse.forms import check_sparse
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

#: one operand: the group of each element, the elements, the shape of the groups
_Sets = tuple[Array, Array, tuple[int, ...]]


def _dense(x: Array) -> _Sets:
    require(x.ndim >= 2, f"Invalid rank {x.ndim}: a set tensor has at least 2 dimensions")
    groups = x.shape[:-1]
    count = int(np.prod(groups, dtype=np.int64))
    return np.repeat(np.arange(count), x.shape[-1]), x.reshape(-1), groups


def _sparse(indices: Array, values: Array, shape: Array, validate: bool) -> _Sets:
    check_sparse(indices, values, shape)
    if validate:
        check_order(indices, shape)
    require(len(shape) >= 2, f"Invalid rank {len(shape)}: a set tensor has at least 2 dimensions")
    return linear(indices[:, :-1], shape[:-1]), values, tuple(to_ints(shape[:-1]))


def _combine(how: str, a: _Sets, b: _Sets) -> tuple[Array, Array, Array]:
    """The operation group by group; a set's elements come out in rising order."""
    require(a[2] == b[2], f"Mismatched group shapes {shape_text(a[2])} vs {shape_text(b[2])}")
    values, rank = np.unique(np.concatenate([a[1], b[1]]), return_inverse=True)
    rank = rank.reshape(-1)
    width = max(len(values), 1)
    left, right = a[0] * width + rank[: len(a[1])], b[0] * width + rank[len(a[1]) :]
    match how:
        case "a-b":
            keys = np.setdiff1d(left, right)
        case "b-a":
            keys = np.setdiff1d(right, left)
        case "intersection":
            keys = np.intersect1d(left, right)
        case _:
            keys = np.union1d(left, right)
    groups = keys // width
    sizes = np.bincount(groups, minlength=1)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    place = np.arange(len(keys)) - starts[groups]
    shape = np.array([*a[2], int(sizes.max(initial=0)) if len(keys) else 0], np.int64)
    indices = np.concatenate([unlinear(groups, shape[:-1]), place[:, None]], axis=1)
    return indices.astype(np.int64), values[keys % width].astype(a[1].dtype), shape


_OPERATIONS = ("a-b", "b-a", "intersection", "union")


@kernel("DenseToDenseSetOperation", "DenseToSparseSetOperation", "SparseToSparseSetOperation")
def set_operation(op: KernelNode) -> Compute:
    how, validate = op.text("set_operation").lower(), bool(op.attr("validate_indices"))
    if how not in _OPERATIONS:
        raise InvalidArgumentError(
            f"Invalid set_operation {how}; expected one of {', '.join(_OPERATIONS)}", node=op.name
        )
    first_dense, second_dense = op.op.startswith("Dense"), op.op.startswith("DenseToDense")

    def compute(*args: Array) -> tuple[Array, Array, Array]:
        a = _dense(args[0]) if first_dense else _sparse(*args[:3], validate=validate)
        b = _dense(args[-1]) if second_dense else _sparse(*args[-3:], validate=validate)
        return _combine(how, a, b)

    return compute


@kernel("SetSize")
def set_size(op: KernelNode) -> Compute:
    """The number of distinct elements of each set."""
    validate = bool(op.attr("validate_indices"))

    def compute(indices: Array, values: Array, shape: Array) -> Array:
        groups, elements, dims = _sparse(indices, values, shape, validate)
        distinct, rank = np.unique(elements, return_inverse=True)
        width = max(len(distinct), 1)
        keys = np.unique(groups * width + rank.reshape(-1))
        count = int(np.prod(dims, dtype=np.int64))
        return np.bincount(keys // width, minlength=count).astype(np.int32).reshape(dims)

    return compute
