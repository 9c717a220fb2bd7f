"""From which sizes on which way to compute something pays, by family; a `Target` has one of each.

Defaults are what was measured on processors with AVX-512. A processor on which something else was measured has a row
(`rows`) that says so.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Batches:
    """Large batches in shares, one for each thread (`transforms/batches`).

    Attributes:
        least_examples: in a share; fewer leave the processor's registers empty.
        least_work: multiplications of a batch below which shares are not worth the hand-over.
        large: bytes of a tensor beyond which two pieces after each other take less time than one.
    """

    least_examples: int = 4
    least_work: float = 1e9
    large: int = 1 << 25


@dataclass(frozen=True, slots=True)
class Winograd:
    """Convolutions by Winograd's algorithm (`networks/windows`, `networks/winograd`).

    Attributes:
        transformed: what a number costs when it is transformed, in multiplications.
        read: what one costs when it is read from the filters, likewise.
        least_work: multiplications of a convolution that is worth the compiler's time.
        gain: of the definition's cost, above which nothing is changed.
        most_sums: bytes of sums for a gradient, of each share.
        block: tiles at a time: they stay in the cache, and filters are read as seldom as may be.
        odd: tiles in a block from which on one more is taken, if need be, to have an odd number of them.
    """

    transformed: float = 15
    read: float = 20
    least_work: float = 1e7
    gain: float = 0.85
    most_sums: int = 1 << 24
    block: int = 64
    odd: int = 16
