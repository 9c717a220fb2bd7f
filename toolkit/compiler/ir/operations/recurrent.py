"""Layers of recurrent cells over all steps of a sequence.

Gates are in the order in which oneDNN has them; a matrix is a sequence of one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeGuard

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Loop
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value


@dataclass(frozen=True, slots=True, eq=False)
class CellWeights:
    """What a cell's gates multiply by and add.

    Attributes:
        layer, iteration: by the input and by the state: float32 [rows, gates, units].
        bias: float32 [gates, units]; where the reset gate comes after the product with the state, a fourth row is for
            that product.
        peepholes: of an LSTM whose gates i, f, o look at the memory: float32 [3, units].
    """

    layer: Any
    iteration: Any
    bias: Any
    peepholes: Any = None

    @property
    def units(self) -> int:
        return self.bias.shape[1]

    @property
    def multiplications(self) -> int:
        """For one row in one step."""
        return self.layer.size + self.iteration.size


class RecurrentLayer(Operation):
    """One layer in one direction.

    The first output is h of every step; behind it are the last h and, of an LSTM, the last c, where they are wanted.

    Attributes:
        gates: how many a cell has.
        input: the sequence [time, batch, channels], or a matrix [batch, channels].
        initial: the first h and, of an LSTM, the first c; nothing where they are zero.
        weights: of the cell, the same in every step.
        length: steps, which may be fewer than the sequence has.
        batch_major_input, batch_major_output: whether a sequence is [batch, time, channels].
        backward: it goes from the last step to the first; h of each stands where its input does.
        shares: where it is machine code of our own, the examples of each thread: the first, and the one behind the
            last; else it is a primitive.
    """

    gates: ClassVar[int]

    input: Value = operand()
    initial: tuple[Value, ...] = operands()
    weights: CellWeights
    length: int
    batch_major_input: bool = False
    batch_major_output: bool = False
    backward: bool = False
    shares: tuple[tuple[int, int], ...] = ()

    def computed_by(self) -> str | None:
        return "machine code" if self.shares else super().computed_by()

    def verify(self) -> Iterator[str]:
        x, weights, (sequence, *last) = self.input, self.weights, self.outputs
        given, made = ([1, *shape] if len(shape) == 2 else list(shape) for shape in relations.shapes(x, sequence))
        if len(given) != 3 or len(made) != 3:
            yield f"a layer of {relations.text(x)} makes {relations.text(sequence)}"
            return
        if self.batch_major_input:
            given[:2] = given[1::-1]
        if self.batch_major_output:
            made[:2] = made[1::-1]
        units, batch, length = weights.units, made[1], self.length
        if given[0] < length or made[0] < length or given[1] != batch or made[2] != units:
            yield f"{length} steps of a layer of {units} units of {relations.text(x)} make {relations.text(sequence)}"
        if weights.layer.shape != (given[2], self.gates, units) or weights.iteration.shape != (
            units,
            self.gates,
            units,
        ):
            yield f"weights {list(weights.layer.shape)} and {list(weights.iteration.shape)} of {units} units"
        for value in (*self.initial, *last):
            if value.size != batch * units or value.dtype != x.dtype:
                yield f"a state of {batch} x {units} is {relations.text(value)}"

    def release(self) -> None:
        self.weights = replace(self.weights, layer=None, iteration=None)


class LstmLayer(RecurrentLayer, mnemonic="lstm", traits=Trait.IN_ARENA):
    """Cells with the gates i, f, c, o."""

    gates = 4


class GruLayer(RecurrentLayer, mnemonic="gru", traits=Trait.IN_ARENA):
    """Cells with the gates u, r, o, whose reset gate r comes before the product with the state."""

    gates = 3


class LinearBeforeResetGruLayer(RecurrentLayer, mnemonic="lbr_gru", traits=Trait.IN_ARENA):
    """Cells with the gates u, r, o, whose reset gate r comes after the product with the state."""

    gates = 3


def is_recurrent(operation: Operation) -> TypeGuard[Loop]:
    """Whether an operation is a loop that looks as if there were a cell in it."""
    if not isinstance(operation, Loop):
        return False
    kinds = {each.op for each in operation.body}
    return "MatMul" in kinds and not kinds.isdisjoint({"Sigmoid", "Tanh"})
