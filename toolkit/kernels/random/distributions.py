"""Random bits into numbers, as TensorFlow's random_distributions.h turns them.

Functions take blocks, uint32 [n, 4], and give [n, k] results: k = 4, or 2 for 64-bit results.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.graph import dtypes
from toolkit.kernels.random import libm
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.types import Array

_EPSILON = 1.0e-7  # keeps log finite
_TWO_PI = 2 * math.pi
_TRUNCATE = 2.0
#: blocks made into numbers at once, so that they stay in the cache
_AT_ONCE = 1 << 13


def per_block(dtype: Any) -> int:
    """How many results of a type one block of four words gives."""
    return 2 if dtype.itemsize == 8 else 4


def uniform(blocks: Array, dtype: Any) -> Array:
    """Uniform in [0, 1): random mantissas under the exponent of 1, minus 1."""
    if dtype == np.float32:
        return ((blocks & 0x7FFFFF) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)
    if dtype == np.float64:
        return _uniform_double(blocks[:, 0::2], blocks[:, 1::2])
    half = blocks.astype(np.uint16)
    if dtype == np.float16:
        return ((half & 0x3FF) | np.uint16(15 << 10)).view(np.float16) - np.float16(1)
    bits = (half & 0x7F) | np.uint16(127 << 7)
    one: Any = dtypes.bfloat16.numpy.type(1)
    return bits.view(dtypes.bfloat16.numpy) - one


def _uniform_double(first: Array, second: Array) -> Array:
    mantissa = (first.astype(np.uint64) & np.uint64(0xFFFFF)) << np.uint64(32) | second
    return (mantissa | np.uint64(1023 << 52)).view(np.float64) - 1.0


def _box_muller(u: Array, v: Array) -> tuple[Array, Array]:
    """Two independent normals for each pair of uniforms; the angle is computed in float64 and rounded to the type."""
    dtype = u.dtype
    angle = (_TWO_PI * v.astype(np.float64)).astype(dtype)
    radius = np.sqrt(dtype.type(-2) * libm.log(np.maximum(u, dtype.type(_EPSILON))))
    return libm.sin(angle) * radius, libm.cos(angle) * radius


def normal(blocks: Array, dtype: Any) -> Array:
    """Standard normals; 16-bit types are rounded from float32."""
    if dtype == np.float64:
        first, second = _box_muller(
            _uniform_double(blocks[:, 0], blocks[:, 1]), _uniform_double(blocks[:, 2], blocks[:, 3])
        )
        return np.stack([first, second], axis=-1)
    flat = uniform(blocks, np.dtype(np.float32))
    out = np.empty(blocks.shape, np.float32)
    out[:, 0::2], out[:, 1::2] = _box_muller(flat[:, 0::2], flat[:, 1::2])
    return out.astype(dtype, copy=False)


def full_integers(blocks: Array, dtype: Any) -> Array:
    """All bits random."""
    if dtype.itemsize == 8:
        wide = blocks[:, 0::2].astype(np.uint64) | blocks[:, 1::2].astype(np.uint64) << np.uint64(32)
        return wide.view(dtype)
    return blocks.view(dtype)


def integers(blocks: Array, low: Array, high: Array) -> Array:
    """Integers in [low, high), by remainder."""
    dtype = low.dtype
    unsigned = np.dtype(f"u{dtype.itemsize}")
    start = np.asarray(low).astype(unsigned)
    span = np.asarray(high).astype(unsigned) - start
    return (full_integers(blocks, unsigned) % span + start).view(dtype)


Distribution = Callable[[Array, Any], Array]


def fill(generator: Philox, shape: tuple[int, ...], dtype: Any, distribution: Distribution) -> Array:
    """An array whose results come from consecutive blocks."""
    size = math.prod(shape)
    count = -(-size // per_block(dtype))
    if count <= _AT_ONCE:
        return distribution(generator.blocks(count), dtype).reshape(-1)[:size].reshape(shape)
    out = np.empty((count, per_block(dtype)), dtype)
    for start in range(0, count, _AT_ONCE):
        blocks = generator.skip(start).blocks(min(_AT_ONCE, count - start))
        out[start : start + _AT_ONCE] = distribution(blocks, dtype)
    return out.reshape(-1)[:size].reshape(shape)


def truncated_normal(generator: Philox, shape: tuple[int, ...], dtype: Any) -> Array:
    """Normals within two standard deviations of 0, by rejection.

    Each group of results owns 256 words for each of its results and takes from them what it needs.
    """
    size = math.prod(shape)
    group = per_block(dtype)
    out = np.empty((-(-size // group), group), np.float64 if dtype == np.float64 else np.float32)
    for start in range(0, len(out), _AT_ONCE):
        _truncated_groups(generator.skip(start * group * 64), out[start : start + _AT_ONCE])
    return out.astype(dtype, copy=False).reshape(-1)[:size].reshape(shape)


def _truncated_groups(generator: Philox, out: Array) -> None:
    """Fill `out` [groups, results of a block]; most groups need their first block only."""
    groups, group = out.shape
    first: Array = np.arange(groups, dtype=np.uint64) * np.uint64(group * 64)
    out[...] = normal(generator.blocks_at(first), out.dtype)
    beyond = np.abs(out) >= _TRUNCATE
    pending = np.flatnonzero(beyond.view(f"u{group}"))  # a byte for each result, as one number
    rounds = 2
    while pending.size:
        offsets = first[pending][:, None] + np.arange(rounds, dtype=np.uint64)
        candidates = normal(generator.blocks_at(offsets).reshape(-1, 4), out.dtype).reshape(pending.size, -1)
        good = np.abs(candidates) < _TRUNCATE
        rank = np.cumsum(good, axis=1)
        done = rank[:, -1] >= group
        chosen = good & (rank <= group) & done[:, None]
        out[pending[done]] = candidates[chosen].reshape(-1, group)
        pending = pending[~done]
        rounds *= 2
