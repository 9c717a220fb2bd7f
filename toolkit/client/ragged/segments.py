"""Splits of rows as the number of the row for each value, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.math.special_ops import bincount
from toolkit.graph import dtypes


def _integers(value: TensorLike, name: str, dtype: Any) -> Tensor:
    kind = None if dtype is None else as_dtype(dtype)
    tensor = convert_to_tensor(value, name=name, preferred_dtype=kind or dtypes.int64)
    if tensor.dtype.base not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"{name}: expected int32 or int64, got {tensor.dtype.base}")
    if tensor.static_shape.rank not in (None, 1):
        raise ValueError(f"{name}: expected one dimension, got shape {tensor.static_shape}")
    return tensor if kind is None else math_ops.cast(tensor, kind)


def row_splits_to_segment_ids(splits: TensorLike, name: str | None = None, out_type: Any = None) -> Tensor:
    """[0, 3, 3, 5] becomes [0, 0, 0, 2, 2]: the row of each value.

    Raises:
        ValueError: the splits are no vector of integers.
    """
    with name_scope(name, "RaggedSplitsToSegmentIds"):
        splits = _integers(splits, "splits", None)
        kind = splits.dtype.base if out_type is None else as_dtype(out_type)
        lengths = splits[1:] - splits[:-1]
        rows = array_ops.shape(lengths, out_type=splits.dtype.base)[-1]
        counted = _repeated(math_ops.range(rows), lengths)
        return math_ops.cast(counted, kind)


def _repeated(numbers: Tensor, counts: Tensor) -> Tensor:
    """Each number as often as its count says."""
    longest = ops.maximum(math_ops.reduce_max(array_ops.concat([counts, [0]], 0)), 0)
    mask = ops.less(math_ops.range(longest), array_ops.expand_dims(counts, 1))
    wide = array_ops.broadcast_to(array_ops.expand_dims(numbers, 1), ops.shape(mask, out_type=dtypes.int32))
    return array_ops.boolean_mask(wide, mask)


def segment_ids_to_row_splits(
    segment_ids: TensorLike, num_segments: TensorLike = None, out_type: Any = None, name: str | None = None
) -> Tensor:
    """[0, 0, 0, 2, 2] becomes [0, 3, 3, 5].

    Args:
        segment_ids: in order, from 0 on.
        num_segments: how many rows; one more than the last where it is None.

    Raises:
        ValueError: the numbers are no vector of integers.
    """
    with name_scope(name, "SegmentIdsToRaggedSplits"):
        ids = _integers(segment_ids, "segment_ids", None)
        kind = ids.dtype.base if out_type is None else as_dtype(out_type)
        narrow = math_ops.cast(ids, dtypes.int32)
        count = None
        if num_segments is not None:
            given = convert_to_tensor(num_segments, name="num_segments")
            count = math_ops.cast(given, dtypes.int32)
        counts = bincount(narrow, minlength=count, maxlength=count, dtype=dtypes.int32)
        sums = math_ops.cumsum(math_ops.cast(counts, kind))
        return array_ops.concat([constant(np.zeros(1, kind.numpy), kind), sums], 0)
