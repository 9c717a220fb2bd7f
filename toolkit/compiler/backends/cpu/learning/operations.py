"""Operations on variables and on tables of rows that compiled code does in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.relations import shapes, text
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.compiler import Function
from toolkit.kernels.cpu.native.rows import changer, gatherer
from toolkit.target.thresholds import TableThresholds


class GatherRows(Operation, mnemonic="gather_rows", traits=Trait.IN_ARENA | Trait.READS_VARIABLE):
    """Rows of a table by number: of a variable, of a constant, or of a tensor that is computed.

    Attributes:
        table: the tensor, None where it is one of the others.
        constant: the array, in row-major order.
        cell: the variable.
        limit: how many rows the table has.
    """

    ids: Value = operand()
    table: Value | None = operand(default=None)
    constant: Any = None
    cell: Any = None
    limit: int

    def function(self, sizes: TableThresholds) -> Function | None:
        """The compiled copy; None where LLVM is not there, or has none for these numbers of rows."""
        return gatherer(self.ids.dtype.name, sizes)

    def computed_by(self) -> str | None:
        return "compiled"

    def verify(self) -> Iterator[str]:
        ids, (y,) = self.ids, shapes(self.output)
        held: Any = self.constant if self.cell is None else self.cell.value
        table: Any = held if self.table is None else self.table
        if y != (*(ids.shape or ()), *table.shape[1:]) or table.dtype != self.output.dtype:
            yield f"rows {list(y)} of a table {list(table.shape)}"
        if self.limit != table.shape[0] or ids.size == 0:
            yield f"{ids.size} rows of a table of {self.limit}"


class ScatterRows(Operation, mnemonic="scatter_rows", traits=Trait.IN_ARENA | Trait.EFFECT):
    """Change rows of a variable by number, in its own array.

    Attributes:
        cell: the variable.
        change: what is done to a row: "add", "subtract", "multiply" or "divide".
        limit: how many rows it has.
    """

    ids: Value = operand()
    rows: Value = operand()
    cell: Any
    change: str
    limit: int

    def function(self, sizes: TableThresholds) -> Function | None:
        """The compiled change; None where LLVM is not there, or has none for these types."""
        return changer(self.change, self.rows.dtype.name, self.ids.dtype.name, sizes)

    def computed_by(self) -> str | None:
        return "in place"

    def verify(self) -> Iterator[str]:
        ids, rows, table = self.ids, self.rows, self.cell.value
        if rows.shape != (*(ids.shape or ()), *table.shape[1:]) or table.dtype != rows.dtype or ids.size == 0:
            yield f"rows {text(rows)} for a table {table.dtype}{list(table.shape)}"


class UpdateVariable(Operation, mnemonic="update", traits=Trait.EFFECT):
    """An optimizer's step: change a variable and its slots in place.

    Attributes:
        operands: the gradient and the numbers of the rule, in the order of the graph's op.
        run: does it, given their arrays.
    """

    operands: tuple[Value, ...] = operands()
    run: Callable[..., None]

    def computed_by(self) -> str | None:
        return "in place"

    def verify(self) -> Iterator[str]:
        return iter(())  # what it calls looks at the arrays themselves
