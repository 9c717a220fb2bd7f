"""Sizes and elements of values that are broadcast to each other."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

from toolkit.graph.values.value import LIMIT, Value


def broadcast_sizes(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    """The sizes of two shapes broadcast to each other, None where not known. Raises ValueError where they differ."""
    rank = max(len(a), len(b))
    left: list[Any] = [1] * (rank - len(a)) + list(a)
    right: list[Any] = [1] * (rank - len(b)) + list(b)
    out: list[Any] = []
    for x, y in zip(left, right, strict=True):
        if x == 1:
            out.append(y)
        elif y == 1 or x == y:
            out.append(x)
        elif x is None or y is None:
            out.append(y if x is None else x)
        else:
            raise ValueError
    return out


def align(a: Value, b: Value) -> tuple[tuple[int, ...], list[Any], list[Any]]:
    """Two values broadcast to a common shape."""
    if a.shape == b.shape:
        return a.shape, a.flat, b.flat
    sizes = tuple(broadcast_sizes(a.shape, b.shape))
    if math.prod(sizes) > LIMIT:
        raise ValueError
    return sizes, _spread(a, sizes), _spread(b, sizes)


def _spread(value: Value, sizes: tuple[int, ...]) -> list[Any]:
    own = (1,) * (len(sizes) - len(value.shape)) + value.shape
    strides = [0 if d == 1 else math.prod(own[i + 1 :]) for i, d in enumerate(own)]
    return [value.flat[sum(map(operator.mul, p, strides))] for p in itertools.product(*map(range, sizes))]
