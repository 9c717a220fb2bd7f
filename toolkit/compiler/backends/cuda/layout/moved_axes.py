"""Operations that give a tensor's axes another order or another shape: which they are, and what they do to the axes."""

# numpy's arrays of an unknown type
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.compiler.backends.cuda.layout.stored_axes import Axes, reshaped, transposed, untransposed
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value

#: ops that give the same elements in the same order; the kernels of GPUs give the same memory
_SHAPES = frozenset({"Reshape", "ExpandDims", "Squeeze"})


def order_of(operation: Operation) -> tuple[int, ...] | None:
    """The order in which a transposition of known shapes has its input's axes; None where it is none."""
    if not isinstance(operation, Call) or operation.op != "Transpose" or operation.step.deref:
        return None
    given, order = operation.inputs[0], numbers_of(operation.inputs[1])
    if not _is_known(given) or not _is_known(operation.output) or order is None:
        return None
    if sorted(order) != list(range(len(given.shape or ()))):
        return None
    return order


def is_turned(operation: Operation) -> bool:
    """Whether it is a transposition that has to move elements: more than axes of one element change places."""
    order = order_of(operation)
    if order is None:
        return False
    shape = operation.inputs[0].shape or ()
    long = [place for place in order if shape[place] != 1]
    return long != sorted(long)


def is_of_axes(operation: Operation) -> bool:
    """Whether it gives axes another order or another shape, and does nothing else."""
    if order_of(operation) is not None:
        return True
    if not isinstance(operation, Call) or operation.op not in _SHAPES or operation.step.deref:
        return False
    return _is_known(operation.inputs[0]) and _is_known(operation.output)


def forward(operation: Operation, axes: Axes) -> Axes | None:
    """How what an operation gives lies, if its elements stay where those of its input are."""
    order = order_of(operation)
    return reshaped(axes, operation.output.shape or ()) if order is None else transposed(axes, order)


def backward(operation: Operation, axes: Axes) -> Axes | None:
    """How what an operation takes lies, if its elements are put where those of its output are."""
    order = order_of(operation)
    return reshaped(axes, operation.inputs[0].shape or ()) if order is None else untransposed(axes, order)


def through(operations: Sequence[Operation], axes: Axes) -> Axes | None:
    """How what the last of some operations gives lies, if elements stay where those of the first one's input are."""
    found: Axes | None = axes
    for operation in operations:
        found = None if found is None else forward(operation, found)
    return found


def number_of(value: Value) -> int | None:
    """The one number that a value always is; None where that is not known."""
    numbers = numbers_of(value)
    return numbers[0] if numbers is not None and len(numbers) == 1 else None


def constant_like(value: Value, numbers: Sequence[int]) -> Value:
    """Other numbers of the type and shape of a constant, such as another order."""
    constant = np.array(numbers, value.constant.dtype).reshape(value.shape or ())
    return Value(value.dtype, value.shape, constant)


def _is_known(value: Value) -> bool:
    return value.shape is not None and value.dtype is not None and 0 not in value.shape


def numbers_of(value: Value) -> tuple[int, ...] | None:
    """The whole numbers that a value always is, such as axes and sizes; None where they are not known."""
    held: Any = value.constant
    return tuple(int(number) for number in held.reshape(-1)) if isinstance(held, np.ndarray | np.generic) else None
