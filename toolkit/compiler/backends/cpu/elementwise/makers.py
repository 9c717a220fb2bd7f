"""Tensors that nests make out of nothing: ranges and fills, of which no loop has to read anything.

An initialiser that computes a table from the positions of its elements needs no table of positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.operations import Member, Source
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.code import TYPES, Code, Lanes
from toolkit.kernels.cpu.native.loops import positions
from toolkit.kernels.cpu.native.operations import INTEGERS


class _Maker(NamedTuple):
    """How nests make what an op makes.

    Attributes:
        fits: whether they can, given an operation whose shapes and types are known.
        member: of the nest, given the operation and what a member takes for a value.
    """

    fits: Callable[[Operation], bool]
    member: Callable[[Operation, Callable[[Value], Source]], Member]


def _is_fill(operation: Operation) -> bool:
    dims, value = operation.inputs
    return dims.is_constant and value.shape == ()


def _fill(operation: Operation, source: Callable[[Value], Source]) -> Member:
    return Member(operation.op, (source(operation.inputs[1]),), operation.output.dtype)


def _is_range(operation: Operation) -> bool:
    # ranges of floats are rounded in an order that is the kernel's own business
    return operation.output.dtype.name in INTEGERS and all(value.is_constant for value in operation.inputs)


def _range(operation: Operation, source: Callable[[Value], Source]) -> Member:
    start, _, delta = (int(np.asarray(value.constant).reshape(())) for value in operation.inputs)
    return Member(operation.op, (), operation.output.dtype, {"start": start, "delta": delta})


#: by op
MAKERS = {"Fill": _Maker(_is_fill, _fill), "Range": _Maker(_is_range, _range)}


def is_maker(operation: Operation) -> bool:
    """Whether a nest can make an operation's output: its shape is known, and what of its inputs must be."""
    output, maker = operation.output, MAKERS.get(operation.op)
    if maker is None or output.dtype is None or output.dtype.name not in TYPES or not output.shape:
        return False
    if 0 in output.shape or any(value.shape is None or value.dtype is None for value in operation.inputs):
        return False
    return maker.fits(operation)


def write_maker(code: Code, member: Member, *given: Lanes) -> Lanes:
    """The lanes of a maker's output: what it was given, or numbers that follow each other."""
    if given:
        return given[0]
    lanes = code.mul(positions(code), code.number(member.attributes["delta"], "i64"))
    lanes = code.add(lanes, code.number(member.attributes["start"], "i64"))
    target = TYPES[member.dtype.name]
    return lanes if target == "i64" else code.cast("trunc", lanes, target)
