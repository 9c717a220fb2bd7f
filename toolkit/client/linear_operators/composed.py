"""Operators made of others: Adjoint, Inversion, Composition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_shape
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.linalg import linalg_ops
from toolkit.client.linear_operators.base import LinearOperator, makes
from toolkit.client.math import math_ops
from toolkit.errors import UsageError
from toolkit.graph.shape import Shape, broadcast


def _or(given: bool | None, known: bool | None) -> bool | None:
    return known if given is None else given


class _Around(LinearOperator):
    """An operator of one other, with its hints."""

    _ending = ""

    def __init__(
        self, operator: LinearOperator, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None,
    ):  # fmt: skip
        self._operator = operator
        label = name or operator.name + self._ending
        with name_scope(label):
            super().__init__(
                operator.dtype, None, _or(is_non_singular, operator.is_non_singular),
                _or(is_self_adjoint, operator.is_self_adjoint),
                _or(is_positive_definite, operator.is_positive_definite),
                _or(is_square, operator.is_square), label, {"operator": operator},
            )  # fmt: skip

    @property
    def operator(self) -> LinearOperator:
        return self._operator

    def _shape(self) -> Any:
        shape = as_shape(self._operator.shape)
        return shape if shape.rank is None else Shape([*shape.slice(0, -2), shape[-1], shape[-2]])

    def _shape_tensor(self) -> Any:
        sizes = self._operator.shape_tensor()
        return array_ops.concat([sizes[:-2], array_ops.reverse(sizes[-2:], [0])], 0)


@makes("adjoint")
class LinearOperatorAdjoint(_Around):
    """The conjugate transposes of an operator."""

    _ending = "_adjoint"

    def _to_dense(self) -> Any:
        return linalg_ops.adjoint(self._operator.to_dense())

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _conjugate(self, x: Tensor) -> Tensor:
        return ops.conj(x) if x.dtype.base.is_complex else x

    def _diag_part(self) -> Any:
        return self._conjugate(self._operator.diag_part())

    def _determinant(self) -> Any:
        return self._conjugate(self._operator.determinant())

    def _log_abs_determinant(self) -> Any:
        return self._operator.log_abs_determinant()

    def adjoint(self, name: str = "adjoint") -> Any:
        """The operator itself."""
        return self._operator


@makes("inverse")
class LinearOperatorInversion(_Around):
    """The inverses of an operator.

    Raises:
        UsageError: it is said to be singular.
    """

    _ending = "_inv"

    def __init__(
        self, operator: LinearOperator, is_non_singular: bool | None = None, is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None, is_square: bool | None = None, name: str | None = None,
    ):  # fmt: skip
        if is_non_singular is False or operator.is_non_singular is False:
            raise UsageError(f"{operator.name} is said to be singular; it has no inverse")
        super().__init__(operator, is_non_singular, is_self_adjoint, is_positive_definite, is_square, name)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return 1.0 / self._operator.determinant()

    def _log_abs_determinant(self) -> Any:
        return -1.0 * self._operator.log_abs_determinant()

    def inverse(self, name: str = "inverse") -> Any:
        """The operator itself."""
        return self._operator


@makes("composition")
class LinearOperatorComposition(LinearOperator):
    """Operators one after the other: the last is applied first.

    Raises:
        UsageError: there are none, or their types or sizes do not fit together.
    """

    def __init__(
        self, operators: Sequence[LinearOperator], is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str | None = None,
    ):  # fmt: skip
        self._operators = list(operators)
        if not self._operators:
            raise UsageError("a LinearOperatorComposition needs at least one operator")
        for left, right in zip(self._operators, self._operators[1:], strict=False):
            sizes = as_shape(left.shape), as_shape(right.shape)
            inner = sizes[0][-1], sizes[1][-2]
            if left.dtype is not right.dtype or (None not in inner and inner[0] != inner[1]):
                raise UsageError(
                    f"{left.name} of shape {sizes[0]} and {right.name} of shape {sizes[1]} cannot follow each other, "
                    f"or their types {left.dtype.name} and {right.dtype.name} differ"
                )
        if is_non_singular is None and all(each.is_non_singular for each in self._operators):
            is_non_singular = True
        label = name or "_o_".join(each.name for each in self._operators)
        with name_scope(label):
            super().__init__(
                self._operators[0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite, is_square,
                label, {"operators": self._operators},
            )  # fmt: skip

    @property
    def operators(self) -> list[LinearOperator]:
        return list(self._operators)

    def _shape(self) -> Any:
        shapes = [as_shape(each.shape) for each in self._operators]
        if any(shape.rank is None for shape in shapes):
            return Shape(None)
        batch = Shape([])
        for shape in shapes:
            batch = broadcast(batch, shape.slice(0, -2))
        return batch.concatenate(Shape([shapes[0][-2], shapes[-1][-1]]))

    def _shape_tensor(self) -> Any:
        batch = self._operators[0].batch_shape_tensor()
        for each in self._operators[1:]:
            batch = ops.broadcast_args(batch, each.batch_shape_tensor())
        sizes = [self._operators[0].range_dimension_tensor(), self._operators[-1].domain_dimension_tensor()]
        return array_ops.concat([batch, array_ops.stack(sizes)], 0)

    def _to_dense(self) -> Any:
        found = self._operators[-1].to_dense()
        for each in reversed(self._operators[:-1]):
            found = each.matmul(found)
        return found

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = linalg_ops.adjoint(x) if adjoint_arg else x
        for each in self._operators if adjoint else reversed(self._operators):
            x = each.matmul(x, adjoint=adjoint)
        return x

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = linalg_ops.adjoint(rhs) if adjoint_arg else rhs
        for each in reversed(self._operators) if adjoint else self._operators:
            rhs = each.solve(rhs, adjoint=adjoint)
        return rhs

    def _determinant(self) -> Any:
        return math_ops.reduce_prod(array_ops.stack([each.determinant() for each in self._operators]), 0)

    def _log_abs_determinant(self) -> Any:
        return math_ops.add_n([each.log_abs_determinant() for each in self._operators])
