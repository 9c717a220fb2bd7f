"""Sums and means over axes that oneDNN has only reference code for, or that are too small for it: compiled loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.operations import CompiledSum
from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Span
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.transforms.elements import is_channels_first
from toolkit.kernels.cpu.native.code import TYPES
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.sums import sums


def lower_sums(block: Block, refused: Callable[[Operation], bool], large: int) -> None:
    """Turn sums and means over neighbouring axes into compiled loops.

    Args:
        large: elements of what oneDNN does well.
    """
    found = {
        operation: sizes
        for operation in block.operations
        if operation.op in _SUMS and not refused(operation) and (sizes := _sizes(operation, large)) is not None
    }
    if not found or compiler() is None:  # loading LLVM takes 50 ms
        return
    for operation, sizes in found.items():
        factor = 1.0 / sizes[1] if _SUMS[operation.op].is_mean else 1.0
        operation.become(CompiledSum, input=operation.inputs[0], sizes=sizes, factor=factor)


def _sizes(operation: Operation, large: int) -> tuple[int, int, int] | None:
    """How many elements lie before, along and behind the axes; None where a compiled loop is not the best."""
    x = operation.inputs[0]
    if x.dtype not in (np.float32, np.float64) or x.shape is None or 0 in x.shape or x.is_constant:
        return None
    kind = _SUMS[operation.op]
    axes = kind.axes(operation, len(x.shape))
    axes = [axis for axis in axes if x.shape[axis] > 1] or axes[:1]
    if operation.output.shape is None or not axes or axes != list(range(axes[0], axes[0] + len(axes))):
        return None
    outer, inner = math.prod(x.shape[: axes[0]]), math.prod(x.shape[axes[-1] + 1 :])
    images = kind.is_mean and len(x.shape) in (4, 5)
    if x.dtype == np.float32 and x.size >= large and (inner == 1 or images):
        return None  # those oneDNN does well, on several threads
    return outer, x.size // (outer * inner), inner


def _given(operation: Operation, rank: int) -> list[int]:
    """The axes in the second input; none where they are not known or not right, which the kernel says."""
    if not operation.inputs[1].is_constant:
        return []
    given = [int(axis) for axis in np.asarray(operation.inputs[1].constant).reshape(-1)]
    axes = sorted({axis % rank for axis in given if -rank <= axis < rank})
    return axes if len(axes) == len(given) else []


def _all_but_channels(operation: Operation, rank: int) -> list[int]:
    return [] if is_channels_first(operation) else list(range(rank - 1))


class _Sum(NamedTuple):
    """What an op sums.

    Attributes:
        axes: which axes it sums over, given the rank of its input; none where no compiled loop does.
        is_mean: the sum is divided by how many numbers there are.
    """

    axes: Callable[[Operation, int], list[int]]
    is_mean: bool = False


_SUMS = {"BiasAddGrad": _Sum(_all_but_channels), "Mean": _Sum(_given, is_mean=True), "Sum": _Sum(_given)}


def write_sum(emitter: Emitter, operation: CompiledSum) -> None:
    """Call the compiled loop."""
    x, y = operation.input, operation.output
    machine = compiler()
    assert machine is not None
    text, given = sums(*operation.sizes, TYPES[x.dtype.name], operation.factor)
    function = emitter.alike((write_sum, text), lambda: machine.function(text, {}))
    outer, reduced, inner = operation.sizes
    size = int(x.dtype.itemsize) * outer * inner
    emitter.execute_native(function, [Span(x, size * reduced), Span(y, size), *given])
