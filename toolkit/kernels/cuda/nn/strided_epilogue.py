"""What follows products of a batch whose rows lie apart: a bias of each product's own, and an activation."""

from __future__ import annotations

import functools
from typing import Any

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.channels import activation
from toolkit.kernels.cuda.nn.common import BLOCK, blocks_of, index_type, llvm_type, place, split, sum_type
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel


@functools.cache
def strided_epilogue_kernel(type: str, vector_type: str, index: str, name: str) -> SimtKernel:
    """y = activation(y + bias), in place.

    Args:
        type: of y in memory.
        vector_type: of the bias in memory; "" where there is none.
        name: of the activation.
    """
    wide = sum_type(type)
    k = KernelBuilder("_".join(["strided_epilogue", type, *(["bias"] if vector_type else []), name]), BLOCK)
    y = k.buffer("y", type, written=True)
    bias = k.buffer("bias", vector_type) if vector_type else None
    count, rows, columns = (k.scalar(each, index) for each in ("count", "rows", "columns"))
    step, lead = k.scalar("step", index), k.scalar("lead", index)
    bias_step = k.scalar("bias_step", index) if vector_type else None
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, count)):
        which, row, column = split(k, i, rows, columns)
        where = k.add(place(k, [which, row], [step, lead]), column)
        value: Lanes = k.convert(k.load(y, where), wide)
        if bias is not None and bias_step is not None:
            own = k.load(bias, k.add(k.mul(which, bias_step), column))
            value = k.add(value, k.convert(own, wide))
        write = activation(name, 0.0)
        assert write is not None
        k.store(y, where, k.convert(write(k, value), type))
    return k.finish()


def launch_strided_epilogue(
    device: Any, y: Any, batch: int, sizes: tuple[int, int], strides: tuple[int, int], *, bias: Any = None,
    bias_stride: int = 0, name: str = "Identity",
) -> None:  # fmt: skip
    """On the device's compute stream.

    Args:
        sizes: rows and columns of each of a batch.
        strides: elements from one of the batch to the next, and from row to row.
        bias_stride: elements from the bias of one to the next one's.
        name: of an activation, in TensorFlow's `fused_ops`.
    """
    count = batch * sizes[0] * sizes[1]
    kernel = strided_epilogue_kernel(
        llvm_type(y.dtype), "" if bias is None else llvm_type(bias.dtype), index_type(y), name
    )
    given, last = ((), ()) if bias is None else ((bias,), (bias_stride,))
    device.launch(kernel, blocks_of(count), y, *given, count, *sizes, *strides, *last)
