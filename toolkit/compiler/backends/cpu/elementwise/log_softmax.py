"""The logarithm of softmax as a compiled loop, of which oneDNN has fewer digits than TensorFlow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.operations import CompiledLogSoftmax
from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Span
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.kernels.cpu.native.code import TYPES
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.log_softmax import WEIGHT, log_softmax
from toolkit.kernels.cpu.native.loops import is_long
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.onednn.library import openmp_symbols


def lower_log_softmax(
    block: Block, refused: Callable[[Operation], bool], *, small: int, threads: int, long: int
) -> None:
    """Turn logarithms of softmax into compiled loops.

    Args:
        small: of fewer elements NumPy's are left.
        threads: that a plan may use.
        long: from how many instructions on lanes on threads share it.
    """
    for operation in block.operations:
        if operation.op != "LogSoftmax" or refused(operation) or not _is_fit(operation, small) or compiler() is None:
            continue
        spread = threads > 1 and is_long((operation.output.size,), WEIGHT, long) and openmp_symbols(*OPENMP)
        operation.become(CompiledLogSoftmax, input=operation.inputs[0], threads=threads if spread else 1)


def _is_fit(operation: Operation, small: int) -> bool:
    x = operation.inputs[0]
    return x.dtype in (np.float32, np.float64) and bool(x.shape) and x.size >= max(small, 1) and not x.is_constant


def write_log_softmax(emitter: Emitter, operation: CompiledLogSoftmax) -> None:
    """Call the compiled loop."""
    x, threads = operation.input, operation.threads
    assert x.shape is not None
    machine = compiler()
    assert machine is not None
    columns = x.shape[-1]
    text, given = log_softmax(x.size // columns, columns, TYPES[x.dtype.name], threads)
    symbols = openmp_symbols(*OPENMP) if threads > 1 else {}
    function = emitter.alike((write_log_softmax, text), lambda: machine.function(text, symbols))
    size = int(x.dtype.itemsize) * x.size
    emitter.execute_native(function, [Span(x, size), Span(operation.output, size), *given])
