"""Gradients of sparse tensors' ops: of their values and of the dense tensors beside them."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.common import conj
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.client.math import math_ops
from toolkit.errors import GraphError
from toolkit.graph import dtypes

no_gradient(
    "SparseAddGrad", "SparseConcat", "DenseToDenseSetOperation", "DenseToSparseSetOperation",
    "SparseToSparseSetOperation", "SetSize", "SparseMatrixNNZ", "SparseMatrixZeros",
)  # fmt: skip


@gradient("SparseReorder")
def reorder(op: Operation, _: Gradient, grad: Tensor) -> list[Gradient]:
    """Sorting the positions as the values were sorted says where each value came from."""
    indices, _values, sizes = op.inputs
    positions = math_ops.range(array_ops.shape(indices)[0])
    _, order = ops.sparse_reorder(indices, positions, sizes)
    return [None, array_ops.gather(grad, ops.invert_permutation(order)), None]


@gradient("SparseAdd")
def add(op: Operation, _: Gradient, grad: Tensor, __: Gradient) -> list[Gradient]:
    by_a, by_b = ops.sparse_add_grad(grad, op.inputs[0], op.inputs[3], op.outputs[0])
    return [None, by_a, None, None, by_b, None, None]


@gradient("SparseTensorDenseAdd")
def dense_add(op: Operation, grad: Tensor) -> list[Gradient]:
    return [None, array_ops.gather_nd(grad, op.inputs[0]), None, grad]


@gradient("SparseReduceSum")
def reduce_sum(op: Operation, grad: Tensor) -> list[Gradient]:
    """Each value gets the gradient of the sum it is part of: its index divided by how much each axis shrank."""
    indices, _, sizes, axes = op.inputs
    rank = array_ops.size(sizes)
    reduced = (array_ops.reshape(axes, [-1]) + rank) % rank
    ones = array_ops.ones_like(math_ops.cast(reduced, dtypes.int64))
    kept = ops.dynamic_stitch([math_ops.range(rank), reduced], [sizes, ones])
    spread = array_ops.reshape(grad, kept)
    return [None, array_ops.gather_nd(spread, indices // (sizes // ops.maximum(kept, 1))), None, None]


@gradient("SparseSlice")
def slice_(op: Operation, _: Gradient, grad: Tensor, __: Gradient) -> list[Gradient]:
    indices, _values, _sizes, start, _size = op.inputs
    return [None, ops.sparse_slice_grad(grad, indices, start, op.outputs[0]), None, None, None]


@gradient("SparseTensorDenseMatMul")
def dense_mat_mul(op: Operation, grad: Tensor) -> list[Gradient]:
    """By a's values: the product's gradient at their places only."""
    indices, values, sizes, b = op.inputs
    adjoint_a, adjoint_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
    by_b = ops.sparse_tensor_dense_mat_mul(indices, values, sizes, grad, adjoint_a=not adjoint_a)
    if adjoint_b:
        by_b = conj(array_ops.transpose(by_b))
    rows, columns = indices[:, 0], indices[:, 1]
    if adjoint_a:
        rows, columns = columns, rows
    left = array_ops.gather(grad, rows)
    right = array_ops.gather(array_ops.transpose(b) if adjoint_b else conj(b), columns)
    by_values = math_ops.reduce_sum(left * right, 1)
    return [None, conj(by_values) if adjoint_a else by_values, None, by_b]


@gradient("SparseDenseCwiseMul", "SparseDenseCwiseDiv")
def cwise(op: Operation, grad: Tensor) -> list[Gradient]:
    """By the sparse values; by the dense tensor there is none, as in TensorFlow."""
    indices, _, sizes, dense = op.inputs
    own = array_ops.shape(dense, out_type=dtypes.int64)
    ones = array_ops.fill(array_ops.expand_dims(array_ops.size(sizes) - array_ops.size(own), 0), 1)
    wide = array_ops.concat([math_ops.cast(ones, dtypes.int64), own], 0)
    partners = array_ops.gather_nd(array_ops.reshape(dense, wide), indices // (sizes // wide))
    return [None, grad * partners if op.type == "SparseDenseCwiseMul" else grad / partners, None, None]


@gradient("SparseDenseCwiseAdd", "SparseSparseMaximum", "SparseSparseMinimum")
def not_there(op: Operation, *_: Gradient) -> list[Gradient]:
    raise GraphError(f"{op.type} has no gradient, in TensorFlow neither", node=op.name)


@gradient("SparseSoftmax")
def softmax(op: Operation, grad: Tensor) -> list[Gradient]:
    """(grad - sum(grad * softmax)) * softmax, with sums over the values that are there."""
    indices, _, sizes = op.inputs
    y = op.outputs[0]
    last = array_ops.expand_dims(array_ops.size(sizes) - 1, 0)
    totals = -ops.sparse_reduce_sum(indices, y * grad, sizes, last, keep_dims=True)
    return [None, ops.sparse_dense_cwise_add(indices, grad, sizes, totals) * y, None]


@gradient("SparseFillEmptyRows")
def fill_empty_rows(op: Operation, _: Gradient, grad: Tensor, *__: Gradient) -> list[Gradient]:
    by_values, by_default = ops.sparse_fill_empty_rows_grad(op.outputs[3], grad)
    return [None, by_values, None, by_default]


@gradient("SparseToDense")
def to_dense(op: Operation, grad: Tensor) -> list[Gradient]:
    by_values = array_ops.gather_nd(grad, op.inputs[0])
    return [None, None, by_values, math_ops.reduce_sum(grad) - math_ops.reduce_sum(by_values)]
