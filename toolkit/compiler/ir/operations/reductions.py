"""Reductions of tensors over some of their axes."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value


class ReduceFunction(enum.Enum):
    """What is made of the numbers that differ in the reduced axes only."""

    MEAN = enum.auto()
    SUM = enum.auto()


class Reduce(Operation, mnemonic="reduce", traits=Trait.IN_ARENA):
    """A tensor reduced over some axes, which the output may lack or have with size 1.

    Attributes:
        axes: numbered from 0, in order.
    """

    input: Value = operand()
    function: ReduceFunction
    axes: tuple[int, ...]

    def verify(self) -> Iterator[str]:
        x, y = relations.shapes(self.input, self.output)
        left = math.prod(size for axis, size in enumerate(x) if axis not in self.axes)
        if math.prod(y) != left:
            yield f"{list(x)} reduced over {list(self.axes)} is {list(y)}"
