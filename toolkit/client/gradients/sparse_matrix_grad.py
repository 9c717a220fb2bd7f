"""Gradients of sparse matrices as variants: conversions, sums, products, softmax, and what composite tensors hold.

The gradient of a sparse matrix is one with the same pattern: only numbers that are there can change.
"""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.registry import Gradient, gradient
from toolkit.client.linalg import linalg_ops
from toolkit.client.math import math_ops
from toolkit.errors import GraphError
from toolkit.graph.dtypes import DType


@gradient("DenseToCSRSparseMatrix")
def from_dense(op: Operation, grad: Tensor) -> list[Gradient]:
    return [ops.csr_sparse_matrix_to_dense(grad, type=op.get_attr("T")), None]


@gradient("CSRSparseMatrixToDense")
def to_dense(op: Operation, grad: Tensor) -> Tensor:
    indices, _, _ = ops.csr_sparse_matrix_to_sparse_tensor(op.inputs[0], type=grad.dtype.base)
    values = array_ops.gather_nd(grad, indices)
    return ops.sparse_tensor_to_csr_sparse_matrix(indices, values, _size(grad))


def _size(tensor: Tensor) -> Any:
    shape = tensor.static_shape
    return shape.as_list() if shape.is_fully_defined else ops.shape(tensor, out_type="int64")


@gradient("SparseTensorToCSRSparseMatrix")
def from_sparse(op: Operation, grad: Tensor) -> list[Gradient]:
    _, values, _ = ops.csr_sparse_matrix_to_sparse_tensor(grad, type=op.get_attr("T"))
    return [None, values, None]


@gradient("CSRSparseMatrixToSparseTensor")
def to_sparse(op: Operation, *grads: Tensor) -> Tensor:
    return ops.sparse_tensor_to_csr_sparse_matrix(op.outputs[0], grads[1], op.outputs[2])


@gradient("SparseMatrixAdd")
def add(op: Operation, grad: Tensor) -> list[Gradient]:
    """TensorFlow has none for the factors."""
    a, b, alpha, beta = op.inputs
    dtype: DType = op.get_attr("T")
    return [
        ops.sparse_matrix_mul(_with_pattern(grad, a, dtype), alpha),
        ops.sparse_matrix_mul(_with_pattern(grad, b, dtype), beta),
        None,
        None,
    ]


def _with_pattern(matrix: Tensor, pattern: Tensor, dtype: DType) -> Tensor:
    """The numbers of a sparse matrix at the places where another has numbers, too."""
    indices, values, _ = ops.csr_sparse_matrix_to_sparse_tensor(matrix, type=dtype)
    wanted, _, size = ops.csr_sparse_matrix_to_sparse_tensor(pattern, type=dtype)
    there, places = _flat_places(indices, size), _flat_places(wanted, size)
    found = ops.lower_bound(array_ops.expand_dims(there, 0), array_ops.expand_dims(places, 0))
    nearest = array_ops.reshape(found, [-1])
    inside = ops.minimum(nearest, array_ops.size(there) - 1)  # behind the last there is none to look at
    equal = ops.equal(array_ops.gather(there, inside), places)
    kept = array_ops.gather(inside, array_ops.reshape(ops.where(equal), [-1]))
    return ops.sparse_tensor_to_csr_sparse_matrix(array_ops.gather(indices, kept), array_ops.gather(values, kept), size)


def _flat_places(indices: Tensor, size: Tensor) -> Tensor:
    """Row-major places of elements, [n] of [n, rank]."""
    factors = ops.cumprod(size, -1, exclusive=True, reverse=True)
    return math_ops.reduce_sum(indices * factors, 1)


@gradient("SparseMatrixTranspose")
def transpose(op: Operation, grad: Tensor) -> Tensor:
    return ops.sparse_matrix_transpose(grad, type=op.get_attr("type"), conjugate=op.get_attr("conjugate"))


@gradient("SparseMatrixSoftmax")
def softmax(op: Operation, grad: Tensor) -> Tensor:
    return ops.sparse_matrix_softmax_grad(op.outputs[0], grad, type=op.get_attr("type"))


@gradient("SparseMatrixMul")
def scaled(op: Operation, grad: Tensor) -> list[Gradient]:
    raise GraphError("SparseMatrixMul has no gradient, in TensorFlow neither; convert to dense first", node=op.name)


@gradient("SparseMatrixMatMul")
def product(op: Operation, grad: Tensor) -> list[Gradient]:
    """With A' = opA(A), B' = opB(B) and C = A' B': dA' = dC B'^H at the places of A, dB' = A'^H dC."""
    a, b = op.inputs
    dtype = b.dtype.base
    flipped_a, flipped_b = _flips(op, "a"), _flips(op, "b")
    if op.get_attr("conjugate_output"):
        grad = ops.conj(grad)
    if op.get_attr("transpose_output"):
        grad = _swapped(grad)
    inner = _applied(b, flipped_b)
    dense = math_ops.matmul(grad, inner, adjoint_b=True)
    by_a = _undone(dense, flipped_a)
    indices, _, size = ops.csr_sparse_matrix_to_sparse_tensor(a, type=dtype)
    of_a = ops.sparse_tensor_to_csr_sparse_matrix(indices, array_ops.gather_nd(by_a, indices), size)
    transposed, conjugated = flipped_a
    hermitian = {(False, False): "adjoint_a", (True, False): "", (True, True): ""}[(transposed, conjugated)]
    if (transposed, conjugated) == (True, False) and dtype.is_complex:
        by_b = ops.conj(ops.sparse_matrix_mat_mul(a, ops.conj(grad)))  # conj(A) dC
    else:
        by_b = ops.sparse_matrix_mat_mul(a, grad, **({hermitian: True} if hermitian else {}))
    return [of_a, _undone(by_b, flipped_b)]


def _flips(op: Operation, side: str) -> tuple[bool, bool]:
    """Whether a factor is transposed, and whether it is conjugated."""
    adjoint: bool = op.get_attr(f"adjoint_{side}")
    return adjoint or op.get_attr(f"transpose_{side}"), adjoint


def _swapped(x: Tensor) -> Tensor:
    return linalg_ops.matrix_transpose(x)


def _applied(x: Tensor, flips: tuple[bool, bool]) -> Tensor:
    x = _swapped(x) if flips[0] else x
    return ops.conj(x) if flips[1] and x.dtype.base.is_complex else x


_undone = _applied  # both are their own inverses


@gradient("SparseMatrixSparseMatMul")
def sparse_product(op: Operation, grad: Tensor) -> list[Gradient]:
    """As `product`, with sparse factors; the results have the patterns of A and B."""
    a, b = op.inputs
    dtype: DType = op.get_attr("type")
    flipped_a, flipped_b = _flips(op, "a"), _flips(op, "b")
    inner_a, inner_b = (_flipped(x, f, dtype) for x, f in ((a, flipped_a), (b, flipped_b)))
    by_a = ops.sparse_matrix_sparse_mat_mul(grad, inner_b, type=dtype, adjoint_b=True)
    by_b = ops.sparse_matrix_sparse_mat_mul(inner_a, grad, type=dtype, adjoint_a=True)
    return [
        _with_pattern(_flipped(by_a, flipped_a, dtype), a, dtype),
        _with_pattern(_flipped(by_b, flipped_b, dtype), b, dtype),
    ]


def _flipped(x: Tensor, flips: tuple[bool, bool], dtype: DType) -> Tensor:
    return ops.sparse_matrix_transpose(x, type=dtype, conjugate=flips[1]) if flips[0] else x


@gradient("CompositeTensorVariantFromComponents")
def composite(op: Operation, grad: Tensor) -> Any:
    found: Any = ops.composite_tensor_variant_to_components(
        grad, metadata=op.get_attr("metadata"), Tcomponents=op.get_attr("Tcomponents")
    )
    return list(found)


@gradient("CompositeTensorVariantToComponents", accepts_none=True)
def components(op: Operation, *grads: Gradient) -> Tensor:
    """Where a component has no gradient, it stands for itself."""
    parts = [y if grad is None else grad for y, grad in zip(op.outputs, grads, strict=True)]
    return ops.composite_tensor_variant_from_components(parts, metadata=op.get_attr("metadata"))
