"""Hashes of combinations of features, as tf.contrib.layers took them where no key of the hash was given.

The op that did it was tf.contrib's own, so what it computes is put together of others here: combinations of the places
of features, the 64 bits of each feature's hash, and the function that joined hashes.
"""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.graph import dtypes

#: what joins hashes, a ^ (b + _GOLDEN + (a << 10) + (a >> 4)) in signed numbers of 64 bits, and what it begins with
_SEED = 0xDECAFCAFFE
_GOLDEN = 0x9E3779B97F4A7800 - 2**64
#: moduli from which the remainders of a 64-bit hash, as many as an op gives at most, tell the hash itself
_LARGEST, _LOW = 2**63 - 1, 2**62


def crossed(tensors: list[Any], num_buckets: int, hash_key: int | None) -> SparseTensor:
    """The buckets of all combinations of the features of each row.

    Args:
        tensors: sparse or dense strings or integers, [batch, any].
        hash_key: of the hash that joins hashes in later releases; None: what tf.contrib joined them by.
    """
    if hash_key:
        return sparse_ops.cross_hashed(tensors, num_buckets, hash_key, name="cross")
    with name_scope("cross"):
        ordered = [each for each in tensors if isinstance(each, SparseTensor)]
        ordered += [each for each in tensors if not isinstance(each, SparseTensor)]
        combined = sparse_ops.cross([_places(each) for each in ordered], separator=" ")
        words = ops.string_split(combined.values, constant(" ", dtypes.string))[1]
        places = array_ops.reshape(ops.string_to_number(words, out_type=dtypes.int64), [-1, len(ordered)])
        joined: Tensor = array_ops.fill(array_ops.shape(combined.values), constant(_SEED, dtypes.int64))
        for position, each in enumerate(ordered):
            values = each.values if isinstance(each, SparseTensor) else array_ops.reshape(each, [-1])
            joined = _joined(joined, array_ops.gather(_hashes(values), places[:, position]))
        whole = ops.bitcast(joined, type=dtypes.uint64)
        buckets = ops.floor_mod(whole, constant(num_buckets, dtypes.uint64))
        return SparseTensor(combined.indices, ops.cast(buckets, DstT=dtypes.int64), combined.dense_shape)


def _places(features: Any) -> Any:
    """The features numbered, each in its place."""
    if isinstance(features, SparseTensor):
        numbers = math_ops.range(array_ops.size(features.values, out_type=dtypes.int64))
        return SparseTensor(features.indices, numbers, features.dense_shape)
    numbers = math_ops.range(array_ops.size(features, out_type=dtypes.int64))
    return array_ops.reshape(numbers, array_ops.shape(features))


def _hashes(values: Tensor) -> Tensor:
    """Texts as the 64 bits of their fingerprints, numbers as they are: int64."""
    if values.dtype.base is not dtypes.string:
        return math_ops.cast(values, dtypes.int64)
    rest = ops.string_to_hash_bucket_fast(values, num_buckets=_LARGEST)
    low = ops.string_to_hash_bucket_fast(values, num_buckets=_LOW)
    # the hash is times * _LARGEST + rest, and times, 0 to 2, is what the remainders differ by
    times = ops.floor_mod(rest - low, constant(_LOW, dtypes.int64))
    return times * constant(_LARGEST, dtypes.int64) + rest


def _joined(one: Tensor, other: Tensor) -> Tensor:
    left = ops.left_shift(one, constant(10, dtypes.int64))
    right = ops.right_shift(one, constant(4, dtypes.int64))
    return ops.bitwise_xor(one, other + left + right + constant(_GOLDEN, dtypes.int64))
