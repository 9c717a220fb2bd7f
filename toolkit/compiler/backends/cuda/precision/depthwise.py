"""Depthwise convolutions and their gradients with factors of 16 bits, added in float32 by kernels of our own."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value

#: the ops: what their results are, and the places of their two tensors
DEPTHWISE = {
    "DepthwiseConv2dNative": ("result", (0, 1)),
    "DepthwiseConv2dNativeBackpropInput": ("input", (1, 2)),
    "DepthwiseConv2dNativeBackpropFilter": ("filter", (0, 2)),
}


class DepthwiseCall(Operation, mnemonic="gpu_depthwise"):
    """A depthwise convolution, or a gradient of one, with operands of 16 bits; the sums are float32.

    Attributes:
        makes: "result" (of x and w), "input" (its gradient, of w and dy) or "filter" (its gradient, of x and dy).
        first: x, or w.
        second: w, or dy.
    """

    makes: str
    first: Value = operand()
    second: Value = operand()

    def computed_by(self) -> str | None:
        return f"a kernel, {self.second.dtype} to {self.output.dtype}"

    def verify(self) -> Iterator[str]:
        if self.makes not in {makes for makes, _ in DEPTHWISE.values()}:
            yield f"a depthwise convolution has no {self.makes!r}"
        if self.first.dtype != self.second.dtype:
            yield f"{relations.text(self.first)} beside {relations.text(self.second)}"
