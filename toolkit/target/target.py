"""A target: a processor that code is made for, as far as decisions of the compiler depend on it."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.target.thresholds import (
    Activations,
    Batches,
    Copies,
    Depthwise,
    Kernels,
    Loops,
    Nests,
    PackedGemm,
    Pools,
    Primitives,
    Strips,
    Tables,
    Threads,
    Winograd,
)


@dataclass(frozen=True, slots=True)
class Vectors:
    """The instructions of a processor.

    Attributes:
        name: of the instruction set: "avx512", "avx2" or "baseline".
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


@dataclass(frozen=True, slots=True)
class Caches:
    """Sizes in bytes; those of a core, but for the last, which cores share."""

    first: int
    second: int
    last: int


@dataclass(frozen=True, slots=True)
class Rates:
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


@dataclass(frozen=True, slots=True)
class Target:
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
    threads: Threads = field(default_factory=Threads)
    batches: Batches = field(default_factory=Batches)
    primitives: Primitives = field(default_factory=Primitives)
    kernels: Kernels = field(default_factory=Kernels)
    copies: Copies = field(default_factory=Copies)
    nests: Nests = field(default_factory=Nests)
    loops: Loops = field(default_factory=Loops)
    tables: Tables = field(default_factory=Tables)
    pools: Pools = field(default_factory=Pools)
    winograd: Winograd = field(default_factory=Winograd)
    packed_gemm: PackedGemm = field(default_factory=PackedGemm)
    depthwise: Depthwise = field(default_factory=Depthwise)
    strips: Strips = field(default_factory=Strips)
    activations: Activations = field(default_factory=Activations)
