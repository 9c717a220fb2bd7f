"""Gradients of ragged tensors' ops. An op run on the positions of the values says where its gradients belong."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.client.math import math_ops

no_gradient("RaggedRange")


@gradient("RaggedTensorToSparse")
def to_sparse(op: Operation, _: Gradient, grad: Tensor, __: Gradient) -> list[Gradient]:
    *splits, values = op.inputs
    return [*[None for _ in splits], array_ops.reshape(grad, array_ops.shape(values))]


@gradient("RaggedTensorToTensor")
def to_tensor(op: Operation, grad: Tensor) -> list[Gradient]:
    sizes, values, default, *partitions = op.inputs
    kinds = op.get_attr("row_partition_types")
    ragged_rank = len(kinds) - (kinds[0] == b"FIRST_DIM_SIZE")
    count = array_ops.shape(values)[0]
    positions = math_ops.range(1, count + 1)
    outer = sizes if sizes.static_shape.rank == 0 else sizes[: ragged_rank + 1]
    where = ops.ragged_tensor_to_tensor(outer, positions, 0, partitions, row_partition_types=kinds)
    inner = array_ops.shape(values)[1:]
    flat = array_ops.reshape(grad, array_ops.concat([array_ops.reshape(array_ops.size(where), [1]), inner], 0))
    rows = math_ops.unsorted_segment_sum(flat, array_ops.reshape(where, [-1]), count + 1)
    default_sizes = array_ops.shape(default)
    axes, _ = ops.broadcast_gradient_args(default_sizes, inner)
    by_default = array_ops.reshape(math_ops.reduce_sum(rows[0], axes), default_sizes)
    return [None, rows[1:], by_default, *[None for _ in partitions]]


@gradient("RaggedGather")
def gather(op: Operation, *grads: Tensor) -> list[Gradient]:
    *splits, values, indices = op.inputs
    sizes = array_ops.shape(values)
    *_, rows = ops.ragged_gather(
        splits, math_ops.range(sizes[0]), indices, OUTPUT_RAGGED_RANK=op.get_attr("OUTPUT_RAGGED_RANK")
    )
    grad = grads[-1]
    return [*[None for _ in splits], IndexedSlices(grad, rows, sizes), None]


@gradient("RaggedFillEmptyRows")
def fill_empty_rows(op: Operation, _: Gradient, grad: Tensor, *__: Gradient) -> list[Gradient]:
    by_values, by_default = ops.ragged_fill_empty_rows_grad(op.outputs[3], grad)
    return [None, by_values, None, by_default]


@gradient("RaggedTensorToVariant")
def to_variant(op: Operation, grad: Tensor) -> list[Gradient]:
    *splits, values = op.inputs
    batched = op.get_attr("batched_input")
    first = splits[0] if splits and batched else array_ops.zeros([0], op.get_attr("Tsplits"))
    by_values = ops.ragged_tensor_to_variant_gradient(grad, first, array_ops.shape(values), Tvalues=values.dtype.base)
    return [*[None for _ in splits], by_values]


@gradient("RaggedTensorFromVariant")
def from_variant(op: Operation, *grads: Tensor) -> Gradient:
    batched = op.get_attr("input_ragged_rank") != op.get_attr("output_ragged_rank")
    splits = list(op.outputs[:-1])
    return ops.ragged_tensor_to_variant(splits, grads[-1], batched_input=batched, Tsplits=op.get_attr("Tsplits"))


# -- optional values --------------------------------------------------------------------------------------


@gradient("OptionalFromValue")
def optional_from_value(op: Operation, grad: Tensor) -> list[Gradient]:
    inputs = op.inputs
    found = ops.optional_get_value(
        grad, output_types=[x.dtype.base for x in inputs], output_shapes=[x.static_shape for x in inputs]
    )
    return list(found)


@gradient("OptionalGetValue")
def optional_get_value(op: Operation, *grads: Tensor) -> Gradient:
    return ops.optional_from_value(list(grads))
