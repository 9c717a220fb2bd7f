"""Ragged tensors joined, picked from, put in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.ragged.tensor import (
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    number_of_rows,
    positive_axis,
)
from toolkit.graph import dtypes


def _all_ragged(values: Sequence[Any]) -> list[Any]:
    """Every value ragged along its second axis, with splits of one type."""
    made = [convert_to_tensor_or_ragged_tensor(value) for value in values]
    made = [
        each if isinstance(each, RaggedTensor) or each.static_shape.rank == 1 else RaggedTensor.from_tensor(each)
        for each in made
    ]
    ragged = [each for each in made if isinstance(each, RaggedTensor)]
    if len({each.partition.dtype for each in ragged}) > 1:
        made = [each.with_row_splits_dtype(dtypes.int64) if isinstance(each, RaggedTensor) else each for each in made]
    ranks = {each.static_shape.rank for each in made if each.static_shape.rank is not None}
    if len(ranks) > 1:
        raise ValueError(f"values: expected tensors of one rank, got ranks {sorted(ranks)}")
    return made


def concat(values: Any, axis: int, name: str | None = None) -> Any:
    """Joined along an axis: rows after rows, or each row after the row of the one before.

    Raises:
        ValueError: the tensors are of different ranks.
    """
    with name_scope(name, "RaggedConcat"):
        return _joined(_listed(values), axis, stacked=False)


def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Joined along a new axis; dense tensors become ragged."""
    with name_scope(name, "RaggedStack"):
        return _joined(_listed(values), axis, stacked=True)


def _listed(values: Any) -> list[Any]:
    listed: list[Any] = list(values) if isinstance(values, list | tuple) else [values]  # type: ignore[arg-type]
    if not listed:
        raise ValueError("values: expected one tensor at least")
    return listed


def _joined(values: list[Any], axis: int, stacked: bool) -> Any:
    made = _all_ragged(values)
    if len(made) == 1 and not stacked:
        return made[0]
    rank = made[0].static_shape.rank
    if axis < 0 and rank is None:
        raise ValueError("axis counted from behind needs tensors of a known rank")
    axis = axis % (rank + (1 if stacked else 0)) if rank is not None else axis
    if rank == 1:  # plain vectors: rows of a new tensor, or one vector
        joined = array_ops.concat(made, 0)
        if not stacked:
            return joined
        if axis == 1:
            return RaggedTensor.from_tensor(array_ops.stack(made, axis=1))
        return RaggedTensor.from_row_lengths(
            joined, [number_of_rows(each, dtypes.int32) for each in made], validate=False
        )
    if axis == 0:
        joined = rows_joined(made)
        if not stacked:
            return joined
        lengths = array_ops.stack([each.nrows() for each in made])
        return RaggedTensor.from_row_lengths(joined, lengths, validate=False)
    if axis > 1:
        inner = _joined([each.values for each in made], axis - 1, stacked)
        return made[0].with_values(inner)
    return _rows_beside_rows(made, stacked)


def rows_joined(values: list[RaggedTensor]) -> RaggedTensor:
    """Rows after rows."""
    inner = [each.values for each in values]
    if any(isinstance(each, RaggedTensor) for each in inner):
        inner = [each if isinstance(each, RaggedTensor) else RaggedTensor.from_tensor(each) for each in inner]
        flat: Any = rows_joined(inner)
    else:
        flat = array_ops.concat(inner, 0)
    splits = [values[0].row_splits]
    last = splits[0][-1]
    for each in values[1:]:
        splits.append(each.row_splits[1:] + last)
        last = last + each.row_splits[-1]
    return RaggedTensor.from_row_splits(flat, array_ops.concat(splits, 0), validate=False)


def _rows_beside_rows(values: list[RaggedTensor], stacked: bool) -> RaggedTensor:
    """Row i of the result holds row i of every tensor."""
    count = len(values)
    rows = values[0].nrows()
    everything = rows_joined(values)
    numbers = math_ops.range(rows * count)
    order = array_ops.reshape(array_ops.transpose(array_ops.reshape(numbers, [count, -1])), [-1])
    permuted = gather(everything, order)
    if stacked:
        return RaggedTensor.from_uniform_row_length(permuted, count, validate=False)
    return RaggedTensor.from_row_splits(permuted.values, permuted.row_splits[::count], validate=False)


def gather(params: Any, indices: Any, axis: Any = 0, batch_dims: int = 0, name: str | None = None) -> Any:
    """Rows by their numbers; of a dense tensor, by ragged numbers.

    Raises:
        ValueError: another axis than the first, or batches.
    """
    if axis not in (0, None) or batch_dims:
        raise ValueError("gather of ragged tensors picks along the first axis; batch_dims and axis must be 0")
    with name_scope(name, "RaggedGather"):
        source = convert_to_tensor_or_ragged_tensor(params, name="params")
        chosen = convert_to_tensor_or_ragged_tensor(indices, name="indices")
        if isinstance(chosen, RaggedTensor):
            return chosen.with_values(gather(source, chosen.values))
        if isinstance(source, Tensor):
            return array_ops.gather(source, chosen)
        rank = chosen.static_shape.rank
        if rank is None:
            raise ValueError(f"indices: '{chosen.name}' has an unknown rank; set_shape says it")
        if rank == 0:
            return gather(source, array_ops.expand_dims(chosen, 0))[0]
        found = ops.ragged_gather(
            list(source.nested_row_splits), source.flat_values, chosen, OUTPUT_RAGGED_RANK=source.ragged_rank + rank - 1
        )
        splits, values = found
        inner = source.flat_values.static_shape
        if inner.rank is not None:
            values.set_shape([None, *list(inner)[1:]])
        made = RaggedTensor.from_nested_row_splits(values, splits, validate=False)
        return made


def expand_dims(value: RaggedTensor, axis: int, name: str | None = None) -> Any:
    """A new axis of size 1."""
    with name_scope(name, "RaggedExpandDims"):
        rank = value.static_shape.rank
        if axis < 0:
            if rank is None:
                raise ValueError("an axis counted from behind needs a ragged tensor of a known rank")
            axis += rank + 1
        if axis == 0:
            return RaggedTensor.from_uniform_row_length(value, value.nrows(), 1, validate=False)
        if axis == 1:
            return RaggedTensor.from_uniform_row_length(value, 1, value.nrows(), validate=False)
        if isinstance(value.values, RaggedTensor):
            return value.with_values(expand_dims(value.values, axis - 1))
        return value.with_values(array_ops.expand_dims(value.values, axis - 1))


def size(value: RaggedTensor, out_type: Any = dtypes.int32, name: str | None = None) -> Tensor:
    """How many values there are."""
    return array_ops.size(value.flat_values, out_type=out_type, name=name)


def rank(value: RaggedTensor, name: str | None = None) -> Tensor:
    """How many axes there are."""
    with name_scope(name, "RaggedRank"):
        known = value.static_shape.rank
        if known is not None:
            return convert_to_tensor(known, dtypes.int32)
        return array_ops.rank(value.flat_values) + value.ragged_rank


def reverse(value: RaggedTensor, axis: Any, name: str | None = None) -> RaggedTensor:
    """The order turned round along axes."""
    with name_scope(name, "Reverse"):
        made: Any = value
        for each in sorted(positive_axis(int(a), value) for a in ([axis] if isinstance(axis, int) else axis)):
            key = [slice(None)] * each + [slice(None, None, -1)]
            made = made[tuple(key)]
        return made


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """What stands where a mask is true: in each row as much as the mask says.

    Args:
        mask: dense or ragged, over the leading axes of the data.
    """
    with name_scope(name, "RaggedMask"):
        source = convert_to_tensor_or_ragged_tensor(data, name="data")
        chosen = convert_to_tensor_or_ragged_tensor(mask, dtypes.bool_, name="mask")
        known = chosen.static_shape.rank
        if not known:
            raise ValueError("mask: expected one axis or more, of a known rank")
        if isinstance(chosen, Tensor):
            if known == 1:
                places = array_ops.reshape(ops.where(chosen), [-1])
                return gather(source, places)
            if not isinstance(source, RaggedTensor):
                source = RaggedTensor.from_tensor(source, ragged_rank=known - 1)
            chosen = RaggedTensor.from_tensor(chosen, ragged_rank=known - 1, row_splits_dtype=source.partition.dtype)
        elif not isinstance(source, RaggedTensor):
            source = RaggedTensor.from_tensor(
                source, ragged_rank=chosen.ragged_rank, row_splits_dtype=chosen.partition.dtype
            )
        return _masked_rows(source, chosen)


def _masked_rows(data: RaggedTensor, mask: RaggedTensor) -> Any:
    if isinstance(mask.values, RaggedTensor):
        return data.with_values(_masked_rows(data.values, mask.values))
    kept = math_ops.cast(mask.values, data.partition.dtype)
    lengths = ops.segment_sum(kept, mask.value_rowids())
    missing = array_ops.zeros([mask.nrows(dtypes.int32) - array_ops.shape(lengths)[0]], lengths.dtype.base)
    values = boolean_mask(data.values, mask.values)
    return RaggedTensor.from_row_lengths(values, array_ops.concat([lengths, missing], 0), validate=False)


def stack_dynamic_partitions(
    data: Any, partitions: TensorLike, num_partitions: TensorLike, name: str | None = None
) -> Any:
    """Row i holds what has the number i in `partitions`, in its order."""
    with name_scope(name, "SegmentStack"):
        source = convert_to_tensor_or_ragged_tensor(data, name="data")
        numbers = convert_to_tensor_or_ragged_tensor(partitions, name="partitions")
        if isinstance(numbers, RaggedTensor):
            if not isinstance(source, RaggedTensor):
                source = RaggedTensor.from_tensor(source, ragged_rank=numbers.ragged_rank)
            return stack_dynamic_partitions(source.flat_values, numbers.flat_values, num_partitions)
        known = numbers.static_shape.rank
        if known == 0:
            return stack_dynamic_partitions(array_ops.stack([source]), array_ops.stack([numbers]), num_partitions)
        if known != 1:
            flat = array_ops.reshape(numbers, [-1])
            rest = array_ops.shape(source)[known or 1 :]
            source = array_ops.reshape(source, array_ops.concat([[-1], rest], 0))
            return stack_dynamic_partitions(source, flat, num_partitions)
        count = array_ops.shape(numbers)[0]
        _, order = nn_ops.top_k(-1 - numbers, count)  # equal numbers keep their order
        ids = array_ops.gather(numbers, order)
        if isinstance(source, RaggedTensor):
            ids = math_ops.cast(ids, source.partition.dtype)
        return RaggedTensor.from_value_rowids(gather(source, order), ids, num_partitions, validate=False)
