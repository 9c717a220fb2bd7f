"""What is known of values before anything runs: shapes that follow from shapes, constants from constants."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toolkit.compiler.ir.value import Value
from toolkit.compiler.program import Step, as_outputs
from toolkit.errors import GraphmillError
from toolkit.graph.infer import infer_node
from toolkit.graph.shape import Shape
from toolkit.kernels.device_memory import DeviceArray

_FOLD_LIMIT = 1 << 23  # bytes: a constant bigger than this, and than what it is made of, is not made ahead of time
_FOLD_LIMIT_ONCE = 1 << 18  # bytes, in programs that run once: what is made ahead of time stays as long as the session
_SMALL_CONSTANT = 1 << 10  # elements: what shape functions may look at


def infer(step: Step, given: list[Value]) -> list[tuple[int, ...] | None]:
    """The output shapes that follow from the inputs' shapes and known values; None where they do not."""
    known = {
        index: value.constant.tolist()
        for index, value in enumerate(given)
        if isinstance(value.constant, np.ndarray | np.generic)
        and value.constant.dtype.kind in "iub"
        and value.constant.size <= _SMALL_CONSTANT
    }
    try:
        shapes = infer_node(step.node, [Shape(value.shape) for value in given], known)
    except GraphmillError:
        return [None] * step.num_outputs  # the kernel reports what is wrong
    return [concrete(shape) for shape in shapes]


def shape_fact(step: Step, value: Value) -> Value:
    """The answer to a question about a shape that is known."""
    assert value.shape is not None
    dtype = numpy_type(step.node.output_types[0])
    match step.node.op:
        case "Size":
            fact = np.asarray(value.size, dtype)
        case "Rank":
            fact = np.asarray(len(value.shape), dtype)
        case _:
            fact = np.asarray(value.shape, dtype)
    return Value(dtype, fact.shape, fact)


def fold(
    step: Step, given: list[Value], shapes: list[tuple[int, ...] | None], *, once: bool = False
) -> list[Value] | None:
    """The outputs of an operation whose inputs are constants, as constants; None where it is left to run.

    Args:
        once: the program runs once, as a rule.
    """
    before = sum(value.nbytes for value in given if value.shape is not None and value.dtype is not None)
    after = sum(
        math.prod(shape) * dtype.numpy.itemsize
        for dtype, shape in zip(step.node.output_types, shapes, strict=True)
        if shape is not None
    )
    most = _FOLD_LIMIT_ONCE if once else max(before, _FOLD_LIMIT)
    if after > most:
        return None
    try:
        with np.errstate(all="ignore"):
            outputs = as_outputs(step, step.compute(*[value.constant for value in given]))
    except Exception:  # whatever is wrong is reported when the step runs
        return None
    if any(not isinstance(output, TENSORS) for output in outputs):
        return None
    if sum(output.nbytes for output in outputs) > most:  # of a size that only the values tell
        return None
    return [Value(dtype_of(output), shape_of(output), output) for output in outputs]


#: what is a tensor, in whichever memory it lies; only what host code may look into decides anything here
TENSORS = np.ndarray | np.generic | DeviceArray


#: elements of an argument whose value counts where it follows from shapes
_SMALL_ARGUMENT = 64


def is_known(argument: Any) -> bool:
    """Whether a plan is made for the value of an argument that follows from shapes alone, not for its shape."""
    return (
        isinstance(argument, np.ndarray | np.generic)
        and argument.dtype.kind in "iub"
        and (argument.size <= _SMALL_ARGUMENT)
    )


def value_of(argument: Any) -> Value:
    if isinstance(argument, TENSORS):
        return Value(argument.dtype, argument.shape)
    return Value(None, None)


def shape_of(value: Any) -> tuple[int, ...] | None:
    return tuple(value.shape) if isinstance(value, TENSORS) else None


def dtype_of(value: Any) -> Any:
    return value.dtype if isinstance(value, TENSORS) else None


def concrete(shape: Shape) -> tuple[int, ...] | None:
    return tuple(shape.as_list()) if shape.is_fully_defined else None


def numpy_type(dtype: Any) -> Any:
    base = dtype.base
    return None if base.name in ("resource", "variant") else base.numpy
