"""What `lower_float8` makes of products with weights: tensors as 8-bit floats with a factor, and products of them."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.compiler.backends.cuda.layout.strided_operations import Four, Three
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cuda.libraries.base import EIGHT_BITS, Product
from toolkit.kernels.gpu.elementwise.nests import NestStep
from toolkit.kernels.tensors import BF16, F8, F32


class QuantizeCall(Operation, mnemonic="gpu_quantize"):
    """A tensor as e4m3, and the factor (float32 [1]) that makes it what it was: its largest magnitude over 448.

    Attributes:
        x: the tensor.
        maxima: float32; the largest magnitude of each of its rows, where the kernel that makes it leaves them.
        turned: its last two axes are exchanged.
        stays: it is a constant, or a variable of a program that does not learn: quantized again when it was changed.
    """

    x: Value = operand()
    maxima: Value | None = operand(default=None)
    turned: bool
    stays: bool

    def computed_by(self) -> str | None:
        turned, kept = ", transposed" if self.turned else "", ", kept while it stays" if self.stays else ""
        known = "" if self.maxima is None else " of known maxima"
        return f"{self.x.dtype} to {self.output.dtype} with a factor{known}{turned}{kept}"

    def verify(self) -> Iterator[str]:
        if len(self.outputs) != 2:
            yield f"{len(self.outputs)} outputs; expected a copy and its factor"
            return
        copy, factor = self.outputs
        shape = relations.shape(self.x)
        if self.turned:
            shape = (*shape[:-2], *shape[:-3:-1])
        if copy.shape != shape or copy.dtype != F8 or factor.shape != (1,) or factor.dtype != F32:
            yield f"{relations.text(copy)} and {relations.text(factor)} of {relations.text(self.x)}"
        if self.maxima is not None and (self.maxima.dtype != F32 or self.maxima.shape != shape[:-1] or self.turned):
            yield f"{relations.text(self.maxima)} are the maxima of {relations.text(self.x)}"


class QuantizedNest(Operation, mnemonic="gpu_quantized_nest"):
    """Elementwise operations of one shape as e4m3 and a factor, as `QuantizeCall` makes them of a tensor.

    Attributes:
        shape: of what is computed.
        reads: tensors of the shape, and single numbers.
        members: what is computed, in an order in which it can be.
        place: what is quantized: a position as in `NestStep.inputs`.
    """

    shape: tuple[int, ...]
    reads: tuple[Value, ...] = operands()
    members: tuple[NestStep, ...]
    place: int

    def computed_by(self) -> str | None:
        return f"{len(self.members)} operations, twice, as {self.output.dtype} with a factor"

    def verify(self) -> Iterator[str]:
        for value in self.reads:
            if value.shape != self.shape and value.size != 1:
                yield f"{relations.text(value)} in operations over {list(self.shape)}"
        for index, member in enumerate(self.members):
            if any(not 0 <= source < len(self.reads) + index for source in member.inputs):
                yield f"{member.op} takes what is not there yet"
        shapes = [(value.shape, value.dtype) for value in self.outputs]
        if shapes != [(self.shape, F8), ((1,), F32)]:
            yield f"{shapes} of operations over {list(self.shape)}"


class Float8Product(Operation, mnemonic="gpu_float8_product"):
    """activation(a @ b^T * factors + bias) for each of a batch of matrices that lie at equal distances.

    Attributes:
        a: holds the first factors, m x k each, in e4m3.
        b: holds the second factors, n x k each, likewise.
        a_factor, b_factor: float32 [1].
        bias: bfloat16; holds a vector of n numbers for each product.
        sizes: m, n, k of each product.
        count: how many products.
        leads: elements from one stored row to the next, of a, b and the result.
        strides: elements from one product's matrices to the next one's, of a, b, the result and the bias.
        activation: as TensorFlow's `fused_ops` name it: "Identity", "Relu", "GeluApproximate" (by tanh).
    """

    a: Value = operand()
    b: Value = operand()
    a_factor: Value = operand()
    b_factor: Value = operand()
    bias: Value | None = operand(default=None)
    sizes: Three
    count: int
    leads: Three
    strides: Four
    activation: str

    @property
    def product(self) -> Product:
        """What the library is asked for, but for the epilogue."""
        return product_of(self.sizes, self.count, self.leads, self.strides, self.output.dtype.name)

    def computed_by(self) -> str | None:
        many = f", {self.count} products in place" if self.count > 1 else ""
        bias = "" if self.bias is None else ", with bias"
        activation = "" if self.activation == "Identity" else f" and {self.activation}"
        return f"cuBLASLt, {self.a.dtype} to {self.output.dtype}{many}{bias}{activation}"

    def verify(self) -> Iterator[str]:
        product = self.product
        for value, stored, extent in zip((self.a, self.b, self.output), product.stored, product.extents, strict=True):
            _, columns, lead, _ = stored
            if lead < columns or extent > value.size:
                yield f"{self.count} matrices of {columns} columns, {lead} apart, in {relations.text(value)}"
        if (self.a.dtype, self.b.dtype) != (F8, F8):
            yield f"{relations.text(self.a)} times {relations.text(self.b)}"
        if self.output.size != self.count * product.m * product.n:
            yield f"{self.count} matrices of {product.m} x {product.n} are {relations.text(self.output)}"
        if self.bias is not None and (
            self.bias.dtype != BF16 or (self.count - 1) * self.strides[3] + product.n > self.bias.size
        ):
            yield f"{self.count} vectors of {product.n} numbers in {relations.text(self.bias)}"


def product_of(sizes: Three, count: int, leads: Three, strides: Four, made: str) -> Product:
    """A product of 8-bit factors as the library takes it, the second one transposed.

    Args:
        made: the result's type.
    """
    (m, n, k), (lead_a, lead_b, lead_out) = sizes, leads
    step_a, step_b, step_out, step_bias = strides
    return Product(
        m, n, k, EIGHT_BITS, "N", "T", count, step_a, step_b, step_out, made=made, lead_a=lead_a, lead_b=lead_b,
        lead_out=lead_out, stride_bias=step_bias,
    )  # fmt: skip
