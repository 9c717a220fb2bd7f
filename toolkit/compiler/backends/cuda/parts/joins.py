"""Tensors that are joined along their first axis are made where they belong in the joined one.

Two joined tensors may share most of their parts, such as all states of a recurrent layer and all states before a step:
then they are parts of one memory. All parts of a split tensor joined again are that tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolkit.compiler.backends.cuda.layout.moved_axes import number_of
from toolkit.compiler.backends.cuda.operations import FusedKernelCall
from toolkit.compiler.backends.cuda.parts.operations import JoinMemory, JoinRows, Place, PlacedKernelCall, as_placed
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.kernels.gpu.primitives.copying import ALIGNED

Refused = Callable[[Operation], bool]


@dataclass
class _Join:
    """Attributes:
    operation: what joins.
    parts: what it joins.
    """

    operation: Operation
    parts: tuple[Value, ...]


@dataclass
class _Memory:
    """Attributes:
    parts: one behind the other.
    joins: with the number of the part that each begins with.
    """

    parts: list[Value]
    joins: list[tuple[_Join, int]]

    def take(self, join: _Join) -> bool:
        """Let a join have its place here, if it overlaps what is here, and nothing else stands there."""
        shift = next((at - number for number, part in enumerate(join.parts) for at in self._at(part)), None)
        if shift is None:
            return False
        overlap = range(max(0, shift), min(len(self.parts), shift + len(join.parts)))
        if any(self.parts[at] is not join.parts[at - shift] for at in overlap) or 2 * len(overlap) < len(join.parts):
            return False
        before, behind = join.parts[: max(0, -shift)], join.parts[max(0, len(self.parts) - shift) :]
        self.parts = [*before, *self.parts, *behind]
        self.joins = [(each, first + len(before)) for each, first in self.joins]
        self.joins.append((join, max(0, shift)))
        return True

    def _at(self, part: Value) -> list[int]:
        return [at for at, each in enumerate(self.parts) if each is part][:1]


def take_wholes(block: Block, refused: Refused) -> None:
    """Put the tensor that was split in the place of all its parts joined again.

    Before types are lowered: the parts of a float32 tensor would be copied in 16 bits one by one.

    Args:
        refused: whether an operation must stay a call.
    """
    for operation in block.operations:
        join = None if refused(operation) else _join_of(operation)
        whole = None if join is None else _split(join)
        if whole is not None:
            operation.become(JoinRows, parts=(), memory=whole, outputs=operation.outputs[:1])


def join_in_place(block: Block, refused: Refused) -> None:
    """Have kernels write into joined tensors what these are joined of.

    Args:
        refused: whether an operation must stay a call.
    """
    take_wholes(block, refused)
    memories: list[_Memory] = []
    for operation in block.operations:
        join = None if refused(operation) else _join_of(operation)
        if join is not None and not any(memory.take(join) for memory in memories):
            memories.append(_Memory(list(join.parts), [(join, 0)]))
    for memory in memories:
        _place(block, memory)


def _join_of(operation: Operation) -> _Join | None:
    """What an operation joins along the first axis, if that is all it does and sizes are known."""
    if operation.predicates:
        return None
    if isinstance(operation, JoinRows):
        found = operation.parts if operation.memory is None else ()
    elif isinstance(operation, Call) and operation.op in ("Concat", "ConcatV2") and not operation.step.deref:
        is_first = operation.op == "Concat"
        axis = number_of(operation.inputs[0] if is_first else operation.inputs[-1])
        rank = len(operation.output.shape or ())
        found = operation.inputs[1:] if is_first else operation.inputs[:-1]
        found = found if axis is not None and rank and axis % rank == 0 else ()
    elif isinstance(operation, Call) and operation.op == "Pack" and not operation.step.deref:
        found = operation.inputs if operation.step.node.attr("axis") == 0 else ()
    else:
        return None
    joined = operation.output
    known = joined.shape is not None and all(each.shape is not None for each in found)
    if len(found) <= 1 or not known or not all(_fits(each, joined) for each in found):
        return None
    return _Join(operation, found)


def _fits(part: Value, joined: Value) -> bool:
    """Whether a part can lie within a joined tensor: libraries ask where tensors begin."""
    is_alike = part.dtype is not None and part.dtype == joined.dtype
    return is_alike and part.size > 0 and part.nbytes % ALIGNED == 0


def _split(join: _Join) -> Value | None:
    """The tensor of which all parts are joined again, in order; None where they are of no one."""
    maker = join.parts[0].producer
    if not isinstance(maker, Call) or maker.step.deref or list(join.parts) != list(maker.outputs):
        return None
    if maker.op == "Unpack" and maker.step.node.attr("axis") == 0:
        return maker.inputs[0]
    if maker.op == "Split" and number_of(maker.inputs[0]) == 0:
        return maker.inputs[1]
    return None


def _place(block: Block, memory: _Memory) -> None:
    """Let the kernels that make parts write them into a memory, if there are any."""
    dtype = memory.joins[0][0].operation.output.dtype
    firsts = _firsts(memory.parts)
    placed: dict[Value, int] = {}
    for part, first in zip(memory.parts, firsts, strict=False):
        if part not in placed and _is_placeable(block, part):
            placed[part] = first
    if not placed:
        return
    order = block.positions()
    makers = sorted((part.producer for part in placed if part.producer is not None), key=order.__getitem__)
    held = Value(dtype, (firsts[-1],))
    block.insert_before(makers[0], [JoinMemory(outputs=[held], steps=memory.joins[0][0].operation.steps[-1:])])
    for part, first in placed.items():
        maker = part.producer
        assert isinstance(maker, FusedKernelCall | PlacedKernelCall)
        kernel = as_placed(maker)
        targets = (*kernel.targets, held)
        places = list(kernel.places)
        places[kernel.outputs.index(part)] = Place(len(targets) - 1, first)
        kernel.targets, kernel.places = targets, tuple(places)
    for join, number in memory.joins:
        there = {at for at, part in enumerate(join.parts) if placed.get(part) == firsts[number + at]}
        copied = tuple(at for at in range(len(join.parts)) if at not in there)
        join.operation.become(
            JoinRows, parts=join.parts, memory=held, first=firsts[number], copied=copied,
            outputs=join.operation.outputs[:1],
        )  # fmt: skip


def _firsts(values: Sequence[Value]) -> list[int]:
    """Elements before each of some tensors, and of all."""
    found = [0]
    for value in values:
        found.append(found[-1] + math.prod(value.shape or ()))
    return found


def _is_placeable(block: Block, part: Value) -> bool:
    """Whether a kernel makes it, which can write it anywhere, and nobody outside sees it."""
    maker = part.producer
    if not isinstance(maker, FusedKernelCall | PlacedKernelCall) or maker.block is not block or maker.predicates:
        return False
    if part.is_result or part.is_predicate:
        return False
    return not isinstance(maker, PlacedKernelCall) or maker.places[maker.outputs.index(part)].target < 0
