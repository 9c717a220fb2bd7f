"""A target: a processor that code is made for, as far as decisions of the compiler depend on it."""

from __future__ import annotations

from typing import NamedTuple

from toolkit.target.thresholds import (
    ActivationThresholds,
    BatchThresholds,
    CopyThresholds,
    DepthwiseThresholds,
    KernelThresholds,
    LoopThresholds,
    NestThresholds,
    PackedGemmThresholds,
    PoolThresholds,
    PrimitiveThresholds,
    RecurrentThresholds,
    StripThresholds,
    TableThresholds,
    ThreadThresholds,
    WinogradThresholds,
)


class Vectors(NamedTuple):
    """The instructions of a processor.

    Attributes:
        name: of the instruction set: "avx512", "avx2", "neon" or "baseline".
        lanes: float32 numbers in a register.
        registers: that hold vectors.
        bfloat16: products of bfloat16 numbers take half the time of those of float32.
        exact_int8: sums of products of 8-bit numbers are exact; else pairs of them saturate at 16 bits.
    """

    name: str
    lanes: int
    registers: int
    bfloat16: bool = False
    exact_int8: bool = False


class Caches(NamedTuple):
    """Sizes in bytes; those of a core, but for the last, which cores share."""

    first: int
    second: int
    last: int


class Rates(NamedTuple):
    """How fast one core is, as `python -m tests.bench.target` measures it.

    Attributes:
        float32, bfloat16, int8: multiplications with an addition each, in a second; 0 where there are none.
        copied: bytes that are copied in memory in a second.
        numpy_call: seconds that the smallest function of NumPy takes.
        primitive_call: seconds that the smallest primitive of oneDNN takes.
        native_call: seconds that the smallest compiled function takes.
        threads_call: seconds that two threads take to start on something and to meet again.
    """

    float32: float
    bfloat16: float
    int8: float
    copied: float
    numpy_call: float
    primitive_call: float
    native_call: float
    threads_call: float


class Target(NamedTuple):
    """A processor that code is made for.

    Attributes:
        name: of the row (`rows`).
        vectors, caches, rates: what it is.
        models: how Linux names the processors that the row is for, by the beginning; none for all that have its
            instructions and no row of their own.

    From which sizes on something pays, each family's thresholds have an attribute of their own (`thresholds`).
    """

    name: str
    vectors: Vectors
    caches: Caches
    rates: Rates
    models: tuple[str, ...] = ()
    threads: ThreadThresholds = ThreadThresholds()
    batches: BatchThresholds = BatchThresholds()
    primitives: PrimitiveThresholds = PrimitiveThresholds()
    kernels: KernelThresholds = KernelThresholds()
    copies: CopyThresholds = CopyThresholds()
    nests: NestThresholds = NestThresholds()
    loops: LoopThresholds = LoopThresholds()
    tables: TableThresholds = TableThresholds()
    pools: PoolThresholds = PoolThresholds()
    winograd: WinogradThresholds = WinogradThresholds()
    packed_gemm: PackedGemmThresholds = PackedGemmThresholds()
    depthwise: DepthwiseThresholds = DepthwiseThresholds()
    recurrent: RecurrentThresholds = RecurrentThresholds()
    strips: StripThresholds = StripThresholds()
    activations: ActivationThresholds = ActivationThresholds()
