"""Where rows begin and end: splits, lengths, starts, limits, the row of each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import (
    assert_equal,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_non_negative,
    assert_rank,
)
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.math import math_ops
from toolkit.client.math.special_ops import bincount
from toolkit.client.ragged.segments import row_splits_to_segment_ids
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType

#: what asserts of the graph say, as TensorFlow's do
_MESSAGES = {
    "rowids": "Arguments to from_value_rowids do not form a valid RowPartition",
    "splits": "Arguments to from_row_splits do not form a valid RaggedTensor:",
    "lengths": "Arguments to from_row_lengths do not form a valid RowPartition",
    "starts": "Arguments to from_row_starts do not form a valid RaggedTensor",
    "limits": "Arguments to from_row_limits do not form a valid RaggedTensor",
}


def as_indices(value: TensorLike, name: str, hint: DType | None = None, rank: int | None = 1) -> Tensor:
    """An int32 or int64 tensor; lists become int64, or the type of the ragged tensor inside.

    Raises:
        ValueError: it is of another type or rank.
    """
    array: Any = value
    if isinstance(array, np.ndarray) and array.dtype == np.int32:  # type: ignore[reportUnknownMemberType]
        tensor = convert_to_tensor(value, name=name)
    else:
        tensor = convert_to_tensor(value, name=name, preferred_dtype=hint or dtypes.int64)
    if tensor.dtype.base not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"{name}: expected int32 or int64, got {tensor.dtype.base}")
    if rank is not None and tensor.static_shape.rank not in (None, rank):
        raise ValueError(f"{name}: expected {rank} dimension(s), got shape {tensor.static_shape}")
    return tensor


def _increasing(tensor: Tensor, message: str) -> Any:
    return assert_non_negative(tensor[1:] - tensor[:-1], message=message)


def _starts_with_zero(tensor: Tensor, message: str) -> Any:
    return assert_equal(tensor, constant(0, tensor.dtype.base), message=message)


class RowPartition:
    """Rows of consecutive values.

    Args:
        row_splits: [rows + 1]; row i has the values from row_splits[i] up to row_splits[i + 1].
        row_lengths, value_rowids, nrows, uniform_row_length, nvals: the same said otherwise, where that is known.
    """

    def __init__(
        self, row_splits: Tensor, row_lengths: Tensor | None = None, value_rowids: Tensor | None = None,
        nrows: Tensor | None = None, uniform_row_length: Tensor | None = None, nvals: Tensor | None = None,
    ):  # fmt: skip
        self.splits = row_splits
        self.known_lengths, self.known_rowids = row_lengths, value_rowids
        self.known_nrows, self.known_nvals = nrows, nvals
        self.known_uniform_length = uniform_row_length

    # -- made of -----------------------------------------------------------------------------------------------

    @classmethod
    def from_row_splits(cls, row_splits: TensorLike, validate: bool, hint: DType | None) -> RowPartition:
        if isinstance(row_splits, list | tuple) and not row_splits:
            raise ValueError("row_splits: there are always one more than rows, so at least [0]")
        with name_scope(None, "RowPartitionFromRowSplits", [row_splits]):
            splits = as_indices(row_splits, "row_splits", hint)
            if validate:
                message = _MESSAGES["splits"]
                checks = [
                    assert_rank(splits, 1, message=message + "rank"),
                    _starts_with_zero(splits[0], message + "zero"),
                    _increasing(splits, message + "monotonic"),
                ]
                splits = with_dependencies(checks, splits)
            return cls(splits)

    @classmethod
    def from_row_lengths(cls, row_lengths: TensorLike, validate: bool, hint: DType | None) -> RowPartition:
        with name_scope(None, "RowPartitionFromRowLengths", [row_lengths]):
            lengths = as_indices(row_lengths, "row_lengths", hint)
            if validate:
                message = _MESSAGES["lengths"]
                checks = [assert_rank(lengths, 1, message=message), assert_non_negative(lengths, message=message)]
                lengths = with_dependencies(checks, lengths)
            limits = math_ops.cumsum(lengths)
            return cls(array_ops.concat([[0], limits], 0), row_lengths=lengths)

    @classmethod
    def from_row_starts(
        cls, row_starts: TensorLike, nvals: Tensor, validate: bool, hint: DType | None
    ) -> RowPartition:  # fmt: skip
        with name_scope(None, "RowPartitionFromRowStarts", [row_starts]):
            starts = as_indices(row_starts, "row_starts", hint)
            nvals = math_ops.cast(nvals, starts.dtype.base)
            if validate:
                message = _MESSAGES["starts"]
                checks = [
                    assert_rank(starts, 1, message=message),
                    _starts_with_zero(starts[:1], message),
                    _increasing(starts, message),
                    assert_less_equal(starts[-1:], nvals, message=message),
                ]
                starts = with_dependencies(checks, starts)
            return cls(array_ops.concat([starts, [nvals]], 0), nvals=nvals)

    @classmethod
    def from_row_limits(cls, row_limits: TensorLike, validate: bool, hint: DType | None) -> RowPartition:
        with name_scope(None, "RowPartitionFromRowLimits", [row_limits]):
            limits = as_indices(row_limits, "row_limits", hint)
            if validate:
                message = _MESSAGES["limits"]
                checks = [
                    assert_rank(limits, 1, message=message),
                    assert_non_negative(limits[:1], message=message),
                    _increasing(limits, message),
                ]
                limits = with_dependencies(checks, limits)
            zero = array_ops.zeros([1], limits.dtype.base)
            return cls(array_ops.concat([zero, limits], 0))

    @classmethod
    def from_value_rowids(
        cls, value_rowids: TensorLike, nrows: TensorLike, validate: bool, hint: DType | None
    ) -> RowPartition:
        with name_scope(None, "RowPartitionFromValueRowIds", [value_rowids, nrows]):
            rowids = as_indices(value_rowids, "value_rowids", hint)
            kind = rowids.dtype.base
            known = static_value(rowids)
            needed = None if known is None else int(known[-1]) + 1 if known.size else 0
            count, number = cls._rows(rowids, nrows, needed)
            if validate:
                message = _MESSAGES["rowids"]
                checks = [
                    assert_rank(rowids, 1, message=message),
                    assert_rank(count, 0, message=message),
                    assert_non_negative(rowids[:1], message=message),
                    _increasing(rowids, message),
                    assert_less(rowids[-1:], count, message=message),
                ]
                rowids = with_dependencies(checks, rowids)
            narrow = math_ops.cast(rowids, dtypes.int32)
            narrow_count = math_ops.cast(count, dtypes.int32)
            lengths = bincount(narrow, minlength=narrow_count, maxlength=narrow_count, dtype=kind)
            splits = array_ops.concat([[0], math_ops.cumsum(lengths)], 0)
            if number is not None:
                lengths.set_shape([number])
                splits.set_shape([number + 1])
            return cls(splits, row_lengths=lengths, value_rowids=rowids, nrows=count)

    @staticmethod
    def _rows(rowids: Tensor, nrows: TensorLike, needed: int | None) -> tuple[Tensor, int | None]:
        """How many rows there are, and as a number where that is known."""
        kind = rowids.dtype.base
        if nrows is None:
            if needed is None:
                return array_ops.concat([rowids[-1:], [-1]], 0)[0] + 1, None
            return convert_to_tensor(np.array(needed), kind, name="nrows"), needed
        count = convert_to_tensor(nrows, kind, name="nrows")
        found = static_value(count)
        number = None if found is None else int(found)
        if number is not None and (number < 0 or (needed is not None and number < needed)):
            raise ValueError(f"nrows: expected {needed or 0} rows or more, got {number}")
        return count, number

    @classmethod
    def from_uniform_row_length(
        cls, uniform_row_length: TensorLike, nvals: Tensor, nrows: TensorLike, validate: bool, hint: DType | None
    ) -> RowPartition:
        with name_scope(None, "RowPartitionFromUniformRowLength", [uniform_row_length, nrows]):
            length = as_indices(uniform_row_length, "uniform_row_length", hint, rank=0)
            kind = length.dtype.base
            known = static_value(length)
            size = None if known is None else int(known)
            if size is not None and size < 0:
                raise ValueError(f"uniform_row_length: expected 0 or more, got {size}")
            count: Tensor
            if nrows is not None:
                count = convert_to_tensor(nrows, kind, name="nrows")
            elif size is None:
                count = nvals // ops.maximum(length, constant(1, kind))
            elif size == 0:
                count = constant(0, kind)
            else:
                count = nvals // size
            rows, values = static_value(count), static_value(nvals)
            if rows is not None and size is not None:
                splits = constant([i * size for i in range(int(rows) + 1)], kind)
                if validate and values is not None and int(rows) * size != int(values):
                    raise ValueError(f"{int(rows)} rows of {size} values are not {int(values)} values")
            else:
                splits = math_ops.range(count + 1, dtype=kind) * length
            if validate:
                checks: list[Any] = []
                if rows is None or size is None or values is None:
                    said = ["uniform_row_length", length, "times nrows", count, "must equal nvals", nvals]
                    checks.append(assert_equal(count * length, nvals, said))
                if size is None:
                    least = constant(0, kind)
                    checks.append(assert_greater_equal(length, least, message="uniform_row_length must be >= 0."))
                splits = with_dependencies(checks, splits)
            return cls(splits, uniform_row_length=length, nrows=count, nvals=nvals)

    # -- as ----------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        return self.splits.dtype.base

    @property
    def static_nrows(self) -> int | None:
        """How many rows there are, where it is known."""
        size = self.splits.static_shape[0] if self.splits.static_shape.rank else None
        if size is not None:
            return size - 1
        if self.known_lengths is not None and self.known_lengths.static_shape.rank:
            return self.known_lengths.static_shape[0]
        found = None if self.known_nrows is None else static_value(self.known_nrows)
        return None if found is None else int(found)

    @property
    def static_uniform_row_length(self) -> int | None:
        found = None if self.known_uniform_length is None else static_value(self.known_uniform_length)
        return None if found is None else int(found)

    def nrows(self) -> Tensor:
        if self.known_nrows is not None:
            return self.known_nrows
        if self.static_nrows is not None:
            return constant(self.static_nrows, self.dtype)
        return array_ops.shape(self.splits, out_type=self.dtype)[0] - 1

    def nvals(self) -> Tensor:
        """How many values there are."""
        return self.splits[-1] if self.known_nvals is None else self.known_nvals

    def value_rowids(self) -> Tensor:
        """The row of each value."""
        return row_splits_to_segment_ids(self.splits) if self.known_rowids is None else self.known_rowids

    def row_starts(self) -> Tensor:
        return self.splits[:-1]

    def row_limits(self) -> Tensor:
        return self.splits[1:]

    def row_lengths(self) -> Tensor:
        if self.known_lengths is not None:
            return self.known_lengths
        return self.splits[1:] - self.splits[:-1]

    def with_dependencies(self, checks: Sequence[Any]) -> RowPartition:
        """The same, once checks have passed."""
        known = [
            None if part is None else with_dependencies(checks, part)
            for part in (self.known_lengths, self.known_rowids, self.known_nrows, self.known_uniform_length)
        ]
        return RowPartition(with_dependencies(checks, self.splits), *known)

    def with_dtype(self, dtype: DType) -> RowPartition:
        """The same in int32 or int64."""
        if self.dtype is dtype:
            return self
        cast = [
            None if part is None else math_ops.cast(part, dtype)
            for part in (
                self.splits, self.known_lengths, self.known_rowids, self.known_nrows, self.known_uniform_length,
                self.known_nvals,
            )
        ]  # fmt: skip
        first = cast[0]
        assert first is not None
        return RowPartition(first, *cast[1:])
