"""Sums over many positions, shared out to blocks: each adds up a share, then one kernel the shares, in their order.

So the same bits come out each time, which atomic additions do not promise.
"""

from __future__ import annotations

import functools

from toolkit.kernels.cuda.nn.common import BLOCK, sum_type
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel

#: enough threads to keep a large GPU busy: 132 multiprocessors of 2048
_THREADS = 1 << 18
#: positions of a share at least, so that what the second kernel reads is little beside what the first one did
_LEAST = 256


def shares_of(positions: int, numbers: int) -> tuple[int, int]:
    """How many shares there are for each of so many sums, and the positions of one."""
    wanted = max(1, min(_THREADS // max(numbers, 1), positions // _LEAST))
    length = max(1, -(-positions // wanted))
    return max(1, -(-positions // length)), length


@functools.cache
def finish_kernel(type: str) -> SimtKernel:
    """Adds up the shares of each sum."""
    wide = sum_type(type)
    k = KernelBuilder(f"sum_of_shares_{type}", BLOCK)
    partial, out = k.buffer("shares", wide), k.buffer("out", type, written=True)
    shares, numbers = k.scalar("count", "i32"), k.scalar("numbers", "i32")
    i = k.global_thread()
    with k.when(k.compare("slt", i, numbers)):
        total = k.variable(k.number(0, wide))
        with k.loop(k.number(0, "i32"), shares) as share:
            total.set(k.add(total.get(), k.load(partial, k.add(k.mul(share, numbers), i))))
        k.store(out, i, k.convert(total.get(), type))
    return k.finish()
