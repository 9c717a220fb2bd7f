"""Mistakes with distributions are told when the graph is made, or, where arguments are checked, when a step runs."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit.client.construction.convert import constant
from toolkit.client.construction.graph import Graph
from toolkit.client.distributions.base import FULLY_REPARAMETERIZED, Distribution
from toolkit.client.distributions.counted import NegativeBinomial, Poisson
from toolkit.client.distributions.discrete import Bernoulli, Categorical, Multinomial
from toolkit.client.distributions.divergence import RegisterKL, kl_divergence
from toolkit.client.distributions.gamma import Beta, Gamma
from toolkit.client.distributions.heavier_tails import Cauchy, HalfNormal
from toolkit.client.distributions.inverse_gamma import InverseGamma
from toolkit.client.distributions.joined import Independent, fill_triangular
from toolkit.client.distributions.location_scale import Normal, Uniform
from toolkit.client.distributions.mixtures import MixtureSameFamily
from toolkit.client.distributions.normal_vectors import (
    MultivariateNormalDiag,
    MultivariateNormalFullCovariance,
    MultivariateNormalTriL,
)
from toolkit.client.distributions.one_hot import RelaxedBernoulli
from toolkit.client.distributions.points import VectorDeterministic
from toolkit.errors import InvalidArgumentError, UsageError
from toolkit.graph import dtypes
from toolkit.runtime.session import Session

MADE: dict[str, tuple[Any, type[Exception], str]] = {
    "neither": (lambda: Bernoulli(), UsageError, "takes probs or logits"),
    "both": (lambda: Bernoulli([1.0], [0.5]), UsageError, "takes probs or logits"),
    "integers": (lambda: Categorical([1, 2]), UsageError, "are floats, not int32"),
    "no classes": (lambda: Categorical(probs=0.5), UsageError, "a last axis of classes"),
    "a matrix of draws": (lambda: Normal(0.0, 1.0).sample([[1]]), UsageError, "a scalar or a vector"),
    "no divergence": (lambda: kl_divergence(Normal(0.0, 1.0), Uniform()), NotImplementedError, "RegisterKL"),
    "registered": (lambda: RegisterKL(Normal, Normal)(kl_divergence), UsageError, "registered already"),
    "not known": (lambda: Gamma(1.0, 2.0).quantile(0.5), NotImplementedError, "Gamma has no quantile"),
    "no chance": (lambda: NegativeBinomial(3.0), UsageError, "takes probs or logits"),
    "no vector": (lambda: VectorDeterministic(1.0), ValueError, "loc: expected a vector"),
    "no choice": (lambda: MixtureSameFamily(Normal(0.0, 1.0), Normal([0.0], 1.0)), ValueError, "of whole numbers"),
    "no components": (
        lambda: MixtureSameFamily(Categorical([0.0]), Normal(0.0, 1.0)), ValueError, "a batch of components",
    ),
    "two of three": (
        lambda: MixtureSameFamily(Categorical([0.0, 1.0]), Normal([0.0] * 3, 1.0)), ValueError, "of 2, but there are 3",
    ),
    "batches of mixtures": (
        lambda: MixtureSameFamily(Categorical([[0.0, 1.0]] * 3), Normal([[0.0, 1.0]] * 2, 1.0)), ValueError,
        "does not fit",
    ),
    "no rate": (lambda: Poisson(), UsageError, "rate or log_rate"),
    "no mean": (lambda: Cauchy(0.0, 1.0, allow_nan_stats=False).mean(), ValueError, "has no mean"),
    "no size": (lambda: MultivariateNormalDiag(), UsageError, "how long"),
    "no size but a factor": (
        lambda: MultivariateNormalDiag(scale_identity_multiplier=1.0), UsageError, "loc or scale_diag"
    ),
    "no size of a triangle": (lambda: MultivariateNormalTriL(), UsageError, "loc or scale_tril"),
    "no such triangle": (lambda: fill_triangular([1.0, 2.0, 3.0, 4.0]), ValueError, "no triangle has 4 numbers"),
    "no such dimensions": (lambda: Independent(Normal([0.0], 1.0), 2), UsageError, "expected at most 1"),
    "no tensor": (
        lambda: Distribution(dtypes.float32, FULLY_REPARAMETERIZED, False, True, graph_parents=[3]), UsageError,
        "are tensors; number 0 is 3",
    ),
}  # fmt: skip
RUN: dict[str, tuple[Any, str]] = {
    "scale": (lambda minus: Normal(0.0, minus, validate_args=True).mean(), "Condition x > 0|x > 0"),
    "order": (lambda minus: Uniform(0.0, minus, validate_args=True).mean(), "low must be below high"),
    "value": (lambda minus: Beta(1.0, 1.0, validate_args=True).prob(minus), "must be above 0"),
    "counts": (
        lambda minus: Multinomial(2.0, [0.5, 0.5], validate_args=True).prob([2.0, -minus / 2]),
        "whole",
    ),
    "no mean of heavy tails": (lambda minus: InverseGamma(-minus, 1.0, allow_nan_stats=False).mean(), "no mean"),
    "half": (lambda minus: HalfNormal(minus, validate_args=True).mean(), "x > 0"),
    "temperature": (lambda minus: RelaxedBernoulli(minus, [0.5], validate_args=True).sample(), "x > 0"),
    "events": (lambda minus: Poisson(2.0, validate_args=True).prob(minus), "must not be negative"),
    "skew": (
        lambda minus: MultivariateNormalFullCovariance([0.0, 0.0], [[3.0, minus], [0.0, 3.0]], True).sample(),
        "symmetric",
    ),
    "mode": (lambda minus: Gamma(minus + 1.0, 1.0, allow_nan_stats=False).mode(), "no mode"),
}


@pytest.mark.parametrize("what", MADE)
def test_mistakes_are_told_when_a_graph_is_made(what: str) -> None:
    code, error, message = MADE[what]
    with Graph().as_default(), pytest.raises(error, match=message):
        code()


@pytest.mark.parametrize("what", RUN)
def test_what_is_checked_fails_the_step(what: str) -> None:
    code, message = RUN[what]
    with Graph().as_default() as graph:
        from toolkit.client.arrays.array_ops import placeholder

        minus = placeholder(dtypes.float32, [], name="minus")
        found = code(minus)
        with Session(graph) as session, pytest.raises(InvalidArgumentError, match=message):
            session.run(found, {minus: -1.0})


def test_users_distributions_have_what_follows_from_what_they_know() -> None:
    class Coin(Distribution):
        def __init__(self) -> None:
            super().__init__(dtypes.float32, FULLY_REPARAMETERIZED, False, True, name="Coin")

        def _prob(self, value: Any) -> Any:
            return 0.5 + 0.0 * value

        def _variance(self) -> Any:
            return constant(0.25)

    with Graph().as_default() as graph:
        coin = Coin()
        with Session(graph) as session:
            # one root and one logarithm in float32: within approx's 1e-6, eight units in the last place
            assert session.run([coin.stddev(), coin.log_prob(1.0)]) == pytest.approx([0.5, -0.6931472])
