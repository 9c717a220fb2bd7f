"""The targets that there are: a row for each processor, or kind of processor, that something was measured on."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from toolkit.target import processor
from toolkit.target.target import Caches, Rates, Target, Vectors
from toolkit.target.thresholds import (
    ActivationThresholds,
    DepthwiseThresholds,
    PackedGemmThresholds,
    RecurrentThresholds,
)

#: thresholds measured on a Sapphire Rapids and a Zen 4; caches and rates are estimates, by which nothing is decided yet
AVX512 = Target(
    name="avx512",
    vectors=Vectors("avx512", lanes=16, registers=32),
    caches=Caches(first=32 << 10, second=1 << 20, last=32 << 20),
    rates=Rates(
        float32=9e10, bfloat16=1.8e11, int8=3.6e11, copied=1e10,
        numpy_call=5e-7, primitive_call=2e-6, native_call=3e-7, threads_call=5e-6,
    ),
)  # fmt: skip
#: measured on a Zen 3 whose memory others used meanwhile
AVX2 = Target(
    name="avx2",
    vectors=Vectors("avx2", lanes=8, registers=16),
    caches=Caches(first=32 << 10, second=512 << 10, last=32 << 20),
    rates=Rates(
        float32=4.9e10, bfloat16=0, int8=9e10, copied=3.1e9,
        numpy_call=4.4e-7, primitive_call=1.5e-6, native_call=4e-7, threads_call=1.3e-6,
    ),
    # beside oneDNN's, by themselves: packed products with tiles of 6 x 1, which fit 16 registers, 0.77 to 1.16 of the
    # time; depthwise ones 0.81 to 1.22, depending on tiles; swish 1.01 to 1.12. With the first a whole
    # ResNet-50 took 0.97 to 1.07 of it in three runs, whose noise was as large; with the second MobileNetV2 1.00
    packed_gemm=PackedGemmThresholds(pays=False),
    depthwise=DepthwiseThresholds(pays=False),
    activations=ActivationThresholds(pays=False),
)  # fmt: skip
#: for processors on which nothing was measured
BASELINE = AVX2._replace(
    name="baseline",
    vectors=Vectors("baseline", lanes=4, registers=16),
    # there may be no instruction that multiplies and adds
    recurrent=RecurrentThresholds(pays=False),
)
#: 64-bit Arm processors. Nothing was measured on one: code for them only ran on an emulator
NEON = BASELINE._replace(
    name="neon",
    vectors=Vectors("neon", lanes=4, registers=32),
    # all of them multiply and add, and without oneDNN the other way is a loop in which each operation is by itself
    recurrent=RecurrentThresholds(),
)

#: looked through in this order
ROWS: Sequence[Target] = (AVX512, AVX2, NEON, BASELINE)
#: what decides, best first: instructions by what Linux calls them; all 64-bit Arm processors have vectors
_FLAGS = {processor.X86: (("avx512", "avx512f"), ("avx2", "avx2"))}
_LEAST = {processor.AARCH64: "neon"}


def current() -> Target:
    """The row of this processor, or of the level that GRAPHMILL_CPU names.

    Raises:
        UsageError: there is no such level.
    """
    return _found(processor.level())


@functools.cache
def _found(level: str) -> Target:
    if level:
        return row_of(processor.LEVELS[level].instructions)
    machine = processor.machine()
    least = _LEAST.get(machine, "baseline")
    instructions = next((name for name, flag in _FLAGS.get(machine, ()) if processor.has(flag)), least)
    row = row_of(instructions, processor.model())
    exact = processor.has("avx512_vnni") or processor.has("avx_vnni")
    return row._replace(vectors=row.vectors._replace(bfloat16=processor.has("avx512_bf16"), exact_int8=exact))


def row_of(instructions: str, model: str = "", rows: Sequence[Target] = ROWS) -> Target:
    """The row of a processor with these instructions: one that names its model, else one that names none."""
    same = [row for row in rows if row.vectors.name == instructions]
    named = [row for row in same if model and model.startswith(row.models or ("\0",))]
    return (named + [row for row in same if not row.models])[0]
