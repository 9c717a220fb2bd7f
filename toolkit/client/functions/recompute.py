"""Functions whose gradient computes them once more instead of keeping what they made."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.gradients import gradients
from toolkit.client.gradients.custom import custom_gradient
from toolkit.client.math import math_ops
from toolkit.client.structures import nest
from toolkit.client.variables.store import get_variable_scope, variable_scope
from toolkit.graph import dtypes


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, which takes tensors, with a gradient that runs it again: less memory, more time."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        scope = get_variable_scope()

        @custom_gradient
        def once(*tensors: Any) -> Any:
            result = f(*tensors, **kwargs)

            def back(*grads: Any, variables: Sequence[Any] | None = None) -> Any:
                again = [_behind(array_ops.identity(tensor), grads[0]) for tensor in nest.flatten(tensors)]
                packed = nest.pack_sequence_as(tensors, again)
                with variable_scope(scope, reuse=True if variables else None):
                    made = nest.flatten(f(*packed, **kwargs))
                used = list(variables or ())
                found = gradients(made, [*again, *used], list(grads), unconnected_gradients="zero")
                inputs, by_variables = found[: len(again)], found[len(again) :]
                return (inputs, by_variables) if variables is not None else inputs

            return result, back

        return once(*args)

    return call


def _behind(tensor: Any, grad: Any) -> Any:
    """The same value, only known once the gradient is: else it would be computed, and kept, at once."""
    first = math_ops.reduce_max(array_ops.reshape(grad, [-1])[:1])
    seen = math_ops.cast(math_ops.cast(first, dtypes.bool_), tensor.dtype.base)
    return tensor + array_ops.where_v2(math_ops.equal(seen, seen), array_ops.zeros([], tensor.dtype.base), seen)
