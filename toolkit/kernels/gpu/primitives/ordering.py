"""The order of rows that several threads would change: who is the first to name a row, and who comes next.

Floating sums in an order of the threads' choice are other bits each time. Where that must not be, a row belongs to the
thread that names it first, and it adds what the others have for it, one behind the other.

First, every number is put at the head of the list of its row, by an atomic exchange: an order by chance. Then each
goes through its list, and finds whether there is a smaller one, and the next larger one. The work is that of the
longest list for each of its members, whatever there is beside it.
"""

from __future__ import annotations

import functools

from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.primitives.copying import WORDS
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for


@functools.cache
def _listed(ids: str) -> SimtKernel:
    k = KernelBuilder(f"listed_{ids}", BLOCK)
    rows, heads = k.buffer("rows", ids), k.buffer("heads", "i32", written=True)
    below = k.buffer("below", "i32", written=True)
    n, limit = k.scalar("n", "i32"), k.scalar("limit", "i64")
    i = k.global_thread()
    with k.when(k.compare("slt", i, n)):
        row = k.convert(k.load(rows, i), "i64")
        with k.when(k.compare("ult", row, limit)):
            k.store(below, i, k.atomic("exchange", heads, row, i))
    return k.finish()


@functools.cache
def _ordered(ids: str) -> SimtKernel:
    k = KernelBuilder(f"ordered_{ids}", BLOCK)
    rows, heads, below = k.buffer("rows", ids), k.buffer("heads", "i32"), k.buffer("below", "i32")
    again, behind = k.buffer("again", "i32", written=True), k.buffer("behind", "i32", written=True)
    n, limit = k.scalar("n", "i32"), k.scalar("limit", "i64")
    zero = k.number(0, "i32")
    i = k.global_thread()
    with k.when(k.compare("slt", i, n)):
        row = k.convert(k.load(rows, i), "i64")
        is_again, following = k.variable(k.number(1, "i32")), k.variable(n)
        with k.when(k.compare("ult", row, limit)):
            is_again.set(zero)
            other = k.variable(k.load(heads, row))
            with k.while_(lambda: k.compare("sge", other.get(), zero)):
                now = other.get()
                is_again.set(k.select(k.compare("slt", now, i), k.number(1, "i32"), is_again.get()))
                nearer = k.both(k.compare("sgt", now, i), k.compare("slt", now, following.get()))
                following.set(k.select(nearer, now, following.get()))
                other.set(k.load(below, now))
        k.store(again, i, is_again.get())
        k.store(behind, i, following.get())
    return k.finish()


def order_of(device: CudaDevice, rows: GpuArray, limit: int) -> tuple[GpuArray, GpuArray]:
    """For each of n numbers of rows whether one before is the same, and the place of the next that is, or n.

    Args:
        rows: int32 or int64 [n]; those out of range are said to come again, so that nobody changes them.
        limit: how many rows there are.
    """
    count = rows.size
    again, behind, below = (device.empty((count,), "int32") for _ in range(3))
    if not count:
        return again, behind
    heads, ids = device.full((limit,), "int32", -1), WORDS[rows.dtype.itemsize]
    device.launch(_listed(ids), blocks_for(count), rows, heads, below, count, limit)
    device.launch(_ordered(ids), blocks_for(count), rows, heads, below, again, behind, count, limit)
    return again, behind
