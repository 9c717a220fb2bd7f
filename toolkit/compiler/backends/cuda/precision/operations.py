"""What `lower_precision` puts in the place of calls whose kernels know one type: 16 bits in, 16 or 32 out."""

from __future__ import annotations

import math
from collections.abc import Iterator

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value


class NarrowCopies(Operation, mnemonic="gpu_narrow"):
    """Copies of float32 tensors in 16 bits: weights, and what the step is given; one launch for many.

    Attributes:
        values: what is copied, an output for each.
        stays: they are constants, or variables of a program that does not learn: copied again when they were changed.
    """

    values: tuple[Value, ...] = operands()
    stays: bool

    def computed_by(self) -> str | None:
        kept = ", kept while these stay" if self.stays else ""
        return f"{len(self.values)} tensors as {self.output.dtype} in one launch{kept}"

    def verify(self) -> Iterator[str]:
        if len(self.values) != len(self.outputs):
            yield f"{len(self.outputs)} copies of {len(self.values)} tensors"
            return
        for value, copy in zip(self.values, self.outputs, strict=True):
            if value.shape != copy.shape:
                yield f"{relations.text(copy)} is no copy of {relations.text(value)}"


class ProductsCall(Operation, mnemonic="gpu_products"):
    """Matrix products over leading axes, which broadcast, with factors of 16 bits and sums in float32.

    Attributes:
        a: [..., m, k], or [..., k, m] where it is turned.
        b: [..., k, n], or [..., n, k] where it is turned.
        turn_a, turn_b: the last two axes are exchanged.
    """

    a: Value = operand()
    b: Value = operand()
    turn_a: bool
    turn_b: bool

    @property
    def sizes(self) -> tuple[int, int, int]:
        """m, n, k of each product."""
        a, b = relations.shape(self.a), relations.shape(self.b)
        m, k = a[:-3:-1] if self.turn_a else a[-2:]
        return m, (b[-2] if self.turn_b else b[-1]), k

    def computed_by(self) -> str | None:
        return f"cuBLASLt, {self.a.dtype} to {self.output.dtype}"

    def verify(self) -> Iterator[str]:
        b = relations.shape(self.b)
        m, n, k = self.sizes
        if (b[-1] if self.turn_b else b[-2]) != k or relations.shape(self.output)[-2:] != (m, n):
            yield f"{relations.text(self.a)} times {relations.text(self.b)} is {relations.text(self.output)}"
        if self.a.dtype != self.b.dtype:
            yield f"{relations.text(self.a)} times {relations.text(self.b)}"


class ConvolutionGradient(Operation, mnemonic="gpu_convolution_gradient"):
    """A gradient of a convolution, of operands of 16 bits; the sums are float32.

    Attributes:
        by: "input" (w, dy to dx) or "filter" (x, dy to dw).
        first: w, or x.
        dy: by the convolution's result.
    """

    by: str
    first: Value = operand()
    dy: Value = operand()

    def computed_by(self) -> str | None:
        return f"cuDNN, {self.dy.dtype} to {self.output.dtype}"

    def verify(self) -> Iterator[str]:
        if self.by not in ("input", "filter"):
            yield f"a convolution has no gradient by {self.by!r}"
        if self.first.dtype != self.dy.dtype:
            yield f"{relations.text(self.first)} beside {relations.text(self.dy)}"


class WideSum(Operation, mnemonic="gpu_sum"):
    """The sum, or mean, of 16-bit numbers over axes: added in float32, and rounded, if at all, at the end.

    Attributes:
        x: the tensor.
        axes: counted from the first, from 0.
        mean: divided by how many there are.
    """

    x: Value = operand()
    axes: tuple[int, ...]
    mean: bool

    def computed_by(self) -> str | None:
        return f"added in float32, {self.x.dtype} to {self.output.dtype}"

    def verify(self) -> Iterator[str]:
        shape = relations.shape(self.x)
        if any(not 0 <= axis < len(shape) for axis in self.axes):
            yield f"axes {list(self.axes)} of {relations.text(self.x)}"
        elif math.prod(size for axis, size in enumerate(shape) if axis not in self.axes) != self.output.size:
            yield f"{relations.text(self.output)} of {relations.text(self.x)} over axes {list(self.axes)}"
