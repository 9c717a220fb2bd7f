"""Small kernels for tests of drivers and devices."""

from __future__ import annotations

import functools

from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel

BLOCK = 64


@functools.cache
def combine() -> SimtKernel:
    """y = a * x + b * y over n int32 numbers."""
    k = KernelBuilder("combine", block=BLOCK)
    x, y = k.buffer("x", "i32"), k.buffer("y", "i32", written=True)
    a, b, n = k.scalar("a", "i32"), k.scalar("b", "i32"), k.scalar("n", "i32")
    i = k.global_thread()
    with k.when(k.compare("slt", i, n)):
        k.store(y, i, k.add(k.mul(k.load(x, i), a), k.mul(k.load(y, i), b)))
    return k.finish()


def blocks(n: int) -> int:
    """Of a thread for each number."""
    return -(-n // BLOCK)


@functools.cache
def every_type() -> SimtKernel:
    """Takes a number of each type, and does nothing."""
    k = KernelBuilder("every_type", block=BLOCK)
    k.buffer("x", "float")
    for type in ("i1", "i8", "i16", "i32", "i64", "half", "bfloat", "float", "double"):
        k.scalar(f"a_{type}", type)
    return k.finish()
