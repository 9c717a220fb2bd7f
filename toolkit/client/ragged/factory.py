"""Ragged tensors of nested lists, of ranges, to be fed; crossed features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, convert_to_tensor
from toolkit.client.construction.convert import constant as dense_constant
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.construction.tensor_shape import plain_shape
from toolkit.client.ragged.tensor import RaggedTensor, convert_to_tensor_or_ragged_tensor, is_ragged
from toolkit.client.ragged.value import RaggedTensorValue
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.structures.values import SparseTensorValue
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


def constant(
    pylist: Any, dtype: DTypeLike = None, ragged_rank: int | None = None, inner_shape: Any = None,
    name: str | None = None, row_splits_dtype: DTypeLike = dtypes.int64,
) -> Any:  # fmt: skip
    """A constant of nested lists whose lengths may differ; dense where nothing is nested.

    Args:
        ragged_rank: how many axes are ragged; as many as there can be.
        inner_shape: the shape of the values inside.

    Raises:
        ValueError: values at different depths, or other depths than asked for.
    """

    def ragged(values: Any, splits: list[int]) -> RaggedTensor:
        rows = dense_constant(splits, row_splits_dtype)
        return RaggedTensor.from_row_splits(values, rows, validate=False)

    def inner(values: Any, shape: Any, label: str) -> Tensor:
        return dense_constant(values, dtype, shape, name=label)

    with name_scope(name, "RaggedConstant"):
        return _nested(pylist, ragged_rank, inner_shape, ragged, inner)


def constant_value(
    pylist: Any, dtype: Any = None, ragged_rank: int | None = None, inner_shape: Any = None,
    row_splits_dtype: DTypeLike = "int64",
) -> Any:  # fmt: skip
    """As `constant`, but a RaggedTensorValue or an array: what sessions are fed."""
    kind = as_dtype(row_splits_dtype).numpy
    numpy_type: Any = dtype.as_numpy_dtype if isinstance(dtype, dtypes.DType) else dtype

    def ragged(values: Any, splits: list[int]) -> RaggedTensorValue:
        return RaggedTensorValue(values, np.array(splits, kind))

    def inner(values: Any, shape: Any, label: str) -> Any:
        del label
        array: Any = np.array(values) if numpy_type is None else np.array(values).astype(numpy_type)
        return array if shape is None else np.reshape(array, shape)

    return _nested(pylist, ragged_rank, inner_shape, ragged, inner)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or np.ndim(value) != 0


def _depths(value: Any) -> tuple[int | None, int]:
    """How deep numbers stand, None where there are none, and how deep lists go.

    Raises:
        ValueError: numbers stand at different depths.
    """
    if not _is_list(value):
        return 0, 0
    found: int | None = None
    deepest = 1
    for child in value:
        depth, lists = _depths(child)
        if depth is not None:
            if found is not None and found != depth + 1:
                raise ValueError("pylist: all values must stand at one depth of the lists")
            found = depth + 1
        deepest = max(deepest, lists + 1)
    return found, deepest


def _nested(
    pylist: Any, ragged_rank: int | None, inner_shape: Any, ragged: Callable[..., Any], inner: Callable[..., Any]
) -> Any:
    if is_ragged(pylist):
        raise TypeError("pylist: expected nested lists, not a ragged tensor")
    shape = None if inner_shape is None else tuple(plain_shape(inner_shape))
    if not _is_list(pylist):
        if ragged_rank or shape:
            raise ValueError(f"pylist: one value has no ragged axes and no inner shape, got {pylist!r}")
        return inner(pylist, (), "Const")
    depth, deepest = _depths(pylist)
    if ragged_rank is not None and (ragged_rank < 0 or (depth is not None and deepest < ragged_rank)):
        raise ValueError(f"ragged_rank: expected a number from 0 to {deepest}, got {ragged_rank}")
    if depth is not None and deepest > depth:
        raise ValueError("pylist: an empty list stands deeper than the values")
    if shape is not None and ragged_rank is not None:
        expected = ragged_rank + len(shape) + 1
        if (depth is not None and expected != depth) or (depth is None and expected < deepest):
            raise ValueError(f"pylist: {ragged_rank} ragged axes around shape {shape} are not the depth of the lists")
    count = len(shape or ())
    if ragged_rank == 0 or (ragged_rank is None and (deepest < 2 or (shape is not None and deepest - count < 2))):
        return inner(pylist, None if shape is None else (len(pylist), *shape), "Const")
    if shape is None:
        shape = () if ragged_rank is None else _inner_shape(pylist, ragged_rank)
    if ragged_rank is None:
        ragged_rank = max(1, deepest - 1 if depth is None else depth - 1 - len(shape))
    all_splits: list[list[int]] = []
    values: list[Any] = list(pylist)
    for _ in range(ragged_rank):
        splits, flat = [0], cast("list[Any]", [])
        for row in values:
            splits.append(splits[-1] + len(row))
            flat.extend(row)
        all_splits.append(splits)
        values = flat
    made = inner(values, (len(values), *shape), "values")
    for splits in reversed(all_splits):
        made = ragged(made, splits)
    return made


def _inner_shape(pylist: Any, ragged_rank: int) -> tuple[int, ...]:
    """The shape of what stands inside of ragged axes.

    Raises:
        ValueError: it is not the same everywhere, or the lists are not so deep.
    """
    values: list[Any] = list(pylist)
    for _ in range(ragged_rank):
        if not all(_is_list(value) for value in values):
            raise ValueError(f"pylist: the lists are not deep enough for {ragged_rank} ragged axes")
        values = [item for value in values for item in value]
    shapes = {np.shape(value) for value in values}
    if len(shapes) > 1:
        raise ValueError(f"pylist: inner values have different shapes, {sorted(shapes)}")
    return shapes.pop() if shapes else ()


def placeholder(dtype: DTypeLike, ragged_rank: int, value_shape: Any = None, name: str | None = None) -> Any:
    """A ragged tensor that must be fed."""
    if ragged_rank == 0:
        return array_ops.placeholder(dtype, value_shape, name)
    with name_scope(name, "RaggedPlaceholder", []):
        flat = Shape([None]).concatenate(plain_shape(value_shape) if value_shape is not None else Shape(None))
        made: Any = array_ops.placeholder(dtype, flat, "flat_values")
        for axis in reversed(range(ragged_rank)):
            splits = array_ops.placeholder(dtypes.int64, [None], f"row_splits_{axis}")
            made = RaggedTensor.from_row_splits(made, splits, validate=False)
        return made


def ragged_range(
    starts: TensorLike, limits: TensorLike = None, deltas: TensorLike = 1, dtype: DTypeLike = None,
    name: str | None = None, row_splits_dtype: DTypeLike = dtypes.int64,
) -> RaggedTensor:  # fmt: skip
    """A row of numbers for each start: from it, or from 0, below the limit."""
    if limits is None:
        starts, limits = 0, starts
    with name_scope(name, "RaggedRange", [starts, limits, deltas]) as scope:
        kind = None if dtype is None else as_dtype(dtype)
        given = [(starts, "starts"), (limits, "limits"), (deltas, "deltas")]
        parts = [convert_to_tensor(value, None if isinstance(value, Tensor) else kind, name=n) for value, n in given]
        order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
        wide = kind or max((part.dtype.base for part in parts), key=lambda d: order.index(d) if d in order else -1)
        parts = [part if part.dtype.base is wide else ops.cast(part, DstT=wide) for part in parts]
        splits, values = ops.ragged_range(*parts, Tsplits=as_dtype(row_splits_dtype), name=scope)
        return RaggedTensor.from_row_splits(values, splits, validate=False)


# -- crossed features ------------------------------------------------------------------------------------------------

#: TensorFlow's key of the hash, where none is given
_HASH_KEY = 0xDECAFCAFFE


def cross(inputs: Sequence[Any], name: str | None = None) -> RaggedTensor:
    """All combinations of one value from each input, row by row, as texts joined by "_X_"."""
    return _crossed(inputs, False, 0, None, name)


def cross_hashed(
    inputs: Sequence[Any], num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> RaggedTensor:
    """As `cross`, but as numbers: a hash of the values, modulo `num_buckets` where that is not 0."""
    return _crossed(inputs, True, num_buckets, hash_key, name)


def _crossed(inputs: Sequence[Any], hashed: bool, buckets: int, key: int | None, name: str | None) -> RaggedTensor:
    if not isinstance(inputs, list | tuple):
        raise ValueError("inputs: expected a list of ragged, sparse or dense tensors")
    with name_scope(name, "RaggedCross"):
        ragged: list[RaggedTensor] = []
        sparse: list[SparseTensor] = []
        dense: list[Tensor] = []
        order = ""
        for value in inputs:
            if isinstance(value, SparseTensor | SparseTensorValue):
                sparse.append(SparseTensor.from_value(value))
                order += "S"
                continue
            tensor = convert_to_tensor_or_ragged_tensor(value)
            if isinstance(tensor, RaggedTensor):
                if tensor.ragged_rank != 1 or tensor.flat_values.static_shape.rank not in (None, 1):
                    raise ValueError(f"inputs: expected rows of values, got a ragged tensor of shape {tensor.shape}")
                ragged.append(tensor)
                order += "R"
            else:
                dense.append(tensor)
                order += "D"
        hold = [_widened(each.flat_values) for each in ragged], [_widened(each) for each in dense]
        splits = [each.row_splits for each in ragged]
        kind = dtypes.int64 if any(each.dtype.base is dtypes.int64 for each in splits) or not splits else dtypes.int32
        values, rows = ops.ragged_cross(
            hold[0], splits, [each.indices for each in sparse], [_widened(each.values) for each in sparse],
            [each.dense_shape for each in sparse], hold[1], input_order=order, hashed_output=hashed,
            num_buckets=buckets, hash_key=_HASH_KEY if key is None else key,
            out_values_type=dtypes.int64 if hashed else dtypes.string, out_row_splits_type=kind,
        )  # fmt: skip
        return RaggedTensor.from_row_splits(values, rows, validate=False)


def _widened(values: Tensor) -> Tensor:
    """Texts, or int64: what the op takes."""
    return values if values.dtype.base in (dtypes.string, dtypes.int64) else ops.cast(values, DstT=dtypes.int64)
