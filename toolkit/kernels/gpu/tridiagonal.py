"""TridiagonalMatMul: matrices given by three diagonals times others, a number of the result a thread."""

from __future__ import annotations

import functools

from toolkit.kernels.cpu.linalg.solve import check_diagonals
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.factor_numbers import FactorNumbers
from toolkit.kernels.gpu.indexing import BLOCK, blocks_for
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode


@functools.cache
def product_kernel(type: str) -> SimtKernel:
    """Takes above, main, below [batch, size], rhs and y [batch, size, columns], size, columns, count of numbers."""
    k = KernelBuilder(f"tridiagonal_product_{type}", BLOCK)
    f = FactorNumbers(k, type)
    above, main, below, rhs = (f.buffer(name) for name in ("above", "main", "below", "rhs"))
    y = f.buffer("y", written=True)
    size, columns, count = (k.scalar(name, "i64") for name in ("size", "columns", "count"))
    i, zero, one = k.global_thread("i64"), k.number(0, "i64"), k.number(1, "i64")
    with k.when(k.compare("slt", i, count)):
        line = k.div(i, columns)  # of all matrices, as the diagonals have their numbers
        row = k.rem(line, size)
        total = f.variable(f.mul(f.load(main, line), f.load(rhs, i)))
        with k.when(k.compare("slt", k.add(row, one), size)):
            total.set(f.add(total.get(), f.mul(f.load(above, line), f.load(rhs, k.add(i, columns)))))
        with k.when(k.compare("sgt", row, zero)):
            total.set(f.add(total.get(), f.mul(f.load(below, line), f.load(rhs, k.sub(i, columns)))))
        f.store(y, i, total.get())
    return k.finish()


@gpu_kernel("TridiagonalMatMul")
def tridiagonal_mat_mul(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(above: GpuArray, main: GpuArray, below: GpuArray, rhs: GpuArray) -> GpuArray:
        check_diagonals(above, main, below, rhs)
        made = device.empty(rhs.shape, rhs.dtype)
        if made.size:
            size, columns = rhs.shape[-2:]
            kernel = product_kernel(rhs.dtype.name)
            device.launch(kernel, blocks_for(made.size), above, main, below, rhs, made, size, columns, made.size)
        return made

    return compute
