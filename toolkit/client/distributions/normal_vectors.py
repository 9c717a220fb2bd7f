"""Normal distributions of vectors: with a diagonal, a triangular matrix, or a covariance."""

from __future__ import annotations

import math
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_near
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import FULLY_REPARAMETERIZED, Distribution
from toolkit.client.distributions.divergence import RegisterKL
from toolkit.client.distributions.parameters import joined_shape, joined_shape_tensor
from toolkit.client.linalg import linalg_ops
from toolkit.client.linear_operators.base import LinearOperator
from toolkit.client.linear_operators.dense import LinearOperatorLowerTriangular
from toolkit.client.linear_operators.diagonal import LinearOperatorDiag, LinearOperatorScaledIdentity
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.random import random_ops
from toolkit.errors import UsageError


class MultivariateNormal(Distribution):
    """`loc` and a standard normal vector that a linear operator `scale` is applied to.

    The constructors of subclasses make both.
    """

    def __init__(
        self, loc: Tensor | None, scale: LinearOperator, validate_args: bool, allow_nan_stats: bool,
        parameters: dict[str, Any], name: str,
    ):  # fmt: skip
        self._loc, self._scale = loc, scale
        parents = [*([] if loc is None else [loc]), *scale.graph_parents]
        super().__init__(scale.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, parents, name)

    @property
    def loc(self) -> Tensor | None:
        return self._loc

    @property
    def scale(self) -> LinearOperator:
        return self._scale

    def _parts(self) -> list[Tensor]:
        """Tensors [..., size] that have the distribution's shape together."""
        diagonal = self._scale.diag_part()
        return [diagonal] if self._loc is None else [self._loc, diagonal]

    def _batch_shape(self) -> Any:
        return joined_shape(self._parts()).slice(0, -1)

    def _batch_shape_tensor(self) -> Any:
        return joined_shape_tensor(self._parts())[:-1]

    def _event_shape(self) -> Any:
        return joined_shape(self._parts()).slice(-1)

    def _event_shape_tensor(self) -> Any:
        return joined_shape_tensor(self._parts())[-1:]

    def _scaled(self, vectors: Tensor) -> Tensor:
        return array_ops.squeeze(self._scale.matmul(array_ops.expand_dims(vectors, -1)), [-1])

    def _solved(self, vectors: Tensor) -> Tensor:
        return array_ops.squeeze(self._scale.solve(array_ops.expand_dims(vectors, -1)), [-1])

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = array_ops.concat([array_ops.stack([n]), joined_shape_tensor(self._parts())], 0)
        drawn = self._apply(random_ops.random_normal(shape, dtype=self._dtype, seed=seed))
        return drawn if self._loc is None else drawn + self._loc

    def _apply(self, vectors: Tensor) -> Tensor:
        return self._scaled(vectors)

    def _undo(self, vectors: Tensor) -> Tensor:
        return self._solved(vectors)

    def _log_prob(self, value: Tensor) -> Any:
        moved = value if self._loc is None else value - self._loc
        density = -0.5 * math_ops.square(self._undo(moved)) - 0.5 * math.log(2.0 * math.pi)
        return math_ops.reduce_sum(density, -1) - self._scale.log_abs_determinant()

    def _entropy(self) -> Any:
        size = math_ops.cast(self.event_shape_tensor()[0], self._dtype)
        each = 0.5 + 0.5 * math.log(2.0 * math.pi)
        found = size * each + self._scale.log_abs_determinant()
        return found + array_ops.zeros(self.batch_shape_tensor(), self._dtype)

    def _mean(self) -> Any:
        zeros = array_ops.zeros(joined_shape_tensor(self._parts()), self._dtype)
        return zeros if self._loc is None else self._loc + zeros

    def _mode(self) -> Any:
        return self._mean()

    def _covariance(self) -> Any:
        return self._scale.matmul(self._scale.to_dense(), adjoint_arg=True)

    def _variance(self) -> Any:
        return linalg_ops.diag_part(self._covariance())


class MultivariateNormalDiag(MultivariateNormal):
    """Independent normal variables in a vector.

    Args:
        loc: [..., size], zeros by default.
        scale_diag: [..., size], the standard deviations; ones by default.
        scale_identity_multiplier: [...], added to them, or in their place.

    Raises:
        UsageError: nothing says how long the vectors are.
    """

    def __init__(
        self, loc: Any = None, scale_diag: Any = None, scale_identity_multiplier: Any = None,
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "MultivariateNormalDiag",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name) as scope, name_scope("init", None, [loc, scale_diag, scale_identity_multiplier]):
            given = None if loc is None else convert_to_tensor(loc, name="loc")
            kind = None if given is None else given.dtype.base
            diagonal = None if scale_diag is None else convert_to_tensor(scale_diag, kind, name="scale_diag")
            known = given if diagonal is None else diagonal
            if known is None:
                raise UsageError("MultivariateNormalDiag: give loc or scale_diag, to say how long vectors are")
            size = array_ops.shape(known)[-1:]
            if scale_identity_multiplier is not None:
                factor = convert_to_tensor(scale_identity_multiplier, kind, name="scale_identity_multiplier")
                rest = array_ops.zeros(size, known.dtype.base) if diagonal is None else diagonal
                diagonal = array_ops.expand_dims(factor, -1) + rest
            elif diagonal is None:
                diagonal = array_ops.ones(size, known.dtype.base)
            operator = LinearOperatorDiag(diagonal)
        super().__init__(given, operator, validate_args, allow_nan_stats, parameters, scope)
        self._diagonal = diagonal

    def _apply(self, vectors: Tensor) -> Tensor:
        return vectors * self._diagonal

    def _undo(self, vectors: Tensor) -> Tensor:
        return vectors / self._diagonal

    def _covariance(self) -> Any:
        return linalg_ops.diag(self._variance())

    def _variance(self) -> Any:
        return math_ops.square(self._diagonal)

    def _stddev(self) -> Any:
        return ops.abs(self._diagonal)


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """The same, with the softplus of `scale_diag` as standard deviations."""

    def __init__(
        self, loc: Any, scale_diag: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
    ):  # fmt: skip
        parameters = {"loc": loc, "scale_diag": scale_diag, "validate_args": validate_args, "name": name}
        super().__init__(loc, nn_ops.softplus(scale_diag), None, validate_args, allow_nan_stats, name)
        self._parameters = {**parameters, "allow_nan_stats": allow_nan_stats}


class MultivariateNormalTriL(MultivariateNormal):
    """A normal vector whose covariance is `scale_tril` times its transpose.

    Args:
        loc: [..., size], zeros by default.
        scale_tril: [..., size, size]; only its lower triangle counts. The identity by default, of the size of `loc`.

    Raises:
        UsageError: neither is given.
    """

    def __init__(
        self, loc: Any = None, scale_tril: Any = None, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "MultivariateNormalTriL",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name) as scope, name_scope("init", None, [loc, scale_tril]):
            given = None if loc is None else convert_to_tensor(loc, name="loc")
            operator: Any
            if scale_tril is not None:
                matrix = convert_to_tensor(scale_tril, None if given is None else given.dtype.base, name="scale_tril")
                operator = LinearOperatorLowerTriangular(matrix)
            elif given is None:
                raise UsageError("MultivariateNormalTriL: give loc or scale_tril, to say how long vectors are")
            else:
                one = array_ops.ones([], given.dtype.base)
                operator = LinearOperatorScaledIdentity(array_ops.shape(given)[-1], one)
        super().__init__(given, operator, validate_args, allow_nan_stats, parameters, scope)


class MultivariateNormalFullCovariance(MultivariateNormalTriL):
    """A normal vector with a covariance.

    Args:
        covariance_matrix: [..., size, size], symmetric and positive definite.
    """

    def __init__(
        self, loc: Any = None, covariance_matrix: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "MultivariateNormalFullCovariance",
    ):  # fmt: skip
        parameters = {
            "loc": loc, "covariance_matrix": covariance_matrix, "validate_args": validate_args,
            "allow_nan_stats": allow_nan_stats, "name": name,
        }  # fmt: skip
        root = None
        if covariance_matrix is not None:
            matrix = convert_to_tensor(covariance_matrix, name="covariance_matrix")
            checks = [assert_near(matrix, linalg_ops.matrix_transpose(matrix), message="a covariance is symmetric")]
            with control_dependencies(checks if validate_args else []):
                root = ops.cholesky(matrix)
        super().__init__(loc, root, validate_args, allow_nan_stats, name)
        self._parameters = parameters


@RegisterKL(MultivariateNormal, MultivariateNormal)
def _normal_vectors(a: MultivariateNormal, b: MultivariateNormal, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_mvn", [*a.scale.graph_parents, *b.scale.graph_parents]):
        spread = b.scale.solve(a.scale.to_dense())
        apart = b.scale.solve(array_ops.expand_dims(b.mean() - a.mean(), -1))
        size = math_ops.cast(a.event_shape_tensor()[0], a.dtype)
        squares = [math_ops.reduce_sum(math_ops.square(each), [-2, -1]) for each in (spread, apart)]
        determinants = b.scale.log_abs_determinant() - a.scale.log_abs_determinant()
        return determinants + 0.5 * (squares[0] + squares[1] - size)
