"""Elements of queues: tuples of tensors, taken apart from batches and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.graph.dtypes import DType
from toolkit.graph.shape import SCALAR, Shape
from toolkit.kernels.types import Array

#: one element: a value for each component of the queue
Element = list[Any]


def whole_shapes(shapes: Sequence[Shape]) -> list[Shape]:
    """The shapes of components where all sizes must be known.

    One of which not even the rank is given is a scalar's: so TensorFlow reads it, where it takes whole shapes only.
    """
    return [SCALAR if shape.dims is None else shape for shape in shapes]


def is_array(value: Any) -> bool:
    """Whether a component is a tensor of numbers or strings, not a handle or a variant."""
    return isinstance(value, np.ndarray | np.generic)


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a component; handles and variants count as scalars."""
    return np.shape(value) if is_array(value) else ()


def own(value: Any) -> Any:
    """A copy that nothing else changes: variables are updated in place and feeds belong to the caller."""
    return np.array(value) if is_array(value) else value


def own_row(batch: Array, index: int) -> Array:
    """A copy of one row; it must not keep the whole batch alive."""
    return np.array(batch[index : index + 1]).reshape(batch.shape[1:])


def stack(rows: Sequence[Any], dtype: DType, shape: Sequence[int]) -> Array:
    """A batch [len(rows), *shape] of equal-shaped components."""
    out = np.empty((len(rows), *shape), dtype.numpy)
    for index, row in enumerate(rows):
        out[index] = row[()] if is_array(row) else row
    return out


def pad_stack(rows: Sequence[Array], dtype: DType, dims: Sequence[int | None]) -> Array:
    """A batch of components of one rank; unknown dimensions grow to the longest, filled with 0 or b""."""
    shape = [
        max((row.shape[axis] for row in rows), default=0) if size is None else size for axis, size in enumerate(dims)
    ]
    out = blank((len(rows), *shape), dtype)
    for index, row in enumerate(rows):
        out[(index, *(slice(size) for size in row.shape))] = row[()]
    return out


def blank(shape: Sequence[int], dtype: DType) -> Array:
    """An array of zeros, or of empty strings."""
    return np.full(tuple(shape), b"", object) if dtype.kind == "s" else np.zeros(tuple(shape), dtype.numpy)
