"""Mixtures of distributions of different kinds, and normal vectors whose scale is a diagonal and a little more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_shape, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import NOT_REPARAMETERIZED, Distribution
from toolkit.client.distributions.normal_vectors import MultivariateNormal
from toolkit.client.linalg import linalg_ops
from toolkit.client.linear_operators.dense import LinearOperatorFullMatrix
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.errors import ArgumentTypeError, ArgumentValueError, UsageError


class Mixture(Distribution):
    """A mixture of several distributions, whose batches and events have one shape.

    Args:
        cat: a Categorical over the components, of their batch.
        components: a list of distributions.
        use_static_graph: changes nothing here: each component is drawn from, and one draw chosen.

    Raises:
        TypeError: there are no components, or their types differ.
        ValueError: their shapes, or their number, do not fit.
    """

    def __init__(
        self, cat: Any, components: Sequence[Any], validate_args: bool = False, allow_nan_stats: bool = True,
        use_static_graph: bool = False, name: str = "Mixture",
    ):  # fmt: skip
        parameters = dict(locals())
        self._cat, self._components = cat, list(components)
        if not self._components or not all(isinstance(each, Distribution) for each in self._components):
            raise ArgumentTypeError("components: expected a list of distributions, one at least")
        dtype = self._components[0].dtype
        for at, each in enumerate(self._components):
            if each.dtype != dtype:
                raise ArgumentTypeError(f"components[{at}] is of {each.dtype}, components[0] of {dtype}")
            shapes = [(as_shape(each.batch_shape), as_shape(self._components[0].batch_shape), "batches")]
            shapes += [(as_shape(each.event_shape), as_shape(self._components[0].event_shape), "events")]
            for own, first, what in shapes:
                if not own.is_compatible_with(first):
                    raise ArgumentValueError(f"components[{at}] has {what} {own}, components[0] {first}")
        count = cat.logits.static_shape[-1]
        if count is not None and count != len(self._components):
            raise ArgumentValueError(f"cat chooses of {count}, but there are {len(self._components)} components")
        rank = as_shape(self._components[0].event_shape).rank
        if rank is None:
            raise ArgumentValueError("components: the number of dimensions of events has to be known")
        self._rank = rank
        parents = [*cat._graph_parents, *(parent for each in self._components for parent in each._graph_parents)]
        super().__init__(dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, parents, name)

    cat = property(lambda self: self._cat)
    components = property(lambda self: self._components)
    num_components = property(lambda self: len(self._components))

    def _batch_shape(self) -> Any:
        return self._cat.batch_shape

    def _batch_shape_tensor(self) -> Any:
        return self._cat.batch_shape_tensor()

    def _event_shape(self) -> Any:
        return self._components[0].event_shape

    def _event_shape_tensor(self) -> Any:
        return self._components[0].event_shape_tensor()

    def _weights(self) -> list[Tensor]:
        """The probability of each component, [*batch, 1, ...]."""
        found: list[Tensor] = array_ops.unstack(self._cat.probs, self.num_components, axis=-1)
        return [self._beside(each) for each in found]

    def _beside(self, x: Tensor) -> Tensor:
        for _ in range(self._rank):
            x = array_ops.expand_dims(x, -1)
        return x

    def _joined(self, logs: list[Tensor]) -> Tensor:
        choices = array_ops.unstack(nn_ops.log_softmax(self._cat.logits), self.num_components, axis=-1)
        together = [log + choice for log, choice in zip(logs, choices, strict=True)]
        return math_ops.reduce_logsumexp(array_ops.stack(together), [0])

    def _log_prob(self, value: Tensor) -> Any:
        return self._joined([each.log_prob(value) for each in self._components])

    def _log_cdf(self, value: Tensor) -> Any:
        return self._joined([each.log_cdf(value) for each in self._components])

    def _prob(self, value: Tensor) -> Any:
        return math_ops.exp(self._log_prob(value))

    def _mean(self) -> Any:
        pairs = zip(self._weights(), self._components, strict=True)
        return math_ops.add_n([weight * each.mean() for weight, each in pairs])

    def _variance(self) -> Any:
        mean = self._mean()
        pairs = zip(self._weights(), self._components, strict=True)
        return math_ops.add_n(
            [weight * (each.variance() + math_ops.square(each.mean() - mean)) for weight, each in pairs]
        )

    def _stddev(self) -> Any:
        return math_ops.sqrt(self._variance())

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        chosen = self._cat.sample(n, seed=seed)
        found = None
        for at, each in enumerate(self._components):
            drawn = each.sample(n, seed=None if seed is None else seed + at + 1)
            mask = self._beside(math_ops.cast(math_ops.equal(chosen, at), chosen.dtype))
            here = array_ops.broadcast_to(ops.greater(mask, 0), array_ops.shape(drawn))
            found = drawn if found is None else array_ops.where(here, drawn, found)
        return found

    def entropy_lower_bound(self, name: str = "entropy_lower_bound") -> Tensor:
        """The components' entropies, weighted: the mixture has more."""
        with name_scope(name):
            pairs = zip(array_ops.unstack(self._cat.probs, self.num_components, axis=-1), self._components, strict=True)
            return math_ops.add_n([weight * each.entropy() for weight, each in pairs])


class MultivariateNormalDiagPlusLowRank(MultivariateNormal):
    """A normal vector whose scale is diag(scale_diag + multiplier) + factor diag(perturb_diag) factor^T.

    Args:
        loc: [..., size], zeros by default.
        scale_diag: [..., size], and `scale_identity_multiplier`, [...]: the diagonal; ones by default.
        scale_perturb_factor: [..., size, rank].
        scale_perturb_diag: [..., rank], ones by default.

    Raises:
        UsageError: nothing says how long the vectors are.
    """

    def __init__(
        self, loc: Any = None, scale_diag: Any = None, scale_identity_multiplier: Any = None,
        scale_perturb_factor: Any = None, scale_perturb_diag: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "MultivariateNormalDiagPlusLowRank",
    ):  # fmt: skip
        parameters = dict(locals())
        given = [loc, scale_diag, scale_identity_multiplier, scale_perturb_factor, scale_perturb_diag]
        with name_scope(name) as scope, name_scope("init", None, given):
            at = None if loc is None else convert_to_tensor(loc, name="loc")
            kind = None if at is None else at.dtype.base
            diagonal = None if scale_diag is None else convert_to_tensor(scale_diag, kind, name="scale_diag")
            factor = None
            if scale_perturb_factor is not None:
                factor = convert_to_tensor(scale_perturb_factor, kind, name="scale_perturb_factor")
            known = at if diagonal is None else diagonal
            known = factor[..., 0] if known is None and factor is not None else known
            if known is None:
                raise UsageError(f"{name}: give loc, scale_diag or scale_perturb_factor, to say how long vectors are")
            size = array_ops.shape(known)[-1:]
            if scale_identity_multiplier is not None:
                multiplier = convert_to_tensor(scale_identity_multiplier, known.dtype.base)
                rest = array_ops.zeros(size, known.dtype.base) if diagonal is None else diagonal
                diagonal = array_ops.expand_dims(multiplier, -1) + rest
            elif diagonal is None:
                diagonal = array_ops.ones(size, known.dtype.base)
            matrix = linalg_ops.diag(diagonal)
            if factor is not None:
                scaled = factor
                if scale_perturb_diag is not None:
                    inner = convert_to_tensor(scale_perturb_diag, factor.dtype.base, name="scale_perturb_diag")
                    scaled = factor * array_ops.expand_dims(inner, -2)
                matrix = matrix + math_ops.matmul(scaled, factor, adjoint_b=True)
            operator = LinearOperatorFullMatrix(matrix)
        super().__init__(at, operator, validate_args, allow_nan_stats, parameters, scope)
        self._matrix = matrix

    def _undo(self, vectors: Tensor) -> Tensor:
        columns = array_ops.expand_dims(vectors, -1)
        rows = array_ops.shape(columns)
        shape = array_ops.concat([rows[:-1], rows[-2:-1]], 0)
        matrix = array_ops.broadcast_to(self._matrix, shape)  # a matrix for each vector, as solving asks for
        return array_ops.squeeze(ops.matrix_solve(matrix, columns), [-1])
