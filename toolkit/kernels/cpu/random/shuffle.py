"""Shuffles without state: rows by a key and counter, and single indices of a permutation that is never built."""

from __future__ import annotations

import math

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, require_room, shape_text
from toolkit.kernels.cpu.random.basic import shuffled
from toolkit.kernels.cpu.random.stateless import from_key
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array

_INTEGERS = {dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64}
#: the constant bits of Simon's key schedule (Beaulieu et al. 2013, "The SIMON and SPECK families of block ciphers")
_SEQUENCE = 0x7369F885192C0EF5
_LEAST_BLOCK = 16  # bits
#: seeds times indices of the shortest range, up to which a table of the block costs less than encrypting step by step
_SHORT = 1 << 10


@simple("StatelessShuffle")
def stateless_shuffle(value: Array, key: Array, counter: Array, algorithm: Array) -> Array:
    stream = from_key(key, counter, algorithm)  # looked at even where there is nothing to shuffle
    return shuffled(value, lambda count: stream.words(count))


@kernel("RandomIndexShuffle", types={"dtype": _INTEGERS})
def random_index_shuffle(op: KernelNode) -> Compute:
    """Where each index lands in the permutation of [0, max_index] that its seed [3] gives.

    The permutation is a Simon cipher with few rounds over the next even number of bits, walked until it is in range.
    """
    rounds = op.attr("rounds")
    require(rounds >= 4 and rounds % 2 == 0, f"rounds must be an even number of at least 4, not {rounds}")

    def compute(index: Array, seed: Array, max_index: Array) -> Array:
        require_room((rounds,), np.uint64)  # as many words as TensorFlow's keys have
        count = max(index.size, max_index.size, seed.size // 3)
        require(index.ndim == 0 or index.shape == (count,), "Index must be a scalar or vector.")
        if seed.shape not in ((3,), (count, 3)):
            raise InvalidArgumentError(
                f"Seed must be a vector of size [3] or a matrix of size [{count}, 3] but got {shape_text(seed)}."
            )
        require(
            max_index.ndim == 0 or max_index.shape == (count,),
            f"Maxval must be a scalar or a vector of the same size as index but got {shape_text(max_index)}",
        )
        for value, what in ((index, "index"), (max_index, "max_index")):
            require((value >= 0).all(), f"{what} must be >= 0 but was {value.min(initial=0)}")
        require((index <= max_index).all(), "max_index must be >= index")
        wide, most = (np.broadcast_to(v.astype(np.uint64), (count,)) for v in (index, max_index))
        keys = np.broadcast_to(seed.astype(np.uint32), (count, 3)).astype(np.uint64)
        out = np.zeros(count, np.uint64)
        bits = np.array([_block_bits(m) for m in most.tolist()])
        for width in set(bits.tolist()) - {0}:
            rows = np.flatnonzero(bits == width)
            out[rows] = _walk(wide[rows], keys[rows], most[rows], width // 2, rounds)
        scalar = index.ndim == 0 and seed.ndim == 1 and max_index.ndim == 0
        return out.astype(index.dtype).reshape(() if scalar else (count,))

    return compute


def _block_bits(most: int) -> int:
    """The width of the cipher's block; 0 where there is only one index."""
    if most == 0:
        return 0
    bits = math.ceil(math.log2(most))
    return min(max(bits + bits % 2, _LEAST_BLOCK), 64)


def _rotated(x: Array, by: int, width: int) -> Array:
    """Words of `width` bits rotated to the left."""
    mask = np.uint64((1 << width) - 1)
    return (x << np.uint64(by) | x >> np.uint64(width - by)) & mask


def _round_keys(keys: Array, width: int, rounds: int) -> list[Array]:
    mask = (1 << width) - 1
    out = [keys[:, i] & np.uint64(mask) for i in range(3)]
    for i in range(3, rounds):
        constant = (0xFFFFFFFC & mask) ^ (_SEQUENCE >> (i - 3) & 1)
        mixed = _rotated(out[i - 1], width - 3, width) ^ _rotated(out[i - 1], width - 4, width)
        out.append(np.uint64(constant) ^ out[i - 3] ^ mixed)
    return out


def _encrypt(values: Array, keys: list[Array], width: int) -> Array:
    mask = np.uint64((1 << width) - 1)
    left, right = values >> np.uint64(width) & mask, values & mask
    for key in keys:
        mixed = (_rotated(right, 1, width) & _rotated(right, 8, width)) ^ _rotated(right, 2, width)
        left, right = right, left ^ mixed ^ key
    return left << np.uint64(width) | right


def _walk(values: Array, keys: Array, most: Array, width: int, rounds: int) -> Array:
    """Encrypt each value until it is in range.

    Raises:
        InvalidArgumentError: a value beyond the range from which no walk leads into it.
    """
    start = values & np.uint64((1 << 2 * width) - 1)
    out = start.copy()
    if 2 * width == _LEAST_BLOCK:
        different, which = np.unique(keys, axis=0, return_inverse=True)
        # an index of a short range walks thousands of steps: a lookup each, once all of the block is encrypted
        if len(different) * (int(most.min()) + 1) <= _SHORT:
            for number, key in enumerate(different):
                rows = np.flatnonzero(which.reshape(-1) == number)
                out[rows] = _walk_by_table(start[rows], key, most[rows], width, rounds)
            return out
    schedule = _round_keys(keys, width, rounds)
    pending = np.arange(values.size)
    while pending.size:
        out[pending] = _encrypt(out[pending], [key[pending] for key in schedule], width)
        pending = pending[out[pending] > most[pending]]
        lost = pending[out[pending] == start[pending]]  # a permutation comes back to where it began
        if lost.size:
            raise _out_of_range(int(start[lost[0]]), int(most[lost[0]]))
    return out


def _walk_by_table(start: Array, key: Array, most: Array, width: int, rounds: int) -> Array:
    """The same for values with one key [3], by a table of what each number of the block is encrypted to."""
    block = np.arange(1 << 2 * width, dtype=np.uint64)
    following = _encrypt(block, _round_keys(key[None], width, rounds), width).tolist()
    out: list[int] = []
    for first, last in zip(start.tolist(), most.tolist(), strict=True):
        value = following[first]
        while value > last:
            if value == first:
                raise _out_of_range(first, last)
            value = following[value]
        out.append(value)
    return np.array(out, np.uint64)


def _out_of_range(index: int, most: int) -> InvalidArgumentError:
    return InvalidArgumentError(f"index must be in [0, {most}], which no walk from {index} leads to")
