"""What is done to images, channels last."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value


class Resize(Operation, mnemonic="resize", traits=Trait.IN_ARENA):
    """Bilinear interpolation between pixel centres, at (i + 0.5) * size / new size - 0.5.

    Attributes:
        input: [batch, rows, columns, channels].
    """

    input: Value = operand()

    def verify(self) -> Iterator[str]:
        x, y = relations.shapes(self.input, self.output)
        if len(x) != 4 or len(y) != 4 or (x[0], x[-1]) != (y[0], y[-1]):
            yield f"{list(x)} resized is {list(y)}"
