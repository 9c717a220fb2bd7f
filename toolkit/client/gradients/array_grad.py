"""Gradients of ops that move elements around."""

from __future__ import annotations

from toolkit.client import array_ops, math_ops, ops
from toolkit.client.convert import constant, convert_to_tensor
from toolkit.client.gradients.common import known_value, shape_of
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.client.operation import Operation
from toolkit.client.scopes import colocate_with
from toolkit.client.tensor import IndexedSlices, Tensor
from toolkit.errors import GraphError
from toolkit.graph import dtypes

no_gradient(
    "Const", "EditDistance", "StopGradient", "Shape", "ShapeN", "Rank", "Size", "InvertPermutation", "ZerosLike",
    "OnesLike", "OneHot", "Where", "ListDiff", "Unique", "UniqueV2", "BroadcastGradientArgs", "ConcatOffset",
    "Placeholder", "PlaceholderV2", "GuaranteeConst", "LowerBound", "UpperBound",
)  # fmt: skip


@gradient("Identity", "RefIdentity", "PlaceholderWithDefault", "Snapshot", "CheckNumerics", "DebugIdentity")
def identity(op: Operation, grad: Gradient) -> Gradient:
    return grad


@gradient("CheckNumericsV2", "Print", "PrintV2", "EnsureShape")
def first_only(op: Operation, grad: Gradient) -> list[Gradient]:
    return [grad] + [None] * (len(op.inputs) - 1)


@gradient("IdentityN", accepts_none=True)
def identity_n(op: Operation, *grads: Gradient) -> list[Gradient]:
    return list(grads)


@gradient("PreventGradient")
def prevent_gradient(op: Operation, grad: Gradient) -> Gradient:
    message = op.get_attr("message").decode() or "no reason is given"
    raise GraphError(f"gradients are not allowed through this operation: {message}", node=op.name)


# -- shapes -----------------------------------------------------------------------------------------------


@gradient("Reshape")
def reshape(op: Operation, grad: Gradient) -> list[Gradient]:
    return [array_ops.reshape(convert_to_tensor(grad), shape_of(op.inputs[0])), None]


@gradient("ExpandDims")
def expand_dims(op: Operation, grad: Tensor) -> list[Gradient]:
    return [array_ops.reshape(grad, shape_of(op.inputs[0])), None]


@gradient("Squeeze")
def squeeze(op: Operation, grad: Tensor) -> Gradient:
    return array_ops.reshape(grad, shape_of(op.inputs[0]))


@gradient("Transpose", "ConjugateTranspose")
def transpose(op: Operation, grad: Tensor) -> list[Gradient]:
    inverse = ops.invert_permutation(op.inputs[1])
    return [ops.function(op.type)(grad, inverse), None]


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
    before = shape_of(x)
    if before.dtype.base is not sizes.dtype.base:
        before = math_ops.cast(before, sizes.dtype.base)
    _, axes = ops.broadcast_gradient_args(sizes, before)
    return [array_ops.reshape(math_ops.reduce_sum(grad, axes, keepdims=True), before), None]


@gradient("Tile")
def tile(op: Operation, grad: Tensor) -> list[Gradient]:
    """Cut each axis into (copies, size) and sum over the copies."""
    x, multiples = op.inputs
    sizes = math_ops.cast(shape_of(x), multiples.dtype.base)
    interleaved = array_ops.reshape(array_ops.transpose(array_ops.stack([multiples, sizes])), [-1])
    rank = x.static_shape.rank
    axes = list(range(0, 2 * rank, 2)) if rank is not None else math_ops.range(0, array_ops.size(interleaved), 2)
    return [math_ops.reduce_sum(array_ops.reshape(grad, interleaved), axes), None]


# -- joining and cutting ----------------------------------------------------------------------------------


def _concat_grad(grad: Gradient, values: list[Tensor], axis: Tensor) -> list[Gradient]:
    if len(values) == 1:
        return [grad]
    if isinstance(grad, IndexedSlices):
        grad = convert_to_tensor(grad)
    assert grad is not None
    known = known_value(axis)
    sizes = [None if v.static_shape.rank is None or known is None else v.static_shape[known] for v in values]
    if all(size is not None for size in sizes):
        # Cutting by sizes that are known is one node.
        if len(set(sizes)) == 1:
            return list(array_ops.split(grad, len(values), axis))
        return list(array_ops.split(grad, constant(sizes, dtypes.int32), axis, num=len(values)))
    shapes = array_ops.shape_n(values)
    rank = array_ops.rank(values[0])
    offsets: list[Tensor] = ops.concat_offset(axis % rank, shapes)
    return [array_ops.slice(grad, begin, size) for begin, size in zip(offsets, shapes, strict=True)]


@gradient("ConcatV2")
def concat_v2(op: Operation, grad: Gradient) -> list[Gradient]:
    *values, axis = op.inputs
    return [*_concat_grad(grad, values, math_ops.cast(axis, dtypes.int32)), None]


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
    column = array_ops.stack([rank, 1])
    index = begin.dtype.base
    before = array_ops.reshape(begin, column)
    sizes = array_ops.shape(x, out_type=index), array_ops.shape(op.outputs[0], out_type=index)
    after = array_ops.reshape(sizes[0] - sizes[1] - begin, column)
    return [array_ops.pad(grad, array_ops.concat([before, after], 1)), None, None]


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@gradient("StridedSlice")
def strided_slice(op: Operation, grad: Tensor) -> list[Gradient]:
    x, begin, end, strides = op.inputs
    sizes = array_ops.shape(x, out_type=begin.dtype.base)
    masks = {mask: op.get_attr(mask) for mask in _MASKS}
    return [ops.strided_slice_grad(sizes, begin, end, strides, grad, **masks), None, None, None]


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
    if op.type == "Pad":
        return [inner, None]
    return [inner, None, math_ops.reduce_sum(grad) - math_ops.reduce_sum(inner)]


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
        sizes = array_ops.shape(params, out_type=dtypes.int64)
    return [_row_slices(math_ops.cast(sizes, dtypes.int32), indices, convert_to_tensor(grad)), None]


@gradient("GatherV2")
def gather_v2(op: Operation, grad: Gradient) -> list[Gradient]:
    params, indices, axis = op.inputs
    grad = convert_to_tensor(grad)
    known = known_value(axis)
    batch_dims = op.get_attr("batch_dims")
    rank = params.static_shape.rank
    if known is not None and known < 0 and rank is not None:
        known += rank
    with colocate_with(params.op):
        sizes = shape_of(params)
    if known == 0 and batch_dims == 0:
        return [_row_slices(sizes, indices, grad), None, None]
    if batch_dims:
        return [_batch_gather_grad(params, indices, grad, known, batch_dims), None, None]
    # Bring the axis to the front, add up the rows there, and bring it back.
    flat_count = array_ops.expand_dims(array_ops.size(indices), 0)
    axis = math_ops.cast(axis, dtypes.int32)
    axis = (axis + array_ops.rank(params)) % array_ops.rank(params)
    outer, inner = sizes[:axis], sizes[axis + 1 :]
    values = array_ops.reshape(grad, array_ops.concat([outer, flat_count, inner], 0))
    outer_axes = math_ops.range(array_ops.size(outer))
    inner_axes = math_ops.range(axis + 1, axis + 1 + array_ops.size(inner))
    here = array_ops.expand_dims(axis, 0)
    forward = array_ops.concat([here, outer_axes, inner_axes], 0)
    rows = array_ops.transpose(values, forward)
    total = math_ops.unsorted_segment_sum(rows, array_ops.reshape(indices, flat_count), sizes[axis])
    return [array_ops.transpose(total, ops.invert_permutation(forward)), None, None]


def _batch_gather_grad(params: Tensor, indices: Tensor, grad: Tensor, axis: int | None, batch_dims: int) -> Tensor:
    """Batch dimensions are folded into the row numbers: one long list of rows for all batches."""
    if axis is None or axis != batch_dims:
        raise GraphError(f"the gradient of a gather with batch_dims={batch_dims} needs axis={batch_dims}, not {axis}")
    sizes = shape_of(params)
    batch_shape, rows = sizes[:batch_dims], sizes[batch_dims]
    batches = math_ops.reduce_prod(batch_shape)
    width = array_ops.shape(indices)
    per_batch = math_ops.reduce_prod(width[batch_dims:])
    flat = array_ops.reshape(indices, array_ops.stack([batches, per_batch]))
    rows_index = math_ops.cast(rows, flat.dtype.base)
    offsets = math_ops.cast(math_ops.range(batches), flat.dtype.base) * rows_index
    flat = array_ops.reshape(flat + array_ops.expand_dims(offsets, 1), [-1])
    inner = sizes[batch_dims + 1 :]
    values = array_ops.reshape(grad, array_ops.concat([array_ops.expand_dims(batches * per_batch, 0), inner], 0))
    total = math_ops.unsorted_segment_sum(values, flat, batches * rows)
    return array_ops.reshape(total, sizes)


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
    sizes = array_ops.shape(x)
    width = sizes[-1]
    flat_places = array_ops.reshape(places, array_ops.stack([-1, array_ops.shape(places)[-1]]))
    rows = array_ops.shape(flat_places)[0]
    starts = array_ops.expand_dims(math_ops.range(0, rows * width, width), -1)
    flat = array_ops.reshape(flat_places + starts, [-1, 1])
    values = array_ops.reshape(grad, [-1])
    total = array_ops.expand_dims(math_ops.reduce_prod(sizes), 0)
    return [array_ops.reshape(ops.scatter_nd(flat, values, total), sizes), *rest]


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
