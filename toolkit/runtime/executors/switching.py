"""What Switch and Merge make of their inputs, in every executor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.compiler.steps import Step
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.context import DEAD

_CHOICES = tuple(np.int32(i) for i in range(16))  # the second output of a Merge


def switch(inputs: Sequence[Any]) -> Sequence[Any]:
    """The outputs of a Switch.

    Raises:
        InvalidArgumentError: what decides is no scalar.
    """
    data, predicate = inputs
    if predicate.__class__ is not np.bool_ and getattr(predicate, "shape", ()) != ():
        raise InvalidArgumentError(f"The second input must be a scalar, but it has shape {list(predicate.shape)}")
    return (DEAD, data) if predicate else (data, DEAD)


def switch_n(step: Step, inputs: Sequence[Any]) -> Sequence[Any]:
    data, index = inputs[0], int(inputs[1])
    outputs = [DEAD] * step.num_outputs
    outputs[index if 0 <= index < len(outputs) else -1] = data
    return outputs


def merge(inputs: Sequence[Any], is_dead: bool) -> Sequence[Any]:
    """The outputs of a Merge: its first live input, and which that is."""
    if is_dead:
        return (DEAD, DEAD)
    for position, value in enumerate(inputs):
        if value is not None and value is not DEAD:
            return (value, _CHOICES[position] if position < len(_CHOICES) else np.int32(position))
    raise AssertionError("a merge was ready without a live input")
