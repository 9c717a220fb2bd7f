"""Mixtures, scales of low rank and estimates that cannot be made say why; draws of mixtures are of their components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf

tfd = tf.contrib.distributions
Made = Callable[[], Any]

CASES: list[tuple[Made, type[Exception], str]] = [
    (lambda: tfd.Mixture(tfd.Categorical(probs=[1.0]), []), TypeError, "one at least"),
    (lambda: tfd.Mixture(tfd.Categorical(probs=[1.0]), [3]), TypeError, "expected a list of distributions"),
    (
        lambda: tfd.Mixture(tfd.Categorical(probs=[1.0]), [tfd.Normal(0.0, 1.0)] * 2), ValueError,
        "cat chooses of 1, but there are 2 components",
    ),
    (
        lambda: tfd.Mixture(tfd.Categorical(probs=[0.5, 0.5]), [tfd.Normal(0.0, 1.0), tfd.Normal([0.0, 1.0], 1.0)]),
        ValueError, r"components\[1\] has batches",
    ),
    (
        lambda: tfd.Mixture(
            tfd.Categorical(probs=[0.5, 0.5]), [tfd.Normal(0.0, 1.0), tfd.Normal(np.float64(0.0), np.float64(1.0))]
        ),
        TypeError, r"components\[1\] is of",
    ),
    (lambda: tfd.MultivariateNormalDiagPlusLowRank(), Exception, "to say how long vectors are"),
    (lambda: tfd.percentile([1.0], 50, interpolation="linear"), ValueError, "interpolation: expected one of lower"),
    (lambda: tfd.percentile(tf.placeholder(tf.float32), 50, 0), ValueError, "have to be known"),
    (lambda: tfd.tridiag(), ValueError, "give one of below, diag and above"),
    (lambda: tfd.normal_conjugates_known_scale_posterior(1.0, 1.0, 1.0, 1), TypeError, "prior: expected a Normal"),
    (
        lambda: tfd.normal_conjugates_known_scale_posterior(tfd.Normal(0.0, 1.0), 1.0, np.float64(1.0), 1), TypeError,
        "the prior of",
    ),
    (lambda: tfd.moving_mean_variance(tf.constant([1]), 0.9), TypeError, "value: expected floats"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "kind", "message"), CASES)
def test_mistakes(made: Made, kind: type[Exception], message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(kind, match=message):
        made()


def test_draws_are_of_the_components() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        mixture = tfd.Mixture(
            tfd.Categorical(probs=[[0.25, 0.75], [1.0, 0.0]]),
            [tfd.Normal([-100.0, -100.0], 1.0), tfd.Uniform([50.0, 50.0], 51.0)],
        )
        drawn = session.run(mixture.sample(2000, seed=3))
    first, second = drawn[:, 0], drawn[:, 1]
    assert np.all(second < -90) and np.all((first < -90) | ((first > 50) & (first < 51)))
    # five standard deviations of a share of 2000 draws
    assert abs(float(np.mean(first < 0)) - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 2000)


def test_several_matrices_and_vectors() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        factors = np.random.RandomState(2).randn(2, 3, 1)
        made = tfd.MultivariateNormalDiagPlusLowRank(np.zeros(3), scale_perturb_factor=factors)
        values = np.random.RandomState(3).randn(5, 2, 3)
        got, drawn = session.run([made.log_prob(values), made.sample(4, seed=1)])
    scale = np.eye(3) + factors @ factors.transpose(0, 2, 1)
    solved = np.linalg.solve(scale, values[..., None])[..., 0]
    wanted = -0.5 * np.sum(solved**2 + np.log(2 * np.pi), -1) - np.log(np.linalg.det(scale))
    # some dozens of float64 operations on well-conditioned matrices
    np.testing.assert_allclose(got, wanted, rtol=1000 * np.finfo(np.float64).eps)
    assert drawn.shape == (4, 2, 3)
