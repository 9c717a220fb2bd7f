"""What the GPU's backend adds to calls of kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.gpu import row_nests
from toolkit.kernels.gpu.nests import NestStep


class FusedKernelCall(Operation, mnemonic="gpu_nest"):
    """Elementwise operations of one shape as one kernel: what is between them stays in registers.

    Attributes:
        shape: of what is computed.
        reads: tensors that are broadcast to it.
        strides: of each read, in elements, one for each dimension of the shape; 0 where it is broadcast.
        members: what is computed, in an order in which it can be.
        stores: what the outputs are: positions as in `NestStep.inputs`.
    """

    shape: tuple[int, ...]
    reads: tuple[Value, ...] = operands()
    strides: tuple[tuple[int, ...], ...]
    members: tuple[NestStep, ...]
    stores: tuple[int, ...]

    def computed_by(self) -> str | None:
        return f"one kernel of {len(self.members)} operations"

    def verify(self) -> Iterator[str]:
        if len(self.strides) != len(self.reads) or len(self.stores) != len(self.outputs):
            yield f"{len(self.reads)} reads, {len(self.strides)} strides, {len(self.stores)} stores"
        for output in self.outputs:
            if output.shape != self.shape:
                yield f"{relations.text(output)} of a kernel over {list(self.shape)}"
        for index, member in enumerate(self.members):
            if any(not 0 <= source < len(self.reads) + index for source in member.inputs):
                yield f"{member.op} takes what is not there yet"


class FusedRowsCall(Operation, mnemonic="gpu_rows"):
    """Elementwise operations of one shape with reductions of its last axis between them, as one kernel.

    Attributes:
        shape: of what is reduced; results are of it, or a number for each row.
        reads: tensors that are broadcast to it.
        strides: of each read, in elements, one for each dimension of the shape; 0 where it is broadcast.
        members: what is computed, in an order in which it can be (`toolkit.kernels.gpu.row_nests`).
        stores: what the outputs are: positions as in `NestStep.inputs`.
    """

    shape: tuple[int, ...]
    reads: tuple[Value, ...] = operands()
    strides: tuple[tuple[int, ...], ...]
    members: tuple[NestStep, ...]
    stores: tuple[int, ...]

    def computed_by(self) -> str | None:
        return f"one kernel of {len(self.members)} operations, whose rows are in registers"

    def verify(self) -> Iterator[str]:
        if len(self.strides) != len(self.reads) or len(self.stores) != len(self.outputs):
            yield f"{len(self.reads)} reads, {len(self.strides)} strides, {len(self.stores)} stores"
            return
        for index, member in enumerate(self.members):
            if any(not 0 <= source < len(self.reads) + index for source in member.inputs):
                yield f"{member.op} takes what is not there yet"
                return
        whole = row_nests.whole_rows(self.members, [strides[-1:] == (1,) for strides in self.strides])
        rows = self.shape[:-1]
        for output, place in zip(self.outputs, self.stores, strict=True):
            if output.shape not in ((self.shape,) if whole[place] else (rows, (*rows, 1))):
                yield f"{relations.text(output)} of a kernel over rows of {list(self.shape)}"


class LibraryProduct(Operation, mnemonic="gpu_product"):
    """activation(op(a) @ op(b) + bias): a matrix product of cuBLASLt's with its epilogue.

    Attributes:
        a: [..., k], or [k, m] where it is turned; its rows of all axes are those of one matrix.
        b: [k, n], or [n, k] where it is turned; axes before these have one element.
        bias: [n].
        turn_a, turn_b: a and b are stored transposed.
        activation: as TensorFlow's `fused_ops` name it: "Identity", "Relu", "GeluApproximate" (by tanh).
    """

    a: Value = operand()
    b: Value = operand()
    bias: Value = operand()
    turn_a: bool
    turn_b: bool
    activation: str

    @property
    def sizes(self) -> tuple[int, int, int]:
        """m, n, k."""
        a, b = relations.shape(self.a), relations.shape(self.b)
        k, n = b[:-3:-1] if self.turn_b else b[-2:]
        return (math.prod(a[:-1]) if not self.turn_a else a[-1]), n, k

    def computed_by(self) -> str | None:
        return f"cuBLASLt, with bias{'' if self.activation == 'Identity' else f' and {self.activation}'}"

    def verify(self) -> Iterator[str]:
        m, n, k = self.sizes
        a = relations.shape(self.a)
        yield from relations.vector("a product's bias", self.bias, n)
        if (a[-2] if self.turn_a else a[-1]) != k or self.output.size != m * n or self.output.shape[-1:] != (n,):
            yield f"{relations.text(self.a)} times {relations.text(self.b)} is {relations.text(self.output)}"
