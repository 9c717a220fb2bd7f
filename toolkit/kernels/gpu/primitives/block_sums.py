"""The sum of what the threads of a block have, in the same order each time."""

from __future__ import annotations

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import KernelBuffer, Value


def sum_of_block(k: KernelBuilder, shared: KernelBuffer, value: Lanes) -> Value:
    """The sum over all threads of a block, a power of two, for each of them.

    Args:
        shared: memory of the block for a number of each thread, which may be used again behind this.
    """
    k.store(shared, k.thread, value)
    step = k.block // 2
    while step:
        k.barrier()
        with k.when(k.compare("slt", k.thread, k.number(step, "i32"))):
            both = k.add(k.load(shared, k.thread), k.load(shared, k.add(k.thread, k.number(step, "i32"))))
            k.store(shared, k.thread, both)
        step //= 2
    k.barrier()
    total = k.load(shared, k.number(0, "i32"))
    k.barrier()
    return total
