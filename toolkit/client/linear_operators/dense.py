"""Operators of matrices that are given: FullMatrix, LowerTriangular."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.linalg import linalg_ops
from toolkit.client.linear_operators.base import LinearOperator, makes
from toolkit.client.math import math_ops
from toolkit.errors import UsageError


def _matrix(value: Any, name: str) -> Tensor:
    found = convert_to_tensor(value, name=name)
    if found.static_shape.rank is not None and found.static_shape.rank < 2:
        raise UsageError(f"'{name}' of a linear operator is a matrix; it has shape {found.static_shape}")
    return found


class LinearOperatorFullMatrix(LinearOperator):
    """The operator of a dense matrix [..., m, n].

    Raises:
        UsageError: it is none.
    """

    def __init__(
        self, matrix: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str = "LinearOperatorFullMatrix",
    ):  # fmt: skip
        with name_scope(name, None, [matrix]):
            self._matrix = _matrix(matrix, "matrix")
            super().__init__(
                self._matrix.dtype, [self._matrix], is_non_singular, is_self_adjoint, is_positive_definite, is_square,
                name, {"matrix": matrix},
            )  # fmt: skip

    @property
    def matrix(self) -> Tensor:
        return self._matrix

    def _shape(self) -> Any:
        return self._matrix.static_shape

    def _shape_tensor(self) -> Any:
        return array_ops.shape(self._matrix)

    def _to_dense(self) -> Any:
        return self._matrix


@makes("lower triangular")
class LinearOperatorLowerTriangular(LinearOperator):
    """The operator of the lower triangle of a matrix [..., n, n].

    Raises:
        UsageError: it is none, or said not to be square.
    """

    def __init__(
        self, tril: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ):  # fmt: skip
        if is_square is False:
            raise UsageError("a lower triangular operator is square")
        with name_scope(name, None, [tril]):
            self._tril = _matrix(tril, "tril")
            super().__init__(
                self._tril.dtype, [self._tril], is_non_singular, is_self_adjoint, is_positive_definite, True, name,
                {"tril": tril},
            )  # fmt: skip

    @property
    def tril(self) -> Tensor:
        """What was given, with what is above the diagonal."""
        return self._tril

    def _shape(self) -> Any:
        return self._tril.static_shape

    def _shape_tensor(self) -> Any:
        return array_ops.shape(self._tril)

    def _to_dense(self) -> Any:
        return ops.matrix_band_part(self._tril, -1, 0)

    def _diag_part(self) -> Any:
        return linalg_ops.diag_part(self._tril)

    def _determinant(self) -> Any:
        return math_ops.reduce_prod(self._diag_part(), [-1])

    def _log_abs_determinant(self) -> Any:
        return math_ops.reduce_sum(math_ops.log(ops.abs(self._diag_part())), [-1])

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = linalg_ops.adjoint(rhs) if adjoint_arg else rhs
        return ops.matrix_triangular_solve(self._to_dense(), rhs, lower=True, adjoint=adjoint)

    def _eigvals(self) -> Any:
        return self._diag_part()
