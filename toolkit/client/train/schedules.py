"""Learning rates that change with the global step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client import array_ops, math_ops, ops
from toolkit.client.convert import constant, convert_to_tensor
from toolkit.client.scopes import name_scope
from toolkit.client.tensor import Tensor, TensorLike
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
    learning_rate: TensorLike, global_step: Any, decay_steps: TensorLike, decay_rate: float,
    staircase: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """learning_rate * exp(-decay_rate * global_step / decay_steps)."""
    return exponential_decay(
        learning_rate, global_step, decay_steps, math.exp(-decay_rate), staircase, name or "NaturalExpDecay"
    )


def inverse_time_decay(
    learning_rate: TensorLike, global_step: Any, decay_steps: TensorLike, decay_rate: TensorLike,
    staircase: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """learning_rate / (1 + decay_rate * global_step / decay_steps)."""
    with name_scope(name, "InverseTimeDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype.base
        power = math_ops.divide(math_ops.cast(global_step, dtype), math_ops.cast(decay_steps, dtype))
        if staircase:
            power = ops.floor(power)
        return math_ops.divide(rate, 1.0 + math_ops.cast(decay_rate, dtype) * power, name=scope)


def polynomial_decay(
    learning_rate: TensorLike, global_step: Any, decay_steps: float, end_learning_rate: TensorLike = 0.0001,
    power: TensorLike = 1.0, cycle: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """From learning_rate to end_learning_rate in decay_steps steps, as (1 - t) ** power."""
    with name_scope(name, "PolynomialDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype.base
        end = math_ops.cast(end_learning_rate, dtype)
        step = math_ops.cast(global_step, dtype)
        length = math_ops.cast(decay_steps, dtype)
        if cycle:
            periods = array_ops.where_v2(ops.equal(step, 0.0), constant(1.0, dtype), ops.ceil(step / length))
            length = length * periods
        else:
            step = ops.minimum(step, length)
        share = ops.pow(1.0 - step / length, math_ops.cast(power, dtype))
        return math_ops.add((rate - end) * share, end, name=scope)


def cosine_decay(
    learning_rate: TensorLike, global_step: Any, decay_steps: float, alpha: float = 0.0, name: str | None = None
) -> Tensor:
    """Half a cosine from learning_rate to alpha * learning_rate (arXiv 1608.03983, without restarts)."""
    with name_scope(name, "CosineDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype.base
        length = math_ops.cast(decay_steps, dtype)
        done = ops.minimum(math_ops.cast(global_step, dtype), length) / length
        share = 0.5 * (1.0 + ops.cos(constant(math.pi, dtype) * done))
        return math_ops.multiply(rate, (1.0 - alpha) * share + alpha, name=scope)


def piecewise_constant(
    global_step: Any, boundaries: Sequence[float], values: Sequence[float], name: str | None = None
) -> Tensor:
    """values[i] up to boundaries[i] (inclusive), and the last value after the last boundary.

    Raises:
        UsageError: there is not one value more than boundaries.
    """
    if len(values) != len(boundaries) + 1:
        raise UsageError(f"{len(boundaries)} boundaries need {len(boundaries) + 1} values, not {len(values)}")
    with name_scope(name, "PiecewiseConstant", [global_step]) as scope:
        step = convert_to_tensor(global_step)
        result = convert_to_tensor(values[-1], dtypes.float32)
        for boundary, value in reversed(list(zip(boundaries, values, strict=False))):
            limit = math_ops.cast(boundary, step.dtype.base)
            result = array_ops.where_v2(ops.less_equal(step, limit), constant(value, dtypes.float32), result)
        return array_ops.identity(result, name=scope)


#: schedules by the names that specs use
BY_NAME: dict[str, Callable[..., Tensor]] = {
    "exponential_decay": exponential_decay,
    "natural_exp_decay": natural_exp_decay,
    "inverse_time_decay": inverse_time_decay,
    "polynomial_decay": polynomial_decay,
    "cosine_decay": cosine_decay,
    "piecewise_constant": piecewise_constant,
}
