# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Conditionals, loops, groups, gradients."""

from __future__ import annotations

import builtins
import enum
from collections.abc import Mapping
from typing import Any, NamedTuple

from toolkit.client import ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.grouping import group as client_group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow import control_flow
from toolkit.client.gradients import backprop, registry
from toolkit.tensorflow.families.arguments import renamed


class UnconnectedGradients(enum.Enum):
    """What a gradient is where there is no path."""

    NONE = "none"
    ZERO = "zero"


AggregationMethod = backprop.AggregationMethod


def cond(
    pred: Any, true_fn: Any = None, false_fn: Any = None, strict: bool = False, name: Any = None, fn1: Any = None,
    fn2: Any = None,
) -> Any:  # fmt: skip
    true_fn, false_fn = renamed("true_fn", true_fn, "fn1", fn1), renamed("false_fn", false_fn, "fn2", fn2)
    if not callable(true_fn):
        raise TypeError(f"true_fn: expected a function, got {true_fn!r}")
    if not callable(false_fn):
        raise TypeError(f"false_fn: expected a function, got {false_fn!r}")
    if isinstance(pred, bool):
        raise TypeError("pred: expected a boolean tensor, got a bool of Python; use an if statement")
    return control_flow.cond(pred, true_fn, false_fn, strict, name)


case = control_flow.case
while_loop = control_flow.while_loop


def group(*inputs: Any, **kwargs: Any) -> Operation:
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {', '.join(kwargs)}")
    flat = list(_flat(inputs))
    return ops.no_op(name=name) if not flat else client_group(flat, name)


def _flat(values: Any) -> Any:
    for value in values:
        if isinstance(value, list | builtins.tuple):
            yield from _flat(value)
        elif isinstance(value, Mapping):
            yield from _flat(value.values())
        elif value is not None:
            yield value


def tuple(tensors: Any, name: Any = None, control_inputs: Any = None) -> list[Any]:
    return control_flow.tuple_(tensors, name, control_inputs or ())


def gradients(
    ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients", colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False, aggregation_method: Any = None, stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:  # fmt: skip
    kind = getattr(unconnected_gradients, "value", unconnected_gradients)
    return backprop.gradients(
        ys, xs, grad_ys, name, colocate_gradients_with_ops, gate_gradients, aggregation_method, stop_gradients, kind
    )


def hessians(
    ys: Any, xs: Any, name: str = "hessians", colocate_gradients_with_ops: bool = False, gate_gradients: bool = False,
    aggregation_method: Any = None,
) -> list[Tensor]:  # fmt: skip
    return backprop.hessians(ys, xs, name, colocate_gradients_with_ops, gate_gradients, aggregation_method)


class RegisterGradient:
    """`@tf.RegisterGradient("Name")`: a gradient function, for an op or for gradient_override_map."""

    def __init__(self, op_type: str):
        if not isinstance(op_type, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"op_type: expected the name of an op, got {op_type!r}")
        self._name = op_type

    def __call__(self, f: Any) -> Any:
        registry.registered()  # or ours would come later, and be the second
        return registry.gradient(self._name)(f)


def no_gradient(op_type: str) -> None:
    registry.registered()  # as above
    registry.no_gradient(op_type)


class Merge(NamedTuple):
    """The tensor that is alive, and which of them it was."""

    output: Tensor
    value_index: Tensor


def merge(inputs: Any, name: Any = None) -> Merge:
    """What programs take from control_flow_ops to choose among branches that they have switched off themselves."""
    tensors = [convert_to_tensor(value, as_ref=True) for value in inputs]
    refs = all(tensor.dtype.is_ref for tensor in tensors)
    return Merge(*(ops.ref_merge(tensors, name=name) if refs else ops.merge(tensors, name=name)))
