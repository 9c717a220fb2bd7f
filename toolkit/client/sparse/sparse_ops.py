"""What is done with sparse tensors: joins, sums, shapes, products, and back to dense ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.sparse.tensor import SparseTensor, as_sparse, convert_to_tensor_or_sparse_tensor
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes


def _parts(x: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.indices, x.values, x.dense_shape


def add(a: Any, b: Any, threshold: TensorLike) -> Any:
    """The sum of two tensors, one of them sparse; of two sparse ones what exceeds `threshold`, as a sparse one."""
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        raise TypeError("add takes at least one SparseTensor")
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        real = np.real(np.zeros((), a.dtype.base.numpy)).dtype
        least = convert_to_tensor(threshold, real, name="threshold")
        places, values, shape = ops.sparse_add(*_parts(a), *_parts(b), least)
        known = a.static_shape.merge(b.static_shape)
        return SparseTensor(places, values, known.as_list() if known.is_fully_defined else shape)
    sparse, dense = (a, b) if isinstance(a, SparseTensor) else (b, a)
    return ops.sparse_tensor_dense_add(*_parts(as_sparse(sparse)), dense)


def concat(axis: int, sp_inputs: Sequence[Any], name: str | None = None, grow: bool = False) -> SparseTensor:
    """Sparse tensors joined along an axis.

    Args:
        grow: the other axes may differ; the longest counts.
    """
    inputs = [as_sparse(x) for x in sp_inputs]
    if len(inputs) == 1:
        return inputs[0]
    shapes = [x.dense_shape for x in inputs]
    if grow:
        longest = math_ops.reduce_max(array_ops.concat([array_ops.reshape(s, [1, -1]) for s in shapes], 0), 0)
        rank = shapes[0].static_shape[0]
        at = axis if axis >= 0 or rank is None else axis + rank
        shapes = [
            array_ops.concat(
                [longest[:at], s[-1:] if axis == -1 else s[at : at + 1], [] if axis == -1 else longest[at + 1 :]], 0
            )
            for s in shapes
        ]  # fmt: skip
    made = ops.sparse_concat(
        [x.indices for x in inputs], [x.values for x in inputs], shapes, concat_dim=axis, name=name
    )
    return SparseTensor(*made)


def eye(
    num_rows: TensorLike, num_columns: TensorLike = None, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """Ones on the diagonal."""
    with name_scope(name, "eye", [num_rows, num_columns]):
        rows = math_ops.cast(convert_to_tensor(num_rows, dtypes.int64, name="num_rows"), dtypes.int64)
        columns = rows
        if num_columns is not None:
            columns = convert_to_tensor(num_columns, dtypes.int64, name="num_columns")
        length = ops.minimum(rows, columns)
        with name_scope(None, "range") as scope:
            zero, one = (constant(value, dtypes.int64, name=part) for value, part in ((0, "start"), (1, "delta")))
            diagonal = ops.range(zero, length, one, name=scope)
        places = array_ops.stack([diagonal, diagonal], axis=1)
        with name_scope(None, "ones") as scope:
            count = array_ops.reshape(length, [-1])
            values = array_ops.fill(count, constant(1, as_dtype(dtype)), name=scope)
        return SparseTensor(places, values, [rows, columns])


def expand_dims(sp_input: Any, axis: TensorLike = None, name: str | None = None) -> SparseTensor:
    """A new axis of size 1; default: the last."""
    x = as_sparse(sp_input)
    known = x.dense_shape.static_shape
    rank: Any = known[0] if known.rank == 1 and known[0] is not None else array_ops.shape(x.dense_shape)[0]
    with name_scope(name, "expand_dims", [x.indices]):
        at = convert_to_tensor(-1 if axis is None else axis, name="axis")
        at = array_ops.where_v2(ops.greater_equal(at, 0), at, at + rank + 1)
        zeros = array_ops.zeros([array_ops.shape(x.indices)[0], 1], dtypes.int64)
        before = array_ops.slice(x.indices, [0, 0], [-1, at])
        after = array_ops.slice(x.indices, [0, at], [-1, -1])
        places = array_ops.concat([before, zeros, after], 1)
        left = array_ops.slice(x.dense_shape, [0], [at])
        right = array_ops.slice(x.dense_shape, [at], [-1])
        sizes = array_ops.concat([left, constant([1], dtypes.int64, name="new_shape"), right], 0)
        return SparseTensor(places, x.values, sizes)


def fill_empty_rows(sp_input: Any, default_value: TensorLike, name: str | None = None) -> tuple[SparseTensor, Tensor]:
    """Rows without elements get one of `default_value`; which these were comes with it."""
    x = as_sparse(sp_input)
    with name_scope(name, "SparseFillEmptyRows", [x.indices]):
        value = convert_to_tensor(default_value, x.values.dtype.base)
        places, values, empty, _ = ops.sparse_fill_empty_rows(*_parts(x), value)
        return SparseTensor(places, values, x.dense_shape), empty


def from_dense(tensor: TensorLike, name: str | None = None) -> SparseTensor:
    """The elements that are not zero."""
    with name_scope(name, "dense_to_sparse"):
        tensor = convert_to_tensor(tensor)
        places = array_ops.where(ops.not_equal(tensor, array_ops.zeros_like(tensor)))
        values = array_ops.gather_nd(tensor, places)
        return SparseTensor(places, values, array_ops.shape(tensor, out_type=dtypes.int64))


def mask(a: IndexedSlices, mask_indices: TensorLike, name: str | None = None) -> IndexedSlices:
    """Slices without those of the given numbers."""
    with name_scope(name, "sparse_mask", [a.values, mask_indices]) as scope:
        kept, places = ops.list_diff(a.indices, mask_indices)
        values = array_ops.gather(a.values, places, name=scope)
        return IndexedSlices(values, kept, a.dense_shape)


def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger element of each place; what is not written is 0."""
    with name_scope(name, "SparseSparseMaximum", [sp_a.indices, sp_a.values, sp_b.indices, sp_b.values]) as scope:
        return SparseTensor(*_both("SparseSparseMaximum", sp_a, sp_b, scope), sp_a.dense_shape)


def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller element of each place; what is not written is 0."""
    with name_scope(name, "SparseSparseMinimum", [sp_a.indices, sp_a.values, sp_b.indices, sp_b.values]) as scope:
        return SparseTensor(*_both("SparseSparseMinimum", sp_a, sp_b, scope), sp_a.dense_shape)


def _both(op: str, a: Any, b: Any, name: str) -> tuple[Tensor, Tensor]:
    return ops.function(op)(*_parts(as_sparse(a)), *_parts(as_sparse(b)), name=name)


def merge(
    sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None, already_sorted: bool = False
) -> SparseTensor:
    """Values at the places that ids name: the last axis becomes one of the vocabulary's size.

    Args:
        sp_ids: sparse integers, or a list of them, of which each gives an axis of its own.
        vocab_size: a size, or a list of as many.

    Raises:
        UsageError: the lists are of different lengths.
    """
    ids = [as_sparse(x) for x in _listed(sp_ids)]
    sizes = _listed(vocab_size)
    values = as_sparse(sp_values)
    if len(ids) != len(sizes):
        raise UsageError(f"vocab_size: expected {len(ids)} sizes, one for each of sp_ids, got {len(sizes)}")
    with name_scope(name, "SparseMerge", [x.indices for x in ids]):
        result = _merged(ids, values, sizes)
        if already_sorted:
            return result
        ordered = reorder(result)
        return SparseTensor(ordered.indices, ordered.values, result.dense_shape)


def _listed(value: Any) -> list[Any]:
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else [value]


def _merged(ids: list[Any], values: SparseTensor, sizes: list[Any]) -> SparseTensor:
    columns = [array_ops.expand_dims(math_ops.cast(x.values, dtypes.int64), 1) for x in ids]
    ends = [math_ops.cast(size, dtypes.int64) for size in sizes]
    places = array_ops.concat([ids[0].indices[:, :-1], *columns], 1)
    shape = array_ops.concat([ids[0].dense_shape[:-1], ends], 0)
    return SparseTensor(places, values.values, shape)


def placeholder(dtype: DTypeLike, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A sparse tensor that must be fed; `shape` may be a tensor of sizes [rank], which a feed may replace.

    A size that is not known is None. Raises GraphError where `shape` is a tensor of another rank.
    """

    def suffix(part: str) -> str | None:
        return None if name is None else f"{name}/{part}"

    if shape is None:
        sizes = array_ops.placeholder(dtypes.int64, [None], suffix("shape"))
        rank = None
    elif isinstance(shape, Tensor):
        if shape.static_shape.rank not in (None, 1):
            raise GraphError(f"a sparse tensor's shape is a vector of sizes; {shape} is not one")
        rank = shape.static_shape[0] if shape.static_shape.rank == 1 else None
        sizes = array_ops.placeholder_with_default(shape, shape.static_shape, suffix("shape"))
    else:
        known = as_shape(shape)
        rank = known.rank
        default = np.array([-1 if size is None else size for size in known], np.int64)
        given = constant(default, dtypes.int64, name=suffix("shape_default") or "Const")
        sizes = array_ops.placeholder_with_default(given, [rank], suffix("shape"))
    values = array_ops.placeholder(as_dtype(dtype), [None], suffix("values"))
    return SparseTensor(array_ops.placeholder(dtypes.int64, [None, rank], suffix("indices")), values, sizes)


def _axes(x: SparseTensor, axis: Any) -> Any:
    """The axes to reduce; all where none is said."""
    if axis is not None:
        return axis
    rank = x.dense_shape.static_shape[0] if x.dense_shape.static_shape.rank == 1 else None
    if rank is not None:
        return constant(np.arange(rank), dtypes.int32)
    return ops.range(0, array_ops.size(x.dense_shape), 1)


def reduce(op: str, sp_input: Any, axis: Any, keepdims: bool) -> Tensor:
    """A dense reduction over axes: SparseReduceSum, SparseReduceMax."""
    x = as_sparse(sp_input)
    return ops.function(op)(*_parts(x), _axes(x, axis), keep_dims=keepdims)


def reduce_sparse(op: str, sp_input: Any, axis: Any, keepdims: bool) -> SparseTensor:
    """A sparse reduction over axes: SparseReduceSumSparse, SparseReduceMaxSparse."""
    x = as_sparse(sp_input)
    return SparseTensor(*ops.function(op)(*_parts(x), _axes(x, axis), keep_dims=keepdims))


def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The elements in the order of their places."""
    x = as_sparse(sp_input)
    places, values = ops.sparse_reorder(*_parts(x), name=name)
    if x.static_shape.is_fully_defined:
        return SparseTensor(places, values, x.static_shape.as_list())
    return SparseTensor(places, values, array_ops.identity(x.dense_shape))


def reset_shape(sp_input: Any, new_shape: TensorLike = None) -> SparseTensor:
    """Another shape around the same elements; default: the smallest that holds them."""
    x = as_sparse(sp_input)
    places, values, old = (array_ops.identity(part) for part in _parts(x))
    if new_shape is None:
        furthest = math_ops.reduce_max(places, 0)
        zero = constant(0, dtypes.int64)
        ends = math_ops.add(furthest, array_ops.ones_like(old), name="Add")
        return SparseTensor(places, values, ops.maximum(zero, ends))
    given = convert_to_tensor(new_shape)
    sizes = math_ops.cast(given, dtypes.int64)
    known = static_value(given)
    return SparseTensor(places, values, sizes if known is None else known.tolist())


def reshape(sp_input: Any, shape: TensorLike, name: str | None = None) -> SparseTensor:
    """The elements in another shape; one size may be -1."""
    x = as_sparse(sp_input)
    sizes = math_ops.cast(shape, dtypes.int64)
    with name_scope(name, "SparseReshape", [x.indices]) as scope:
        places, made = ops.sparse_reshape(x.indices, x.dense_shape, sizes, name=scope)
        return SparseTensor(places, array_ops.identity(x.values), made)


def retain(sp_input: Any, to_retain: TensorLike) -> SparseTensor:
    """The elements for which a vector of booleans is true."""
    x = as_sparse(sp_input)
    kept = convert_to_tensor(to_retain)
    chosen = array_ops.reshape(array_ops.where(kept), [-1])
    places, values = array_ops.gather(x.indices, chosen), array_ops.gather(x.values, chosen)
    return SparseTensor(places, values, array_ops.identity(x.dense_shape))


def slice(sp_input: Any, start: TensorLike, size: TensorLike, name: str | None = None) -> SparseTensor:
    """The elements of a box."""
    x = as_sparse(sp_input)
    first = convert_to_tensor(start, dtypes.int64)
    extent = convert_to_tensor(size, dtypes.int64)
    return SparseTensor(*ops.sparse_slice(*_parts(x), first, extent, name=name))


def softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Softmax over the written elements of each row."""
    x = as_sparse(sp_input)
    with name_scope(name, "SparseSoftmax", [x.indices, x.values]):
        return x.with_values(ops.sparse_softmax(*_parts(x)))


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The product of a sparse and a dense matrix, in either order."""
    if isinstance(b, SparseTensor):
        swapped = sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)
        return array_ops.transpose(swapped)
    x = as_sparse(sp_a)
    with name_scope(name, "SparseTensorDenseMatMul", [x.indices, x.values, b]):
        dense = convert_to_tensor(b, name="b")
        return ops.sparse_tensor_dense_mat_mul(*_parts(x), dense, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


def split(sp_input: Any, num_split: int, axis: TensorLike, name: str | None = None) -> list[SparseTensor]:
    """Cut into parts along an axis; the first ones are longer where they cannot be equal."""
    x = as_sparse(sp_input)
    found = ops.sparse_split(axis, *_parts(x), num_split=num_split, name=name)
    return [SparseTensor(*parts) for parts in zip(*found, strict=True)]


def to_dense(
    sp_input: Any, default_value: TensorLike = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """The whole tensor, with `default_value` (zero, or empty strings) where nothing is written."""
    x = as_sparse(sp_input)
    value = array_ops.zeros([], x.dtype.base) if default_value is None else default_value
    return ops.sparse_to_dense(x.indices, x.dense_shape, x.values, value, validate_indices=validate_indices, name=name)


def to_indicator(sp_input: Any, vocab_size: TensorLike, name: str | None = None) -> Tensor:
    """Booleans: whether the row has the id, for every id below `vocab_size`."""
    x = as_sparse(sp_input)
    with name_scope(name, "SparseToIndicator", [x.indices]) as scope:
        count = array_ops.shape(x.indices)[0]
        yes = array_ops.fill(array_ops.expand_dims(count, 0), True)
        marks = SparseTensor(x.indices, yes, x.dense_shape)
        merged = _merged([x], marks, [vocab_size])
        ordered = reorder(merged)
        return ops.sparse_to_dense(
            ordered.indices, merged.dense_shape, ordered.values, False, validate_indices=False, name=scope
        )


def transpose(sp_input: Any, perm: TensorLike = None, name: str | None = None) -> SparseTensor:
    """The axes permuted; without `perm`, reversed.

    Raises:
        GraphError: the rank is not known, and there is no `perm`.
    """
    x = as_sparse(sp_input)
    with name_scope(name, "SparseTranspose", [x.indices]):
        if perm is None:
            rank = x.static_shape.rank
            if rank is None:
                raise GraphError(f"'{x.name}' has an unknown rank; give perm")
            perm = np.arange(rank - 1, -1, -1)
        rows = array_ops.transpose(array_ops.gather(array_ops.transpose(x.indices), perm))
        order = static_value(convert_to_tensor(perm))
        shape = x.static_shape
        if order is not None and shape.is_fully_defined:
            sizes: Any = [shape[int(axis)] for axis in order.tolist()]
        else:
            sizes = array_ops.gather(x.dense_shape, perm)
        return reorder(SparseTensor(rows, x.values, sizes))


# -- crosses -----------------------------------------------------------------------------------------------------


def cross(inputs: Sequence[Any], name: str | None = None, separator: str | None = None) -> SparseTensor:
    """All combinations of the features of each row, as strings joined by `separator`."""
    parts = _columns(inputs)
    joint = convert_to_tensor("_X_" if separator is None else separator, dtypes.string)
    return SparseTensor(*ops.sparse_cross_v2(*parts, joint, name=name))


def cross_hashed(
    inputs: Sequence[Any], num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """All combinations of the features of each row, as numbers of buckets."""
    key = 0xDECAFCAFFE if hash_key is None else hash_key
    parts = _columns(inputs)
    numbers = any(x.dtype.base is dtypes.int64 for x in [*parts[1], *parts[3]])
    return SparseTensor(
        *ops.sparse_cross(
            *parts,
            hashed_output=True,
            num_buckets=num_buckets,
            hash_key=key,
            out_type=dtypes.int64,
            internal_type=dtypes.int64 if numbers else dtypes.string,
            name=name,
        )
    )


def _columns(inputs: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Indices, values and shapes of the sparse inputs, then the dense ones; numbers as int64."""
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"inputs: expected a list of tensors, got {type(inputs).__name__}")
    tensors = [convert_to_tensor_or_sparse_tensor(x) for x in inputs]
    sparse = [x for x in tensors if isinstance(x, SparseTensor)]
    dense = [x for x in tensors if not isinstance(x, SparseTensor)]
    plain = (dtypes.string, dtypes.int64)
    values = [x.values if x.dtype.base in plain else math_ops.cast(x.values, dtypes.int64) for x in sparse]
    whole = [x if x.dtype.base in plain else math_ops.cast(x, dtypes.int64) for x in dense]
    return [x.indices for x in sparse], values, [x.dense_shape for x in sparse], whole


# -- sets --------------------------------------------------------------------------------------------------------


def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """How many different values each row has."""
    x = as_sparse(a)
    return ops.set_size(*_parts(x), validate_indices=validate_indices)


def set_operation(a: Any, b: Any, operation: str, validate_indices: bool = True) -> SparseTensor:
    """Intersection, union or difference ("a-b", "b-a") of the rows of two tensors, dense or sparse.

    Raises:
        GraphError: they are of different types.
    """
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    b = convert_to_tensor_or_sparse_tensor(b, name="b")
    if a.dtype.base is not b.dtype.base:
        raise GraphError(f"sets of {a.dtype.base} and {b.dtype.base}; give both one type")
    if isinstance(a, Tensor) and isinstance(b, SparseTensor) and operation in ("intersection", "union"):
        a, b = b, a
    if isinstance(b, SparseTensor):
        function = (
            ops.sparse_to_sparse_set_operation if isinstance(a, SparseTensor) else ops.dense_to_sparse_set_operation
        )
    elif isinstance(a, SparseTensor):
        flipped = {"a-b": "b-a", "b-a": "a-b"}.get(operation, operation)
        a, b, operation = b, a, flipped
        function = ops.dense_to_sparse_set_operation
    else:
        function = ops.dense_to_dense_set_operation
    inputs = [part for x in (a, b) for part in (_parts(x) if isinstance(x, SparseTensor) else (x,))]
    return SparseTensor(*function(*inputs, set_operation=operation, validate_indices=validate_indices))


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """What both rows have."""
    return set_operation(a, b, "intersection", validate_indices)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """What one of the two rows has."""
    return set_operation(a, b, "union", validate_indices)


def set_difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """What the one row has and the other has not."""
    return set_operation(a, b, "a-b" if aminusb else "b-a", validate_indices)
