"""Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), over arrays of counters.

A generator is a 64-bit key and a 128-bit counter; each counter value gives a block of four uint32.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from toolkit.forks import free_in_children
from toolkit.kernels.types import Array

_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
#: what the first and third part of a counter are multiplied by in each round, and what is added to the key's halves
MULTIPLIERS, KEY_STEPS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
_M0, _M1 = map(np.uint64, MULTIPLIERS)
_W0, _W1 = KEY_STEPS
_U64 = (1 << 64) - 1
_U128 = (1 << 128) - 1

#: blocks computed at once, so that the ten rounds stay in the cache
_CHUNK = 1 << 13
#: up to so many blocks are computed in whole numbers: an array's operation costs more than its few elements
_FEW = 256


@dataclass(frozen=True, slots=True)
class Philox:
    """A generator at a position.

    Attributes:
        key: 64 bits.
        counter: 128 bits, the number of the next block.
    """

    key: int
    counter: int

    @staticmethod
    def seeded(seed: int, seed2: int) -> Philox:
        """The generator of a stateful op: the key is `seed`, the upper half of the counter `seed2`."""
        return Philox(seed & _U64, (seed2 & _U64) << 64)

    @staticmethod
    def scrambled(seed: int, seed2: int) -> Philox:
        """The generator of a stateless op: its key and counter are one block made from the two seeds."""
        mixed = Philox(0x02461E293EC8F720, (seed2 & _U64) << 64 | seed & _U64).blocks(1)[0].tolist()
        return Philox(mixed[0] | mixed[1] << 32, (mixed[2] | mixed[3] << 32) << 64)

    def skip(self, blocks: int) -> Philox:
        return Philox(self.key, (self.counter + blocks) & _U128)

    def blocks(self, count: int) -> Array:
        """The next `count` blocks, uint32 [count, 4]."""
        if 0 < count <= _FEW and (self.counter & 0xFFFFFFFF) + count <= 1 << 32:
            return _few(self.counter, count, self.key)
        out = np.empty((count, 4), np.uint32)
        for start in range(0, count, _CHUNK):
            stop = min(start + _CHUNK, count)
            out[start:stop] = self._at(np.arange(start, stop, dtype=np.uint64))
        return out

    def blocks_at(self, offsets: Array) -> Array:
        """The blocks at these distances (uint64) from here, uint32 [..., 4]."""
        flat = offsets.reshape(-1)
        out = np.empty((flat.size, 4), np.uint32)
        for start in range(0, flat.size, _CHUNK):
            out[start : start + _CHUNK] = self._at(flat[start : start + _CHUNK])
        return out.reshape(*offsets.shape, 4)

    def _at(self, offsets: Array) -> Array:
        low = np.uint64(self.counter & _U64) + offsets.astype(np.uint64)
        high = np.uint64(self.counter >> 64) + (low < offsets)
        return _rounds(low & _MASK, low >> _SHIFT, high & _MASK, high >> _SHIFT, self.key)

    def words(self, count: int) -> Array:
        """The next `count` numbers, uint32 [count]; the last block may be used in part."""
        return self.blocks(-(-count // 4)).reshape(-1)[:count]


def _rounds(c0: Array, c1: Array, c2: Array, c3: Array, key: int) -> Array:
    """Ten rounds over counters [n] held as 32-bit numbers in uint64 arrays, which are overwritten: uint32 [n, 4]."""
    p0, p1 = np.empty_like(c0), np.empty_like(c0)
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        np.multiply(c0, _M0, p0)
        np.multiply(c2, _M1, p1)
        for high, to, other, k in ((p1, c0, c1, k0), (p0, c2, c3, k1)):
            np.right_shift(high, _SHIFT, to)
            np.bitwise_xor(to, other, to)
            np.bitwise_xor(to, np.uint64(k), to)
        np.bitwise_and(p1, _MASK, c1)
        np.bitwise_and(p0, _MASK, c3)
        k0, k1 = (k0 + _W0) & 0xFFFFFFFF, (k1 + _W1) & 0xFFFFFFFF
    out = np.empty((len(c0), 4), np.uint32)
    for place, part in enumerate((c0, c1, c2, c3)):
        out[:, place] = part
    return out


@lru_cache(maxsize=32)
def _fields(count: int) -> tuple[int, int, int]:
    """Numbers of `count` fields of 64 bits: 1 in each, 0, 1, 2, ... in them, and the lower half of each."""
    ones = sum(1 << 64 * i for i in range(count))
    return ones, sum(i << 64 * i for i in range(count)), ones * 0xFFFFFFFF


@lru_cache(maxsize=32)
def _field_keys(key: int, count: int) -> list[tuple[int, int]]:
    """The keys of the ten rounds, in each field."""
    ones = _fields(count)[0]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    return [(ones * ((k0 + i * _W0) & 0xFFFFFFFF), ones * ((k1 + i * _W1) & 0xFFFFFFFF)) for i in range(10)]


def _few(counter: int, count: int, key: int) -> Array:
    """Blocks of consecutive counters, of which only the lowest 32 bits differ, uint32 [count, 4].

    Each of the four parts of all counters is one number with a field of 64 bits for each counter, so that a product
    by 32 bits stays in its field. What a shift brings into a field from the next is masked away.
    """
    ones, ramp, mask = _fields(count)
    c0, c1, c2, c3 = (ones * (counter >> shift & 0xFFFFFFFF) for shift in (0, 32, 64, 96))
    c0 += ramp
    for k0, k1 in _field_keys(key, count):
        p0, p1 = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c2 = (p1 >> 32 ^ c1 ^ k0) & mask, (p0 >> 32 ^ c3 ^ k1) & mask
        c1, c3 = p1, p0  # their upper halves are masked where they are used
    out: Array = np.empty((count, 2), "<u8")
    for place, low, high in ((0, c0, c1), (1, c2, c3)):
        out[:, place] = np.frombuffer((low | (high & mask) << 32).to_bytes(8 * count, "little"), "<u8")
    return out.view("<u4").astype(np.uint32, copy=False)


def doubles(words: Array) -> Array:
    """Uniform numbers in [0, 1) with 52 random bits (Uint64ToDouble), from uint32 [n, 2]: float64 [n]."""
    # the first word gives the upper 20 bits, the second the lower 32
    return ((words[:, 0] & np.uint64(0xFFFFF)) << _SHIFT | words[:, 1]) / float(1 << 52)


def _seeds_or_entropy(seed: int, seed2: int) -> tuple[int, int]:
    """The seeds, or ones from the system's entropy when both are 0."""
    return (seed, seed2) if seed or seed2 else (secrets.randbits(64), secrets.randbits(64))


class GuardedPhilox:
    """The generator of a stateful op, which keeps its place between executions (GuardedPhiloxRandom).

    Args:
        seed, seed2: the op's attributes; both 0 means: seed from the system's entropy.
    """

    def __init__(self, seed: int, seed2: int):
        first = Philox.seeded(*_seeds_or_entropy(seed, seed2))
        self._key, self._counter = first.key, first.counter
        self._lock = threading.Lock()
        free_in_children(self, "_lock")

    def reserve(self, blocks: int) -> Philox:
        """A generator at the present place, which moves on by `blocks`."""
        return Philox(*self.take(blocks))

    def take(self, blocks: int) -> tuple[int, int]:
        """Likewise, its key and its counter."""
        with self._lock:
            taken = self._counter
            self._counter = (taken + blocks) & _U128
        return self._key, taken


class WordStream:
    """A generator's numbers one after the other (SingleSampleAdapter and SimplePhilox), drawn in batches."""

    def __init__(self, generator: Philox):
        self._generator = generator
        self._words: list[int] = []
        self._next = 0

    @classmethod
    def seeded(cls, seed: int, seed2: int) -> WordStream:
        """The numbers of a generator seeded as a stateful op's; both seeds 0: from the system's entropy."""
        return cls(Philox.seeded(*_seeds_or_entropy(seed, seed2)))

    def next(self) -> int:
        """The next number in [0, 2**32)."""
        if self._next == len(self._words):
            return self.take(1)[0]
        self._next += 1
        return self._words[self._next - 1]

    def take(self, count: int) -> list[int]:
        """The next `count` uint32 as ints."""
        missing = self._next + count - len(self._words)
        if missing > 0:
            blocks = max(-(-missing // 4), 16)
            fresh: list[Any] = self._generator.blocks(blocks).reshape(-1).tolist()
            self._words = self._words[self._next :] + fresh
            self._next = 0
            self._generator = self._generator.skip(blocks)
        start = self._next
        self._next += count
        return self._words[start : self._next]

    def double(self) -> float:
        """A uniform number in [0, 1) with 52 random bits."""
        low, high = self.take(2)  # as in `doubles`
        return ((low & 0xFFFFF) << 32 | high) / (1 << 52)

    def uniform64(self, bound: int) -> int:
        low, high = self.take(2)
        return (low | high << 32) % bound

    def uniform32(self, bound: int) -> int:
        return self.take(1)[0] % bound
