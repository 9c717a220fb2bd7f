"""Operations on the lists, stacks and arrays of tensors that a loop changes in place."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.relations import text
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Step


class SequenceKind(enum.Enum):
    """What the graph calls it: a list is a value, a stack or an array is changed through its handle."""

    LIST = "list"
    STACK = "stack"
    ARRAY = "array"


@dataclass(eq=False, slots=True)
class TensorSequence:
    """What a loop holds tensors in; all operations on it share it.

    Attributes:
        argument: the body's argument that it, or its handle, comes as.
        element, dtype: of its tensors.
        opener: the step that makes the handle from the argument: of a gradient's array from that of the values.
        result: the position of the state that it is, None where every iteration has the same.
        pushes, pops, reads, writes: whether the body does so.
        takes: what is popped is used.
        same: what every push pushes, where that is one value from outside: then pushes are counted, not made.
    """

    kind: SequenceKind
    argument: Value
    element: tuple[int, ...]
    dtype: Any
    opener: Step | None = None
    result: int | None = None
    pushes: bool = False
    pops: bool = False
    reads: bool = False
    writes: bool = False
    takes: bool = False
    same: Value | None = None


class SequenceOperation(Operation):
    """Something that is done to a sequence.

    Attributes:
        sequence: what it is done to.
    """

    sequence: TensorSequence

    def _element(self, value: Value) -> Iterator[str]:
        sequence = self.sequence
        if value.shape != sequence.element or value.dtype != sequence.dtype:
            yield f"{text(value)} where a list holds {sequence.dtype}{list(sequence.element)}"

    def _elements_made(self) -> Iterator[str]:
        for value in self.outputs:
            yield from self._element(value)


class Push(SequenceOperation, mnemonic="push", traits=Trait.MEMORY):
    """Append an element."""

    element: Value = operand()

    def verify(self) -> Iterator[str]:
        return self._element(self.element)


class Count(SequenceOperation, mnemonic="count", traits=Trait.MEMORY):
    """Append an element that is not to be copied: it is made in its place, or is the sequence's `same`."""

    def verify(self) -> Iterator[str]:
        return iter(())


class Pop(SequenceOperation, mnemonic="pop", traits=Trait.MEMORY):
    """Take the last element away; it is the output, where somebody takes that."""

    def verify(self) -> Iterator[str]:
        return self._elements_made()


class Get(SequenceOperation, mnemonic="get", traits=Trait.MEMORY):
    """Read the element at an index, a scalar; it is the output, where somebody takes that."""

    index: Value = operand()

    def verify(self) -> Iterator[str]:
        yield from self._elements_made()
        yield from _is_index(self.index)


class Set(SequenceOperation, mnemonic="set", traits=Trait.MEMORY):
    """Write the element at an index, a scalar."""

    index: Value = operand()
    element: Value = operand()

    def verify(self) -> Iterator[str]:
        yield from self._element(self.element)
        yield from _is_index(self.index)


def _is_index(value: Value) -> Iterator[str]:
    if value.size != 1 or value.dtype is None or value.dtype.name not in ("int32", "int64"):
        yield f"an index is {text(value)}"
