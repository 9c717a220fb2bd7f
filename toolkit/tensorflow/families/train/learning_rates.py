# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Learning rates that change with the global step."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.tensor import Tensor
from toolkit.client.train import schedules
from toolkit.errors import UsageError


def exponential_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False, name: Any = None
) -> Tensor:
    return schedules.exponential_decay(learning_rate, global_step, decay_steps, decay_rate, staircase, name)


def natural_exp_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False, name: Any = None
) -> Tensor:
    return schedules.natural_exp_decay(learning_rate, global_step, decay_steps, decay_rate, staircase, name)


def inverse_time_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False, name: Any = None
) -> Tensor:
    return schedules.inverse_time_decay(learning_rate, global_step, decay_steps, decay_rate, staircase, name)


def polynomial_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, end_learning_rate: Any = 0.0001, power: Any = 1.0,
    cycle: bool = False, name: Any = None,
) -> Tensor:  # fmt: skip
    return schedules.polynomial_decay(learning_rate, global_step, decay_steps, end_learning_rate, power, cycle, name)


def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0, name: Any = None
) -> Tensor:
    return schedules.cosine_decay(learning_rate, global_step, decay_steps, alpha, name)


def cosine_decay_restarts(
    learning_rate: Any, global_step: Any, first_decay_steps: Any, t_mul: Any = 2.0, m_mul: Any = 1.0,
    alpha: Any = 0.0, name: Any = None,
) -> Tensor:  # fmt: skip
    return schedules.cosine_decay_restarts(learning_rate, global_step, first_decay_steps, t_mul, m_mul, alpha, name)


def linear_cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, num_periods: Any = 0.5, alpha: Any = 0.0,
    beta: Any = 0.001, name: Any = None,
) -> Tensor:  # fmt: skip
    return schedules.linear_cosine_decay(learning_rate, global_step, decay_steps, num_periods, alpha, beta, name)


def noisy_linear_cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, initial_variance: Any = 1.0, variance_decay: Any = 0.55,
    num_periods: Any = 0.5, alpha: Any = 0.0, beta: Any = 0.001, name: Any = None,
) -> Tensor:  # fmt: skip
    return schedules.noisy_linear_cosine_decay(
        learning_rate, global_step, decay_steps, initial_variance, variance_decay, num_periods, alpha, beta, name
    )


def piecewise_constant_decay(x: Any, boundaries: Any, values: Any, name: Any = None) -> Tensor:
    """values[i] up to boundaries[i].

    Raises:
        ValueError: numbers or types do not fit.
    """
    try:
        return schedules.piecewise_constant(x, boundaries, values, name)
    except UsageError as error:
        raise ValueError(error.message) from None
