"""A batch of distributions as one of vectors; triangles of vectors."""

from __future__ import annotations

import math
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_shape, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.distributions.base import Distribution
from toolkit.client.math import math_ops
from toolkit.errors import UsageError


class Independent(Distribution):
    """The last dimensions of a batch, taken as one event of independent numbers.

    Args:
        reinterpreted_batch_ndims: how many dimensions; all but the first by default.

    Raises:
        UsageError: the batch has fewer, or its rank is not known.
    """

    def __init__(
        self, distribution: Any, reinterpreted_batch_ndims: int | None = None, validate_args: bool = False,
        name: str | None = None,
    ):  # fmt: skip
        parameters = dict(locals())
        self._distribution = distribution
        rank = as_shape(distribution.batch_shape).rank
        if rank is None:
            raise UsageError("Independent: how many dimensions the batch has is not known")
        self._count = max(0, rank - 1) if reinterpreted_batch_ndims is None else reinterpreted_batch_ndims
        if not 0 <= self._count <= rank:
            raise UsageError(f"reinterpreted_batch_ndims: expected at most {rank}, got {self._count}")
        self._kept = rank - self._count
        super().__init__(
            distribution.dtype, distribution.reparameterization_type, validate_args, distribution.allow_nan_stats,
            parameters, None, name or f"Independent{distribution.name}",
        )  # fmt: skip

    @property
    def distribution(self) -> Any:
        return self._distribution

    @property
    def reinterpreted_batch_ndims(self) -> int:
        return self._count

    def _batch_shape(self) -> Any:
        return as_shape(self._distribution.batch_shape).slice(0, self._kept)

    def _batch_shape_tensor(self) -> Any:
        return self._distribution.batch_shape_tensor()[: self._kept]

    def _event_shape(self) -> Any:
        joined = as_shape(self._distribution.batch_shape).slice(self._kept)
        return joined.concatenate(as_shape(self._distribution.event_shape))

    def _event_shape_tensor(self) -> Any:
        joined = self._distribution.batch_shape_tensor()[self._kept :]
        return array_ops.concat([joined, self._distribution.event_shape_tensor()], 0)

    def _summed(self, found: Tensor) -> Tensor:
        return math_ops.reduce_sum(found, list(range(-self._count, 0))) if self._count else found

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return self._distribution.sample(n, seed)

    def _log_prob(self, value: Tensor) -> Any:
        return self._summed(self._distribution.log_prob(value))

    def _entropy(self) -> Any:
        return self._summed(self._distribution.entropy())

    def _mean(self) -> Any:
        return self._distribution.mean()

    def _variance(self) -> Any:
        return self._distribution.variance()

    def _stddev(self) -> Any:
        return self._distribution.stddev()

    def _mode(self) -> Any:
        return self._distribution.mode()


def fill_triangular(x: TensorLike, upper: bool = False, name: str | None = None) -> Tensor:
    """A triangular matrix [..., n, n] of the numbers of a vector [..., n (n + 1) / 2].

    Raises:
        ValueError: the length of the vector is not known, or no such number.
    """
    with name_scope(name, "fill_triangular", [x]):
        given = convert_to_tensor(x, name="x")
        length = given.static_shape[-1] if given.static_shape.rank else None
        if length is None:
            raise ValueError(f"fill_triangular: the last dimension has to be known, got shape {given.static_shape}")
        size = (math.isqrt(8 * length + 1) - 1) // 2
        if size * (size + 1) // 2 != length:
            raise ValueError(f"fill_triangular: no triangle has {length} numbers; one has {size * (size + 1) // 2}")
        turned = array_ops.reverse(given if not upper else given[..., size:], [-1])
        both = [given, turned] if upper else [given[..., size:], turned]
        sizes = array_ops.concat([array_ops.shape(given)[:-1], [size, size]], 0)
        square = array_ops.reshape(array_ops.concat(both, -1), sizes)
        found = ops.matrix_band_part(square, 0, -1) if upper else ops.matrix_band_part(square, -1, 0)
        found.set_shape([*list(given.static_shape)[:-1], size, size])
        return found
