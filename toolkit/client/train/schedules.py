"""Learning rates that change with the global step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow import control_flow
from toolkit.client.math import math_ops
from toolkit.client.random import random_ops
from toolkit.errors import UsageError
from toolkit.graph import dtypes


def exponential_decay(
    learning_rate: TensorLike, global_step: Any, decay_steps: TensorLike, decay_rate: TensorLike,
    staircase: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """learning_rate * decay_rate ** (global_step / decay_steps); whole powers with `staircase`."""
    with name_scope(name, "ExponentialDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype.base
        steps = math_ops.cast(decay_steps, dtype)
        decay = math_ops.cast(decay_rate, dtype)
        power = math_ops.divide(math_ops.cast(global_step, dtype), steps)
        if staircase:
            power = ops.floor(power)
        return math_ops.multiply(rate, ops.pow(decay, power), name=scope)


def natural_exp_decay(
    learning_rate: TensorLike, global_step: Any, decay_steps: TensorLike, decay_rate: TensorLike,
    staircase: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """learning_rate * exp(-decay_rate * global_step / decay_steps)."""
    rate = ops.exp(ops.neg(decay_rate))
    return exponential_decay(learning_rate, global_step, decay_steps, rate, staircase, name)


def inverse_time_decay(
    learning_rate: TensorLike, global_step: Any, decay_steps: TensorLike, decay_rate: TensorLike,
    staircase: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """learning_rate / (1 + decay_rate * global_step / decay_steps)."""
    with name_scope(name, "InverseTimeDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype.base
        length = math_ops.cast(decay_steps, dtype)
        decay = math_ops.cast(decay_rate, dtype)
        power = math_ops.cast(global_step, dtype) / length
        if staircase:
            power = ops.floor(power)
        one = math_ops.cast(constant(1), dtype)
        return math_ops.divide(rate, math_ops.add(one, math_ops.multiply(decay, power)), name=scope)


def polynomial_decay(
    learning_rate: TensorLike, global_step: Any, decay_steps: TensorLike, end_learning_rate: TensorLike = 0.0001,
    power: TensorLike = 1.0, cycle: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """From learning_rate to end_learning_rate in decay_steps steps, as (1 - t) ** power."""
    with name_scope(name, "PolynomialDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype.base
        end = math_ops.cast(end_learning_rate, dtype)
        exponent = math_ops.cast(power, dtype)
        step = math_ops.cast(global_step, dtype)
        length = math_ops.cast(decay_steps, dtype)
        if cycle:
            is_first, periods = ops.equal(step, 0), ops.ceil(step / decay_steps)
            length = math_ops.multiply(length, array_ops.where_v2(is_first, 1.0, periods))
        else:
            step = ops.minimum(step, length)
        done = math_ops.divide(step, length)
        return math_ops.add(math_ops.multiply(rate - end, ops.pow(1 - done, exponent)), end, name=scope)


def cosine_decay(
    learning_rate: TensorLike, global_step: Any, decay_steps: TensorLike, alpha: float = 0.0, name: str | None = None
) -> Tensor:
    """Half a cosine from learning_rate to alpha * learning_rate (arXiv 1608.03983, without restarts)."""
    with name_scope(name, "CosineDecay", [learning_rate, global_step]):
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype.base
        length = math_ops.cast(decay_steps, dtype)
        done = ops.minimum(math_ops.cast(global_step, dtype), length) / length
        share = 0.5 * (1.0 + ops.cos(constant(math.pi) * done))
        return math_ops.multiply(rate, (1 - alpha) * share + alpha)


def cosine_decay_restarts(
    learning_rate: TensorLike, global_step: Any, first_decay_steps: TensorLike, t_mul: TensorLike = 2.0,
    m_mul: TensorLike = 1.0, alpha: TensorLike = 0.0, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Half cosines one after the other, each t_mul times as long and m_mul times as high as the one before
    (arXiv 1608.03983)."""
    with name_scope(name, "SGDRDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype.base
        first, low, longer, higher = (math_ops.cast(x, dtype) for x in (first_decay_steps, alpha, t_mul, m_mul))
        done = math_ops.cast(global_step, dtype) / first

        def equally_long() -> list[Tensor]:
            restarts = ops.floor(done)
            return [restarts, done - restarts]

        def ever_longer() -> list[Tensor]:
            restarts = ops.floor(ops.log(1.0 - done * (1.0 - longer)) / ops.log(longer))
            before = (1.0 - longer**restarts) / (1.0 - longer)
            return [restarts, (done - before) / longer**restarts]

        restarts, share = control_flow.cond(ops.equal(longer, 1.0), equally_long, ever_longer)
        factor = higher**restarts
        wave = 0.5 * factor * (1.0 + ops.cos(constant(math.pi) * share))
        return math_ops.multiply(rate, (1 - low) * wave + low, name=scope)


def linear_cosine_decay(
    learning_rate: TensorLike, global_step: Any, decay_steps: TensorLike, num_periods: TensorLike = 0.5,
    alpha: TensorLike = 0.0, beta: TensorLike = 0.001, name: str | None = None,
) -> Tensor:  # fmt: skip
    """learning_rate * ((alpha + linear) * cosine + beta) (Bello et al., arXiv 1709.07417)."""
    with name_scope(name, "LinearCosineDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype.base
        length, periods, first, last = (math_ops.cast(x, dtype) for x in (decay_steps, num_periods, alpha, beta))
        step = ops.minimum(math_ops.cast(global_step, dtype), length)
        linear = (length - step) / length
        wave = _cosine(step, length, periods)
        return math_ops.multiply(rate, (first + linear) * wave + last, name=scope)


def noisy_linear_cosine_decay(
    learning_rate: TensorLike, global_step: Any, decay_steps: TensorLike, initial_variance: TensorLike = 1.0,
    variance_decay: TensorLike = 0.55, num_periods: TensorLike = 0.5, alpha: TensorLike = 0.0,
    beta: TensorLike = 0.001, name: str | None = None,
) -> Tensor:  # fmt: skip
    """As linear_cosine_decay, with noise of variance initial_variance / (1 + step) ** variance_decay on the line."""
    with name_scope(name, "NoisyLinearCosineDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype.base
        numbers = (decay_steps, initial_variance, variance_decay, num_periods, alpha, beta)
        length, variance, slower, periods, first, last = (math_ops.cast(x, dtype) for x in numbers)
        step = ops.minimum(math_ops.cast(global_step, dtype), length)
        linear = (length - step) / length
        deviation = ops.sqrt(variance / ops.pow(1.0 + step, slower))
        noisy = linear + random_ops.random_normal(linear.static_shape, stddev=deviation)
        wave = _cosine(step, length, periods)
        return math_ops.multiply(rate, (first + noisy) * wave + last, name=scope)


def _cosine(step: Tensor, length: Tensor, periods: Tensor) -> Tensor:
    done = step / length
    turns = 2.0 * periods * done
    return 0.5 * (1.0 + ops.cos(constant(math.pi) * turns))


def piecewise_constant(
    global_step: Any, boundaries: Sequence[TensorLike], values: Sequence[TensorLike], name: str | None = None
) -> Tensor:
    """values[i] up to boundaries[i] (inclusive), and the last value after the last boundary.

    Raises:
        UsageError: there is not one value more than boundaries, or they are of several types.
    """
    if len(values) != len(boundaries) + 1:
        raise UsageError(f"{len(boundaries)} boundaries need {len(boundaries) + 1} values, not {len(values)}")
    counts = hasattr(global_step, "dtype") and global_step.dtype.base.is_integer
    limits = [convert_to_tensor(_whole(each) if counts else each) for each in boundaries]
    rates = [convert_to_tensor(each) for each in values]
    step = convert_to_tensor(global_step)
    dtype = step.dtype.base
    for position, limit in enumerate(limits):
        if limit.dtype.base is dtypes.int32 and dtype is dtypes.int64:
            limits[position] = math_ops.cast(limit, dtype)
        elif limit.dtype.base is not dtype:
            raise UsageError(f"the boundaries have type {limit.dtype.base}, and what they bound {dtype}; give one type")
    kinds = {rate.dtype.base.name for rate in rates}
    if len(kinds) > 1:
        raise UsageError(f"the values have types {', '.join(sorted(kinds))}; give one type")
    with name_scope(name, "PiecewiseConstant", [global_step]):
        step = convert_to_tensor(global_step)

        def give(rate: Tensor) -> Callable[[], Tensor]:
            return lambda: rate

        pairs = [(step <= limits[0], give(rates[0])), (step > limits[-1], give(rates[-1]))]
        for low, high, rate in zip(limits[:-1], limits[1:], rates[1:-1], strict=True):
            pairs.append(((step > low) & (step <= high), give(rate)))
        return control_flow.case(pairs, give(rates[0]), exclusive=True)


def _whole(boundary: TensorLike) -> TensorLike:
    """A whole number as an integer, for specs have numbers of one kind only."""
    return int(boundary) if isinstance(boundary, float) and boundary.is_integer() else boundary


#: schedules by the names that specs use
BY_NAME: dict[str, Callable[..., Tensor]] = {
    "exponential_decay": exponential_decay,
    "natural_exp_decay": natural_exp_decay,
    "inverse_time_decay": inverse_time_decay,
    "polynomial_decay": polynomial_decay,
    "cosine_decay": cosine_decay,
    "cosine_decay_restarts": cosine_decay_restarts,
    "linear_cosine_decay": linear_cosine_decay,
    "noisy_linear_cosine_decay": noisy_linear_cosine_decay,
    "piecewise_constant": piecewise_constant,
}
