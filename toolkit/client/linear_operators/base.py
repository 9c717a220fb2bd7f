"""What all linear operators share: shapes, hints, and what can be computed of the dense matrix."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_equal, assert_near, assert_positive
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.linalg import linalg_ops
from toolkit.client.math import math_ops
from toolkit.client.variables.base import BaseVariable
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape

#: the kinds that operators make of themselves, which their modules enter
_KINDS: dict[str, Any] = {}
Kind = TypeVar("Kind", bound=type)


def makes(what: str) -> Callable[[Kind], Kind]:
    """Before a class: operators make it when they are asked for `what`."""

    def enter(kind: Kind) -> Kind:
        _KINDS[what] = kind
        return kind

    return enter


class LinearOperator:
    """A batch of matrices [..., m, n]; a subclass has `_shape`, `_shape_tensor` and `_to_dense`, or `_matmul`.

    Args:
        dtype: of the matrices.
        graph_parents: tensors that it depends on.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: what is known of them; believed, not checked.
        parameters: the arguments of the constructor.

    Raises:
        UsageError: the hints contradict each other.
    """

    def __init__(
        self, dtype: DTypeLike, graph_parents: Sequence[Tensor] | None = None, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None, is_square: bool | None = None,
        name: str | None = None, parameters: dict[str, Any] | None = None,
    ):  # fmt: skip
        if is_positive_definite:
            if is_non_singular is False:
                raise UsageError("a positive definite operator is not singular: is_non_singular=False contradicts that")
            is_non_singular = True
        if is_non_singular or is_self_adjoint or is_positive_definite:
            if is_square is False:
                raise UsageError("what is not singular, self-adjoint or positive definite is square: is_square=False")
            is_square = True
        self._dtype = as_dtype(dtype).base
        self._graph_parents = list(graph_parents or [])
        self._non_singular, self._self_adjoint = is_non_singular, is_self_adjoint
        self._positive_definite, self._square = is_positive_definite, is_square
        self._name = name or type(self).__name__
        self._parameters = dict(parameters or {})

    # -- what a subclass says --------------------------------------------------------------------------------------

    def _shape(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no shape")

    def _shape_tensor(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no shape_tensor")

    def _to_dense(self) -> Any:
        size = self.domain_dimension_tensor()
        batch = self.batch_shape_tensor()
        return self._matmul(linalg_ops.eye(size, batch_shape=batch, dtype=self._dtype))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return math_ops.matmul(self._to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = linalg_ops.adjoint(rhs) if adjoint_arg else rhs
        if self._positive_definite and self._self_adjoint:
            return linalg_ops.cholesky_solve(ops.cholesky(self._to_dense()), rhs)
        return ops.matrix_solve(self._to_dense(), rhs, adjoint=adjoint)

    def _determinant(self) -> Any:
        return ops.matrix_determinant(self._to_dense())

    def _log_abs_determinant(self) -> Any:
        return ops.log_matrix_determinant(self._to_dense())[1]

    def _diag_part(self) -> Any:
        return linalg_ops.diag_part(self._to_dense())

    def _eigvals(self) -> Any:
        return linalg_ops.eigvalsh(self._to_dense())

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return dict(self._parameters)

    @property
    def graph_parents(self) -> list[Tensor]:
        return list(self._graph_parents)

    @property
    def is_non_singular(self) -> bool | None:
        return self._non_singular

    @property
    def is_self_adjoint(self) -> bool | None:
        return self._self_adjoint

    @property
    def is_positive_definite(self) -> bool | None:
        return self._positive_definite

    @property
    def is_square(self) -> bool | None:
        """Whether m is n, by a hint or by the shape; None where nobody knows."""
        if self._square is not None:
            return self._square
        rows, columns = self._plain[-2], self._plain[-1]
        return None if rows is None or columns is None else rows == columns

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables among the arguments of the constructor."""
        return tuple(value for value in self._parameters.values() if isinstance(value, BaseVariable))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        return tuple(value for value in self.variables if value.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        return tuple(value for value in self.variables if not value.trainable)

    @property
    def submodules(self) -> tuple[LinearOperator, ...]:
        """The operators that it is made of."""
        found: list[LinearOperator] = []
        for value in self._parameters.values():
            for each in value if isinstance(value, list | tuple) else [value]:  # type: ignore[union-attr]
                if isinstance(each, LinearOperator):
                    found += [each, *each.submodules]
        return tuple(found)

    @property
    def name_scope(self) -> Any:
        return name_scope(self._name)

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """A method that runs in the operator's name scope."""

        def inside(self: LinearOperator, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return inside

    @contextmanager
    def _scope(self, name: str) -> Generator[str]:
        with name_scope(f"{self._name}/{name}") as scope:
            yield scope

    # -- shapes ----------------------------------------------------------------------------------------------------

    @property
    def _plain(self) -> Shape:
        shape = as_shape(self._shape())
        return Shape([None, None]) if shape.rank is None else shape

    @property
    def shape(self) -> Any:
        """[..., m, n] as far as it is known."""
        return get_default_graph().present_shape(as_shape(self._shape()))

    @property
    def batch_shape(self) -> Any:
        known = as_shape(self._shape())
        return get_default_graph().present_shape(Shape(None) if known.rank is None else known.slice(0, -2))

    @property
    def tensor_rank(self) -> int | None:
        return as_shape(self._shape()).rank

    @property
    def domain_dimension(self) -> Any:
        """n: the size of what it is applied to."""
        return self.shape[-1]

    @property
    def range_dimension(self) -> Any:
        """m: the size of what comes out."""
        return self.shape[-2]

    def _known_or(self, name: str, shape: Shape, computed: Callable[[Tensor], Tensor]) -> Tensor:
        with self._scope(name):
            if shape.is_fully_defined:
                return convert_to_tensor(shape.as_list(), dtypes.int32)
            return computed(self._shape_tensor())

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        return self._known_or(name, as_shape(self._shape()), lambda sizes: sizes)

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        known = as_shape(self._shape())
        batch = known.slice(0, -2) if known.rank is not None else known
        return self._known_or(name, batch, lambda sizes: sizes[:-2])

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        with self._scope(name):
            rank = self.tensor_rank
            return array_ops.size(self._shape_tensor()) if rank is None else convert_to_tensor(rank, dtypes.int32)

    def _dimension(self, name: str, axis: int) -> Tensor:
        with self._scope(name):
            known = self._plain[axis]
            return self._shape_tensor()[axis] if known is None else convert_to_tensor(known, dtypes.int32)

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        return self._dimension(name, -1)

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        return self._dimension(name, -2)

    # -- what it does ----------------------------------------------------------------------------------------------

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product with a matrix [..., n, k], or with another operator.

        Raises:
            UsageError: sizes do not fit.
        """
        if isinstance(x, LinearOperator):
            with self._scope(name):
                left = self.adjoint() if adjoint else self
                return _KINDS["composition"]([left, x.adjoint() if adjoint_arg else x])
        with self._scope(name):
            given = self._argument(x, -2 if adjoint else -1, -1 if adjoint_arg else -2)
            return self._matmul(given, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: TensorLike, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The product with a vector [..., n]."""
        with self._scope(name):
            given = self._argument(x, -2 if adjoint else -1, -1)
            return array_ops.squeeze(self._matmul(array_ops.expand_dims(given, -1), adjoint=adjoint), [-1])

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """X with A X = rhs [..., m, k].

        Raises:
            NotImplementedError: the operator is said to be singular, or not square.
            UsageError: sizes do not fit.
        """
        self._check_solvable()
        if isinstance(rhs, LinearOperator):
            with self._scope(name):
                return self.inverse().matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        with self._scope(name):
            given = self._argument(rhs, -1 if adjoint else -2, -1 if adjoint_arg else -2)
            return self._solve(given, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def solvevec(self, rhs: TensorLike, adjoint: bool = False, name: str = "solve") -> Tensor:
        """x with A x = rhs [..., m]."""
        self._check_solvable()
        with self._scope(name):
            given = self._argument(rhs, -1 if adjoint else -2, -1)
            return array_ops.squeeze(self._solve(array_ops.expand_dims(given, -1), adjoint=adjoint), [-1])

    def _check_solvable(self) -> None:
        if self._non_singular is False or self.is_square is False:
            raise NotImplementedError(f"{self._name} is singular or not square, so there is nothing to solve")

    def _argument(self, x: TensorLike, mine: int, axis: int) -> Tensor:
        given = convert_to_tensor(x, self._dtype, name="x")
        size, wanted = given.static_shape[axis] if given.static_shape.rank else None, self._plain[mine]
        if size is not None and wanted is not None and size != wanted:
            raise UsageError(
                f"{self._name} of shape {self._plain} does not fit '{given.name}' of shape {given.static_shape}: axis "
                f"{axis} has to have size {wanted}"
            )
        return given

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices."""
        with self._scope(name):
            return self._to_dense()

    def diag_part(self, name: str = "diag_part") -> Tensor:
        with self._scope(name):
            return self._diag_part()

    def trace(self, name: str = "trace") -> Tensor:
        with self._scope(name):
            return math_ops.reduce_sum(self.diag_part(), -1)

    def add_to_tensor(self, x: TensorLike, name: str = "add_to_tensor") -> Tensor:
        """The matrices added to others."""
        with self._scope(name):
            return self._to_dense() + convert_to_tensor(x, self._dtype, name="x")

    def _of_square(self, name: str, compute: Callable[[], Any]) -> Any:
        if self.is_square is False:
            raise NotImplementedError(f"{self._name} of shape {self._plain} is not square")
        with self._scope(name):
            return compute()

    def determinant(self, name: str = "det") -> Tensor:
        return self._of_square(name, self._determinant)

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        return self._of_square(name, self._log_abs_determinant)

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """The eigenvalues of a self-adjoint operator.

        Raises:
            NotImplementedError: it is not said to be self-adjoint.
        """
        if not self._self_adjoint:
            raise NotImplementedError("eigenvalues are of operators that are said to be self-adjoint")
        with self._scope(name):
            return self._eigvals()

    def cond(self, name: str = "cond") -> Tensor:
        """The largest singular value over the smallest."""

        def compute() -> Tensor:
            values = linalg_ops.svd(self._to_dense(), compute_uv=False)
            return math_ops.reduce_max(values, -1) / math_ops.reduce_min(values, -1)

        return self._of_square(name, compute)

    def adjoint(self, name: str = "adjoint") -> Any:
        """The operator of the conjugate transposes."""
        if self._self_adjoint:
            return self
        with self._scope(name):
            return _KINDS["adjoint"](self)

    H = property(lambda self: self.adjoint())

    def inverse(self, name: str = "inverse") -> Any:
        """The operator of the inverses.

        Raises:
            NotImplementedError: it is said to be singular, or not square.
        """
        self._check_solvable()
        with self._scope(name):
            return _KINDS["inverse"](self)

    def cholesky(self, name: str = "cholesky") -> Any:
        """The lower triangular factor.

        Raises:
            NotImplementedError: it is not said to be positive definite and self-adjoint.
        """
        if not (self._positive_definite and self._self_adjoint):
            raise NotImplementedError("a Cholesky factor needs is_positive_definite and is_self_adjoint")
        with self._scope(name):
            return _KINDS["lower triangular"](ops.cholesky(self._to_dense()), is_non_singular=True, is_square=True)

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """An operation that fails where the matrices are singular: their determinant is 0."""
        with self._scope(name):
            return assert_positive(ops.abs(self._determinant()), message=f"{self._name} is singular")

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """An operation that fails where a pivot of the symmetric part's factor is not positive."""
        with self._scope(name):
            dense = self._to_dense()
            factor = ops.cholesky((dense + linalg_ops.adjoint(dense)) / 2)
            return assert_positive(linalg_ops.diag_part(factor), message=f"{self._name} is not positive definite")

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """An operation that fails where the matrices are not their conjugate transposes."""
        with self._scope(name):
            dense = self._to_dense()
            check = assert_near if self._dtype.is_floating else assert_equal
            return check(dense, linalg_ops.adjoint(dense), message=f"{self._name} is not equal to its adjoint")
