"""Matrices of three diagonals: products and solutions."""

from __future__ import annotations

from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.linalg import linalg_ops
from toolkit.errors import ArgumentValueError, did_you_mean
from toolkit.graph.shape import Shape

_FORMATS = ("compact", "sequence", "matrix")


def _check_format(diagonals_format: str) -> None:
    if diagonals_format not in _FORMATS:
        hint = did_you_mean(diagonals_format, _FORMATS)
        raise ArgumentValueError(f"diagonals_format: expected one of {_FORMATS}, got {diagonals_format!r}{hint}")


def _of_matrix(matrix: TensorLike) -> Tensor:
    """The three diagonals [..., 3, n] of matrices [..., n, n].

    Raises:
        ValueError: they are not square.
    """
    given = convert_to_tensor(matrix)
    rows, columns = (given.static_shape[axis] if given.static_shape.rank else None for axis in (-2, -1))
    if rows is not None and columns is not None and rows != columns:
        raise ArgumentValueError(f"diagonals: expected square matrices, got shape {given.static_shape}")
    return linalg_ops.diag_part(given, k=(-1, 1), padding_value=0.0, align="LEFT_RIGHT")


def tridiagonal_matmul(
    diagonals: Any, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """Matrices [..., n, n], zero but for three diagonals, times matrices [..., n, k].

    Args:
        diagonals: "compact": [..., 3, n], upper, main and lower; "sequence": three of [..., n]; "matrix": [..., n, n].

    Raises:
        ValueError: another format, or matrices that are not square.
    """
    _check_format(diagonals_format)
    if diagonals_format == "sequence":
        upper, main, lower = (convert_to_tensor(each) for each in diagonals)
    else:
        rows = _of_matrix(diagonals) if diagonals_format == "matrix" else convert_to_tensor(diagonals)
        upper, main, lower = (rows[..., i, :] for i in range(3))
    given = [array_ops.expand_dims(each, -2) for each in (upper, main, lower)]
    return ops.tridiagonal_mat_mul(*given, rhs, name=name)


def tridiagonal_solve(
    diagonals: Any, rhs: TensorLike, diagonals_format: str = "compact", transpose_rhs: bool = False,
    conjugate_rhs: bool = False, name: str | None = None, partial_pivoting: bool = True, perturb_singular: bool = False,
) -> Tensor:  # fmt: skip
    """X with A X = rhs, for matrices A that are zero but for three diagonals.

    Args:
        diagonals: "compact": [..., 3, n], upper, main and lower; "sequence": three of [..., n] (the outer ones may have
            one less); "matrix": [..., n, n].
        rhs: [..., n, k], or [..., n].
        transpose_rhs, conjugate_rhs: take the transpose, or conjugate, of a matrix `rhs`.
        partial_pivoting: rows are exchanged; slower, and stable.
        perturb_singular: small pivots of singular matrices are changed instead of failing.

    Raises:
        ValueError: another format, shapes that do not fit, or perturb_singular without pivoting.
    """
    if perturb_singular and not partial_pivoting:
        raise ArgumentValueError("perturb_singular needs partial_pivoting")
    _check_format(diagonals_format)
    if diagonals_format == "sequence":
        given = _joined(diagonals)
    else:
        given = _of_matrix(diagonals) if diagonals_format == "matrix" else convert_to_tensor(diagonals)
    right = convert_to_tensor(rhs)
    _check_shapes(given.static_shape, right.static_shape)
    is_vector = given.static_shape.rank is not None and right.static_shape.rank == given.static_shape.rank - 1
    if is_vector:
        right = ops.conj(right) if conjugate_rhs and right.dtype.base.is_complex else right
        right = array_ops.expand_dims(right, -1)
    elif transpose_rhs:
        right = linalg_ops.matrix_transpose(right, conjugate=conjugate_rhs)
    elif conjugate_rhs and right.dtype.base.is_complex:
        right = ops.conj(right)
    sizes = given.static_shape[-1] if given.static_shape.rank else None, right.static_shape[-2]
    if None not in sizes and sizes[0] != sizes[1]:
        raise ArgumentValueError(f"rhs: expected {sizes[0]} rows, as long as the diagonals are, got {sizes[1]}")
    found: Tensor = ops.tridiagonal_solve(
        given, right, partial_pivoting=partial_pivoting, perturb_singular=perturb_singular, name=name
    )
    return array_ops.squeeze(found, -1) if is_vector else found


def _joined(diagonals: Any) -> Tensor:
    """Three diagonals as one tensor, short ones filled up.

    Raises:
        ValueError: there are not three, or they do not fit together.
    """
    if not isinstance(diagonals, list | tuple) or len(cast("list[Any]", diagonals)) != 3:
        raise ArgumentValueError(f"diagonals: expected a sequence of three, upper, main and lower, got {diagonals!r}")
    upper, main, lower = (convert_to_tensor(each) for each in cast("list[Any]", diagonals))
    shape = main.static_shape
    for known in (upper.static_shape, lower.static_shape):
        both = known.rank is not None and shape.rank is not None
        if both and not known.slice(0, -1).is_compatible_with(shape.slice(0, -1)):
            raise ArgumentValueError(f"diagonals: {known} and {shape} differ in more than their last size")
    lower = _filled(lower, "lower", shape, (1, 0))
    upper = _filled(upper, "upper", shape, (0, 1))
    return array_ops.stack((upper, main, lower), -2)


def _filled(diagonal: Tensor, which: str, main: Shape, side: tuple[int, int]) -> Tensor:
    size, whole = (shape[-1] if shape.rank else None for shape in (diagonal.static_shape, main))
    if not size or size == whole:
        return diagonal
    if whole is None or size != whole - 1:
        raise ArgumentValueError(f"the {which} diagonal has length {size}; expected {whole}, or one less")
    return array_ops.pad(diagonal, [[0, 0]] * ((diagonal.static_shape.rank or 1) - 1) + [list(side)])


def _check_shapes(diagonals: Shape, rhs: Shape) -> None:
    """Raise where it is known that the two do not fit together."""
    if diagonals.rank is None:
        return
    if diagonals.rank < 2 or diagonals[-2] not in (None, 3):
        raise ArgumentValueError(f"diagonals: expected shape [..., 3, n], got {diagonals}")
    if rhs.rank is None:
        return
    if rhs.rank not in (diagonals.rank, diagonals.rank - 1):
        raise ArgumentValueError(f"rhs: expected rank {diagonals.rank - 1} or {diagonals.rank}, got {rhs.rank}")
    if not diagonals.slice(0, -2).is_compatible_with(rhs.slice(0, diagonals.rank - 2)):
        raise ArgumentValueError(f"the batches of {diagonals} and of rhs, {rhs}, do not fit together")
