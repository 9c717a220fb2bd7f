"""What brings tensors to where the arena's operations find them, and what NumPy puts together there."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import joined
from toolkit.compiler.ir.relations import same, text
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value


class StagedCopy(Operation, mnemonic="stage", traits=Trait.IN_ARENA | Trait.READS_ANYWHERE):
    """A copy in the arena of what lies outside."""

    input: Value = operand()

    def computed_by(self) -> str | None:
        return "copied into the arena"

    def verify(self) -> Iterator[str]:
        yield from same("a copy", self.input, self.output)


class Pin(Operation, mnemonic="pin"):
    """A tensor outside the arena; the primitives that take it are told in every run where it is."""

    input: Value = operand()

    def computed_by(self) -> str | None:
        return "taken where it is"

    def verify(self) -> Iterator[str]:
        if self.output.shape is None:
            yield f"{text(self.output)} is looked for where it is"


class Join(Operation, mnemonic="join", traits=Trait.IN_ARENA | Trait.READS_ANYWHERE):
    """Small tensors joined along an axis by NumPy.

    Attributes:
        parts: the tensors in order, from wherever they are.
        axis: counted from the first, from 0.
    """

    parts: tuple[Value, ...] = operands()
    axis: int

    def computed_by(self) -> str | None:
        return "copied into the arena"

    def verify(self) -> Iterator[str]:
        yield from joined(self.parts, self.axis, self.output)
