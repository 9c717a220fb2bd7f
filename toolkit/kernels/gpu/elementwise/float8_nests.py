"""Elementwise ops whose result is wanted in 8 bits alone: computed twice, and never stored in more.

The first kernel computes the numbers for the largest of each block's, the second for their e4m3: two reads of what is
given cost less than to write the result, and to read it twice.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.common import blocks_of, index_type
from toolkit.kernels.cuda.nn.float8 import BLOCK, MOST_SHARES, Read, write_maxima, write_quantized
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.elementwise.nests import NestStep, step_result, steps_name
from toolkit.kernels.gpu.primitives.element_types import Number, load, number_type, real

#: numbers of a thread: 8 bytes of e4m3; of 16 a function such as erf leaves too few registers
TOGETHER = 8


@dataclass(frozen=True, slots=True)
class Given:
    """What is read: `dtype`, NumPy's name; and whether it is one number for all, else it lies as the result does."""

    dtype: str
    is_single: bool


@functools.lru_cache(maxsize=1024)
def nest_kernels(
    steps: tuple[NestStep, ...], given: tuple[Given, ...], output: int, index: str
) -> tuple[SimtKernel, SimtKernel]:
    """The kernel of the maxima and that of the numbers.

    Args:
        steps, output: as in `nests.fused`; the output is a real floating type of at most 32 bits.
    """
    return (
        _written("magnitudes", steps, given, output, index, write_maxima),
        _written("quantize", steps, given, output, index, write_quantized),
    )


def _written(
    name: str, steps: Sequence[NestStep], given: Sequence[Given], output: int, index: str, write: Any
) -> SimtKernel:
    k = KernelBuilder(f"{name}_{steps_name(steps)}", BLOCK)
    buffers = [k.buffer(f"given{at}", number_type(each.dtype).memory) for at, each in enumerate(given)]
    write(k, index, _reading(k, buffers, steps, given, output), TOGETHER)
    return k.finish()


def _reading(
    k: KernelBuilder, buffers: Sequence[Any], steps: Sequence[NestStep], given: Sequence[Given], output: int
) -> Read:
    types = [number_type(name) for name in (*(each.dtype for each in given), *(step.dtype for step in steps))]

    def read(first: Lanes) -> Sequence[Lanes]:
        start = k.convert(first, "i64")
        loaded: list[list[Number]] = []
        for buffer, each, type in zip(buffers, given, types, strict=False):
            if each.is_single:
                loaded.append([load(k, buffer, k.number(0, "i64"), 0, type)] * TOGETHER)
            else:
                loaded.append([load(k, buffer, start, at, type) for at in range(TOGETHER)])
        made: list[Lanes] = []
        for at in range(TOGETHER):
            values = [each[at] for each in loaded]
            for step in steps:
                values.append(step_result(k, step, [values[i] for i in step.inputs], [types[i] for i in step.inputs]))
            made.append(real(values[output]))
        return made

    return read


def launch_quantized_nest(
    device: Any, steps: tuple[NestStep, ...], given: tuple[Given, ...], output: int, arrays: Sequence[Any], y: Any,
    factor: Any,
) -> None:  # fmt: skip
    """y, and factor, with the result nearly y * factor; on the device's compute stream.

    Args:
        arrays: what is read.
        y: float8_e4m3fn, a multiple of TOGETHER numbers and not none.
        factor: float32 [1].
    """
    index = index_type(*arrays, y)
    groups = y.nbytes // TOGETHER
    blocks = blocks_of(groups)
    shares = min(blocks, MOST_SHARES)
    maxima = device.empty((shares,), "int32")
    first, second = nest_kernels(steps, given, output, index)
    device.launch(first, shares, *arrays, maxima, groups)
    device.launch(second, blocks, *arrays, maxima, y, factor, groups, shares)
