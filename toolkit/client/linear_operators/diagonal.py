"""Operators that are zero beside their diagonal: Diag, Identity, ScaledIdentity, Zeros."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.common import known_value
from toolkit.client.linalg import linalg_ops
from toolkit.client.linear_operators.base import LinearOperator
from toolkit.client.math import math_ops
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


class LinearOperatorDiag(LinearOperator):
    """The operator of a diagonal [..., n].

    Raises:
        UsageError: the diagonal is a scalar, or the operator is said not to be square.
    """

    def __init__(
        self, diag: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str = "LinearOperatorDiag",
    ):  # fmt: skip
        if is_square is False:
            raise UsageError("a diagonal operator is square")
        with name_scope(name, None, [diag]):
            self._diag = convert_to_tensor(diag, name="diag")
            if self._diag.static_shape.rank == 0:
                raise UsageError("'diag' of a LinearOperatorDiag is a vector; it is a scalar")
            if is_self_adjoint is None and not self._diag.dtype.base.is_complex:
                is_self_adjoint = True
            super().__init__(
                self._diag.dtype, [self._diag], is_non_singular, is_self_adjoint, is_positive_definite, True, name,
                {"diag": diag},
            )  # fmt: skip

    @property
    def diag(self) -> Tensor:
        return self._diag

    def _shape(self) -> Any:
        shape = self._diag.static_shape
        return shape if shape.rank is None else Shape([*shape, shape[-1]])

    def _shape_tensor(self) -> Any:
        sizes = array_ops.shape(self._diag)
        return array_ops.concat([sizes, sizes[-1:]], 0)

    def _conjugate(self, adjoint: bool) -> Tensor:
        return ops.conj(self._diag) if adjoint and self._diag.dtype.base.is_complex else self._diag

    def _to_dense(self) -> Any:
        return linalg_ops.diag(self._diag)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = linalg_ops.adjoint(x) if adjoint_arg else x
        return array_ops.expand_dims(self._conjugate(adjoint), -1) * x

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = linalg_ops.adjoint(rhs) if adjoint_arg else rhs
        return rhs / array_ops.expand_dims(self._conjugate(adjoint), -1)

    def _diag_part(self) -> Any:
        return self._diag

    def _determinant(self) -> Any:
        return math_ops.reduce_prod(self._diag, [-1])

    def _log_abs_determinant(self) -> Any:
        return math_ops.reduce_sum(math_ops.log(ops.abs(self._diag)), [-1])

    def _eigvals(self) -> Any:
        return self._diag


class _Sized(LinearOperator):
    """Operators that are given by their numbers of rows and columns."""

    _rows: Tensor
    _columns: Tensor
    _batch: Tensor | None

    def _sizes(self, num_rows: Any, num_columns: Any, batch_shape: Any) -> None:
        self._rows = _size(num_rows, "num_rows")
        self._columns = self._rows if num_columns is None else _size(num_columns, "num_columns")
        self._batch = None if batch_shape is None else convert_to_tensor(batch_shape, dtypes.int32, name="batch_shape")

    def _shape(self) -> Any:
        batch = Shape([]) if self._batch is None else Shape(known_value(self._batch))
        return batch.concatenate(Shape([known_value(self._rows), known_value(self._columns)]))

    def _shape_tensor(self) -> Any:
        sizes = array_ops.stack([self._rows, self._columns])
        return sizes if self._batch is None else array_ops.concat([self._batch, sizes], 0)

    def _over_batch(self, x: Tensor) -> Tensor:
        """x once for each matrix of the batch."""
        if self._batch is None:
            return x
        return x + array_ops.zeros(array_ops.concat([self._batch, [1, 1]], 0), self._dtype)


def _size(value: Any, name: str) -> Tensor:
    found = convert_to_tensor(value, dtypes.int32, name=name)
    known = known_value(found)
    if found.static_shape.rank != 0 or (known is not None and known < 0):
        raise UsageError(f"{name} of a linear operator is a number of at least 0, not {value!r}")
    return found


class LinearOperatorIdentity(_Sized):
    """Identity matrices [*batch_shape, num_rows, num_rows].

    Raises:
        UsageError: num_rows is no size, or the identity is said to be something else.
    """

    def __init__(
        self, num_rows: Any, batch_shape: Any = None, dtype: DTypeLike = None, is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True, is_positive_definite: bool | None = True, is_square: bool | None = True,
        assert_proper_shapes: bool = False, name: str = "LinearOperatorIdentity",
    ):  # fmt: skip
        if not (is_non_singular and is_self_adjoint and is_positive_definite and is_square):
            raise UsageError("an identity is square, self-adjoint, positive definite and not singular")
        with name_scope(name):
            kind = dtypes.float32 if dtype is None else as_dtype(dtype)
            super().__init__(
                kind, None, True, True, True, True, name, {"num_rows": num_rows, "batch_shape": batch_shape}
            )
            self._sizes(num_rows, None, batch_shape)

    def _to_dense(self) -> Any:
        return linalg_ops.eye(self._rows, batch_shape=self._batch, dtype=self._dtype)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._over_batch(linalg_ops.adjoint(x) if adjoint_arg else x)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint_arg=adjoint_arg)

    def _diag_part(self) -> Any:
        return array_ops.ones(self._shape_tensor()[:-1], self._dtype)

    def _determinant(self) -> Any:
        return array_ops.ones(self._shape_tensor()[:-2], self._dtype)

    def _log_abs_determinant(self) -> Any:
        return array_ops.zeros(self._shape_tensor()[:-2], self._dtype)

    def _eigvals(self) -> Any:
        return self._diag_part()

    def cholesky(self, name: str = "cholesky") -> Any:
        """Its own factor."""
        return self

    def inverse(self, name: str = "inverse") -> Any:
        """Its own inverse."""
        return self


class LinearOperatorScaledIdentity(_Sized):
    """Identity matrices times `multiplier` [...].

    Raises:
        UsageError: num_rows is no size, or the operator is said not to be square.
    """

    def __init__(
        self, num_rows: Any, multiplier: Any, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = True, assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ):  # fmt: skip
        if not is_square:
            raise UsageError("a scaled identity is square")
        with name_scope(name, None, [multiplier]):
            self._multiplier = convert_to_tensor(multiplier, name="multiplier")
            if is_self_adjoint is None and not self._multiplier.dtype.base.is_complex:
                is_self_adjoint = True
            super().__init__(
                self._multiplier.dtype, [self._multiplier], is_non_singular, is_self_adjoint, is_positive_definite,
                True, name, {"num_rows": num_rows, "multiplier": multiplier},
            )  # fmt: skip
            self._sizes(num_rows, None, None)

    @property
    def multiplier(self) -> Tensor:
        return self._multiplier

    def _shape(self) -> Any:
        rows = known_value(self._rows)
        return self._multiplier.static_shape.concatenate(Shape([rows, rows]))

    def _shape_tensor(self) -> Any:
        return array_ops.concat([array_ops.shape(self._multiplier), array_ops.stack([self._rows, self._rows])], 0)

    def _factor(self, adjoint: bool = False) -> Tensor:
        factor = ops.conj(self._multiplier) if adjoint and self._dtype.is_complex else self._multiplier
        return array_ops.expand_dims(array_ops.expand_dims(factor, -1), -1)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return (linalg_ops.adjoint(x) if adjoint_arg else x) * self._factor(adjoint)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return (linalg_ops.adjoint(rhs) if adjoint_arg else rhs) / self._factor(adjoint)

    def _to_dense(self) -> Any:
        return linalg_ops.eye(self._rows, dtype=self._dtype) * self._factor()

    def _diag_part(self) -> Any:
        return array_ops.expand_dims(self._multiplier, -1) * array_ops.ones(
            array_ops.stack([self._rows]), self._dtype
        )  # fmt: skip

    def _determinant(self) -> Any:
        return self._multiplier ** math_ops.cast(self._rows, self._dtype)

    def _log_abs_determinant(self) -> Any:
        size = math_ops.cast(self._rows, math_ops.real_type(self._dtype))
        return size * math_ops.log(ops.abs(self._multiplier))

    def _eigvals(self) -> Any:
        return self._diag_part()


class LinearOperatorZeros(_Sized):
    """Matrices of zeros [*batch_shape, num_rows, num_columns].

    Raises:
        UsageError: a number is no size, or zeros are said to be something else.
    """

    def __init__(
        self, num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: DTypeLike = None,
        is_non_singular: bool | None = False, is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False, is_square: bool | None = True, assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ):  # fmt: skip
        if is_non_singular or is_positive_definite:
            raise UsageError("zeros are singular, and not positive definite")
        with name_scope(name):
            kind = dtypes.float32 if dtype is None else as_dtype(dtype)
            super().__init__(
                kind, None, False, is_self_adjoint, False, is_square, name,
                {"num_rows": num_rows, "num_columns": num_columns, "batch_shape": batch_shape},
            )  # fmt: skip
            self._sizes(num_rows, num_columns, batch_shape)

    def _to_dense(self) -> Any:
        return array_ops.zeros(self._shape_tensor(), self._dtype)

    def _diag_part(self) -> Any:
        least = math_ops.minimum(self._rows, self._columns)
        sizes = self._shape_tensor()
        return array_ops.zeros(array_ops.concat([sizes[:-2], array_ops.stack([least])], 0), self._dtype)

    def _determinant(self) -> Any:
        return array_ops.zeros(self._shape_tensor()[:-2], self._dtype)

    def _eigvals(self) -> Any:
        return self._diag_part()
