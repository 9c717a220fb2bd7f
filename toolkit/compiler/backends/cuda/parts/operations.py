"""Operations over parts of tensors: kernels that read and write them where they are, and tensors joined in place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from toolkit.compiler.backends.cuda.operations import FusedCall, FusedKernelCall
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.tensors import row_major


class Piece(NamedTuple):
    """Where a kernel writes one of its results.

    Attributes:
        output: the number of the output that it is in.
        first: elements of that before it.
        strides: elements from one to the next there, along each dimension of the kernel.
    """

    output: int
    first: int
    strides: tuple[int, ...]


class Place(NamedTuple):
    """Which part of a larger tensor's memory an output is.

    Attributes:
        target: the number of the tensor among those given; -1 for memory of its own.
        first: elements of that before it.
    """

    target: int
    first: int


class PlacedKernelCall(FusedCall, mnemonic="gpu_placed_nest"):
    """Elementwise operations of one shape as one kernel over parts of tensors, which are not copied for it.

    Attributes:
        offsets: of each read, elements before the first one.
        pieces: of each store, where it is in which output; those of an output fill it.
        targets: tensors whose memory some outputs are parts of.
        places: of each output.
    """

    offsets: tuple[int, ...]
    pieces: tuple[Piece, ...]
    targets: tuple[Value, ...] = operands()
    places: tuple[Place, ...]

    def computed_by(self) -> str | None:
        joined = sum(place.target >= 0 for place in self.places)
        where = f", {joined} of its results in tensors that they are joined to" if joined else ""
        return f"{super().computed_by()}, over parts of tensors{where}"

    def verify(self) -> Iterator[str]:
        counts = (len(self.strides), len(self.offsets)), (len(self.pieces), len(self.places))
        if counts != ((len(self.reads),) * 2, (len(self.stores), len(self.outputs))):
            yield f"{len(self.reads)} reads and {len(self.outputs)} outputs of a kernel with {counts}"
            return
        for index, member in enumerate(self.members):
            if any(not 0 <= source < len(self.reads) + index for source in member.inputs):
                yield f"{member.op} takes what is not there yet"
        for value, strides, first in zip(self.reads, self.strides, self.offsets, strict=True):
            if first + self._extent(strides) > value.size:
                yield f"a kernel over {list(self.shape)} reads beyond {relations.text(value)}"
        filled = [0] * len(self.outputs)
        for piece in self.pieces:
            filled[piece.output] += math.prod(self.shape)
            if piece.first + self._extent(piece.strides) > self.outputs[piece.output].size:
                yield f"a kernel over {list(self.shape)} writes beyond {relations.text(self.outputs[piece.output])}"
        for output, place, count in zip(self.outputs, self.places, filled, strict=True):
            if count != output.size:
                yield f"{count} elements are written of {relations.text(output)}"
            if place.target >= 0 and place.first + output.size > self.targets[place.target].size:
                yield f"{relations.text(output)} is no part of {relations.text(self.targets[place.target])}"

    def _extent(self, strides: tuple[int, ...]) -> int:
        return 1 + sum((size - 1) * step for size, step in zip(self.shape, strides, strict=True))


class JoinMemory(Operation, mnemonic="gpu_join_memory"):
    """A tensor in which nothing has been written yet: others become parts of it."""

    def computed_by(self) -> str | None:
        return "memory for parts"

    def verify(self) -> Iterator[str]:
        if self.output.shape is None or self.output.dtype is None:
            yield f"memory of {relations.text(self.output)}"


class JoinRows(Operation, mnemonic="gpu_join_rows"):
    """Tensors one behind the other along their first axis.

    Attributes:
        parts: the tensors.
        memory: holds the result, from `first` on; None for memory of its own.
        first: elements of the memory before the result.
        copied: numbers of the parts that are not there yet.
    """

    parts: tuple[Value, ...] = operands()
    memory: Value | None = operand(default=None)
    first: int = 0
    copied: tuple[int, ...] = ()

    def computed_by(self) -> str | None:
        there = len(self.parts) - len(self.copied) if self.memory is not None else 0
        return f"{len(self.parts)} tensors joined" + (f", {there} of them where they are made" if there else "")

    def verify(self) -> Iterator[str]:
        if self.parts and sum(part.size for part in self.parts) != self.output.size:
            yield f"{len(self.parts)} tensors joined are {relations.text(self.output)}"
        if self.memory is not None and self.first + self.output.size > self.memory.size:
            yield f"{relations.text(self.output)} is no part of {relations.text(self.memory)}"
        if any(not 0 <= number < len(self.parts) for number in self.copied):
            yield f"parts {list(self.copied)} of {len(self.parts)} are copied"


def as_placed(operation: FusedKernelCall | PlacedKernelCall) -> PlacedKernelCall:
    """A kernel in its place as one over parts, all of them whole tensors so far."""
    if isinstance(operation, PlacedKernelCall):
        return operation
    dense = row_major(operation.shape)
    count = len(operation.outputs)
    return operation.become(
        PlacedKernelCall, **operation.own_fields(), offsets=(0,) * len(operation.reads),
        pieces=tuple(Piece(at, 0, dense) for at in range(count)), places=(Place(-1, 0),) * count,
    )  # fmt: skip
