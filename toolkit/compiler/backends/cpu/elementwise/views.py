"""Other names for tensors and for parts of them that are known beforehand; small tensors put together in the arena."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.operations import Join
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Alias, View
from toolkit.compiler.ir.value import Value
from toolkit.errors import GraphmillError
from toolkit.kernels.cpu.arrays.slice import strided_index
from toolkit.kernels.cpu.memory.addresses import offset_in
from toolkit.kernels.registry import KernelNode

_MOST = 1 << 26  # bytes of a tensor whose slice is looked at


def lower_views(block: Block, refused: Callable[[Operation], bool]) -> None:
    """Reshapes become Alias, slices that too where they lie densely, else View; joins Join."""
    for operation in block.operations:
        rule = _RULES.get(operation.op)
        if rule is not None and not refused(operation):
            rule(operation)


def _slice_index(operation: Operation, shape: tuple[int, ...], where: list[Any]) -> Any:
    begin, size = (np.asarray(constant).reshape(-1).tolist() for constant in where)
    return tuple(
        slice(start, limit if count == -1 else start + count)
        for start, count, limit in zip(begin, size, shape, strict=True)
    )


def _strided_index(operation: Operation, shape: tuple[int, ...], where: list[Any]) -> Any:
    return strided_index(KernelNode(operation.step.node))(shape, *where)


def _lower_slice(operation: Operation, index_of: Callable[[Operation, tuple[int, ...], list[Any]], Any]) -> None:
    source, *where = operation.inputs
    if not _is_plain(source) or source.nbytes > _MOST or not all(value.is_constant for value in where):
        return
    assert source.shape is not None
    try:
        index = index_of(operation, source.shape, [value.constant for value in where])
    except GraphmillError:
        return
    whole = np.empty(source.shape, source.dtype)
    part = whole[index]
    if part.shape != operation.output.shape or 0 in part.shape or operation.output.dtype != source.dtype:
        return
    if part.flags.c_contiguous:
        operation.become(Alias, input=source, start=offset_in(part, whole) // whole.itemsize, index=index)
    else:
        operation.become(View, input=source, index=index)


def lower_reshape(operation: Operation) -> bool:
    """Another name for the same elements; returns whether it became that."""
    source, target = operation.inputs[0], operation.output
    if source.dtype is None or source.shape is None or target.shape is None or source.is_constant:
        return False
    operation.become(Alias, input=source)
    return True


def _lower_join(operation: Operation) -> None:
    *parts, axis = operation.inputs
    if not axis.is_constant or not all(map(_is_plain, (*parts, operation.output))):
        return
    target = operation.output
    assert target.shape is not None
    number = int(np.asarray(axis.constant).reshape(())) % len(target.shape)
    operation.become(Join, parts=tuple(parts), axis=number)


_RULES: dict[str, Callable[[Operation], object]] = {
    **dict.fromkeys(("ExpandDims", "Reshape", "Squeeze"), lower_reshape),
    "Slice": functools.partial(_lower_slice, index_of=_slice_index),
    "StridedSlice": functools.partial(_lower_slice, index_of=_strided_index),
    "ConcatV2": _lower_join,
}


def _is_plain(value: Value) -> bool:
    """A tensor of known, non-empty shape that an arena may hold."""
    return value.dtype is not None and value.dtype.kind in "fiub" and value.shape is not None and value.size > 0


def write_view(emitter: Emitter, operation: View) -> None:
    """A part of a tensor, with gaps."""
    index = emitter.share("k", operation.index)
    emitter.line(f"{emitter.bind(operation.output)} = {emitter.read(operation.input)}[{index}]")


def write_alias(emitter: Emitter, operation: Alias) -> None:
    """Another shape for the same elements, or for some that lie together."""
    source, target = operation.input, operation.output
    if target in emitter.layout.storage:
        return  # an array over the same storage
    name, found = emitter.bind(target), emitter.read(source)
    if operation.index is not None:
        emitter.line(f"{name} = {found}[{emitter.share('k', operation.index)}]")
    else:
        emitter.line(f"{name} = {found}.reshape({emitter.share('k', target.shape)})")


def write_join(emitter: Emitter, operation: Join) -> None:
    """Copy the parts to their places."""
    target, axis, start = operation.output, operation.axis, 0
    for part in operation.parts:
        assert part.shape is not None
        stop = start + part.shape[axis]
        place = emitter.view(target, (*(slice(None),) * axis, slice(start, stop)))
        emitter.line(f"copyto({place}, {emitter.read(part)})")
        start = stop
