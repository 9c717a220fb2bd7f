"""Ragged tensors made of dense and sparse ones, and the other way."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.construction.tensor_shape import plain_shape
from toolkit.client.flow.control_flow import Assert, cond
from toolkit.client.math import math_ops
from toolkit.client.ragged.tensor import RaggedTensor
from toolkit.client.sparse.tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape


def from_tensor(
    tensor: TensorLike, lengths: Any, padding: TensorLike, ragged_rank: int, name: str | None, kind: DType
) -> RaggedTensor:
    """A dense tensor as a ragged one.

    Raises:
        ValueError: both lengths and padding are given; there are fewer axes than are to be ragged.
    """
    if lengths is not None and padding is not None:
        raise ValueError("give lengths or padding, not both")
    if ragged_rank < 1:
        raise ValueError(f"ragged_rank: expected 1 or more, got {ragged_rank}")
    with name_scope(name, "RaggedFromTensor", [each for each in (tensor, lengths, padding) if each is not None]):
        tensor = convert_to_tensor(tensor, name="tensor")
        rank = tensor.static_shape.rank
        if rank is not None and rank < ragged_rank + 1:
            raise ValueError(f"tensor: expected {ragged_rank + 1} axes or more, got shape {tensor.static_shape}")
        shape = array_ops.shape(tensor, out_type=kind)
        if isinstance(lengths, list | tuple) and lengths and not isinstance(lengths[0], int | float):
            return _with_nested_lengths(tensor, list(lengths))  # type: ignore[arg-type]
        if ragged_rank > 1:
            return _several_axes(tensor, shape, lengths, padding, ragged_rank, kind)
        if padding is not None:
            lengths = _lengths_without(tensor, convert_to_tensor(padding, tensor.dtype.base, name="padding"), shape[1])
        if lengths is not None:
            counts = math_ops.cast(convert_to_tensor(lengths, name="lengths"), kind)
            counts = ops.maximum(ops.minimum(counts, shape[1]), 0)
            splits = array_ops.concat([array_ops.zeros([1], kind), math_ops.cumsum(counts)], 0)
            return RaggedTensor.from_row_splits(
                array_ops.boolean_mask(tensor, _mask(counts, shape[1])), splits, validate=False
            )
        values = array_ops.reshape(tensor, array_ops.concat([[shape[0] * shape[1]], shape[2:]], 0))
        known = [None, None] if rank is None else list(tensor.static_shape)[:2]
        rows, columns = (
            shape[axis] if size is None else constant(size, kind) for axis, size in enumerate(known)
        )  # fmt: skip
        return RaggedTensor.from_uniform_row_length(values, columns, rows, validate=False)


def _mask(counts: Tensor, columns: Tensor) -> Tensor:
    """True in the first columns of each row."""
    mask = ops.less(math_ops.range(columns), array_ops.expand_dims(counts, 1))
    mask.set_shape([None, None])
    return mask


def _lengths_without(tensor: Tensor, padding: Tensor, columns: Tensor) -> Tensor:
    """The lengths of rows up to the last value that is not padding."""
    same = ops.equal(padding, tensor)
    rank = tensor.static_shape.rank
    if rank is None:
        count = array_ops.rank(tensor)
        same = cond(count > 2, lambda: math_ops.reduce_all(same, math_ops.range(2, count)), lambda: same)
        same.set_shape([None, None])
    elif rank > 2:
        same = math_ops.reduce_all(same, list(range(2, rank)))
    kept = math_ops.cast(ops.logical_not(same), columns.dtype.base)
    return math_ops.reduce_max(kept * array_ops.expand_dims(math_ops.range(1, columns + 1), 0), 1)


def _with_nested_lengths(tensor: Tensor, lengths: list[Any]) -> RaggedTensor:
    """Lengths along several axes."""
    ones = ops.fill([math_ops.reduce_sum(convert_to_tensor(lengths[-1]))], True)
    mask = RaggedTensor.from_nested_row_lengths(ones, lengths, validate=False).to_tensor(default_value=False)
    mask.set_shape([None] * (len(lengths) + 1))
    values = array_ops.boolean_mask(tensor, mask)
    return RaggedTensor.from_nested_row_lengths(values, lengths, validate=False)


def _several_axes(
    tensor: Tensor, shape: Tensor, lengths: Any, padding: Any, ragged_rank: int, kind: DType
) -> RaggedTensor:
    """The innermost of several axes ragged, the ones around it of one length."""
    outer = math_ops.reduce_prod(shape[:ragged_rank])
    flat = array_ops.reshape(tensor, array_ops.concat([[outer], shape[ragged_rank:]], 0))
    rank = tensor.static_shape.rank
    if rank is not None:
        flat.set_shape([None, *list(tensor.static_shape)[ragged_rank:]])
    result = from_tensor(flat, lengths, padding, 1, None, kind)
    for axis in range(ragged_rank - 1, 0, -1):
        size = None if rank is None else list(tensor.static_shape)[axis]
        length = shape[axis] if size is None else constant(size, kind)
        rows = math_ops.reduce_prod(shape[:axis])
        result = RaggedTensor.from_uniform_row_length(result, length, rows, validate=False)
    return result


def from_sparse(st_input: Any, name: str | None, kind: DType) -> RaggedTensor:
    """A sparse matrix as a ragged one.

    Raises:
        TypeError: it is not sparse.
        ValueError: it is no matrix.
    """
    given: Any = convert_to_tensor_or_sparse_tensor(st_input, name="st_input")
    if not isinstance(given, SparseTensor):
        raise TypeError(f"st_input: expected a SparseTensor, got {type(st_input).__name__}")
    with name_scope(name, "RaggedFromSparse", given.parts()[1]):
        if given.static_shape.rank != 2:
            raise ValueError(f"st_input: expected a matrix, got shape {given.static_shape}")
        rows, columns = given.indices[:, :-1], given.indices[:, -1]
        next_row = math_ops.reduce_any(ops.not_equal(rows[1:], rows[:-1]), 1)
        follows = ops.select_v2(next_row, ops.equal(columns[1:], 0), ops.equal(columns[1:], columns[:-1] + 1))
        packed = ops.logical_and(math_ops.reduce_all(ops.equal(columns[:1], 0)), math_ops.reduce_all(follows))
        told = ["SparseTensor is not right-ragged", "SparseTensor.indices =", given.indices]
        with control_dependencies([Assert(packed, told)]):
            ids = math_ops.cast(given.indices[:, 0], kind)
            count = math_ops.cast(given.dense_shape[0], kind)
            return RaggedTensor.from_value_rowids(given.values, ids, count, validate=False)


def to_tensor(value: RaggedTensor, default_value: TensorLike, name: str | None, shape: Any) -> Tensor:
    """The dense tensor."""
    with name_scope(name, "RaggedToTensor", value.parts()[1]):
        kind = value.dtype.base
        default = None if default_value is None else convert_to_tensor(default_value, kind, name="default_value")
        first, *others = value.nested_partitions
        if first.known_rowids is None:
            pairs = [("ROW_SPLITS", first.splits)]
        else:
            pairs = [("FIRST_DIM_SIZE", first.nrows()), ("VALUE_ROWIDS", first.known_rowids)]
        for each in others:
            rowids = each.known_rowids
            pairs.append(("ROW_SPLITS", each.splits) if rowids is None else ("VALUE_ROWIDS", rowids))
        if default is None:
            default = array_ops.zeros([], kind)
        wanted, known = _wanted(shape, first.dtype)
        made = ops.ragged_tensor_to_tensor(
            wanted, value.flat_values, default, [tensor for _, tensor in pairs],
            row_partition_types=[kind for kind, _ in pairs],
        )  # fmt: skip
        own = value.static_shape
        if own.rank is not None and not isinstance(shape, Tensor):
            sizes = [None] * own.rank if known.rank is None else list(known)
            made.set_shape([size if given is None else given for given, size in zip(sizes, own, strict=True)])
        return made


def _wanted(shape: Any, kind: DType) -> tuple[Tensor, Shape]:
    """The shape that is asked for as the op takes it, and what is known of it."""
    if isinstance(shape, list | tuple) and any(isinstance(size, Tensor) for size in shape):  # type: ignore[misc]
        shape = array_ops.stack(shape)  # type: ignore[arg-type]
    if isinstance(shape, Tensor):
        return shape, Shape(None)
    known = Shape(None) if shape is None else plain_shape(shape)
    if known.rank is None:
        return constant(-1, kind), known
    return constant([-1 if size is None else size for size in known], kind), known


def to_sparse(value: RaggedTensor, name: str | None) -> SparseTensor:
    with name_scope(name, "RaggedToSparse", value.parts()[1]):
        made = ops.ragged_tensor_to_sparse(list(value.nested_row_splits), value.flat_values, name=name)
        return SparseTensor(*made)


def merged(value: Any, outer: int, inner: int) -> Any:
    """Axes from `outer` to `inner` as one."""
    if outer == inner:
        return value
    if outer > 1 and isinstance(value, RaggedTensor):
        return value.with_values(merged(value.values, outer - 1, inner - 1))
    if outer == 1 and isinstance(value, RaggedTensor):
        return _inside_rows(value, inner)
    if isinstance(value, RaggedTensor):
        return _first_merged(value, inner)
    shape = array_ops.shape(value)
    sizes = [shape[:outer], [-1], shape[inner + 1 :]]
    return array_ops.reshape(value, array_ops.concat(sizes, 0))


def _first_merged(value: Any, inner: int) -> Any:
    """The first axes as one: the values of the rows, as often as rows are ragged."""
    while inner and isinstance(value, RaggedTensor):
        value, inner = value.values, inner - 1
    return merged(value, 0, inner)


def _inside_rows(value: RaggedTensor, inner: int) -> RaggedTensor:
    """Axes from 1 to `inner` as one: the rows reach over what stood in their rows."""
    splits, values, rest = value.row_splits, value.values, inner - 1
    while rest and isinstance(values, RaggedTensor):
        splits = array_ops.gather(values.row_splits, splits)
        values, rest = values.values, rest - 1
    if rest:
        sizes = array_ops.shape(values, out_type=splits.dtype.base)[1 : rest + 1]
        splits = splits * math_ops.reduce_prod(sizes)
        values = merged(values, 0, rest)
    return RaggedTensor.from_row_splits(values, splits, validate=False)
