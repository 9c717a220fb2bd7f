"""A tensor rounded within a range that two variables hold."""

from __future__ import annotations

from typing import Any, NamedTuple

from toolkit.client import ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.train.averages import assign_moving_average
from toolkit.client.variables import initializers
from toolkit.client.variables.store import get_variable, variable_scope
from toolkit.graph.metagraph import GraphKeys

#: how much of the range's average stays in a step
_DECAY = 0.999


class Rounding(NamedTuple):
    """How tensors are rounded.

    bits: of the whole numbers that they become.
    symmetric: as far below 0 as above.
    training: the ranges follow the tensors; otherwise they stay as they are.
    """

    bits: int = 8
    symmetric: bool = False
    training: bool = True


def rounded(
    inputs: Tensor, how: Rounding, scope: str, *, averaged: bool, narrow_range: bool = False, init_min: float = -6.0
) -> Tensor:
    """A tensor rounded within [min, max], variables of a scope that take part in no training.

    Args:
        averaged: the range is a moving average of the tensor's, else that of the last step.
        narrow_range: without the lowest number, so that there are as many below 0 as above.
    """
    with variable_scope(None, default_name=scope, values=[inputs], partitioner=None):
        ends: list[Any] = [
            get_variable(
                name, [], inputs.dtype.base_dtype, initializers.Constant(start), trainable=False,
                collections=[GraphKeys.GLOBAL_VARIABLES],
            )
            for name, start in (("min", init_min), ("max", 6.0))
        ]  # fmt: skip
        if how.training:
            found = _range(inputs, how, narrow_range)
            ends = [
                assign_moving_average(end, value, _DECAY, zero_debias=True, name=f"Assign{which}Ema")
                if averaged
                else end.assign(value, name=f"Assign{which}Last")
                for end, value, which in zip(ends, found, ("Min", "Max"), strict=True)
            ]
        return ops.fake_quant_with_min_max_vars(inputs, *ends, num_bits=how.bits, narrow_range=narrow_range)


def _range(inputs: Tensor, how: Rounding, narrow_range: bool) -> tuple[Tensor, Tensor]:
    """The range of a tensor's numbers, with 0 in it."""
    least, most = math_ops.reduce_min(inputs, name="BatchMin"), math_ops.reduce_max(inputs, name="BatchMax")
    if not how.symmetric:
        return math_ops.minimum(least, 0.0), math_ops.maximum(most, 0.0)
    levels = 1 << how.bits
    ratio = -1.0 if narrow_range else -(levels - 2) / levels
    return math_ops.minimum(least, most / ratio), math_ops.maximum(most, least * ratio)
