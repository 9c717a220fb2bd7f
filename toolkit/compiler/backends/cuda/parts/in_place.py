"""Parts of tensors are read and written by kernels where they are, so that splitting and joining copies nothing.

A kernel reads what a Split or a Slice takes out of a tensor by the strides of that tensor. Where all that is joined
is made by one kernel, that writes the whole, beside those parts that others take; where tensors are joined along their
first axis, each kernel writes its own into the memory of the whole. So the gates of a recurrent layer's steps and their
gradients are never copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolkit.compiler.backends.cuda.layout.moved_axes import number_of, numbers_of
from toolkit.compiler.backends.cuda.operations import FusedKernelCall
from toolkit.compiler.backends.cuda.parts.joins import join_in_place
from toolkit.compiler.backends.cuda.parts.kept_parts import store_kept_parts
from toolkit.compiler.backends.cuda.parts.operations import Piece, Place, PlacedKernelCall, as_placed
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference, ReadVariable
from toolkit.compiler.ir.value import Value
from toolkit.kernels.gpu.elementwise import nests
from toolkit.kernels.tensors import row_major

Refused = Callable[[Operation], bool]
_Kernel = FusedKernelCall | PlacedKernelCall


@dataclass(frozen=True)
class _Part:
    """Where a part lies in a tensor.

    Attributes:
        whole: the tensor.
        first: elements before the part's first one.
        strides: elements from one to the next, along each axis.
    """

    whole: Value
    first: int
    strides: tuple[int, ...]


def place_parts(block: Block, refused: Refused) -> None:
    """Have kernels read parts of tensors and write parts of what is joined, in loops too.

    Args:
        refused: whether an operation must stay a call.
    """
    for operation in block.operations:
        for region in operation.regions():
            place_parts(region, refused)
    if not any(isinstance(operation, FusedKernelCall) for operation in block):
        return
    for operation in block.operations:
        if operation.block is block and not refused(operation):
            _write_whole(block, operation)
    join_in_place(block, refused)
    for operation in block.operations:
        if isinstance(operation, _Kernel):
            _read_parts(block, operation, refused)


# -- reading


def _read_parts(block: Block, operation: _Kernel, refused: Refused) -> None:
    """Let a kernel read parts out of the tensors that they are parts of."""
    found: dict[int, _Part] = {}
    for at, (value, strides) in enumerate(zip(operation.reads, operation.strides, strict=True)):
        producer = value.producer
        if producer is None or refused(producer) or producer.conditions != operation.conditions:
            continue
        part = _part(value)
        shape = value.shape or ()
        is_aligned = len(shape) == len(operation.shape) and strides == nests.broadcast_strides(shape, operation.shape)
        if part is not None and is_aligned and producer.block is block:
            found[at] = part
    if not found:
        return
    placed = as_placed(operation)
    makers = {placed.reads[at].producer: None for at in found}
    store_kept_parts(block, placed, {at: placed.reads[at] for at in found})
    reads, strides, offsets = list(placed.reads), list(placed.strides), list(placed.offsets)
    for at, part in found.items():
        own = zip(strides[at], part.strides, strict=True)
        reads[at], offsets[at] = part.whole, part.first
        strides[at] = tuple(step if moves else 0 for moves, step in own)
    placed.reads, placed.strides, placed.offsets = tuple(reads), tuple(strides), tuple(offsets)
    for maker in makers:
        if maker is not None and not any(value.is_needed for value in maker.outputs):
            block.erase(maker)


def _part(value: Value) -> _Part | None:
    """Which part of another tensor a value is, if it would be copied out of it; None where it is none."""
    maker = value.producer
    if not isinstance(maker, Call) or maker.step.deref or value.shape is None or 0 in value.shape:
        return None
    found = _begin(maker, value)
    if found is None:
        return None
    whole, begin = found
    if whole.shape is None or whole.dtype != value.dtype or isinstance(whole.producer, Dereference | ReadVariable):
        return None  # what a variable holds may be changed before the part is read
    if value.shape[1:] == whole.shape[1:]:
        return None  # parts along the first axis lie one behind the other
    strides = row_major(whole.shape)
    first = sum(before * step for before, step in zip(begin, strides, strict=True))
    return _Part(whole, first, strides)


def _begin(maker: Call, value: Value) -> tuple[Value, tuple[int, ...]] | None:
    """The tensor that a part is of, and where it begins there along each axis; None where that is not known."""
    if maker.op == "Slice":
        begin = numbers_of(maker.inputs[1])
        return None if begin is None else (maker.inputs[0], begin)
    if maker.op not in ("Split", "SplitV"):
        return None
    whole, axis = (maker.inputs[1], maker.inputs[0]) if maker.op == "Split" else (maker.inputs[0], maker.inputs[-1])
    number = number_of(axis)
    if number is None or not whole.shape or any(each.shape is None for each in maker.outputs):
        return None
    number %= len(whole.shape)
    before = sum((each.shape or ())[number] for each in maker.outputs[: maker.outputs.index(value)])
    return whole, tuple(before if axis == number else 0 for axis in range(len(whole.shape)))


# -- writing


def _write_whole(block: Block, operation: Operation) -> None:
    """Let a kernel that makes all parts of a joined tensor write that."""
    if not isinstance(operation, Call) or operation.op not in ("Concat", "ConcatV2") or operation.step.deref:
        return
    first = operation.op == "Concat"
    parts = operation.inputs[1:] if first else operation.inputs[:-1]
    number = number_of(operation.inputs[0] if first else operation.inputs[-1])
    kernel, joined = parts[0].producer, operation.output
    if number is None or joined.shape is None or 0 in joined.shape or not isinstance(kernel, _Kernel):
        return
    if kernel.block is not block or kernel.conditions != operation.conditions or len(set(parts)) != len(parts):
        return
    alone = all(part.producer is kernel for part in parts)
    whole = all(part.shape == kernel.shape and part.dtype == joined.dtype for part in parts)
    if not alone or not whole:
        return
    axis = number % len(joined.shape)
    strides, along = row_major(joined.shape), kernel.shape[axis]
    placed = as_placed(kernel)
    outputs = placed.outputs
    numbers = {part: at for at, part in enumerate(parts)}
    if any(placed.places[outputs.index(part)].target >= 0 for part in parts):
        return
    block.erase(operation)
    kept = [at for at, output in enumerate(outputs) if output not in numbers or output.is_needed]
    renumbered = {at: new for new, at in enumerate(kept)}
    stores, pieces = list[int](), list[Piece]()
    for store, piece in zip(placed.stores, placed.pieces, strict=True):
        part = outputs[piece.output]
        if part in numbers:
            stores.append(store)
            pieces.append(Piece(len(kept), numbers[part] * along * strides[axis], strides))
        if piece.output in renumbered:
            stores.append(store)
            pieces.append(piece._replace(output=renumbered[piece.output]))
    placed.stores, placed.pieces, placed.steps = tuple(stores), tuple(pieces), [*placed.steps, *operation.steps]
    placed.set_outputs([*(outputs[at] for at in kept), joined])
    placed.places = (*(placed.places[at] for at in kept), Place(-1, 0))
