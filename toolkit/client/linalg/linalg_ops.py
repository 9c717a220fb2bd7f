"""Linear algebra of a few ops: diagonals, decompositions, norms, contractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape

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


def normalize(
    tensor: TensorLike, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """A tensor divided by its `norm`, and the norm, which keeps the axes.

    Raises:
        UsageError: as `norm`.
    """
    with name_scope(name, "normalize", [tensor]):
        given = convert_to_tensor(tensor)
        length = math_ops.cast(norm(given, ord, axis, keepdims=True), given.dtype.base)
        return given / length, length


def tensordot(a: TensorLike, b: TensorLike, axes: Any, name: str | None = None) -> Tensor:
    """A contraction of two tensors over axes, by one matrix product; unknown sizes are asked for in the step.

    Args:
        axes: how many axes (the last of `a`, the first of `b`), two lists of them, or a tensor [2, n].

    Raises:
        UsageError: the lists are of different lengths, or name the same axis twice; more axes than there are.
    """
    with name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
        ours, theirs = _contracted(axes, a, b)
        left, rows = _as_matrix(a, ours, last=True)
        right, columns = _as_matrix(b, theirs, last=False)
        product = math_ops.matmul(left, right)
        if isinstance(rows, list) and isinstance(columns, list):
            free = cast("list[int]", [*rows, *columns])
            if product.static_shape == Shape(free):
                return product
            return array_ops.reshape(product, constant(free, dtypes.int32, name="shape"), name=scope)
        sizes = [convert_to_tensor(kept, dtypes.int32) for kept in (cast("Any", rows), columns)]
        made = array_ops.reshape(product, array_ops.concat(sizes, 0), name=scope)
        known = [_free_sizes(x, held) for x, held in ((a, ours), (b, theirs))]
        if known[0] is not None and known[1] is not None:
            made.set_shape([*known[0], *known[1]])
        return made


def _contracted(axes: Any, a: Tensor, b: Tensor) -> tuple[Any, Any]:
    """The axes of both that are summed over: lists of them from 0 on where the ranks are known, else what was given."""
    ranks = (a.static_shape.rank, b.static_shape.rank)
    if isinstance(axes, int):
        if axes < 0 or any(rank is not None and axes > rank for rank in ranks):
            raise UsageError(f"axes: expected a number from 0 to the rank of both tensors, got {axes}")
        theirs = list(range(axes))
        if ranks[0] is not None:
            return list(range(ranks[0] - axes, ranks[0])), theirs
        count = array_ops.rank(a)
        return math_ops.range(count - axes, count), math_ops.range(axes)
    if not isinstance(axes, list | tuple):
        both = convert_to_tensor(axes, dtypes.int32, name="axes")
        return both[0], both[1]
    given = cast("Sequence[Any]", axes)
    if len(given) != 2:
        raise UsageError(f"axes: expected a number or two lists of axes, got {axes}")
    found: list[Any] = []
    for part, rank in zip(given, ranks, strict=True):
        chosen: Any = [part] if isinstance(part, int) else part
        known = isinstance(chosen, list | tuple) and rank is not None
        found.append([int(i) + rank if int(i) < 0 else int(i) for i in chosen] if known else chosen)  # type: ignore[arg-type]
    ours, theirs = found
    if isinstance(ours, list) and isinstance(theirs, list):
        lists = cast("tuple[list[int], list[int]]", (ours, theirs))
        if len(lists[0]) != len(lists[1]) or any(len(set(part)) != len(part) for part in lists):
            raise UsageError(f"axes: expected two lists of as many different axes, got {axes}")
    return cast("tuple[Any, Any]", (ours, theirs))


def _free_sizes(x: Tensor, axes: Any) -> list[int | None] | None:
    """What is known of the sizes that are not contracted."""
    if x.static_shape.rank is None or not isinstance(axes, list):
        return None
    return [size for i, size in enumerate(x.static_shape) if i not in cast("list[int]", axes)]


def _as_matrix(x: Tensor, axes: Any, last: bool) -> tuple[Tensor, Any]:
    """A tensor as a matrix with the contracted axes last or first, and the sizes of the others."""
    if not (x.static_shape.is_fully_defined and isinstance(axes, list)):
        return _as_matrix_of_unknown_size(x, axes, last)
    sizes = x.static_shape.as_list()
    held = cast("list[int]", axes)
    free = [i for i in range(len(sizes)) if i not in held]
    order = [*free, *held] if last else [*held, *free]
    kept = [sizes[i] for i in free]
    inner = int(np.prod([sizes[i] for i in held], dtype=np.int64))
    outer = int(np.prod(kept, dtype=np.int64))
    turned = x if order == list(range(len(sizes))) else array_ops.transpose(x, order)
    shape = [outer, inner] if last else [inner, outer]
    return (turned if turned.static_shape.as_list() == shape else array_ops.reshape(turned, shape)), kept


def _as_matrix_of_unknown_size(x: Tensor, axes: Any, last: bool) -> tuple[Tensor, Tensor]:
    rank = x.static_shape.rank
    if rank is not None and isinstance(axes, list):
        others = [i for i in range(rank) if i not in cast("list[int]", axes)]
        held = convert_to_tensor(axes, dtypes.int32, name="axes")
        free: Tensor = convert_to_tensor(np.array(others, np.int32), dtypes.int32, name="free")
        shape = array_ops.shape(x)
    else:
        shape, count = array_ops.shape(x), array_ops.rank(x)
        held = convert_to_tensor(axes, dtypes.int32, name="axes")
        held = array_ops.where(held >= 0, held, held + count)
        free = ops.list_diff(math_ops.range(count), held, out_idx=dtypes.int32)[0]
    kept = array_ops.gather(shape, free)
    sizes = array_ops.gather(shape, held)
    outer = math_ops.reduce_prod(kept)
    inner = math_ops.reduce_prod(sizes)
    order = array_ops.concat([free, held] if last else [held, free], 0)
    wanted = array_ops.stack([outer, inner] if last else [inner, outer])
    return array_ops.reshape(array_ops.transpose(x, order), wanted), kept
