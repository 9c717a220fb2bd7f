"""Floating-point tensors in another type, several in one launch: weights that tensor cores take in 16 bits.

Numbers are rounded to the nearest, ties to even; what is beyond the largest float16 becomes infinity.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.common import BLOCK, blocks_of, index_type, llvm_type
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SIZES, KernelBuffer, SimtKernel

#: tensors of one kernel, whose arguments have 4 KB: two addresses and two numbers of each of 64 take 2 KB
MOST_TOGETHER = 64
_BYTES = 16  # of the wider type that a thread takes at a time


@functools.cache
def conversion_kernel(count: int, given: str, made: str, index: str) -> SimtKernel:
    """
    Returns:
        a kernel of: for each tensor x, y, n, and the first block that is not its own.
    """
    k = KernelBuilder(f"convert_{count}_{given}_to_{made}", BLOCK)
    tensors: list[tuple[KernelBuffer, KernelBuffer, Lanes, Lanes]] = []
    for at in range(count):
        x, y = k.buffer(f"given{at}", given), k.buffer(f"made{at}", made, written=True)
        tensors.append((x, y, k.scalar(f"count{at}", index), k.scalar(f"behind{at}", "i32")))
    width = _width(given, made)
    block, thread = k.block_index, k.convert(k.thread, index)
    start: Lanes = k.number(0, "i32")
    for x, y, n, end in tensors:
        with k.when(k.both(k.compare("sge", block, start), k.compare("slt", block, end))):
            within = k.convert(k.sub(block, start), index)
            first = k.mul(k.add(k.mul(within, k.number(BLOCK, index)), thread), k.number(width, index))
            last = k.add(first, k.number(width, index))
            with k.when(k.compare("sle", last, n)):
                places = [k.add(first, k.number(at, index)) for at in range(width)]
                values = [k.load(x, place) for place in places]
                for place, value in zip(places, values, strict=True):
                    k.store(y, place, _converted(k, value, made))
            with k.otherwise(), k.loop(first, n) as place:
                k.store(y, place, _converted(k, k.load(x, place), made))
        start = end
    return k.finish()


def _converted(k: KernelBuilder, value: Any, made: str) -> Any:
    return k.convert(k.convert(value, "float"), made)


def _width(given: str, made: str) -> int:
    return max(1, _BYTES // max(SIZES[given], SIZES[made]))


def convert_into(device: Any, pairs: Sequence[tuple[Any, Any]]) -> None:
    """Write the numbers of tensors into others of another type, put into the device's compute stream.

    Args:
        pairs: what is read and what is written, of one size; all those of one type, all these of another.
    """
    pairs = [(x, y) for x, y in pairs if y.nbytes]
    for begin in range(0, len(pairs), MOST_TOGETHER):
        now = pairs[begin : begin + MOST_TOGETHER]
        given, made = llvm_type(now[0][0].dtype), llvm_type(now[0][1].dtype)
        arguments: list[Any] = []
        end = 0
        for x, y in now:
            count = y.nbytes // y.dtype.itemsize
            end += blocks_of(-(-count // _width(given, made)))
            arguments += [x, y, count, end]
        index = index_type(*(x for x, _ in now))
        device.launch(conversion_kernel(len(now), given, made, index), end, *arguments)


def converted(device: Any, arrays: Sequence[Any], dtype: Any) -> list[Any]:
    """Tensors in another type; those that have it are handed on."""
    made = [x if x.dtype == dtype else device.empty(x.shape, dtype) for x in arrays]
    convert_into(device, [(x, y) for x, y in zip(arrays, made, strict=True) if y is not x])
    return made
