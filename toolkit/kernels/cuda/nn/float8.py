"""Tensors as floats of 8 bits (e4m3) with one factor for the whole: the largest becomes 448, the largest there is.

Two launches and nothing that the host waits for: the first leaves the largest number that each of its blocks has seen,
in the second every block takes the largest of those, and the first block writes the factor beside the numbers. Where
the kernel that makes the tensor has left the largest number of each row, there is no first launch. Maxima are the same
in any order, and so are the bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.common import BLOCK, blocks_of, index_type, llvm_type
from toolkit.kernels.cuda.simt.arithmetic import E4M3_LARGEST
from toolkit.kernels.cuda.simt.builder import KernelBuilder, RegisterVariable
from toolkit.kernels.cuda.simt.ir import WARP, KernelBuffer, SimtKernel

#: numbers that a thread takes at a time: 16 bytes of e4m3. Tensors whose sizes are no multiple of it are not given
TOGETHER = 16
#: blocks of the first launch at most: the threads of a block of the second read a maximum each, or the rows' in turn
MOST_SHARES = BLOCK
#: the smallest factor: its inverse is far from float32's largest number, and 448 times it far from the smallest with
#: all digits (2**-126), so that tensors of zeros, or of less than 2**-91, are divided by something
_LEAST_FACTOR = 2.0**-100
_BITS_BUT_SIGN = 0x7FFFFFFF


def _largest_of_block(k: KernelBuilder, own: Lanes) -> Lanes:
    """The largest of one number (i32, not negative) of each thread, in all of them."""
    warps = BLOCK // WARP
    table = k.shared("largest", "i32", warps)
    value = _largest_of_warp(k, own, WARP)
    warp, lane = k.div(k.thread, k.number(WARP, "i32")), k.rem(k.thread, k.number(WARP, "i32"))
    with k.when(k.compare("eq", lane, k.number(0, "i32"))):
        k.store(table, warp, value)
    k.barrier()
    return _largest_of_warp(k, k.load(table, k.rem(lane, k.number(warps, "i32"))), warps)


def _largest_of_warp(k: KernelBuilder, value: Lanes, width: int) -> Lanes:
    step = width // 2
    while step:
        value = _larger(k, value, k.shuffle("xor", value, step))
        step //= 2
    return value


def _larger(k: KernelBuilder, a: Lanes, b: Lanes) -> Lanes:
    return k.select(k.compare("sgt", a, b), a, b)


#: writes how a thread comes by the numbers of a group, given the first one's place: as many each time, float
Read = Callable[[Lanes], Sequence[Lanes]]


def _reading(k: KernelBuilder, x: KernelBuffer) -> Read:
    """As they lie in memory."""

    def read(first: Lanes) -> Sequence[Lanes]:
        return [k.convert(k.load(x, k.add(first, k.number(at, first.type))), "float") for at in range(TOGETHER)]

    return read


@functools.cache
def maxima_kernel(type: str, index: str) -> SimtKernel:
    """`write_maxima` of numbers of a type in memory."""
    k = KernelBuilder(f"magnitudes_{type}", BLOCK)
    x = k.buffer("x", type)
    write_maxima(k, index, _reading(k, x), TOGETHER)
    return k.finish()


@functools.cache
def quantize_kernel(type: str, index: str) -> SimtKernel:
    """`write_quantized` of numbers of a type in memory."""
    k = KernelBuilder(f"quantize_{type}", BLOCK)
    x = k.buffer("x", type)
    write_quantized(k, index, _reading(k, x), TOGETHER)
    return k.finish()


def write_maxima(k: KernelBuilder, index: str, read: Read, together: int) -> None:
    """The largest magnitude that each block sees, as the bits of a float32: of those NaN is the largest.

    What it is launched with follows what `read` takes: the maxima, and how many groups there are.

    Args:
        together: numbers of a group.
    """
    maxima, groups = k.buffer("maxima", "i32", written=True), k.scalar("groups", index)
    largest: RegisterVariable = k.variable(k.number(0, "i32"))
    with k.loop(k.global_thread(index), groups, k.grid_threads(index)) as group:
        now: Lanes = largest.get()
        for value in read(k.mul(group, k.number(together, index))):
            bits = k.both(k.cast("bitcast", value, "i32"), k.number(_BITS_BUT_SIGN, "i32"))
            now = _larger(k, now, bits)
        largest.set(now)
    found = _largest_of_block(k, largest.get())
    with k.when(k.compare("eq", k.thread, k.number(0, "i32"))):
        k.store(maxima, k.block_index, found)


def write_quantized(k: KernelBuilder, index: str, read: Read, together: int) -> None:
    """Numbers over the factor, rounded to e4m3 and two in each i16; and the factor.

    A NaN or an infinity makes the factor NaN or infinite, and so all that it is multiplied with NaN. What it is
    launched with follows what `read` takes: the maxima, the numbers, the factor, how many groups, how many maxima.

    Args:
        together: numbers of a group.
    """
    maxima = k.buffer("maxima", "i32")
    y, factor = k.buffer("y", "i16", written=True), k.buffer("factor", "float", written=True)
    groups, shares = k.scalar("groups", index), k.scalar("shares", "i32")
    own: RegisterVariable = k.variable(k.number(0, "i32"))
    with k.loop(k.thread, shares, BLOCK) as share:
        bits = k.both(k.load(maxima, share), k.number(_BITS_BUT_SIGN, "i32"))
        own.set(_larger(k, own.get(), bits))
    largest = k.cast("bitcast", _largest_of_block(k, own.get()), "float")
    part = k.mul(largest, k.number(1 / E4M3_LARGEST, "float"))
    least = k.number(_LEAST_FACTOR, "float")
    scale: Lanes = k.select(k.compare("olt", part, least), least, part)
    inverse = k.div(k.number(1.0, "float"), scale)
    group = k.global_thread(index)
    with k.when(k.compare("eq", group, k.number(0, index))):
        k.store(factor, k.number(0, index), scale)
    with k.when(k.compare("slt", group, groups)):
        values = [k.mul(value, inverse) for value in read(k.mul(group, k.number(together, index)))]
        first = k.mul(group, k.number(together // 2, index))
        packed = [k.pack_e4m3(*values[at : at + 2]) for at in range(0, together, 2)]
        for at, pair in enumerate(packed):
            k.store(y, k.add(first, k.number(at, index)), pair)


def launch_quantize(device: Any, x: Any, y: Any, factor: Any, maxima: Any = None) -> None:
    """y, and factor, with x nearly y * factor; on the device's compute stream.

    Args:
        x: float32, float16 or bfloat16, a multiple of TOGETHER numbers and not none.
        y: float8_e4m3fn, as many.
        factor: float32 [1].
        maxima: float32, of which the largest is that of x; None where they are not known.
    """
    type, index = llvm_type(x.dtype), index_type(x)
    groups = y.nbytes // TOGETHER
    blocks = blocks_of(groups)
    if maxima is None:
        shares = min(blocks, MOST_SHARES)
        maxima = device.empty((shares,), "int32")
        device.launch(maxima_kernel(type, index), shares, x, maxima, groups)
    shares = maxima.nbytes // maxima.dtype.itemsize
    device.launch(quantize_kernel(type, index), blocks, x, maxima, y, factor, groups, shares)
