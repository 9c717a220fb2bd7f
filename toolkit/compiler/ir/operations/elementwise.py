"""Elementwise operations: number by number of tensors that are broadcast to one shape."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.post_ops import Apply, PostOp, post_operations
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value


class Elementwise(
    Operation,
    mnemonic="eltwise",
    traits=Trait.IN_ARENA | Trait.WRITES_ANYWHERE | Trait.REUSES_INPUT | Trait.KEEPS_TYPE,
):
    """A tensor to which post-ops are applied, one after the other.

    Attributes:
        input: float tensor of the shape of the output.
        post_ops: at least one.
    """

    input: Value = operand()
    post_ops: tuple[PostOp, ...] = post_operations()

    def verify(self) -> Iterator[str]:
        yield from relations.same("the input and the output", self.input, self.output)
        yield from relations.broadcast_post_ops(self.post_ops, self.output)


class Activation(Operation, mnemonic="activation"):
    """A function of one number that the graph spells out in several operations.

    What it follows takes it up as a post-op, or it becomes an `Elementwise` of its own.

    Attributes:
        input: float tensor of the shape of the output.
        function: which it is.
    """

    input: Value = operand()
    function: Apply


class ReluGradient(Operation, mnemonic="relu_gradient", traits=Trait.IN_ARENA):
    """The gradient where relu's input is positive, else 0.

    Attributes:
        gradient: with respect to relu's output.
        input: that of relu.
    """

    gradient: Value = operand()
    input: Value = operand()

    def verify(self) -> Iterator[str]:
        yield from relations.same("operands of one shape and type", self.output, self.gradient, self.input)
