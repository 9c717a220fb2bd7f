"""What the importer makes of a graph: calls of kernels, branches, loops, and what reads variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.relations import text
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value


class Call(Operation, mnemonic="call"):
    """A node of the graph that no pass has recognised: its kernel is called with the inputs.

    What the op's attributes say is read from the node, `step.node`.

    Attributes:
        op: the node's.
        inputs: what the node takes, in the order of the op's inputs.
    """

    op: str
    # all that a call takes is in one field: there is nothing to gather
    inputs: tuple[Value, ...] = operands()  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def is_plain(self) -> bool:
        """Whether it runs whenever its block does, and takes values alone, no variable by reference."""
        return not self.predicates and not self.step.deref


def call_of(value: Value, *ops: str) -> Call | None:
    """The call of one of these ops that makes a value; None where it is made otherwise, or not at all."""
    producer = value.producer
    return producer if isinstance(producer, Call) and producer.op in ops else None


class Select(Operation, mnemonic="select"):
    """The value of the branch that was taken: the other one was never computed.

    Attributes:
        predicate: which it was, one bool.
        taken: the value where it is true.
        other: the value where it is false.
    """

    predicate: Value = operand()
    taken: Value = operand()
    other: Value = operand()

    def verify(self) -> Iterator[str]:
        yield from _truth(self.predicate)


class Test(Operation, mnemonic="test", traits=Trait.EFFECT | Trait.MEMORY):
    """The loop whose body this is in is left here, with its states as they are, unless the condition holds."""

    condition: Value = operand()

    def verify(self) -> Iterator[str]:
        yield from _truth(self.condition)


def _truth(value: Value) -> Iterator[str]:
    if value.shape not in ((), None) or (value.dtype is not None and value.dtype.kind != "b"):
        yield f"{text(value)} decides"


class Loop(Operation, mnemonic="loop", traits=Trait.EFFECT):
    """A body that is computed again and again until a `Test` in it leaves the loop.

    Attributes:
        states: what changes from iteration to iteration, with the values of the first one. The body's first arguments
            are these, its results their next values, the loop's outputs their last ones.
        invariants: values from outside that every iteration takes; the body's other arguments.
        body: one iteration.
        compiled: the code for the loop, once the backend has made it.
    """

    states: tuple[Value, ...] = operands()
    invariants: tuple[Value, ...] = operands()
    body: Block
    compiled: Any = None

    def regions(self) -> Sequence[Block]:
        return (self.body,)

    def verify(self) -> Iterator[str]:
        count = len(self.states)
        if len(self.outputs) != count or len(self.body.results) != count:
            yield f"{len(self.body.results)} next and {len(self.outputs)} last values of {count} states"
        if len(self.body.arguments) != count + len(self.invariants):
            yield f"{len(self.body.arguments)} arguments for {count} states and {len(self.invariants)} invariants"


class Dereference(Operation, mnemonic="deref"):
    """The present value of a reference variable."""

    reference: Value = operand()

    def computed_by(self) -> str | None:
        return "variable"

    def verify(self) -> Iterator[str]:
        if self.output.dtype is None:
            yield "what a reference variable holds has no type"


class ReadVariable(Operation, mnemonic="read_variable", traits=Trait.READS_VARIABLE):
    """The present array of a resource variable.

    Attributes:
        cell: what holds the array (`variables.Variable`); it must keep the shape of the output.
    """

    cell: Any

    def computed_by(self) -> str | None:
        return "variable"

    def verify(self) -> Iterator[str]:
        if self.output.shape is None:
            yield "the shape of a variable is not known"
