"""Tensors that nests make out of nothing: ranges and fills, of which no loop has to read anything.

An initialiser that computes a table from the positions of its elements needs no table of positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.compiler.ir.operation import Operation
from toolkit.kernels.cpu.native.code import TYPES, Code, Lanes
from toolkit.kernels.cpu.native.loops import positions
from toolkit.kernels.cpu.native.operations import INTEGERS

MAKERS = frozenset({"Fill", "Range"})


def is_maker(operation: Operation) -> bool:
    """Whether a nest can make an operation's output: its shape is known, and what of its inputs must be."""
    output = operation.output
    if operation.kind not in MAKERS or output.dtype is None or output.dtype.name not in TYPES or not output.shape:
        return False
    if 0 in output.shape or any(value.shape is None or value.dtype is None for value in operation.inputs):
        return False
    if operation.kind == "Fill":
        dims, value = operation.inputs
        return dims.is_constant and value.shape == ()
    # ranges of floats are rounded in an order that is the kernel's own business
    return output.dtype.name in INTEGERS and all(value.is_constant for value in operation.inputs)


def write_maker(code: Code, operation: Operation, sources: Sequence[Any], read: Callable[[Any], Lanes]) -> Lanes:
    """The lanes of a maker's output.

    Args:
        sources: its inputs.
        read: the lanes of an input that is one number.
    """
    if operation.kind == "Fill":
        return read(sources[1])
    start, _, delta = (int(np.asarray(value).reshape(())) for value in sources)
    lanes = code.mul(positions(code), code.number(delta, "i64"))
    lanes = code.add(lanes, code.number(start, "i64"))
    target = TYPES[operation.step.node.output_types[0].numpy.name]
    return lanes if target == "i64" else code.cast("trunc", lanes, target)
