"""Philox 4x32-10 (Salmon et al. 2011), one 32-bit number at a time, for shuffling queues and datasets."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

_MASK = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


class Philox:
    """A stream of uniform 32-bit numbers, the same as TensorFlow's `PhiloxRandom(seed, seed2)` in order.

    Args:
        seed, seed2: 64-bit numbers, taken modulo 2**64. Both zero: seeded from the system's entropy.
        nondeterministic_zero: whether two zeros mean a random seed.
    """

    def __init__(self, seed: int, seed2: int, *, nondeterministic_zero: bool = True):
        if nondeterministic_zero and not seed and not seed2:
            seed, seed2 = secrets.randbits(64), secrets.randbits(64)
        self._key = (seed & _MASK, seed >> 32 & _MASK)
        self._high = seed2 & (2**64 - 1)
        self._low = 0  # the lower 64 bits of the counter; 2**64 blocks are never used up
        self._block: Iterator[int] = iter(())

    def next(self) -> int:
        """The next number in [0, 2**32)."""
        for value in self._block:
            return value
        self._block = iter(self._next_block())
        return next(self._block)

    def next64(self) -> int:
        """Two numbers as one of 64 bits, the first one lowest."""
        low = self.next()
        return self.next() << 32 | low

    def skip_blocks(self, count: int) -> None:
        """Leave out `count` blocks of four numbers."""
        self._low += count

    def _next_block(self) -> tuple[int, int, int, int]:
        c0, c1 = self._low & _MASK, self._low >> 32 & _MASK
        c2, c3 = self._high & _MASK, self._high >> 32
        self._low += 1
        k0, k1 = self._key
        for _ in range(10):
            p0, p1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
            c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _MASK, (p0 >> 32) ^ c3 ^ k1, p0 & _MASK
            k0, k1 = (k0 + _WEYL[0]) & _MASK, (k1 + _WEYL[1]) & _MASK
        return c0, c1, c2, c3
