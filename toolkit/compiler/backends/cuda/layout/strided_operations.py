"""Products whose operands lie within larger tensors, as one call of a library: what transpositions become."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cuda.libraries.base import Product

Four = tuple[int, int, int, int]
Three = tuple[int, int, int]


class StridedProduct(Operation, mnemonic="gpu_strided_product"):
    """activation(op(a) @ op(b) + bias) for each of a batch of matrices that lie at equal distances.

    The result's matrices fill it, in whatever order; those of a and b may overlap, or be one for all.

    Attributes:
        a: holds the first factors, m x k each, or k x m where they are turned.
        b: holds the second factors, k x n each, or n x k where they are turned.
        bias: holds a vector of n numbers for each product.
        sizes: m, n, k of each product.
        count: how many products.
        turn_a, turn_b: the factors are stored transposed.
        leads: elements from one stored row to the next, of a, b and the result.
        strides: elements from one product's matrices to the next one's, of a, b, the result and the bias.
        activation: as TensorFlow's `fused_ops` name it: "Identity", "Relu", "GeluApproximate" (by tanh).
    """

    a: Value = operand()
    b: Value = operand()
    bias: Value | None = operand(default=None)
    sizes: Three
    count: int
    turn_a: bool
    turn_b: bool
    leads: Three
    strides: Four
    activation: str

    @property
    def product(self) -> Product:
        """What the library is asked for, but for the epilogue."""
        (m, n, k), (lead_a, lead_b, lead_out) = self.sizes, self.leads
        step_a, step_b, step_out, step_bias = self.strides
        dtype, made = self.a.dtype.name, self.output.dtype.name
        return Product(
            m, n, k, dtype, "T" if self.turn_a else "N", "T" if self.turn_b else "N", self.count, step_a, step_b,
            step_out, made="" if made == dtype else made, lead_a=lead_a, lead_b=lead_b, lead_out=lead_out,
            stride_bias=step_bias,
        )  # fmt: skip

    def computed_by(self) -> str | None:
        bias = "" if self.bias is None else ", with bias"
        activation = "" if self.activation == "Identity" else f" and {self.activation}"
        return f"cuBLASLt, {self.count} products in place{bias}{activation}"

    def verify(self) -> Iterator[str]:
        product = self.product
        for value, stored, extent in zip((self.a, self.b, self.output), product.stored, product.extents, strict=True):
            _, columns, lead, _ = stored
            if lead < columns or extent > value.size:
                yield f"{self.count} matrices of {columns} columns, {lead} apart, in {relations.text(value)}"
        if self.output.size != self.count * product.m * product.n:
            yield f"{self.count} matrices of {product.m} x {product.n} are {relations.text(self.output)}"
        if self.bias is not None and (self.count - 1) * self.strides[3] + product.n > self.bias.size:
            yield f"{self.count} vectors of {product.n} numbers in {relations.text(self.bias)}"
