"""Parts of tensors that are known beforehand (slices, splits): read where they are by the loops that use them."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Part
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import as_outputs
from toolkit.errors import GraphmillError
from toolkit.kernels.cpu.memory.addresses import offset_in
from toolkit.kernels.cpu.native.code import TYPES

_PARTS = frozenset({"Slice", "Split", "SplitV", "StridedSlice", "Unpack"})


def lower_parts(block: Block, refused: Callable[[Operation], bool], is_wanted: Callable[[Value], bool]) -> None:
    """Put a `Part` in the place of each output of operations whose outputs are views of their one computed input.

    Args:
        refused: says of an operation whether it must stay as it is.
        is_wanted: says of an output whether those who use it can read a part where it is.
    """
    for operation in block.operations:
        places = _places(operation) if operation.op in _PARTS and not refused(operation) else None
        used = [value for value in operation.outputs if value.is_needed]
        if places is None or not all(map(is_wanted, used)):
            continue
        source = next(value for value in operation.inputs if not value.is_constant)
        parts = [
            Part(
                input=source, offset=offset, strides=strides,
                outputs=[value], steps=operation.steps, conditions=operation.conditions,
            )
            for value, (offset, strides) in zip(operation.outputs, places, strict=True) if value.is_needed
        ]  # fmt: skip
        block.insert_before(operation, parts)
        block.erase(operation)


def _places(operation: Operation) -> list[tuple[int, tuple[int, ...]]] | None:
    """Where the outputs lie in the input, in elements: found out by the kernel itself on an array of that shape."""
    computed = [value for value in operation.inputs if not value.is_constant]
    if len(computed) != 1:
        return None
    x = computed[0]
    if x.shape is None or x.dtype is None or x.dtype.name not in TYPES or 0 in x.shape:
        return None
    whole = np.empty(x.shape, x.dtype)
    given = [whole if value is x else value.constant for value in operation.inputs]
    try:
        views: Sequence[Any] = as_outputs(operation.step, operation.step.compute(*given))
    except GraphmillError:
        return None  # it is reported when it runs
    return _elements(whole, views, operation.outputs)


def _elements(whole: Any, views: Sequence[Any], outputs: Sequence[Value]) -> list[tuple[int, tuple[int, ...]]] | None:
    found: list[tuple[int, tuple[int, ...]]] = []
    for view, value in zip(views, outputs, strict=True):
        if view.shape != value.shape or 0 in view.shape or not np.may_share_memory(view, whole):
            return None
        strides = tuple(step // whole.itemsize for step in view.strides)
        long = [step for step, size in zip(strides, view.shape, strict=True) if size > 1]
        if min(long, default=1) < 0 or (long and long[-1] != 1):
            return None
        found.append((offset_in(view, whole) // whole.itemsize, strides))
    return found
