"""Gradients of ops that move elements around."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.flow.contexts import output_context
from toolkit.client.gradients.common import known_value, shape_of
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.client.math import math_ops
from toolkit.errors import GraphError
from toolkit.graph import dtypes

no_gradient(
    "Const", "EditDistance", "StopGradient", "Shape", "ShapeN", "Rank", "Size", "InvertPermutation", "ZerosLike",
    "OnesLike", "OneHot", "Where", "ListDiff", "Unique", "UniqueV2", "BroadcastGradientArgs", "ConcatOffset",
    "Placeholder", "PlaceholderV2", "GuaranteeConst", "LowerBound", "UpperBound",
)  # fmt: skip


@gradient("CheckNumerics")
def check_numerics(op: Operation, grad: Tensor) -> Gradient:
    """The gradient is checked as well."""
    message = op.get_attr("message")  # written as bytes, which is what TensorFlow's nodes say
    return ops.check_numerics(grad, f"Not a number (NaN) or infinity (Inf) values detected in gradient. {message!r}")


@gradient("Identity", "RefIdentity", "PlaceholderWithDefault", "Snapshot", "DebugIdentity")
def identity(op: Operation, grad: Gradient) -> Gradient:
    return grad


@gradient("CheckNumericsV2", "Print", "PrintV2", "EnsureShape")
def first_only(op: Operation, grad: Gradient) -> list[Gradient]:
    return [grad] + [None] * (len(op.inputs) - 1)


@gradient("IdentityN")
def identity_n(op: Operation, *grads: Gradient) -> list[Gradient]:
    return list(grads)


@gradient("PreventGradient")
def prevent_gradient(op: Operation, grad: Gradient) -> Gradient:
    message = op.get_attr("message").decode() or "no reason is given"
    raise GraphError(f"gradients are not allowed through this operation: {message}", node=op.name)


# -- shapes -----------------------------------------------------------------------------------------------


@gradient("Reshape")
def reshape(op: Operation, grad: Gradient) -> list[Gradient]:
    known = op.inputs[0].static_shape
    grad = convert_to_tensor(grad)
    if known.dims is not None and known.dims.count(None) == 1 and 0 not in known.dims:
        return [array_ops.reshape(grad, [-1 if size is None else size for size in known.dims]), None]
    return [array_ops.reshape(grad, shape_of(op.inputs[0])), None]


@gradient("ExpandDims")
def expand_dims(op: Operation, grad: Tensor) -> list[Gradient]:
    return [array_ops.reshape(grad, shape_of(op.inputs[0])), None]


@gradient("Squeeze")
def squeeze(op: Operation, grad: Tensor) -> Gradient:
    return array_ops.reshape(grad, shape_of(op.inputs[0]))


@gradient("Transpose", "ConjugateTranspose")
def transpose(op: Operation, grad: Tensor) -> list[Gradient]:
    inverse = ops.invert_permutation(op.inputs[1])
    return [ops.function(op.type)(grad, inverse, name="transpose"), None]


@gradient("ReverseV2")
def reverse(op: Operation, grad: Tensor) -> list[Gradient]:
    return [array_ops.reverse(grad, op.inputs[1]), None]


@gradient("ReverseSequence")
def reverse_sequence(op: Operation, grad: Tensor) -> list[Gradient]:
    lengths = op.inputs[1]
    batch, sequence = op.get_attr("batch_dim"), op.get_attr("seq_dim")
    return [ops.reverse_sequence(grad, lengths, seq_dim=sequence, batch_dim=batch), None]


@gradient("Fill")
def fill(op: Operation, grad: Tensor) -> list[Gradient]:
    return [None, math_ops.reduce_sum(grad)]


@gradient("BroadcastTo")
def broadcast_to(op: Operation, grad: Tensor) -> list[Gradient]:
    x, sizes = op.inputs
    index = sizes.dtype.base
    before = array_ops.shape(x, out_type=index)
    after = op.outputs[0].static_shape
    wide = (
        constant(after.as_list(), index) if after.is_fully_defined else array_ops.shape(op.outputs[0], out_type=index)
    )
    _, axes = ops.broadcast_gradient_args(wide, before)
    return [array_ops.reshape(math_ops.reduce_sum(grad, axes, keepdims=True), before), None]


@gradient("Tile")
def tile(op: Operation, grad: Tensor) -> list[Gradient]:
    """Cut each axis into (copies, size) and sum over the copies."""
    x, multiples = op.inputs
    sizes = array_ops.shape(x, out_type=multiples.dtype.base)
    interleaved = array_ops.reshape(array_ops.transpose(array_ops.stack([multiples, sizes])), [-1])
    axes = math_ops.range(0, array_ops.size(interleaved), 2)
    return [math_ops.reduce_sum(array_ops.reshape(grad, interleaved), axes), None]


# -- joining and cutting ----------------------------------------------------------------------------------


#: more parts than these are cut by one node (SplitV), fewer by one Slice each
_MOST_SLICES = 16


def _concat_grad(grad: Gradient, values: list[Tensor], axis: Tensor) -> list[Gradient]:
    if len(values) == 1:
        return [grad]
    if isinstance(grad, IndexedSlices):
        return _concat_slices(grad, values, axis)
    assert grad is not None
    if axis.op.type == "Const" and output_context(axis.op) is not output_context(grad.op):
        axis = constant(known_value(axis), axis.dtype.base)
    axis = axis % array_ops.rank(values[0])
    sizes = _sizes_of(values)
    if len(sizes) > _MOST_SLICES:
        parts = array_ops.squeeze(array_ops.slice(array_ops.stack(sizes, axis=1), [axis, 0], [1, -1]))
        return list(array_ops.split(grad, parts, axis, num=len(values)))
    offsets: list[Tensor] = ops.concat_offset(axis, sizes)
    return [array_ops.slice(grad, begin, size) for begin, size in zip(offsets, sizes, strict=True)]


def _sizes_of(values: list[Tensor]) -> list[Tensor]:
    """The shapes of several tensors: constants if all are known, else one ShapeN."""
    sizes: list[Tensor] = []
    for value in values:
        sizes.append(array_ops.shape(value))
        if sizes[-1].op.type != "Const":
            return list(array_ops.shape_n(values))
    return sizes


def _concat_slices(grad: IndexedSlices, values: list[Tensor], axis: Tensor) -> list[Gradient]:
    """Rows go to the part they fall in; along another axis, every part has all rows, cut.

    Raises:
        GraphError: the axis is not known while the graph is made.
    """
    known = known_value(axis)
    axis = axis % array_ops.rank(values[0])
    if known is None:
        raise GraphError("the gradient of a concatenation by IndexedSlices needs a known axis")
    if known < 0:
        rank = values[0].static_shape.rank
        if rank is None:
            raise GraphError(
                "the gradient of a concatenation by IndexedSlices along a negative axis needs a known rank"
            )
        known %= rank
    sizes = [array_ops.shape(value) for value in values]
    parts: list[Gradient] = []
    if known > 0:
        rank_shape = array_ops.shape(sizes[0])
        before = array_ops.zeros(array_ops.expand_dims(axis, 0), dtypes.int32)
        mask = array_ops.concat([before, [1], array_ops.zeros(rank_shape - axis - 1, dtypes.int32)], 0)
        begin = array_ops.zeros(rank_shape, dtypes.int32)
        for size in sizes:
            extent = array_ops.concat([[-1], array_ops.slice(size, [1], [-1])], 0)
            parts.append(IndexedSlices(array_ops.slice(grad.values, begin, extent), grad.indices, size))
            begin = math_ops.add(begin, size * mask)
        return parts
    start = constant(0, grad.indices.dtype.base)
    for size in sizes:
        end = start + math_ops.cast(array_ops.gather(size, axis), grad.indices.dtype.base)
        inside = ops.logical_and(grad.indices >= start, grad.indices < end)
        chosen = array_ops.squeeze(array_ops.where(inside), [1])
        rows = array_ops.gather(grad.indices, chosen) - start
        parts.append(IndexedSlices(array_ops.gather(grad.values, chosen), rows, size))
        start = end
    return parts


@gradient("ConcatV2")
def concat_v2(op: Operation, grad: Gradient) -> list[Gradient]:
    *values, axis = op.inputs
    return [*_concat_grad(grad, values, axis), None]


@gradient("Concat")
def concat(op: Operation, grad: Gradient) -> list[Gradient]:
    axis, *values = op.inputs
    return [None, *_concat_grad(grad, values, axis)]


@gradient("Split")
def split(op: Operation, *grads: Tensor) -> list[Gradient]:
    return [None, array_ops.concat(list(grads), op.inputs[0])]


@gradient("SplitV")
def split_v(op: Operation, *grads: Tensor) -> list[Gradient]:
    return [array_ops.concat(list(grads), op.inputs[2]), None, None]


@gradient("Pack")
def pack(op: Operation, grad: Tensor) -> list[Gradient]:
    return list(array_ops.unstack(grad, num=op.get_attr("N"), axis=op.get_attr("axis")))


@gradient("Unpack")
def unpack(op: Operation, *grads: Tensor) -> Gradient:
    return array_ops.stack(list(grads), axis=op.get_attr("axis"))


@gradient("Slice")
def slice_(op: Operation, grad: Tensor) -> list[Gradient]:
    """Pad the gradient with zeros to the size of what was sliced."""
    x, begin, _ = op.inputs
    rank = array_ops.rank(x)
    index = begin.dtype.base
    extent = array_ops.shape(op.outputs[0], out_type=index)
    column = array_ops.stack([rank, 1])
    before = array_ops.reshape(begin, column)
    after = array_ops.reshape(array_ops.shape(x, out_type=index) - extent - begin, column)
    return [array_ops.pad(grad, array_ops.concat([before, after], 1)), None, None]


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@gradient("StridedSlice")
def strided_slice(op: Operation, grad: Tensor) -> list[Gradient]:
    x, begin, end, strides = op.inputs
    index = begin.dtype.base
    given = [_static(tensor) for tensor in (array_ops.shape(x, out_type=index), begin, end, strides)]
    masks = {mask: op.get_attr(mask) for mask in _MASKS}
    return [ops.strided_slice_grad(*given, grad, Index=index, **masks), None, None, None]


def _static(tensor: Tensor) -> Any:
    """The value as an array where it is known, which becomes a constant of its own, else the tensor."""
    known = known_value(tensor)
    return tensor if known is None else np.array(known, tensor.dtype.base.numpy)


@gradient("StridedSliceGrad")
def strided_slice_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    _, begin, end, strides, _ = op.inputs
    masks = {mask: op.get_attr(mask) for mask in _MASKS}
    return [None, None, None, None, ops.strided_slice(grad, begin, end, strides, **masks)]


@gradient("Pad", "PadV2")
def pad(op: Operation, grad: Tensor) -> list[Gradient]:
    x, paddings = op.inputs[:2]
    rank = array_ops.rank(x)
    begin = array_ops.reshape(array_ops.slice(paddings, [0, 0], array_ops.stack([rank, 1])), [-1])
    sizes = array_ops.shape(x, out_type=begin.dtype.base)
    inner = array_ops.slice(grad, begin, sizes)
    return [inner, *[None] * (len(op.inputs) - 1)]


@gradient("MirrorPad")
def mirror_pad(op: Operation, grad: Tensor) -> list[Gradient]:
    return [ops.mirror_pad_grad(grad, op.inputs[1], mode=op.get_attr("mode")), None]


@gradient("MirrorPadGrad")
def mirror_pad_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    return [ops.mirror_pad(grad, op.inputs[1], mode=op.get_attr("mode")), None]


# -- choosing rows ----------------------------------------------------------------------------------------


def _row_slices(params_shape: Tensor, indices: Tensor, grad: Tensor) -> IndexedSlices:
    """The gradient of params[indices] as rows."""
    count = array_ops.expand_dims(array_ops.size(indices), 0)
    sizes = array_ops.concat([count, math_ops.cast(params_shape, dtypes.int32)[1:]], 0)
    return IndexedSlices(array_ops.reshape(grad, sizes), array_ops.reshape(indices, count), params_shape)


@gradient("Gather")
def gather(op: Operation, grad: Gradient) -> list[Gradient]:
    params, indices = op.inputs
    with colocate_with(params.op):
        sizes = array_ops.shape(params)
    return [_row_slices(sizes, indices, convert_to_tensor(grad)), None]


@gradient("GatherV2")
def gather_v2(op: Operation, grad: Gradient) -> list[Gradient]:
    """Rows of the first axis become IndexedSlices; another axis is brought to the front, added up and brought back."""
    params, indices, axis = op.inputs
    with colocate_with(params.op):
        sizes = array_ops.shape(params)
    count = array_ops.expand_dims(array_ops.size(indices), 0)
    batch_dims = op.get_attr("batch_dims")
    if batch_dims < 0:
        if indices.static_shape.rank is None:
            raise GraphError(f"the gradient of a gather with batch_dims={batch_dims} needs indices of a known rank")
        batch_dims += indices.static_shape.rank
    if known_value(axis) == 0:
        wide = array_ops.concat([count, sizes[1:]], 0)
        values = array_ops.reshape(convert_to_tensor(grad), wide)
        return [IndexedSlices(values, array_ops.reshape(indices, count), sizes), None, None]
    outer, inner = sizes[:axis], sizes[axis:][1:]
    wide = array_ops.concat([outer, [-1], inner], 0)
    rank, here = array_ops.size(wide), array_ops.size(outer)
    batches = math_ops.range(batch_dims)
    between = math_ops.range(batch_dims, here)
    behind = math_ops.range(here + 1, rank)
    values = array_ops.reshape(convert_to_tensor(grad), wide)
    forward = array_ops.concat([batches, [here], between, behind], 0)
    rows = array_ops.transpose(values, forward)
    turned_sizes = array_ops.gather(sizes, forward)
    total = _batch_gather_grad(turned_sizes, rows, indices, batch_dims, sizes[axis])
    back = array_ops.concat([batches, between + 1, [batch_dims], behind], 0)
    return [array_ops.reshape(array_ops.transpose(total, back), array_ops.shape(params)), None, None]


def _batch_gather_grad(sizes: Tensor, values: Tensor, indices: Tensor, batch_dims: int, length: Tensor) -> Tensor:
    """Batch dimensions are folded into the row numbers: one long list of rows for all batches."""
    count = array_ops.expand_dims(array_ops.size(indices), 0)
    outer: Tensor | None = None
    flat: Tensor | None = None
    if batch_dims:
        own = array_ops.shape(values)
        outer, inner = own[:batch_dims], own[batch_dims:][1:]
        batches = ops.prod(outer, [0])
        flat = array_ops.concat([[-1], inner], 0)
        length = length * batches
        indices = _numbered_rows(sizes, indices, batch_dims)
        values = array_ops.reshape(values, flat)
    total = math_ops.unsorted_segment_sum(values, array_ops.reshape(indices, count), length)
    return total if outer is None else array_ops.reshape(total, array_ops.concat([outer, flat], 0))


def _numbered_rows(sizes: Tensor, indices: Tensor, batch_dims: int) -> Tensor:
    """Indices into the rows of all batches, one after the other."""
    shape = indices.static_shape
    index = indices.dtype.base
    sizes = math_ops.cast(sizes, index)
    step = math_ops.cast(1, index)
    rank = array_ops.rank(indices) if shape.rank is None else shape.rank
    for axis in range(batch_dims - 1, -1, -1):
        step = step * sizes[axis + 1]
        along = math_ops.range(math_ops.cast(0, index), sizes[axis], math_ops.cast(1, index)) * step
        wide = array_ops.stack([*[1] * axis, sizes[axis], *[1] * (rank - 1 - axis)]) if isinstance(rank, int) else (
            array_ops.concat([[1] * axis, [math_ops.cast(sizes[axis], dtypes.int32)],
                              array_ops.fill([rank - 1 - axis], constant(1))], 0)
        )  # fmt: skip
        indices = indices + array_ops.reshape(along, wide)
    return indices


@gradient("GatherNd")
def gather_nd(op: Operation, grad: Tensor) -> list[Gradient]:
    params, indices = op.inputs
    sizes = array_ops.shape(params, out_type=indices.dtype.base)
    if indices.static_shape.rank == 2 and indices.static_shape[-1] == 1:
        return [IndexedSlices(grad, array_ops.squeeze(indices, -1), sizes), None]
    return [ops.scatter_nd(indices, grad, sizes), None]


@gradient("ScatterNd")
def scatter_nd(op: Operation, grad: Tensor) -> list[Gradient]:
    return [None, array_ops.gather_nd(grad, op.inputs[0]), None]


@gradient("TensorScatterUpdate")
def tensor_scatter_update(op: Operation, grad: Tensor) -> list[Gradient]:
    _, indices, updates = op.inputs
    kept = ops.tensor_scatter_update(grad, indices, array_ops.zeros_like(updates))
    return [kept, None, array_ops.gather_nd(grad, indices)]


@gradient("TensorScatterAdd")
def tensor_scatter_add(op: Operation, grad: Tensor) -> list[Gradient]:
    return [grad, None, array_ops.gather_nd(grad, op.inputs[1])]


@gradient("DynamicPartition")
def dynamic_partition(op: Operation, *grads: Tensor) -> list[Gradient]:
    """Partition the positions as the data were, and stitch the gradients back by them."""
    data, partitions = op.inputs
    prefix = array_ops.shape(partitions)
    positions = array_ops.reshape(math_ops.range(math_ops.reduce_prod(prefix)), prefix)
    places = ops.dynamic_partition(positions, partitions, num_partitions=op.get_attr("num_partitions"))
    stitched = ops.parallel_dynamic_stitch(places, list(grads))
    return [array_ops.reshape(stitched, shape_of(data)), None]


@gradient("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(op: Operation, grad: Gradient) -> list[Gradient]:
    count = op.get_attr("N")
    dense = convert_to_tensor(grad)
    indices = [math_ops.cast(i, dtypes.int32) for i in op.inputs[:count]]
    return [None] * count + [array_ops.gather(dense, i) for i in indices]


@gradient("TopK", "TopKV2", accepts_none=True)
def top_k(op: Operation, grad: Tensor | None, _: Gradient) -> list[Gradient]:
    """Each of the k gradients goes back to where its value stood."""
    x = op.inputs[0]
    rest: list[Gradient] = [None] * (len(op.inputs) - 1)
    if grad is None:
        return [None, *rest]
    places = op.outputs[1]
    sizes, place_sizes = array_ops.shape(x), array_ops.shape(places)
    flat = array_ops.reshape(places, array_ops.stack([-1, _last_size(place_sizes)]))
    width = _last_size(sizes)
    rows = array_ops.shape(flat)[0]
    starts = math_ops.range(0, math_ops.cast(rows, dtypes.int64) * width, width)
    numbered = flat + math_ops.cast(array_ops.expand_dims(starts, -1), dtypes.int32)
    numbered = array_ops.expand_dims(array_ops.reshape(numbered, [-1]), -1)
    values = array_ops.reshape(grad, [-1])
    total = ops.scatter_nd(numbered, values, [math_ops.reduce_prod(sizes)])
    result = array_ops.reshape(total, sizes)
    _ = array_ops.zeros([], dtypes.int32)  # TensorFlow's gradient by k, which nothing uses
    return [result, *rest]


def _last_size(sizes: Tensor) -> Tensor:
    wide = math_ops.cast(sizes, dtypes.int64)
    return array_ops.gather(wide, array_ops.size(sizes) - 1)


# -- space ------------------------------------------------------------------------------------------------


@gradient("SpaceToBatchND")
def space_to_batch_nd(op: Operation, grad: Tensor) -> list[Gradient]:
    return [ops.batch_to_space_nd(grad, op.inputs[1], op.inputs[2]), None, None]


@gradient("BatchToSpaceND")
def batch_to_space_nd(op: Operation, grad: Tensor) -> list[Gradient]:
    return [ops.space_to_batch_nd(grad, op.inputs[1], op.inputs[2]), None, None]


@gradient("SpaceToBatch")
def space_to_batch(op: Operation, grad: Tensor) -> list[Gradient]:
    return [ops.batch_to_space(grad, op.inputs[1], block_size=op.get_attr("block_size")), None]


@gradient("BatchToSpace")
def batch_to_space(op: Operation, grad: Tensor) -> list[Gradient]:
    return [ops.space_to_batch(grad, op.inputs[1], block_size=op.get_attr("block_size")), None]


@gradient("SpaceToDepth")
def space_to_depth(op: Operation, grad: Tensor) -> Gradient:
    return ops.depth_to_space(grad, block_size=op.get_attr("block_size"), data_format=op.get_attr("data_format"))


@gradient("DepthToSpace")
def depth_to_space(op: Operation, grad: Tensor) -> Gradient:
    return ops.space_to_depth(grad, block_size=op.get_attr("block_size"), data_format=op.get_attr("data_format"))


# -- rarer ones -------------------------------------------------------------------------------------------


@gradient("Roll")
def roll(op: Operation, grad: Tensor) -> list[Gradient]:
    _, shift, axis = op.inputs
    return [ops.roll(grad, -shift, axis), None, None]


@gradient("Reverse")
def reverse_v1(op: Operation, grad: Tensor) -> list[Gradient]:
    return [ops.function("Reverse")(grad, op.inputs[1]), None]


@gradient("TensorScatterSub")
def tensor_scatter_sub(op: Operation, grad: Tensor) -> list[Gradient]:
    return [grad, None, -array_ops.gather_nd(grad, op.inputs[1])]


@gradient("ScatterNdNonAliasingAdd")
def scatter_nd_add(op: Operation, grad: Tensor) -> list[Gradient]:
    return [grad, None, array_ops.gather_nd(grad, op.inputs[1])]


@gradient("TensorScatterMax", "TensorScatterMin")
def tensor_scatter_extremum(op: Operation, grad: Tensor) -> list[Gradient]:
    """Shared equally between the element and the updates that are the largest (smallest)."""
    x, indices, updates = op.inputs
    y = op.outputs[0]
    own = math_ops.cast(ops.equal(x, y), grad.dtype.base)
    theirs = math_ops.cast(ops.equal(updates, array_ops.gather_nd(y, indices)), grad.dtype.base)
    count = ops.maximum(ops.tensor_scatter_add(own, indices, theirs), array_ops.ones_like(own))
    shared = grad / count
    return [shared * own, None, array_ops.gather_nd(shared, indices) * theirs]


@gradient("TensorStridedSliceUpdate")
def tensor_strided_slice_update(op: Operation, grad: Tensor) -> list[Gradient]:
    _, begin, end, strides, value = op.inputs
    masks = {mask: op.get_attr(mask) for mask in _MASKS}
    rest = ops.tensor_strided_slice_update(grad, begin, end, strides, array_ops.zeros_like(value), **masks)
    return [rest, None, None, None, ops.strided_slice(grad, begin, end, strides, **masks)]
