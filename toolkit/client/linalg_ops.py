"""Linear algebra of a few ops: diagonals, decompositions, norms, contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from toolkit.client import array_ops, math_ops, ops
from toolkit.client.convert import DTypeLike, as_dtype, constant, convert_to_tensor
from toolkit.client.scopes import name_scope
from toolkit.client.tensor import Tensor, TensorLike
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes

#: where short diagonals of a band stand: upper ones to the right, lower ones to the left
_ALIGN = "RIGHT_LEFT"


def matrix_transpose(a: TensorLike, conjugate: bool = False, name: str = "matrix_transpose") -> Tensor:
    """The two last axes swapped, conjugated on request.

    Raises:
        GraphError: a vector or a scalar.
    """
    with name_scope(name, None, [a]):
        a = convert_to_tensor(a, name="a")
        rank = a.static_shape.rank
        if rank is not None and rank < 2:
            raise GraphError(f"'{a.name}' of shape {a.static_shape} is no matrix")
        if rank is not None:
            order: Any = [*range(rank - 2), rank - 1, rank - 2]
        else:
            count = array_ops.rank(a)
            order = array_ops.concat([ops.range(0, count - 2, 1), [count - 1, count - 2]], 0)
        if not conjugate:
            return array_ops.transpose(a, order)
        with name_scope("transpose", None, [a]) as scope:
            return (ops.conjugate_transpose if a.dtype.base.is_complex else ops.transpose)(a, order, name=scope)


def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The conjugate transpose."""
    with name_scope(name, "adjoint", [matrix]):
        return matrix_transpose(convert_to_tensor(matrix, name="matrix"), conjugate=True)


def diag(
    diagonal: TensorLike, name: str = "diag", k: Any = 0, num_rows: Any = -1, num_cols: Any = -1,
    padding_value: Any = 0, align: str = _ALIGN,
) -> Tensor:  # fmt: skip
    """Matrices with the given diagonals, and `padding_value` elsewhere."""
    diagonal = convert_to_tensor(diagonal, name="diagonal") if not hasattr(diagonal, "dtype") else diagonal
    value = _padding(padding_value, diagonal)
    return ops.matrix_diag_v3(diagonal, _band(k), num_rows, num_cols, value, align=align, name=name)


def diag_part(
    input: TensorLike, name: str = "diag_part", k: Any = 0, padding_value: Any = 0, align: str = _ALIGN
) -> Tensor:
    """The diagonals of matrices, short ones filled up with `padding_value`."""
    input = convert_to_tensor(input, name="input") if not hasattr(input, "dtype") else input
    return ops.matrix_diag_part_v3(input, _band(k), _padding(padding_value, input), align=align, name=name)


def _band(k: Any) -> Any:
    return list(cast("tuple[int, ...]", k)) if isinstance(k, tuple) else k


def _padding(value: Any, beside: Any) -> Any:
    return value if isinstance(value, Tensor) else np.array(value, beside.dtype.base.numpy)


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the diagonal."""
    with name_scope(name, "Trace", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return math_ops.reduce_sum(diag_part(x), [-1], name=scope)


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of a positive definite matrix."""
    with name_scope(name, "logdet", [matrix]):
        diagonal = _real(diag_part(ops.cholesky(matrix)))
        return 2.0 * math_ops.reduce_sum(ops.log(diagonal), [-1])


def _real(x: Tensor) -> Tensor:
    """Numbers that are real, whatever type they have."""
    if not x.dtype.base.is_complex:
        return x
    return ops.real(x, Tout=dtypes.float32 if x.dtype.base is dtypes.complex64 else dtypes.float64)


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """The solution of A x = rhs from A's Cholesky factor."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        inner = ops.matrix_triangular_solve(chol, rhs, adjoint=False, lower=True)
        return ops.matrix_triangular_solve(chol, inner, adjoint=True, lower=True)


def triangular_solve(
    matrix: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The solution of a triangular system."""
    with name_scope(name, "triangular_solve", [matrix, rhs]):
        return ops.matrix_triangular_solve(matrix, rhs, lower=lower, adjoint=adjoint)


def eigh(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues, in rising order, and eigenvectors of a self-adjoint matrix."""
    return ops.self_adjoint_eig_v2(tensor, compute_v=True, name=name)


def eigvalsh(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Eigenvalues of a self-adjoint matrix, in rising order."""
    return ops.self_adjoint_eig_v2(tensor, compute_v=False, name=name)[0]


def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Singular values, and on request (s, u, v)."""
    s, u, v = ops.svd(tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name)
    return (_real(s), u, v) if compute_uv else _real(s)


def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """A matrix times a vector; the hints about zeros have no effect on what is computed."""
    del a_is_sparse, b_is_sparse
    with name_scope(name, "MatVec", [a, b]):
        column = array_ops.expand_dims(b, -1)
        product = math_ops.matmul(a, column, transpose_a, adjoint_a=adjoint_a)
        return array_ops.squeeze(product, [-1])


def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Ones on the diagonal, zeros elsewhere; `batch_shape` such matrices."""
    kind = as_dtype(dtype)
    with name_scope(name, "eye", [num_rows, num_columns, batch_shape]):
        square = num_columns is None
        given: Any = [] if batch_shape is None else batch_shape
        columns = num_rows if square else num_columns
        if isinstance(num_rows, Tensor) or isinstance(columns, Tensor) or isinstance(given, Tensor):
            shortest: Any = ops.minimum(num_rows, columns)
            batch = convert_to_tensor(given, dtypes.int32, name="shape")
            length: Any = array_ops.concat([batch, [shortest]], 0)
            whole: Any = None if square else array_ops.concat([batch, [num_rows, columns]], 0)
        else:
            batch = [int(size) for size in given]
            length = [*batch, min(int(num_rows), int(columns))]
            whole = None if square else [*batch, int(num_rows), int(columns)]
        ones = array_ops.ones(length, kind)
        if whole is None:
            return diag(ones)
        zeros = array_ops.zeros(whole, kind)
        return ops.matrix_set_diag_v3(zeros, ones, 0, align=_ALIGN, name="set_diag")


def norm(
    tensor: TensorLike, ord: Any = "euclidean", axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The norm of vectors (along one axis, or of all elements) or of matrices (over two axes).

    Raises:
        UsageError: an unknown order, or one that matrices do not have; other axes.
    """
    matrices = isinstance(axis, list | tuple)
    axes: Any = list(cast("list[int]", axis)) if matrices else axis
    if matrices and (len(axes) != 2 or axes[0] == axes[1]):
        raise UsageError(f"axis: expected None, a number or two different ones, got {axis}")
    allowed = ["euclidean", "fro", 1, np.inf] if matrices else ["euclidean", 1, 2, np.inf]
    if ord not in allowed and (matrices or isinstance(ord, str) or ord <= 0):
        raise UsageError(f"ord: expected one of {allowed}{'' if matrices else ' or a positive number'}, got {ord!r}")
    with name_scope(name, "norm", [tensor]):
        x = convert_to_tensor(tensor)
        if ord in ("euclidean", "fro") or (ord == 2 and not matrices):
            squares = x * ops.conj(x) if x.dtype.base.is_complex else x * x
            result = ops.sqrt(math_ops.reduce_sum(squares, axes, keepdims=True))
        else:
            result = ops.abs(x)
            if ord == 1:
                result = math_ops.reduce_sum(result, axes if not matrices else axes[0], keepdims=True)
                result = math_ops.reduce_max(result, axes[1], keepdims=True) if matrices else result
            elif ord == np.inf:
                result = math_ops.reduce_sum(result, axes[1], keepdims=True) if matrices else result
                result = math_ops.reduce_max(result, axes if not matrices else axes[0], keepdims=True)
            else:
                result = math_ops.pow(math_ops.reduce_sum(math_ops.pow(result, ord), axes, keepdims=True), 1.0 / ord)
        return result if keepdims else array_ops.squeeze(result, axes)


def tensordot(a: TensorLike, b: TensorLike, axes: Any, name: str | None = None) -> Tensor:
    """A contraction of two tensors over axes: of known shapes, by one matrix product.

    Args:
        axes: how many axes (the last of `a`, the first of `b`), or two lists of them.

    Raises:
        GraphError: a shape is not known.
        UsageError: the lists are of different lengths, or name the same axis twice.
    """
    with name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
        shapes = [t.static_shape for t in (a, b)]
        if not all(shape.is_fully_defined for shape in shapes):
            raise GraphError("tensordot needs tensors of known shapes: " + " and ".join(str(s) for s in shapes))
        ours, theirs = _contracted(axes, *(len(shape) for shape in shapes))
        left, rows = _as_matrix(a, ours, last=True)
        right, columns = _as_matrix(b, theirs, last=False)
        product = math_ops.matmul(left, right)
        if product.static_shape.as_list() == [*rows, *columns]:
            return product
        return array_ops.reshape(product, constant([*rows, *columns], dtypes.int32, name="shape"), name=scope)


def _contracted(axes: Any, rank_a: int, rank_b: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, int):
        return list(range(rank_a - axes, rank_a)), list(range(axes))
    first, second = ([axis] if isinstance(axis, int) else [int(i) for i in axis] for axis in axes)
    ours = [i % rank_a for i in first]
    theirs = [i % rank_b for i in second]
    if len(ours) != len(theirs) or len(set(ours)) != len(ours) or len(set(theirs)) != len(theirs):
        raise UsageError(f"axes: expected two lists of as many different axes, got {axes}")
    return ours, theirs


def _as_matrix(x: Tensor, axes: Sequence[int], last: bool) -> tuple[Tensor, list[int]]:
    """A tensor as a matrix with the contracted axes last or first, and the sizes of the others."""
    sizes = x.static_shape.as_list()
    free = [i for i in range(len(sizes)) if i not in axes]
    order = [*free, *axes] if last else [*axes, *free]
    kept = [sizes[i] for i in free]
    inner = int(np.prod([sizes[i] for i in axes], dtype=np.int64))
    outer = int(np.prod(kept, dtype=np.int64))
    turned = x if order == list(range(len(sizes))) else array_ops.transpose(x, order)
    shape = [outer, inner] if last else [inner, outer]
    return (turned if turned.static_shape.as_list() == shape else array_ops.reshape(turned, shape)), kept
