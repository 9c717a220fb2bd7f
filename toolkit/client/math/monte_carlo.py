"""Expectations from samples (tf.contrib.bayesflow.monte_carlo)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.errors import ArgumentValueError


def _mean_of_exponentials(logs: Tensor) -> Tensor:
    """log(mean(exp(logs))) over the first axis, without overflow; no gradient through the shift."""
    largest = array_ops.stop_gradient(math_ops.reduce_max(logs, [0]))
    return math_ops.log(math_ops.reduce_mean(math_ops.exp(logs - largest), [0])) + largest


def _drawn(distribution: Any, z: Any, n: Any, seed: Any) -> Tensor:
    if (n is None) == (z is None):
        raise ValueError(f"give one of `n` and `z`, how many samples or which; got n={n} and z={z}")
    return convert_to_tensor(z, name="z") if n is None else distribution.sample(n, seed=seed)


def expectation_importance_sampler(
    f: Callable[[Tensor], Any], log_p: Callable[[Tensor], Any], sampling_dist_q: Any, z: Any = None, n: Any = None,
    seed: Any = None, name: str = "expectation_importance_sampler",
) -> Tensor:  # fmt: skip
    """The mean of f under p, from samples of q, each weighted with p / q.

    Args:
        z: the samples, along the first axis, or `n`: how many to draw.

    Raises:
        ValueError: neither or both are given.
    """
    with name_scope(name):
        z = _drawn(sampling_dist_q, z, n, seed)
        weights = log_p(z) - sampling_dist_q.log_prob(z)
        values = f(z)
        # both signs by their logarithms; the 1 that is added to each goes in the difference
        above, below = (
            _mean_of_exponentials(math_ops.log(nn_ops.relu(sign * values) + 1.0) + weights) for sign in (1.0, -1.0)
        )
    return math_ops.exp(above) - math_ops.exp(below)


def expectation_importance_sampler_logspace(
    log_f: Callable[[Tensor], Any], log_p: Callable[[Tensor], Any], sampling_dist_q: Any, z: Any = None, n: Any = None,
    seed: Any = None, name: str = "expectation_importance_sampler_logspace",
) -> Tensor:  # fmt: skip
    """`expectation_importance_sampler` of a positive function, all in logarithms."""
    with name_scope(name):
        z = _drawn(sampling_dist_q, z, n, seed)
        return _mean_of_exponentials(log_f(z) + log_p(z) - sampling_dist_q.log_prob(z))


def expectation(
    f: Callable[[Tensor], Any], samples: Any, log_prob: Callable[[Tensor], Any] | None = None,
    use_reparametrization: bool = True, axis: Any = 0, keep_dims: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The mean of f over samples.

    Args:
        use_reparametrization: the samples depend on what is learned, and the gradient goes through them; otherwise it
            is that of the score, by `log_prob`.

    Raises:
        ValueError: f is no function; or log_prob is none where it is needed.
    """
    with name_scope(name, "expectation", [samples]):
        for what, function, needed in (("f", f, True), ("log_prob", log_prob, not use_reparametrization)):
            if needed and not callable(function):
                raise ArgumentValueError(f"{what}: expected a function, got {type(function).__name__}")
        if use_reparametrization or log_prob is None:
            return math_ops.reduce_mean(f(samples), axis, keep_dims)
        still = array_ops.stop_gradient(samples)
        score, value = log_prob(still), f(still)
        value += array_ops.stop_gradient(value) * (score - array_ops.stop_gradient(score))
        return math_ops.reduce_mean(value, axis, keep_dims)
