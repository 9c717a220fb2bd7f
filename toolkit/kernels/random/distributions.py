"""From random words to random numbers, as tsl/lib/random/random_distributions.h does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.types import Array

Fill = Callable[[Philox, int], Array]
_TRUNCATE = 2.0
#: 256 words are set aside for each output of a distribution that rejects samples
_RESERVED = 256


def words_to_floats(words: Array, dtype: DType) -> Array:
    """[0, 1) from uint32 words: the mantissa of a number in [1, 2), less 1. Doubles take two words each."""
    match dtype.name:
        case "float32":
            return ((words & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)
        case "float64":
            pairs = words.reshape(-1, 2).astype(np.uint64)
            bits = ((pairs[:, 0] & np.uint64(0xFFFFF)) << np.uint64(32)) | pairs[:, 1] | np.uint64(1023 << 52)
            return bits.view(np.float64) - 1.0
        case "float16":
            bits = (words.astype(np.uint16) & np.uint16(0x3FF)) | np.uint16(15 << 10)
            return bits.view(np.float16) - np.float16(1)
        case _:
            bits = (words.astype(np.uint16) & np.uint16(0x7F)) | np.uint16(127 << 7)
            one: Any = dtypes.bfloat16.numpy.type(1)
            return bits.view(dtypes.bfloat16.numpy) - one


def uniform(dtype: DType) -> Fill:
    """Uniform in [0, 1)."""

    def fill(generator: Philox, count: int) -> Array:
        return words_to_floats(_words(generator, count * (2 if dtype.size == 8 else 1)), dtype)[:count]

    return fill


def uniform_int(dtype: DType, low: int, high: int) -> Fill:
    """Uniform in [low, high): the remainder of a word (two for 64 bits) by the range."""
    unsigned: Any = np.uint32 if dtype.size == 4 else np.uint64
    span = unsigned((high - low) & (2 ** (8 * dtype.size) - 1))

    def fill(generator: Philox, count: int) -> Array:
        if dtype.size == 4:
            raw = _words(generator, count)[:count]
        else:
            pairs = _words(generator, 2 * count).reshape(-1, 2).astype(np.uint64)[:count]
            raw = pairs[:, 0] | (pairs[:, 1] << np.uint64(32))
        with np.errstate(over="ignore"):
            return (raw % span + unsigned(low & (2 ** (8 * dtype.size) - 1))).astype(dtype.numpy)

    return fill


def normal(dtype: DType) -> Fill:
    """Standard normal by Box and Muller: two numbers from two uniforms."""

    def fill(generator: Philox, count: int) -> Array:
        wide = dtype.size == 8
        kind = dtypes.float64 if wide else dtypes.float32
        uniforms = words_to_floats(_words(generator, (count + 1) // 2 * (4 if wide else 2)), kind)
        return _box_muller(uniforms.reshape(-1, 2)).ravel()[:count].astype(dtype.numpy)

    return fill


def _box_muller(uniforms: Array) -> Array:
    """[n, 2] uniforms to [n, 2] normals, in their own precision."""
    kind = uniforms.dtype.type
    first = np.maximum(uniforms[:, 0], kind(1e-7))
    angle = kind(2 * np.pi) * uniforms[:, 1]
    # Each function is computed wider and rounded once: the C library's are right to the last bit almost always.
    radius = np.sqrt(kind(-2) * np.log(first.astype(np.float64)).astype(kind))
    wide = angle.astype(np.float64)
    sine, cosine = np.sin(wide).astype(kind), np.cos(wide).astype(kind)
    return np.stack([sine * radius, cosine * radius], axis=1)


def truncated_normal(dtype: DType) -> Fill:
    """Standard normal, drawn again while outside (-2, 2).

    Each group of four (two for doubles) outputs has its own region of the stream, from which pairs are taken until
    the group is full; so the groups are independent, and all of them are done at once here.
    """
    group = 2 if dtype.size == 8 else 4
    kind = dtypes.float64 if dtype.size == 8 else dtypes.float32
    stride = group * _RESERVED // 4

    def fill(generator: Philox, count: int) -> Array:
        groups = -(-count // group)
        out = np.empty((groups, group), kind.numpy)
        filled = np.zeros(groups, np.int64)
        pending = np.arange(groups)
        block = 0
        while pending.size:
            # one block of four words for every group that is not full yet
            words = (
                np.concatenate([generator.blocks(1, block + int(g) * stride) for g in pending])
                if (pending.size < groups)
                else generator.blocks(groups, block, stride)
            )
            values = _box_muller(words_to_floats(words.ravel(), kind).reshape(-1, 2)).reshape(pending.size, -1)
            for column in range(values.shape[1]):
                value = values[:, column]
                take = (np.abs(value) < _TRUNCATE) & (filled[pending] < group)
                chosen = pending[take]
                out[chosen, filled[chosen]] = value[take]
                filled[chosen] += 1
            pending = pending[filled[pending] < group]
            block += 1
        return out.ravel()[:count].astype(dtype.numpy)

    return fill


def _words(generator: Philox, count: int) -> Array:
    """At least `count` words."""
    return generator.blocks(-(-count // 4)).ravel()
