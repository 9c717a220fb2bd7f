"""What the GPU's backend adds to calls of kernels."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
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
