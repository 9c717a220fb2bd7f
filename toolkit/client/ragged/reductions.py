"""Sums, means, extremes of ragged tensors along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.ragged.arrays import expand_dims
from toolkit.client.ragged.factory import ragged_range
from toolkit.client.ragged.tensor import RaggedTensor, positive_axis
from toolkit.graph import dtypes

Reduction = Callable[..., Any]
Segments = Callable[[Any, Any, Any], Any]


def _reduced(dense: Reduction, segments: Segments, value: Any, axis: Any, keepdims: bool, scope: str) -> Any:
    """Along one axis, several, or all (None)."""
    if not isinstance(value, RaggedTensor):
        return dense(value, axis, keepdims)
    if axis is None:
        return (
            dense(value.flat_values, None, False)
            if not keepdims
            else _kept(dense(value.flat_values, None, False), value)
        )
    known = static_value(axis)
    if known is None:
        raise ValueError("axis: reductions of ragged tensors need axes that are known when the graph is made")
    listed = [int(each) for each in known.reshape(-1)]
    with name_scope(None, scope):
        made: Any = value
        for each in sorted({positive_axis(number, value) for number in listed}, reverse=True):
            made = _along(dense, segments, made, each)
            if keepdims:
                made = expand_dims(made, each) if isinstance(made, RaggedTensor) else array_ops.expand_dims(made, each)
        return made


def _kept(reduced: Tensor, value: RaggedTensor) -> Tensor:
    rank = value.static_shape.rank
    if rank is None:
        raise ValueError("keepdims needs a ragged tensor of a known rank")
    return array_ops.reshape(reduced, [1] * rank)


def _along(dense: Reduction, segments: Segments, value: Any, axis: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return dense(value, axis, False)
    if axis == 0:
        lengths = value.row_lengths()
        kind = lengths.dtype.base
        columns = ragged_range(lengths, dtype=kind, row_splits_dtype=kind).values
        most = ops.maximum(math_ops.reduce_max(array_ops.concat([lengths, [0]], 0)), 0)
        return _of_rows(segments, value.values, columns, most)
    if axis == 1:
        return _of_rows(segments, value.values, value.value_rowids(), value.nrows())
    return value.with_values(_along(dense, segments, value.values, axis - 1))


def _of_rows(segments: Segments, data: Any, ids: Tensor, count: Tensor) -> Any:
    """Rows of one number together; rows that are ragged are as long as the longest of them."""
    if not isinstance(data, RaggedTensor):
        return segments(data, ids, count)
    lengths = data.row_lengths()
    kind = lengths.dtype.base
    most = ops.maximum(ops.unsorted_segment_max(lengths, ids, count), array_ops.zeros([], kind))
    splits = array_ops.concat([array_ops.zeros([1], kind), math_ops.cumsum(most)], 0)
    starts = array_ops.gather(splits, ids)
    places = ragged_range(starts, starts + lengths, dtype=kind, row_splits_dtype=kind).values
    return RaggedTensor.from_row_splits(_of_rows(segments, data.values, places, splits[-1]), splits, validate=False)


def _segments(op: str) -> Segments:
    return lambda data, ids, count: ops.function(op)(data, ids, count)


def reduce_sum(value: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _reduced(math_ops.reduce_sum, _segments("UnsortedSegmentSum"), value, axis, keepdims, "RaggedReduceSum")


def reduce_prod(value: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _reduced(math_ops.reduce_prod, _segments("UnsortedSegmentProd"), value, axis, keepdims, "RaggedReduceProd")


def reduce_max(value: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _reduced(math_ops.reduce_max, _segments("UnsortedSegmentMax"), value, axis, keepdims, "RaggedReduceMax")


def reduce_min(value: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _reduced(math_ops.reduce_min, _segments("UnsortedSegmentMin"), value, axis, keepdims, "RaggedReduceMin")


def reduce_mean(value: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if axis is None:
        return _reduced(math_ops.reduce_mean, _segments(""), value, axis, keepdims, "RaggedReduceMean")
    total = reduce_sum(value, axis, keepdims)
    ones = value.with_flat_values(array_ops.ones_like(value.flat_values))
    return total / reduce_sum(ones, axis, keepdims)


def reduce_variance(value: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean of squares less the square of the mean."""
    squares = value.with_flat_values(ops.square(value.flat_values))
    mean = reduce_mean(value, axis, keepdims)
    return reduce_mean(squares, axis, keepdims) - mean * mean


def reduce_std(value: Any, axis: Any = None, keepdims: bool = False) -> Any:
    variance = reduce_variance(value, axis, keepdims)
    if isinstance(variance, RaggedTensor):
        return variance.with_flat_values(ops.sqrt(variance.flat_values))
    return ops.sqrt(variance)


def reduce_any(value: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _of_truth(value, axis, keepdims, reduce_max)


def reduce_all(value: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _of_truth(value, axis, keepdims, reduce_prod)


def _of_truth(value: Any, axis: Any, keepdims: bool, reduction: Reduction) -> Any:
    """Truth as 0 and 1; an empty row's largest is the lowest number, which is not true either."""
    numbers = value.with_flat_values(math_ops.cast(value.flat_values, dtypes.int32))
    made = reduction(numbers, axis, keepdims)
    if isinstance(made, RaggedTensor):
        return made.with_flat_values(made.flat_values > 0)
    return made > 0
