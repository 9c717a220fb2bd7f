"""What all distributions share: names, shapes, and which quantity follows from which."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions import divergence
from toolkit.client.gradients.common import known_value
from toolkit.client.math import math_ops
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


class ReparameterizationType:
    """Whether gradients go through draws to the parameters."""

    def __init__(self, rep_type: str):
        self._rep_type = rep_type

    def __repr__(self) -> str:
        return f"<ReparameterizationType {self._rep_type}>"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


FULLY_REPARAMETERIZED = ReparameterizationType("FULLY_REPARAMETERIZED")
NOT_REPARAMETERIZED = ReparameterizationType("NOT_REPARAMETERIZED")


def _missing(distribution: Any, what: str) -> NotImplementedError:
    return NotImplementedError(f"{type(distribution).__name__} has no {what}")


class Distribution:
    """A batch of distributions of one family.

    A subclass overrides what it knows: `_log_prob` or `_prob`, `_cdf`, `_mean`, `_variance`, `_sample_n(n, seed)`, and
    `_batch_shape`, `_event_shape` with their `_tensor` forms; the rest follows from that.

    Args:
        dtype: the type of draws.
        reparameterization_type: whether gradients go through draws.
        validate_args: parameters and values are checked when a step runs.
        allow_nan_stats: what is not defined (the mean of heavy tails) is NaN; otherwise the step fails.
        parameters: the arguments of the constructor, for `copy`.
        graph_parents: tensors that it depends on.

    Raises:
        UsageError: a graph parent is no tensor.
    """

    def __init__(
        self, dtype: DTypeLike, reparameterization_type: ReparameterizationType, validate_args: bool,
        allow_nan_stats: bool, parameters: dict[str, Any] | None = None, graph_parents: Sequence[Any] | None = None,
        name: str | None = None,
    ):  # fmt: skip
        parents = list(graph_parents or [])
        for number, each in enumerate(parents):
            if not isinstance(each, Tensor):
                raise UsageError(f"graph_parents of a distribution are tensors; number {number} is {each!r}")
        if not name or not name.endswith("/"):
            with name_scope(name or type(self).__name__) as scope:
                name = scope
        self._dtype = as_dtype(dtype).base
        self._reparameterization_type = reparameterization_type
        self._validate_args, self._allow_nan_stats = validate_args, allow_nan_stats
        self._parameters = {
            key: value for key, value in (parameters or {}).items() if key != "self" and not key.startswith("__")
        }
        self._graph_parents = parents
        self._name = name

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> Any:
        return self._name

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return dict(self._parameters)

    @property
    def reparameterization_type(self) -> ReparameterizationType:
        return self._reparameterization_type

    @property
    def allow_nan_stats(self) -> bool:
        return self._allow_nan_stats

    @property
    def validate_args(self) -> bool:
        return self._validate_args

    def copy(self, **override_parameters_kwargs: Any) -> Self:
        """The same with other arguments."""
        made: Any = type(self)
        return made(**{**self.parameters, **override_parameters_kwargs})

    @classmethod
    def param_shapes(cls, sample_shape: Any, name: str = "DistributionParamShapes") -> dict[str, Tensor]:
        """Which shapes parameters need for draws of a shape."""
        with name_scope(name, None, [sample_shape]):
            return cls._param_shapes(sample_shape)

    @classmethod
    def param_static_shapes(cls, sample_shape: Any) -> dict[str, Any]:
        """The same, known now.

        Raises:
            UsageError: the shape is not known.
        """
        found = {name: static_value(shape) for name, shape in cls.param_shapes(list(as_shape(sample_shape))).items()}
        if any(value is None for value in found.values()):
            raise UsageError("param_static_shapes needs a shape whose sizes are all known")
        return {
            name: get_default_graph().present_shape(Shape(np.asarray(value).tolist())) for name, value in found.items()
        }

    #: names of the parameters that have the shape of a draw
    _PARAMETERS: tuple[str, ...] = ()

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> dict[str, Tensor]:
        if not cls._PARAMETERS:
            raise _missing(cls, "param_shapes")
        shape = convert_to_tensor(sample_shape, dtypes.int32)
        return dict.fromkeys(cls._PARAMETERS, shape)

    # -- shapes ----------------------------------------------------------------------------------------------------

    def _batch_shape(self) -> Any:
        return Shape(None)

    def _event_shape(self) -> Any:
        return Shape(None)

    def _batch_shape_tensor(self) -> Any:
        raise _missing(self, "batch_shape_tensor")

    def _event_shape_tensor(self) -> Any:
        raise _missing(self, "event_shape_tensor")

    @property
    def batch_shape(self) -> Any:
        """The shape of the batch, as far as it is known."""
        return get_default_graph().present_shape(as_shape(self._batch_shape()))

    @property
    def event_shape(self) -> Any:
        """The shape of one draw of one distribution, as far as it is known."""
        return get_default_graph().present_shape(as_shape(self._event_shape()))

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        return self._shape_tensor(name, self._batch_shape, self._batch_shape_tensor)

    def event_shape_tensor(self, name: str = "event_shape_tensor") -> Tensor:
        return self._shape_tensor(name, self._event_shape, self._event_shape_tensor)

    def _shape_tensor(self, name: str, static: Callable[[], Any], dynamic: Callable[[], Any]) -> Tensor:
        with self._name_scope(name):
            known = as_shape(static())
            if known.is_fully_defined:
                return convert_to_tensor(known.as_list(), dtypes.int32, name=name.removesuffix("_tensor"))
            return dynamic()

    def is_scalar_event(self, name: str = "is_scalar_event") -> Tensor:
        with self._name_scope(name):
            return self._is_scalar(name, self._event_shape, self.event_shape_tensor)

    def is_scalar_batch(self, name: str = "is_scalar_batch") -> Tensor:
        with self._name_scope(name):
            return self._is_scalar(name, self._batch_shape, self.batch_shape_tensor)

    def _is_scalar(self, name: str, static: Callable[[], Any], dynamic: Callable[[], Any]) -> Tensor:
        rank = as_shape(static()).rank
        if rank is not None:
            return convert_to_tensor(rank == 0, name=name)
        return ops.equal(array_ops.shape(dynamic())[0], 0)

    # -- draws -----------------------------------------------------------------------------------------------------

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        raise _missing(self, "sample")

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str = "sample") -> Tensor:
        """Draws: [*sample_shape, *batch, *event]."""
        return self._call_sample_n(sample_shape, seed, name)

    def _call_sample_n(self, sample_shape: Any, seed: int | None, name: str, **kwargs: Any) -> Tensor:
        with self._name_scope(name, [sample_shape]):
            sizes = convert_to_tensor(sample_shape, dtypes.int32, name="sample_shape")
            sizes, count = _as_vector(sizes)
            draws = self._sample_n(count, seed, **kwargs)
            inner = array_ops.shape(draws)[1:]
            found = array_ops.reshape(draws, array_ops.concat([sizes, inner], 0))
            return self._known_shape(found, sizes)

    def _known_shape(self, draws: Tensor, sizes: Tensor) -> Tensor:
        outer = as_shape(known_value(sizes))
        shape = outer.concatenate(as_shape(self._batch_shape())).concatenate(as_shape(self._event_shape()))
        if shape.is_compatible_with(draws.static_shape):
            draws.set_shape(shape.merge(draws.static_shape))
        return draws

    # -- densities -------------------------------------------------------------------------------------------------

    def _log_prob(self, value: Tensor) -> Any:
        raise _missing(self, "log_prob")

    def _prob(self, value: Tensor) -> Any:
        raise _missing(self, "prob")

    def _log_cdf(self, value: Tensor) -> Any:
        raise _missing(self, "log_cdf")

    def _cdf(self, value: Tensor) -> Any:
        raise _missing(self, "cdf")

    def _log_survival_function(self, value: Tensor) -> Any:
        raise _missing(self, "log_survival_function")

    def _survival_function(self, value: Tensor) -> Any:
        raise _missing(self, "survival_function")

    def _quantile(self, value: Tensor) -> Any:
        raise _missing(self, "quantile")

    def _of_value(self, value: Any, name: str, *ways: Callable[[Tensor], Any]) -> Any:
        """The first way that the distribution knows."""
        with self._name_scope(name, [value]):
            given = convert_to_tensor(value, preferred_dtype=self._dtype, name="value")
            return _first(lambda way: way(given), ways)

    def log_prob(self, value: Any, name: str = "log_prob") -> Any:
        """The logarithm of the density (or the probability) at a value."""
        return self._of_value(value, name, self._log_prob, lambda x: math_ops.log(self._prob(x)))

    def prob(self, value: Any, name: str = "prob") -> Any:
        return self._of_value(value, name, self._prob, lambda x: math_ops.exp(self._log_prob(x)))

    def log_cdf(self, value: Any, name: str = "log_cdf") -> Any:
        return self._of_value(value, name, self._log_cdf, lambda x: math_ops.log(self._cdf(x)))

    def cdf(self, value: Any, name: str = "cdf") -> Any:
        """The probability of values up to this one."""
        return self._of_value(value, name, self._cdf, lambda x: math_ops.exp(self._log_cdf(x)))

    def log_survival_function(self, value: Any, name: str = "log_survival_function") -> Any:
        return self._of_value(value, name, self._log_survival_function, lambda x: ops.log1p(-self.cdf(x)))

    def survival_function(self, value: Any, name: str = "survival_function") -> Any:
        """The probability of larger values."""
        return self._of_value(value, name, self._survival_function, lambda x: 1.0 - self.cdf(x))

    def quantile(self, value: Any, name: str = "quantile") -> Any:
        """The inverse of `cdf`."""
        return self._of_value(value, name, self._quantile)

    # -- statistics ------------------------------------------------------------------------------------------------

    def _entropy(self) -> Any:
        raise _missing(self, "entropy")

    def _mean(self) -> Any:
        raise _missing(self, "mean")

    def _variance(self) -> Any:
        raise _missing(self, "variance")

    def _stddev(self) -> Any:
        raise _missing(self, "stddev")

    def _covariance(self) -> Any:
        raise _missing(self, "covariance")

    def _mode(self) -> Any:
        raise _missing(self, "mode")

    def _of_itself(self, name: str, *ways: Callable[[], Any]) -> Any:
        with self._name_scope(name):
            return _first(lambda way: way(), ways)

    def entropy(self, name: str = "entropy") -> Any:
        return self._of_itself(name, self._entropy)

    def mean(self, name: str = "mean") -> Any:
        return self._of_itself(name, self._mean)

    def variance(self, name: str = "variance") -> Any:
        return self._of_itself(name, self._variance, lambda: math_ops.square(self._stddev()))

    def stddev(self, name: str = "stddev") -> Any:
        return self._of_itself(name, self._stddev, lambda: math_ops.sqrt(self._variance()))

    def covariance(self, name: str = "covariance") -> Any:
        return self._of_itself(name, self._covariance)

    def mode(self, name: str = "mode") -> Any:
        return self._of_itself(name, self._mode)

    def cross_entropy(self, other: Any, name: str = "cross_entropy") -> Any:
        """The entropy, and the divergence of another."""
        with self._name_scope(name):
            return divergence.cross_entropy(self, other, allow_nan_stats=self._allow_nan_stats)

    def kl_divergence(self, other: Any, name: str = "kl_divergence") -> Any:
        """How far another distribution is from this one (Kullback, Leibler 1951)."""
        with self._name_scope(name):
            return divergence.kl_divergence(self, other, allow_nan_stats=self._allow_nan_stats)

    # -- names -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _name_scope(self, name: str | None = None, values: Sequence[Any] | None = None) -> Generator[str]:
        with name_scope(self._name), name_scope(name, None, [*(values or []), *self._graph_parents]) as scope:
            yield scope

    def __str__(self) -> str:
        shapes = f"batch_shape={as_shape(self._batch_shape())}, event_shape={as_shape(self._event_shape())}"
        return f'{type(self).__name__}("{self._name}", {shapes}, dtype={self._dtype.name})'

    def __repr__(self) -> str:
        return f"<{self}>"


def _first(apply: Callable[[Any], Any], ways: Sequence[Any]) -> Any:
    """The result of the first way that is implemented; the first's error where none is."""
    failed: NotImplementedError | None = None
    for way in ways:
        try:
            return apply(way)
        except NotImplementedError as error:
            failed = failed or error
    assert failed is not None
    raise failed


def _as_vector(sizes: Tensor) -> tuple[Tensor, Any]:
    """A shape of draws as a vector, and how many they are.

    Raises:
        UsageError: it is neither a scalar nor a vector.
    """
    known = static_value(sizes)
    count: Any = math_ops.reduce_prod(sizes) if known is None else np.prod(known, dtype=np.int32)
    rank = sizes.static_shape.rank
    if rank is None:
        raise UsageError(f"a shape of draws is a scalar or a vector; the rank of '{sizes.name}' is not known")
    if rank > 1:
        raise UsageError(f"a shape of draws is a scalar or a vector; '{sizes.name}' has rank {rank}")
    if rank == 1:
        return sizes, count
    if known is not None:
        return convert_to_tensor(np.asarray([known], np.int32), name="sample_shape"), count
    return array_ops.reshape(sizes, [1]), count
