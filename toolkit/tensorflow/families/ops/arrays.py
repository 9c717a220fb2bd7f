# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Shapes, slices, joins and fills with TensorFlow 1's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops, grids
from toolkit.client.construction.convert import as_dtype, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.construction.tensor_shape import TensorShape
from toolkit.client.linalg import linalg_ops
from toolkit.client.math import math_ops
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.shape import broadcast
from toolkit.tensorflow.families.arguments import renamed


def placeholder(dtype: Any, shape: Any = None, name: Any = None) -> Tensor:
    return array_ops.placeholder(dtype, shape, name)


def placeholder_with_default(input: Any, shape: Any, name: Any = None) -> Tensor:
    return array_ops.placeholder_with_default(input, shape, name)


def identity(input: Any, name: Any = None) -> Tensor:
    return array_ops.identity(input, name)


def stop_gradient(input: Any, name: Any = None) -> Tensor:
    return array_ops.stop_gradient(input, name)


def reshape(tensor: Any, shape: Any, name: Any = None) -> Tensor:
    return ops.reshape(tensor, shape, name=name)


def shape(input: Any, name: Any = None, out_type: Any = None) -> Tensor:
    return array_ops.shape(input, name, dtypes.int32 if out_type is None else out_type)


def size(input: Any, name: Any = None, out_type: Any = None) -> Tensor:
    return array_ops.size(input, name, dtypes.int32 if out_type is None else out_type)


def rank(input: Any, name: Any = None) -> Tensor:
    return array_ops.rank(input, name)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: Any = None, layout: Any = None) -> Tensor:
    return array_ops.zeros(shape, dtype, name)


def ones(shape: Any, dtype: Any = dtypes.float32, name: Any = None, layout: Any = None) -> Tensor:
    return array_ops.ones(shape, dtype, name)


def zeros_like(tensor: Any, dtype: Any = None, name: Any = None, optimize: bool = True) -> Tensor:
    return array_ops.zeros_like(tensor, dtype, name)


def ones_like(tensor: Any, dtype: Any = None, name: Any = None, optimize: bool = True) -> Tensor:
    return array_ops.ones_like(tensor, dtype, name)


def fill(dims: Any, value: Any, name: Any = None, layout: Any = None) -> Tensor:
    return ops.fill(dims, value, name=name)


def expand_dims(input: Any, axis: Any = None, name: Any = None, dim: Any = None) -> Tensor:
    axis = renamed("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("expand_dims needs an axis")
    return ops.expand_dims(input, axis, name=name)


def squeeze(input: Any, axis: Any = None, name: Any = None, squeeze_dims: Any = None) -> Tensor:
    return array_ops.squeeze(input, renamed("axis", axis, "squeeze_dims", squeeze_dims), name)


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    if isinstance(axis, list | tuple) and isinstance(values, int):
        raise TypeError("concat takes the values before the axis since TensorFlow 1.0: write tf.concat(values, axis)")
    return array_ops.concat(values if isinstance(values, list | tuple) else [values], axis, name)


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    return array_ops.stack(values, axis, name)


def unstack(value: Any, num: Any = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    return array_ops.unstack(value, num, axis, name)


def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None, name: str = "split") -> Any:
    if isinstance(value, int) and not isinstance(axis, int):
        raise TypeError("split takes the value first since TensorFlow 1.0: write tf.split(value, count, axis)")
    return array_ops.split(value, num_or_size_splits, axis, num, name)


def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    if not conjugate:
        return array_ops.transpose(a, perm, name)
    with name_scope(name, "transpose", [a]) as scope:
        a = convert_to_tensor(a, name="a")
        if perm is None:
            count = a.static_shape.rank
            perm = (
                math_ops.range(array_ops.rank(a) - 1, -1, -1)
                if count is None
                else np.arange(count, dtype=np.int32)[::-1]
            )
        return (ops.conjugate_transpose if a.dtype.base.is_complex else ops.transpose)(a, perm, name=scope)


def slice(input_: Any, begin: Any, size: Any, name: Any = None) -> Tensor:
    return ops.slice(input_, begin, size, name=name)


def strided_slice(
    input_: Any, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0, end_mask: int = 0,
    ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0, var: Any = None, name: Any = None,
) -> Tensor:  # fmt: skip
    return array_ops.strided_slice(
        input_, begin, end, strides, begin_mask=begin_mask, end_mask=end_mask, ellipsis_mask=ellipsis_mask,
        new_axis_mask=new_axis_mask, shrink_axis_mask=shrink_axis_mask, name=name,
    )  # fmt: skip


def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", name: Any = None, constant_values: Any = 0) -> Tensor:
    return array_ops.pad(tensor, paddings, mode, name, constant_values)


def gather(
    params: Any, indices: Any, validate_indices: Any = None, name: Any = None, axis: Any = None, batch_dims: int = 0
) -> Tensor:
    return array_ops.gather(params, indices, batch_dims if axis is None else axis, name, batch_dims)


def gather_nd(params: Any, indices: Any, name: Any = None, batch_dims: int = 0, bad_indices_policy: str = "") -> Tensor:
    if batch_dims:
        raise NotImplementedError("gather_nd with batch_dims")
    return ops.gather_nd(params, indices, bad_indices_policy=bad_indices_policy, name=name)


def one_hot(
    indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None, dtype: Any = None,
    name: Any = None,
) -> Tensor:  # fmt: skip
    return array_ops.one_hot(indices, depth, on_value, off_value, -1 if axis is None else axis, dtype, name)


def where(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Tensor:
    """Select of TensorFlow 1: the shapes are the same, or the condition is a vector over the first axis."""
    if x is None and y is None:
        with name_scope(name, "Where", [condition]) as scope:
            condition = convert_to_tensor(condition, preferred_dtype=dtypes.bool_, name="condition")
            return ops.where(condition, name=scope)
    if x is None or y is None:
        raise ValueError("where takes both x and y, or neither")
    return ops.select(condition, x, y, name=name)


def where_v2(condition: Any, x: Any = None, y: Any = None, name: Any = None) -> Tensor:
    if x is None and y is None:
        return where(condition, name=name)
    if x is None or y is None:
        raise ValueError("where takes both x and y, or neither")
    return ops.select_v2(condition, x, y, name=name)


def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: Any = None) -> Tensor:
    """The elements for which the mask, which covers the axes from `axis` on, is true."""
    try:
        return array_ops.boolean_mask(tensor, mask, name, axis)
    except GraphError as error:
        raise ValueError(error.message) from None


def reverse_sequence(
    input: Any, seq_lengths: Any, seq_axis: Any = None, batch_axis: Any = None, name: Any = None, seq_dim: Any = None,
    batch_dim: Any = None,
) -> Tensor:  # fmt: skip
    seq = renamed("seq_axis", seq_axis, "seq_dim", seq_dim)
    batch = renamed("batch_axis", batch_axis, "batch_dim", batch_dim)
    return ops.reverse_sequence(input, seq_lengths, seq_dim=seq, batch_dim=batch or 0, name=name)


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Grids of coordinates; indexing "xy" (the default) or "ij"."""
    indexing = kwargs.pop("indexing", "xy")
    name = kwargs.pop("name", "meshgrid")
    if kwargs:
        raise TypeError(f"meshgrid has no argument '{next(iter(kwargs))}'; it takes indexing and name")
    return grids.meshgrid(args, indexing, name)


def unique(x: Any, out_idx: Any = dtypes.int32, name: Any = None) -> Any:
    import collections

    return collections.namedtuple("Unique", ["y", "idx"])(*ops.unique(x, out_idx=out_idx, name=name))


def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: Any = None) -> Any:
    import collections

    values = ops.unique_with_counts(x, out_idx=out_idx, name=name)
    return collections.namedtuple("UniqueWithCounts", ["y", "idx", "count"])(*values)


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    return linalg_ops.matrix_transpose(a, conjugate, name)


def ensure_shape(x: Any, shape: Any, name: Any = None) -> Tensor:
    return ops.ensure_shape(x, shape=shape, name=name)


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    return ops.broadcast_args(shape_x, shape_y)


def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    return TensorShape(broadcast(shape_x.plain, shape_y.plain))


def dimension_value(dimension: Any) -> Any:
    return getattr(dimension, "value", dimension)


def dimension_at_index(shape: TensorShape, index: int) -> Any:
    return shape[index]


def guarantee_const(input: Any, name: Any = None) -> Tensor:
    return ops.guarantee_const(input, name=name)


def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance") -> Tensor:
    return ops.edit_distance(
        hypothesis.indices, hypothesis.values, hypothesis.dense_shape, truth.indices, truth.values, truth.dense_shape,
        normalize=normalize, name=name,
    )  # fmt: skip


def parallel_stack(values: Sequence[Any], name: str = "parallel_stack") -> Tensor:
    with name_scope(name):
        first = convert_to_tensor(values[0])
        sizes = first.static_shape
        if not sizes.is_fully_defined:
            raise GraphError(f"'{first.name}' has shape {sizes}, which parallel_stack must know")
        rows = [ops.expand_dims(value, 0) for value in values]
        return ops.parallel_concat(rows, shape=[len(values), *sizes.as_list()])


def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False, allow_broadcast: bool = False
) -> Any:
    from toolkit.client.construction.convert import tensor_proto

    return tensor_proto(values, None if dtype is None else as_dtype(dtype), shape, verify_shape)


def make_ndarray(tensor: Any) -> Any:
    from toolkit.formats.arrays.tensor import to_array

    return to_array(tensor)


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a tensor that is known while the graph is made, or None."""
    if isinstance(tensor, Tensor):
        return tensor.graph.shapes.constant(tensor.output)
    return np.asarray(tensor)
