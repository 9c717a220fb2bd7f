"""Products that are added up over the iterations of a loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.relations import shapes, text
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value


@dataclass(frozen=True, eq=False, slots=True)
class Accumulation:
    """A state to which every iteration adds a product of two matrices, the first of them transposed.

    Attributes:
        state: the body's argument, and its result.
        rows: of both factors, in one iteration.
        columns: of the first and of the second factor.
        iterations: how many make one product, a power of two.
    """

    state: Value
    rows: int
    columns: tuple[int, int]
    iterations: int

    def sizes(self) -> tuple[int, int]:
        """Bytes of an iteration's factors."""
        return 4 * self.rows * self.columns[0], 4 * self.rows * self.columns[1]


class Accumulate(Operation, mnemonic="accumulate", traits=Trait.MEMORY):
    """Put an iteration's factors aside, below those of the iterations before; multiply when there are enough rows."""

    first: Value = operand()
    second: Value = operand()
    accumulation: Accumulation

    def verify(self) -> Iterator[str]:
        accumulation, (a, b) = self.accumulation, shapes(self.first, self.second)
        first, second = accumulation.columns
        state = accumulation.state
        if a != (accumulation.rows, first) or b != (accumulation.rows, second) or state.shape != (first, second):
            yield f"products of {list(a)} and {list(b)} added to {text(state)}"
