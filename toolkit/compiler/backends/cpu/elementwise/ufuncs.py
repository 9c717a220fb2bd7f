"""Small or non-float elementwise operations: NumPy's functions called directly, into the arena, without allocation.

Only operations whose kernels do nothing but call the function are listed; the results are the same bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.operations import NumpySigmoid, NumpySum, ScalarExpression, Ufunc
from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.elementwise import ELEMENTWISE
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_channels_first

_WIDE = frozenset({"float32", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
                   "bool"})  # fmt: skip


def lower_ufuncs(block: Block, *, defining: bool = False) -> None:
    """Turn elementwise operations and sums of known shape into calls of NumPy's functions.

    Args:
        defining: only where the bits are those of the kernels.
    """
    for operation in block.operations:
        op = operation.op
        row = ELEMENTWISE.get(op)
        if row is None and op not in _SAME_BITS and op not in _OTHER_BITS:
            continue
        if not operation.outputs or not _is_known(operation):
            continue
        if row is not None and row.numpy and not row.zero:
            types = {value.dtype for value in operation.inputs}
            if len(types) != 1 or next(iter(types)).kind not in row.kinds:
                continue
            if row.python and all(value.shape == () for value in operation.inputs):
                operation.become(ScalarExpression, expression=row.python, arguments=tuple(operation.inputs))
            else:
                operation.become(Ufunc, function=row.numpy, arguments=tuple(operation.inputs))
        elif row is not None and row.numpy and operation.output.dtype.kind in row.kinds:
            zero = operation.output.dtype.type(0)
            operation.become(Ufunc, function=row.numpy, arguments=tuple(operation.inputs), constants=(zero,))
        elif op in _SAME_BITS:
            _SAME_BITS[op](operation)
        elif op in _OTHER_BITS and not defining:
            _OTHER_BITS[op](operation)


def _lower_bias(operation: Operation) -> None:
    if operation.output.dtype.kind == "f" and not is_channels_first(operation):
        operation.become(Ufunc, function=np.add.__name__, arguments=tuple(operation.inputs))


def _lower_sigmoid(operation: Operation) -> None:
    if operation.output.dtype.kind == "f":
        operation.become(NumpySigmoid, input=operation.inputs[0])


def _lower_total(operation: Operation, types: tuple[str, ...], *, is_mean: bool) -> None:
    """Sums and means over known axes."""
    x, indices = operation.inputs
    if x.dtype.name not in types or not indices.is_constant or not x.shape or 0 in x.shape:
        return
    given: list[int] = np.asarray(indices.constant).reshape(-1).tolist()
    rank = len(x.shape)
    axes: tuple[int, ...] = tuple({axis % rank for axis in given if -rank <= axis < rank})
    if not axes or len(axes) < len(given):
        return  # the kernel hands on its input, or says what is wrong
    shape: tuple[int, ...] = x.shape
    count = math.prod([shape[axis] for axis in axes]) if is_mean else 1
    keeps_axes = bool(operation.step.node.attr("keep_dims", False))
    operation.become(NumpySum, input=x, axes=axes, keeps_axes=keeps_axes, count=count)


#: op to what lowers it where it can: to the bits of its kernel, and to others, for the order of a sum depends on how
#: its input lies
_SAME_BITS: dict[str, Callable[[Operation], None]] = {"BiasAdd": _lower_bias}
_OTHER_BITS: dict[str, Callable[[Operation], None]] = {
    "Mean": functools.partial(_lower_total, types=("float32", "float64"), is_mean=True),
    "Sigmoid": _lower_sigmoid,
    "Sum": functools.partial(_lower_total, types=("float32", "float64", "int32", "int64"), is_mean=False),
}


def _is_known(operation: Operation) -> bool:
    return all(
        value.shape is not None and value.dtype is not None and _is_wide(value.dtype)
        for value in (*operation.outputs, *operation.inputs)
    )


@functools.cache  # NumPy puts names of types together when they are asked for
def _is_wide(dtype: Any) -> bool:
    return dtype.name in _WIDE


def write_ufunc(emitter: Emitter, operation: Ufunc) -> None:
    """`add(x, y, out)`."""
    name = operation.function
    emitter.shared[name] = getattr(np, name)
    inputs = [emitter.read(value) for value in operation.arguments]
    inputs += [emitter.share("k", value) for value in operation.constants]
    # the output by position is a quarter faster than by name, but maximum does not take it
    out = "out=" if name in ("maximum", "minimum") else ""
    emitter.line(f"{name}({', '.join(inputs)}, {out}{emitter.read(operation.output)})")


def write_total(emitter: Emitter, operation: NumpySum) -> None:
    """`total(x, axes, dtype, out, keep)`, and a division for a mean."""
    emitter.shared.update(total=np.add.reduce, true_divide=np.true_divide)
    dtype = operation.output.dtype
    x, out = emitter.read(operation.input), emitter.read(operation.output)
    line = f"total({x}, {operation.axes}, {emitter.share('k', dtype)}, {out}, {operation.keeps_axes})"
    if operation.count != 1:
        line += f"; true_divide({out}, {emitter.share('k', dtype.type(operation.count))}, {out})"
    emitter.line(line)


def write_sigmoid(emitter: Emitter, operation: NumpySigmoid) -> None:
    """1 / (1 + e^-x) in place; e^-x may be infinite, which gives 0."""
    emitter.shared.update(negative=np.negative, exp=np.exp, add=np.add, reciprocal=np.reciprocal)
    out, one = emitter.read(operation.output), emitter.share("k", operation.output.dtype.type(1))
    emitter.line(f"negative({emitter.read(operation.input)}, {out}); exp({out}, {out})")
    emitter.line(f"add({out}, {one}, {out}); reciprocal({out}, {out})")


def write_scalar(emitter: Emitter, operation: ScalarExpression) -> None:
    """`x + y` of numpy's scalars, which wrap and round as arrays do."""
    inputs = [_number(emitter, value) for value in operation.arguments]
    emitter.line(f"{emitter.bind(operation.output)} = {operation.expression.format(*inputs)}")


def _number(emitter: Emitter, value: Value) -> str:
    """An expression for a scalar; of a constant the scalar itself, not an array of rank 0."""
    constant: Any = value.constant
    return emitter.read(value) if constant is None else emitter.share("k", constant[()])
