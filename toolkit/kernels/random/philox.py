"""Philox 4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC11), vectorised.

A generator is a 128-bit counter and a 64-bit key; block i of its output is the encryption of counter + i, four
32-bit words. TensorFlow seeds it with the key from `seed` and the upper half of the counter from `seed2`.
"""

from __future__ import annotations

import numpy as np

from toolkit.kernels.types import Array

_MASK64 = 2**64 - 1
_MASK128 = 2**128 - 1
_WEYL = (np.uint32(0x9E3779B9), np.uint32(0xBB67AE85))
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ROUNDS = 10


class Philox:
    """A generator's state.

    Attributes:
        counter: 128 bits.
        key: 64 bits.
    """

    __slots__ = ("counter", "key")

    def __init__(self, counter: int, key: int):
        self.counter = counter & _MASK128
        self.key = key & _MASK64

    @staticmethod
    def seeded(seed: int, seed2: int) -> Philox:
        """The generator of an op with these two seeds."""
        return Philox((seed2 & _MASK64) << 64, seed)

    def copy(self) -> Philox:
        return Philox(self.counter, self.key)

    def skip(self, blocks: int) -> None:
        """Move on by so many blocks of four words."""
        self.counter = (self.counter + blocks) & _MASK128

    def blocks(self, count: int, start: int = 0, stride: int = 1) -> Array:
        """uint32 [count, 4]: the blocks at start, start + stride, ... from here; the state does not change."""
        return encrypt(_counters((self.counter + start) & _MASK128, count, stride), self.key)


def _counters(first: int, count: int, stride: int) -> Array:
    """uint32 [4, count]: the words, lowest first, of first + i * stride."""
    low, high = first & _MASK64, first >> 64
    steps = np.arange(count, dtype=np.uint64) * np.uint64(stride)
    lower = steps + np.uint64(low)
    upper = np.full(count, high, np.uint64) + (lower < np.uint64(low)).astype(np.uint64)
    out = np.empty((4, count), np.uint32)
    out[0], out[1] = lower & _LOW, lower >> _HALF
    out[2], out[3] = upper & _LOW, upper >> _HALF
    return out


def encrypt(counters: Array, key: int) -> Array:
    """uint32 [count, 4] of uint32 [4, count] counters."""
    c0, c1, c2, c3 = counters
    k0, k1 = np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32)
    with np.errstate(over="ignore"):
        for number in range(_ROUNDS):
            if number:
                k0, k1 = k0 + _WEYL[0], k1 + _WEYL[1]
            a = c0.astype(np.uint64) * _MULTIPLIERS[0]
            b = c2.astype(np.uint64) * _MULTIPLIERS[1]
            c0, c1, c2, c3 = (
                (b >> _HALF).astype(np.uint32) ^ c1 ^ k0,
                (b & _LOW).astype(np.uint32),
                (a >> _HALF).astype(np.uint32) ^ c3 ^ k1,
                (a & _LOW).astype(np.uint32),
            )
    return np.stack([c0, c1, c2, c3], axis=1)
