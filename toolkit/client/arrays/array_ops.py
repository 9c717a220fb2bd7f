"""Shapes, slices, joins: what the raw array ops need around them to be pleasant."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, constant, convert_to_tensor, holds_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike, operator
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType

#: larger tensors of one value are made by Fill, smaller ones are Const nodes (as TensorFlow does)
_SMALL = 1000


def placeholder(dtype: DTypeLike, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor that must be fed. `shape` may have unknown sizes (None), or be None for an unknown rank."""
    return ops.placeholder(dtype=dtype, shape=as_shape(shape), name=name)


def placeholder_with_default(value: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that may be fed."""
    return ops.placeholder_with_default(value, as_shape(shape), name=name)


def identity(value: TensorLike, name: str | None = None) -> Tensor:
    return ops.identity(value, name=name)


def reshape(tensor: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """The elements of `tensor` in another shape; one size may be -1."""
    return ops.reshape(tensor, shape, name=name)


def shape(tensor: TensorLike, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """The run-time shape as a vector; a Const when it is known already."""
    with name_scope(name, "Shape", [tensor]) as scope:
        tensor = convert_to_tensor(tensor)
        if tensor.static_shape.is_fully_defined:
            return constant(tensor.static_shape.as_list(), out_type, name=scope)
        return ops.shape(tensor, out_type=out_type, name=scope)


def shape_n(tensors: Sequence[Tensor], name: str | None = None, out_type: DTypeLike = dtypes.int32) -> list[Tensor]:
    return ops.shape_n(list(tensors), out_type=out_type, name=name)


def size(tensor: TensorLike, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """The number of elements; a Const when it is known already."""
    with name_scope(name, "Size", [tensor]) as scope:
        tensor = convert_to_tensor(tensor)
        count = tensor.static_shape.num_elements
        if count is not None:
            return constant(count, out_type, name=scope)
        return ops.size(tensor, out_type=out_type, name=scope)


def rank(tensor: TensorLike, name: str | None = None) -> Tensor:
    """The number of dimensions; a Const when it is known already."""
    with name_scope(name, "Rank", [tensor]) as scope:
        tensor = convert_to_tensor(tensor)
        if tensor.static_shape.rank is not None:
            return constant(tensor.static_shape.rank, dtypes.int32, name=scope)
        return ops.rank(tensor, name=scope)


def _filled(value: Any, shape: TensorLike, dtype: DType, scope: str) -> Tensor:
    if not holds_tensor(shape):
        known = as_shape(shape)
        if not known.is_fully_defined:
            raise GraphError(f"the shape {known} has unknown sizes; give a tensor such as shape(x)")
        count = math.prod(known.as_list())
        if count == 0:
            return constant(np.zeros(known.as_list(), dtype.numpy), dtype, name=scope)
        if count < _SMALL:
            return constant(value, dtype, known, name=scope)
        shape = known
    elif isinstance(shape, list | tuple):
        shape = convert_to_tensor(shape, dtypes.int32)
    if isinstance(shape, Tensor) and shape.dtype.base is dtypes.string:
        raise GraphError(f"'{shape.name}' is no shape")
    return fill(convert_to_tensor(shape), constant(value, dtype), name=scope)


def zeros(shape: TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of zeros (False, empty strings)."""
    dtype = as_dtype(dtype).base
    zero = False if dtype.kind == "b" else "" if dtype.kind == "s" else np.zeros((), dtype.numpy)
    with name_scope(name, "zeros", [shape]) as scope:
        return _filled(zero, shape, dtype, scope)


def ones(shape: TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of ones (True)."""
    dtype = as_dtype(dtype).base
    one = True if dtype.kind == "b" else np.ones((), dtype.numpy)
    with name_scope(name, "ones", [shape]) as scope:
        return _filled(one, shape, dtype, scope)


def fill(dims: TensorLike, value: TensorLike, name: str | None = None) -> Tensor:
    return ops.fill(dims, value, name=name)


def zeros_like(tensor: TensorLike, dtype: DTypeLike = None, name: str | None = None) -> Tensor:
    """Zeros of the shape of `tensor`; a Const when the shape is known and small."""
    with name_scope(name, "zeros_like", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base if dtype is None else as_dtype(dtype)
        if tensor.static_shape.is_fully_defined and tensor.dtype.base is not dtypes.variant:
            return zeros(tensor.static_shape, wanted, name=scope)
        if wanted is not tensor.dtype.base:
            return zeros(shape(tensor), wanted, name=scope)
        return ops.zeros_like(tensor, name=scope)


def ones_like(tensor: TensorLike, dtype: DTypeLike = None, name: str | None = None) -> Tensor:
    """Ones of the shape of `tensor`."""
    with name_scope(name, "ones_like", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base if dtype is None else as_dtype(dtype)
        known = tensor.static_shape
        if known.is_fully_defined:
            sizes = constant(known.as_list(), dtypes.int32, name="Shape/shape_as_tensor")
        else:
            sizes = shape(tensor)
        one = True if wanted.kind == "b" else np.ones((), wanted.numpy)
        return fill(sizes, constant(one, wanted), name=scope)


def expand_dims(tensor: TensorLike, axis: TensorLike, name: str | None = None) -> Tensor:
    return ops.expand_dims(tensor, axis, name=name)


def squeeze(tensor: TensorLike, axis: int | Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """Drop dimensions of size 1: those of `axis`, or all."""
    dims = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return ops.squeeze(tensor, squeeze_dims=dims, name=name)


def concat(values: Sequence[TensorLike], axis: TensorLike, name: str = "concat") -> Tensor:
    """Join tensors along `axis`; a single one is passed through Identity."""
    if len(values) == 1:
        with get_default_graph().name_scope(name):
            convert_to_tensor(axis, dtypes.int32, name="concat_dim")
            return identity(values[0], name=name)
    return ops.concat_v2(list(values), axis, name=name)


def stack(values: Sequence[TensorLike] | TensorLike, axis: int = 0, name: str = "stack") -> Tensor:
    """Join tensors along a new axis."""
    if axis == 0 and isinstance(values, Tensor):
        return values
    items: list[Any] = list(values)
    if axis == 0 and items:
        return convert_to_tensor(items, name=name)
    return ops.pack(items, axis=axis, name=name)


def unstack(value: TensorLike, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """Split along an axis and drop it. `num` is needed when the size is unknown.

    Raises:
        GraphError: the size is neither known nor given.
    """
    if num is None:
        value = convert_to_tensor(value)
        num = value.static_shape[axis] if value.static_shape.rank else None
        if num is None:
            raise GraphError(f"the size of '{value.name}' along axis {axis} is unknown; give num")
    return ops.unpack(value, num=num, axis=axis, name=name)


@operator("pack")
def pack_nested(value: Sequence[Any], dtype: DType | None, name: str) -> Tensor:
    """Nested lists with tensors inside as one tensor, by Pack nodes."""
    found = dtype or _first_dtype(value)
    with name_scope(name, None, [value]) as scope:
        items = [
            convert_to_tensor(item, found, name=str(i)) if not isinstance(item, list | tuple)
            else pack_nested(item, found, str(i)) if holds_tensor(item)  # type: ignore[arg-type]
            else constant(item, found, name=str(i))
            for i, item in enumerate(value)
        ]  # fmt: skip
        return ops.pack(items, name=scope)


def _first_dtype(value: Any) -> DType | None:
    for item in value:
        if isinstance(item, list | tuple):
            found = _first_dtype(item)
            if found is not None:
                return found
        elif hasattr(item, "dtype") and isinstance(item.dtype, DType):
            return item.dtype.base
    return None


def split(
    value: TensorLike, num_or_size_splits: Any, axis: TensorLike = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Cut along an axis: into that many equal parts, or into parts of the given sizes."""
    if isinstance(num_or_size_splits, int):
        return ops.split(axis, value, num_split=num_or_size_splits, name=name)
    sizes = convert_to_tensor(num_or_size_splits)
    count = num if num is not None else sizes.static_shape[0]
    if count is None:
        raise GraphError("the number of parts is not known; give num")
    return ops.split_v(value, sizes, axis, num_split=count, name=name)


def transpose(tensor: TensorLike, perm: TensorLike = None, name: str = "transpose") -> Tensor:
    """Permute the axes; without `perm`, reverse them."""
    with name_scope(name, "transpose", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="a")
        if perm is None:
            known = tensor.static_shape.rank
            if known is not None:
                perm = np.arange(known - 1, -1, -1, dtype=np.int32)
            else:
                count = ops.rank(tensor)
                perm = ops.range(count - 1, -1, -1)
        return ops.transpose(tensor, perm, name=scope)


def slice(tensor: TensorLike, begin: TensorLike, size: TensorLike, name: str | None = None) -> Tensor:
    """`size` elements from `begin` along each axis; -1 takes the rest."""
    return ops.slice(tensor, begin, size, name=name)


def strided_slice(
    tensor: TensorLike,
    begin: TensorLike,
    end: TensorLike,
    strides: TensorLike = None,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    name: str | None = None,
) -> Tensor:
    """The StridedSlice op with optional strides."""
    if strides is None:
        strides = ones_like(begin)
    return ops.strided_slice(
        tensor, begin, end, strides, begin_mask=begin_mask, end_mask=end_mask, ellipsis_mask=ellipsis_mask,
        new_axis_mask=new_axis_mask, shrink_axis_mask=shrink_axis_mask, name=name,
    )  # fmt: skip


@operator("getitem")
def getitem(tensor: Tensor, key: Any) -> Tensor:
    """`tensor[key]` with ints, scalar tensors, slices, None (a new axis) and `...`, by StridedSlice.

    Raises:
        GraphError: the key is something else (for a boolean tensor, see `boolean_mask`).
    """
    keys: list[Any] = list(key) if isinstance(key, tuple) else [key]  # type: ignore[arg-type]
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    for position, item in enumerate(keys):
        bit = 1 << position
        if isinstance(item, builtins.slice):
            part = cast("Any", item)
            if part.start is None:
                masks["begin_mask"] |= bit
            if part.stop is None:
                masks["end_mask"] |= bit
            given = [bound for bound in (part.start, part.stop) if isinstance(bound, Tensor)]
            begin.append(_beside(given, 0) if part.start is None else part.start)
            end.append(_beside(given, 0) if part.stop is None else part.stop)
            strides.append(_beside(given, 1) if part.step is None else part.step)
        elif item is Ellipsis or item is None:
            masks["ellipsis_mask" if item is Ellipsis else "new_axis_mask"] |= bit
            begin.append(0)
            end.append(0)
            strides.append(1)
        elif isinstance(item, Tensor) or (hasattr(item, "__index__") and not isinstance(item, bool)):
            if isinstance(item, Tensor) and (item.static_shape.rank or item.dtype.base.kind not in "iu"):
                raise GraphError(f"'{item.name}' cannot index '{tensor.name}'; see gather and boolean_mask")
            masks["shrink_axis_mask"] |= bit
            begin.append(item)
            end.append(item + 1)
            strides.append(1)
        else:
            raise GraphError(f"{item!r} cannot index '{tensor.name}'; use ints, slices, None or ...")
    with name_scope(None, "strided_slice", [tensor, *begin, *end]) as scope:
        if begin:
            packed = [stack(part) for part in (begin, end, strides)]
            dtype = dtypes.int64 if any(p.dtype.base is dtypes.int64 for p in packed) else dtypes.int32
            packed = [p if p.dtype.base is dtype else ops.cast(p, DstT=dtype) for p in packed]
        else:
            packed = [constant([], dtypes.int32) for _ in range(3)]
        return ops.strided_slice(tensor, *packed, **masks, name=scope)


def _beside(bounds: Sequence[Tensor], value: int) -> Any:
    """What stands for a part of a slice that is left out: beside a bound that is a tensor, one of its type."""
    return constant(value, bounds[0].dtype.base) if bounds else value


def pad(
    tensor: TensorLike, paddings: TensorLike, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0
) -> Tensor:
    """Grow the axes. `paddings` is [rank, 2], int32; `mode` CONSTANT, REFLECT or SYMMETRIC."""
    mode = mode.upper()
    if mode == "CONSTANT":
        if not isinstance(constant_values, Tensor) and constant_values == 0:
            return ops.pad(tensor, paddings, name=name)
        return ops.pad_v2(tensor, paddings, constant_values, name=name)
    return ops.mirror_pad(tensor, paddings, mode=mode, name=name)


def tile(tensor: TensorLike, multiples: TensorLike, name: str | None = None) -> Tensor:
    return ops.tile(tensor, multiples, name=name)


def gather(
    params: TensorLike, indices: TensorLike, axis: int | Tensor = 0, name: str | None = None, batch_dims: int = 0
) -> Tensor:
    """Rows (slices along `axis`) of `params`."""
    if hasattr(params, "sparse_read") and batch_dims == 0 and isinstance(axis, int) and axis == 0:
        return params.sparse_read(indices, name=name)
    return ops.gather_v2(params, indices, axis, batch_dims=batch_dims, name=name)


def gather_nd(params: TensorLike, indices: TensorLike, name: str | None = None) -> Tensor:
    return ops.gather_nd(params, indices, name=name)


def one_hot(
    indices: TensorLike,
    depth: TensorLike,
    on_value: Any = None,
    off_value: Any = None,
    axis: int = -1,
    dtype: DTypeLike = None,
    name: str | None = None,
) -> Tensor:
    """Vectors with `on_value` (1) at the index and `off_value` (0) elsewhere.

    Args:
        dtype: what they are of; without it, what the values given are of, or float32.

    Raises:
        TypeError: the values are of two types, or not of `dtype`.
    """
    with name_scope(name, "one_hot", [indices, depth, on_value, off_value]) as scope:
        on_value = None if on_value is None else convert_to_tensor(on_value)
        off_value = None if off_value is None else convert_to_tensor(off_value)
        on = None if on_value is None else on_value.dtype.base
        off = None if off_value is None else off_value.dtype.base
        wanted = (on or off or dtypes.float32) if dtype is None else as_dtype(dtype)
        for kind, what in ((on, "on_value"), (off, "off_value")):
            if dtype is not None and kind is not None and kind != wanted:
                raise TypeError(f"{what} of a one_hot of {wanted} is of {kind}; give it as {wanted}, or another dtype")
        if on_value is None:
            on_value = convert_to_tensor(1, wanted, name="on_value")
        if off_value is None:
            off_value = convert_to_tensor(0, wanted, name="off_value")
        if (on or wanted) != (off or wanted):
            raise TypeError(f"on_value of a one_hot is of {on} and off_value of {off}; give both as one type")
        return ops.one_hot(indices, depth, on_value, off_value, axis=axis, name=scope)


def where(condition: TensorLike, x: TensorLike = None, y: TensorLike = None, name: str | None = None) -> Tensor:
    """Elements of `x` where `condition` holds, else of `y`, without broadcasting; with neither, the true coordinates.

    Args:
        condition: of the shape of x and y, or a vector that chooses rows.

    Raises:
        GraphError: only one of the two is given.
    """
    return _where(ops.select, condition, x, y, name)


def where_v2(condition: TensorLike, x: TensorLike = None, y: TensorLike = None, name: str | None = None) -> Tensor:
    """As `where`, but all three are broadcast to one shape (SelectV2).

    Raises:
        GraphError: only one of the two is given.
    """
    return _where(ops.select_v2, condition, x, y, name)


def _where(select: Any, condition: TensorLike, x: TensorLike, y: TensorLike, name: str | None) -> Tensor:
    if x is None and y is None:
        return ops.where(condition, name=name)
    if x is None or y is None:
        raise GraphError("where takes both x and y, or neither")
    return select(condition, x, y, name=name)


def boolean_mask(tensor: TensorLike, mask: TensorLike, name: str = "boolean_mask", axis: int | None = None) -> Tensor:
    """The elements (slices) where `mask` is true; the mask covers the axes from `axis` on, by default the leading ones.

    Raises:
        GraphError: the mask's rank is unknown or zero.
    """
    with name_scope(name, None, [tensor, mask]):
        tensor = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        count = mask.static_shape.rank
        if not count:
            raise GraphError(f"'{mask.name}' must have a known rank of at least 1 to be a mask")
        first = 0 if axis is None else int(axis)
        leading = ops.prod(shape(tensor)[first : first + count], [0])
        before, after = shape(tensor)[:first], shape(tensor)[first + count :]
        flat = ops.reshape(tensor, concat([before, [leading], after], 0))
        known = tensor.static_shape
        if known.rank is not None:
            covered = known.slice(first, first + count).num_elements
            flat.set_shape([*known.slice(0, first), covered, *known.slice(first + count)])
        chosen = squeeze(where(ops.reshape(mask, [-1])), [1])
        return gather(flat, chosen, axis=first)


def broadcast_to(tensor: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    return ops.broadcast_to(tensor, shape, name=name)


def reverse(tensor: TensorLike, axis: TensorLike, name: str | None = None) -> Tensor:
    return ops.reverse_v2(tensor, axis, name=name)


def stop_gradient(tensor: TensorLike, name: str | None = None) -> Tensor:
    return ops.stop_gradient(tensor, name=name)


def invert_permutation(value: TensorLike, name: str | None = None) -> Tensor:
    return ops.invert_permutation(value, name=name)


def convert_to_tensor_or_slices(value: Any, name: str | None = None) -> Tensor | IndexedSlices:
    """IndexedSlices stay; anything else becomes a tensor."""
    return value if isinstance(value, IndexedSlices) else convert_to_tensor(value, name=name)


def tensor_array(value: Any, dtype: DType | None = None) -> Any:
    """A Python value as the numpy array that `constant` would hold.

    Raises:
        GraphError: it does not fit the type.
    """
    from toolkit.client.construction.convert import tensor_proto
    from toolkit.formats.arrays.tensor import to_array

    return to_array(tensor_proto(value, dtype))
