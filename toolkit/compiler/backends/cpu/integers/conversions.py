"""Floats to 8-bit numbers and back, each by a primitive of oneDNN."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.primitives import Operand, fixed, make, refusals
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.primitive import Arg, Binary, Eltwise, EltwisePost, Quantization, reorder


class Quantize(Operation, mnemonic="quantize", traits=Trait.IN_ARENA):
    """x / unit + zero, clipped to low..high and rounded, as uint8.

    Attributes:
        input: float32.
    """

    input: Value = operand()
    unit: float
    zero: int
    low: int
    high: int

    def verify(self) -> Iterator[str]:
        x, y = relations.shapes(self.input, self.output)
        if x != y:
            yield f"{list(x)} is quantized to {list(y)}"


class Dequantize(Operation, mnemonic="dequantize", traits=Trait.IN_ARENA):
    """(x - zero) * unit, as float32.

    Attributes:
        input: uint8.
    """

    input: Value = operand()
    unit: float
    zero: int

    def verify(self) -> Iterator[str]:
        x, y = relations.shapes(self.input, self.output)
        if x != y:
            yield f"{list(x)} is dequantized to {list(y)}"


def write_quantize(emitter: Emitter, operation: Quantize) -> None:
    """The larger of x and x, which is what oneDNN has code for with such post-ops."""
    x, y = operation.input, operation.output
    source, target = memory.dense((1, x.size), x.dtype), memory.dense((1, x.size), y.dtype)
    posts = [EltwisePost(Eltwise.LINEAR, 1.0 / operation.unit, operation.zero)]
    if (operation.low, operation.high) != (0, 255):  # else saturation clips
        posts.append(EltwisePost(Eltwise.CLIP, operation.low, operation.high))
    primitive = make(operation, "binary", Binary.MAX, source, source, target, posts=posts)
    emitter.execute(primitive, [(Arg.SRC, x, source), (Arg.SRC_1, x, source), (Arg.DST, y, target)])


def write_dequantize(emitter: Emitter, operation: Dequantize) -> None:
    """A copy to another type, with a scale and a zero point."""
    x, y = operation.input, operation.output
    source, target = memory.dense((x.size,), x.dtype), memory.dense((x.size,), y.dtype)
    zeros = {Arg.SRC: 0} if operation.zero else {}
    with refusals(operation):
        primitive = reorder(source, target, Quantization({Arg.SRC: 0}, zeros))
    operands: list[Operand] = [(Arg.SRC, x, source), (Arg.DST, y, target)]
    operands.append((Arg.SCALES_OF | Arg.SRC, fixed(np.array([operation.unit], np.float32)), None))
    if operation.zero:
        operands.append((Arg.ZERO_OF | Arg.SRC, fixed(np.array([operation.zero], np.int32)), None))
    emitter.execute(primitive, operands)
