"""Values that are several arrays together."""

from __future__ import annotations

from typing import Any, NamedTuple


class SparseTensorValue(NamedTuple):
    """A sparse tensor: `indices` int64 [n, rank], `values` [n], `dense_shape` int64 [rank]."""

    indices: Any
    values: Any
    dense_shape: Any


class IndexedSlicesValue(NamedTuple):
    """Slices of a tensor: `values` [n, ...] are its rows `indices` [n]."""

    values: Any
    indices: Any
    dense_shape: Any = None
