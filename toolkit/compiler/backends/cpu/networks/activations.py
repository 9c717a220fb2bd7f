"""Activations that oneDNN is slow at, taken out of its convolutions and products and computed by code of our own.

Swish costs oneDNN some twenty cycles for sixteen numbers, more than a 1x1 convolution of few channels; `quick_sigmoid`
needs half of that, and in place, while the output is still in a cache, reading it again costs little.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Span
from toolkit.compiler.backends.cpu.networks.epilogues import APPLIED, QUICK
from toolkit.compiler.backends.cpu.networks.operations import Activate
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.products import Convolution, MatMul
from toolkit.compiler.ir.post_ops import Apply
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.code import Code, Lanes
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.loops import Operand, is_long, nest
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.onednn.library import openmp_symbols
from toolkit.kernels.tensors import BF16, F32
from toolkit.target.thresholds import ActivationThresholds

_MEMORY = {F32: "float", BF16: "bfloat"}


def split_activations(block: Block, sizes: ActivationThresholds) -> None:
    """Let what ends a convolution or product with constant weights, or any product, be an operation of its own."""
    if not sizes.pays:
        return
    for operation in block.operations:
        if type(operation) is not Convolution and type(operation) is not MatMul:
            continue
        if not operation.post_ops or (isinstance(operation, Convolution) and operation.filter is not None):
            continue
        last, y = operation.post_ops[-1], operation.output
        if not isinstance(last, Apply) or last.function not in QUICK or y.size < sizes.least or y.dtype not in _MEMORY:
            continue
        if compiler() is None:
            return
        operation.post_ops = operation.post_ops[:-1]
        raw = Value(y.dtype, y.shape)
        operation.set_outputs([raw])
        made = Activate(input=raw, outputs=[y], steps=operation.steps, conditions=operation.conditions, post_op=last)
        block.insert_after(operation, [made])


def write_activate(emitter: Emitter, operation: Operation) -> None:
    """The call of a compiled loop."""
    assert isinstance(operation, Activate)
    x, y, post = operation.input, operation.output, operation.post_op

    def body(code: Code, lanes: Sequence[Lanes]) -> list[Lanes]:
        return [APPLIED[post.function](code, lanes[0], post.alpha, post.beta)]

    target = emitter.target
    weight = target.activations.weight
    symbols = openmp_symbols(*OPENMP) if is_long((y.size,), weight, target.threads.nest) else {}
    first, second = (Operand(_MEMORY[value.dtype], (1,)) for value in (x, y))
    machine = compiler()
    assert machine is not None
    text = nest((y.size,), [first], [second], body, calls=weight > target.nests.written_out, spread=bool(symbols))
    spans = [Span(value, operand.reach((y.size,))) for value, operand in ((x, first), (y, second))]
    emitter.execute_native(machine.function(text, symbols), spans)
