"""Operations that compute nothing: other names for elements that are there, and copies of them in other places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.relations import same, shape, shapes, text
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value


class Alias(Operation, mnemonic="alias", traits=Trait.VIEW | Trait.MEMORY):
    """Elements of a tensor that lie together in memory, in another shape.

    Attributes:
        input: the tensor.
        start: how many of its elements lie before the first; None where all of them are taken.
        index: where there is a start, what NumPy takes to give the same part.
    """

    input: Value = operand()
    start: int | None = None
    index: Any = None

    @property
    def offset(self) -> int:
        """Bytes of the input before the first element."""
        return (self.start or 0) * int(self.output.dtype.itemsize)

    def verify(self) -> Iterator[str]:
        x, y = self.input, self.output
        if x.dtype != y.dtype:
            yield f"{text(x)} looked at as {text(y)}"
        elif self.start is not None:
            if self.start < 0 or self.start + y.size > x.size:
                yield f"{text(y)} from element {self.start} of {text(x)}"
        elif x.shape is not None and y.shape is not None and x.size != y.size:
            yield f"{text(x)} looked at as {text(y)}"


class View(Operation, mnemonic="view", traits=Trait.VIEW):
    """A part of a tensor, with gaps between its elements.

    Attributes:
        input: the tensor.
        index: what NumPy takes to give the part.
    """

    input: Value = operand()
    index: Any

    def verify(self) -> Iterator[str]:
        if self.input.dtype != self.output.dtype:
            yield f"{text(self.output)} is no part of {text(self.input)}"


class Part(Operation, mnemonic="part"):
    """A part of a tensor that is no operation of its own: the loop nests that take it read it where it is.

    Attributes:
        input: the tensor.
        offset: how many of its elements lie before the first.
        strides: elements, of every dimension of the part.
    """

    input: Value = operand()
    offset: int
    strides: tuple[int, ...]


class Concat(Operation, mnemonic="concat", traits=Trait.IN_ARENA | Trait.KEEPS_TYPE):
    """Tensors joined along an axis.

    Attributes:
        parts: the tensors in order; they have the same sizes along all other axes.
        axis: counted from the first, from 0.
    """

    parts: tuple[Value, ...] = operands()
    axis: int

    def verify(self) -> Iterator[str]:
        yield from joined(self.parts, self.axis, self.output)


def joined(parts: Sequence[Value], axis: int, output: Value) -> Iterator[str]:
    """Parts joined along an axis are the output."""
    y, given = shape(output), shapes(*parts)
    others = [(*part[:axis], *part[axis + 1 :]) for part in given]
    fits = all(len(part) == len(y) for part in given) and sum(part[axis] for part in given) == y[axis]
    if not fits or any(other != (*y[:axis], *y[axis + 1 :]) for other in others):
        yield f"{', '.join(map(str, given))} joined along {axis} are {list(y)}"
    if any(value.dtype != output.dtype for value in parts):
        yield "tensors of different types are joined"


class Permute(Operation, mnemonic="permute", traits=Trait.IN_ARENA | Trait.KEEPS_TYPE):
    """A transposed copy.

    Attributes:
        input: the tensor.
        axes: for each axis of the output, which one of the input it is.
    """

    input: Value = operand()
    axes: tuple[int, ...]

    def verify(self) -> Iterator[str]:
        x, y = shapes(self.input, self.output)
        if sorted(self.axes) != list(range(len(x))) or tuple(x[axis] for axis in self.axes) != y:
            yield f"{list(x)} with its axes in the order {list(self.axes)} is {list(y)}"


class Pad(Operation, mnemonic="pad", traits=Trait.IN_ARENA | Trait.READS_ANYWHERE):
    """A tensor with borders around it.

    Attributes:
        input: the tensor.
        padding: for each axis how many elements are put before and behind.
        value: what these are.
    """

    input: Value = operand()
    padding: tuple[tuple[int, int], ...]
    value: float = 0.0

    def verify(self) -> Iterator[str]:
        x, y = shapes(self.input, self.output)
        padding = self.padding
        if len(padding) != len(x) or tuple(n + sum(pair) for n, pair in zip(x, padding, strict=False)) != y:
            yield f"{list(x)} padded by {list(padding)} is {list(y)}"


class Subsample(Operation, mnemonic="subsample", traits=Trait.IN_ARENA | Trait.KEEPS_TYPE):
    """Every n-th pixel of channels-last images.

    Attributes:
        input: the images.
        strides: n, for each spatial axis.
    """

    input: Value = operand()
    strides: tuple[int, ...]

    def verify(self) -> Iterator[str]:
        x, y = shapes(self.input, self.output)
        smaller = (x[0], *(-(-size // step) for size, step in zip(x[1:-1], self.strides, strict=False)), x[-1])
        if len(self.strides) != len(x) - 2 or smaller != y:
            yield f"{list(x)} subsampled by {list(self.strides)} is {list(y)}"


class Convert(Operation, mnemonic="convert", traits=Trait.IN_ARENA):
    """A copy in another floating type."""

    input: Value = operand()

    def verify(self) -> Iterator[str]:
        if self.input.size != self.output.size:
            yield f"{text(self.input)} converted is {text(self.output)}"


class Copy(Operation, mnemonic="copy", traits=Trait.MEMORY):
    """The same numbers in another place, inside a compiled loop."""

    input: Value = operand()

    def verify(self) -> Iterator[str]:
        yield from same("a copy", self.input, self.output)
