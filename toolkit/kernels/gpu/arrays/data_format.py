"""DataFormatDimMap and DataFormatVecPermute: a handful of numbers from one layout of tensors to another."""

from __future__ import annotations

import functools

from toolkit.kernels.cpu.arrays.misc import check_permuted, format_tables
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.primitives.copying import WORDS
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode


def _looked_up(k: KernelBuilder, table: tuple[int, ...], at: Lanes) -> Lanes:
    found: Lanes = k.number(table[0], at.type)
    for place, value in enumerate(table[1:], 1):
        found = k.select(k.compare("eq", at, k.number(place, at.type)), k.number(value, at.type), found)
    return found


@functools.cache
def _mapped(type: str, table: tuple[int, ...]) -> SimtKernel:
    """Negative numbers count from the end."""
    k = KernelBuilder(f"dim_map_{type}", BLOCK)
    x, y, n = k.buffer("x", type), k.buffer("y", type, written=True), k.scalar("n", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, n)):
        at: Lanes = k.load(x, i)
        at = k.select(k.compare("slt", at, k.number(0, type)), k.add(at, k.number(len(table), type)), at)
        k.store(y, i, _looked_up(k, table, at))
    return k.finish()


@functools.cache
def _permuted(type: str, table: tuple[int, ...]) -> SimtKernel:
    """Rows of `inner` numbers in another order."""
    k = KernelBuilder(f"vec_permute_{type}", BLOCK)
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    n, inner = k.scalar("n", "i32"), k.scalar("inner", "i32")
    i = k.global_thread()
    with k.when(k.compare("slt", i, n)):
        row = _looked_up(k, table, k.div(i, inner))
        k.store(y, i, k.load(x, k.add(k.mul(row, inner), k.rem(i, inner))))
    return k.finish()


@gpu_kernel("DataFormatDimMap")
def dim_map(op: KernelNode) -> Compute:
    device, table = device_of(op.node), tuple(format_tables(op)[0])

    def compute(x: GpuArray) -> GpuArray:
        y = device.empty(x.shape, x.dtype)
        device.launch(_mapped(WORDS[x.dtype.itemsize], table), blocks_for(x.size), x, y, x.size)
        return y

    return compute


@gpu_kernel("DataFormatVecPermute")
def vec_permute(op: KernelNode) -> Compute:
    device, tables = device_of(op.node), format_tables(op)[1:]

    def compute(x: GpuArray) -> GpuArray:
        table = tuple(tables[check_permuted(x, len(tables[0]))])
        y = device.empty(x.shape, x.dtype)
        kernel = _permuted(WORDS[x.dtype.itemsize], table)
        device.launch(kernel, blocks_for(x.size), x, y, x.size, x.size // x.shape[0])
        return y

    return compute
