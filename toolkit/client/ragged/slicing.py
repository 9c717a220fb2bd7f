"""`tensor[key]` of ragged tensors."""

from __future__ import annotations

from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.ragged.arrays import expand_dims, gather
from toolkit.client.ragged.factory import ragged_range
from toolkit.client.ragged.tensor import RaggedTensor
from toolkit.errors import GraphError

_WHOLE = slice(None)


def sliced(value: RaggedTensor, key: Any) -> Any:
    """Rows, parts of rows, new axes.

    Raises:
        GraphError: a number within a ragged axis, or what is no key.
    """
    keys: list[Any] = list(key) if isinstance(key, tuple) else [key]  # type: ignore[arg-type]
    return _picked(value, _without_dots(keys, value))


def _without_dots(keys: list[Any], value: RaggedTensor) -> list[Any]:
    """`...` as the slices that it stands for."""
    if not any(each is Ellipsis for each in keys):
        return keys
    rank = value.static_shape.rank
    if rank is None:
        raise GraphError("... needs a ragged tensor of a known rank")
    at = next(i for i, each in enumerate(keys) if each is Ellipsis)
    named = sum(each is not None and each is not Ellipsis for each in keys)
    return [*keys[:at], *[_WHOLE] * (rank - named), *keys[at + 1 :]]


def _picked(value: Any, keys: list[Any]) -> Any:
    if not keys:
        return value
    if not isinstance(value, RaggedTensor):
        return value[tuple(keys)]
    first, *rest = keys
    if first is None:
        return _new_axis(_picked(value, rest))
    if isinstance(first, slice):
        rows = value if first == _WHOLE else _rows(value, cast("Any", first))
        return _inside(rows, rest)
    if isinstance(first, Tensor) or hasattr(first, "__index__"):
        starts, limits = value.row_splits[:-1], value.row_splits[1:]
        row = value.values[starts[first] : limits[first]]
        return _picked(row, rest)
    raise GraphError(f"{first!r} cannot index a ragged tensor; use numbers, slices, None or ...")


def _new_axis(value: Any) -> Any:
    return expand_dims(value, 0) if isinstance(value, RaggedTensor) else array_ops.expand_dims(value, 0)


def _rows(value: RaggedTensor, part: slice) -> Any:
    """Some of the rows."""
    count = value.nrows()
    return gather(value, math_ops.range(count)[part])


def _inside(value: RaggedTensor, keys: list[Any]) -> Any:
    """Keys within the rows."""
    if not keys or all(isinstance(each, slice) and each == _WHOLE for each in keys):
        return value
    first, *rest = keys
    if first is None:
        return expand_dims(_inside(value, rest), 1)
    if not isinstance(first, slice):
        length = value.partition.static_uniform_row_length
        if length is None:
            raise GraphError(f"{first!r} cannot index rows that may be shorter; a slice can")
        columns = value.row_starts() + (first if isinstance(first, Tensor) or first >= 0 else length + first)
        return _picked(gather(value.values, columns), [_WHOLE, *rest])
    rows = value if first == _WHOLE else _parts(value, cast("Any", first))
    return rows.with_values(_picked(rows.values, [_WHOLE, *rest])) if rest else rows


def _parts(value: RaggedTensor, part: slice) -> RaggedTensor:
    """A part of each row, as lists are sliced."""
    lengths, starts = value.row_lengths(), value.row_starts()
    step = 1 if part.step is None else part.step
    backward = not isinstance(step, Tensor) and step < 0
    begin = _bound(part.start, lengths, lengths - 1 if backward else 0, backward)
    end = _bound(part.stop, lengths, -1 if backward else lengths, backward)
    kind = lengths.dtype.base
    places = ragged_range(starts + begin, starts + end, step, dtype=kind, row_splits_dtype=kind)
    return places.with_values(gather(value.values, places.values))


def _bound(given: Any, lengths: Tensor, default: Any, backward: bool) -> Any:
    """Where a slice begins or ends in each row."""
    if given is None:
        return default
    lowest, highest = (-1, lengths - 1) if backward else (0, lengths)
    if isinstance(given, Tensor):
        given = math_ops.cast(given, lengths.dtype.base)
        place = ops.select_v2(given < 0, lengths + given, given + ops.mul(lengths, 0))
    else:
        place = lengths + given if given < 0 else lengths * 0 + given
    return ops.minimum(ops.maximum(place, lowest), highest)
