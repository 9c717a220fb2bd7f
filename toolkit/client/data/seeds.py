"""The two seeds of a dataset as tensors."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.random.seeds import get_seed
from toolkit.graph import dtypes

_INT32_MAX = 2**31 - 1


def seed_tensors(seed: Any) -> list[Tensor]:
    """Tensors for the op seed `seed` (a number, a tensor or None) and the graph's.

    Two zeros would ask for a seed of the kernel's own, so the second is then another number.
    """
    first, second = get_seed(seed)
    if seed is None and (first, second) == (0, 0):
        return [constant(0, dtypes.int64, name="seed"), constant(0, dtypes.int64, name="seed2")]
    one = convert_to_tensor(first, dtypes.int64, name="seed")
    with name_scope("seed2") as scope:
        two = convert_to_tensor(second, dtypes.int64)
        both = ops.logical_and(math_ops.equal(one, 0), math_ops.equal(two, 0))
        return [one, array_ops.where_v2(both, constant(_INT32_MAX, dtypes.int64), two, name=scope)]
