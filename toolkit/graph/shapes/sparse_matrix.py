"""Shapes of sparse matrices (CSR) in variants: rank 2, or 3 with a batch in front."""

from __future__ import annotations

from toolkit.errors import GraphmillError
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape, broadcast
from toolkit.graph.shapes.math import product_shape, square
from toolkit.graph.shapes.registry import ShapeContext, merge_dims, shape_function


def _held(c: ShapeContext, index: int = 0) -> tuple[Shape, DType]:
    """The shape and type of the matrix in a variant.

    Raises:
        GraphmillError: it does not follow from the graph that it is a matrix.
    """
    held = c.handle(index)
    if not held:
        raise GraphmillError(f"input {index} must come from an op that makes a sparse matrix")
    return held[0]


def _matrix(c: ShapeContext, index: int = 0) -> Shape:
    """The shape of the matrix in a variant, whose rank must be known.

    Raises:
        GraphmillError: it is not, or it is neither 2 nor 3.
    """
    return _of_matrix(_held(c, index)[0], f"the sparse matrix at input {index}")


def _of_matrix(shape: Shape, what: str) -> Shape:
    if shape.rank not in (2, 3):
        raise GraphmillError(f"{what} must be known to have rank 2 or 3; it has shape {shape}")
    return shape


def _makes(c: ShapeContext, shape: Shape, dtype: DType) -> list[Shape]:
    c.output_handles[0] = [(shape, dtype)]
    return [SCALAR]


@shape_function("DenseToCSRSparseMatrix")
def from_dense(c: ShapeContext) -> list[Shape]:
    dense, indices = _of_matrix(c.inputs[0], "input 0, 'dense_input',"), c.inputs[1]
    if indices.rank != 2:
        raise GraphmillError(f"input 1, 'indices', must be known to be a matrix; it has shape {indices}")
    merge_dims(indices[1], dense.rank, "columns of 'indices' and the rank of 'dense_input'")
    return _makes(c, dense, c.attr("T"))


@shape_function("SparseTensorToCSRSparseMatrix")
def from_sparse(c: ShapeContext) -> list[Shape]:
    indices, values, sizes = c.rank(0, 2), c.rank(1, 1), c.rank(2, 1)
    merge_dims(indices[0], values[0], "numbers of 'indices' and 'values'")
    merge_dims(indices[1], sizes[0], "columns of 'indices' and the length of 'dense_shape'")
    return _makes(c, c.constant_shape(2), c.attr("T"))


@shape_function("SparseMatrixZeros")
def zeros(c: ShapeContext) -> list[Shape]:
    c.rank(0, 1)
    return _makes(c, _of_matrix(c.constant_shape(0), "input 0, 'dense_shape',"), c.attr("type"))


@shape_function("CSRSparseMatrixToDense")
def to_dense(c: ShapeContext) -> list[Shape]:
    shape = _held(c)[0]
    return [UNKNOWN if shape.rank is None else _matrix(c)]


@shape_function("CSRSparseMatrixToSparseTensor")
def to_sparse(c: ShapeContext) -> list[Shape]:
    rank = _matrix(c).rank
    return [Shape([None, rank]), Shape([None]), Shape([rank])]


@shape_function("CSRSparseMatrixComponents")
def components(c: ShapeContext) -> list[Shape]:
    rows = _matrix(c)[-2]
    if c.inputs[1].rank != 0:
        raise GraphmillError(f"input 1, 'index', must be a scalar; it has shape {c.inputs[1]}")
    return [Shape([None if rows is None else rows + 1]), Shape([None]), Shape([None])]


@shape_function("SparseMatrixNNZ")
def count(c: ShapeContext) -> list[Shape]:
    return [_matrix(c).slice(0, -2)]


def _is_turned(c: ShapeContext, which: str) -> bool:
    transpose, adjoint = c.attr(f"transpose_{which}"), c.attr(f"adjoint_{which}")
    if transpose and adjoint:
        raise GraphmillError(f"transpose_{which} and adjoint_{which} exclude each other")
    return transpose or adjoint


@shape_function("SparseMatrixMatMul")
def matmul(c: ShapeContext) -> list[Shape]:
    left, right = _matrix(c), c.rank_at_least(1, 2)
    batch, tail = left.slice(0, -2), right
    if right.dims is None:
        tail = Shape([None, None])
    else:
        batch = batch.merge(right.slice(0, -2))
    out = product_shape(left, tail, _is_turned(c, "a"), _is_turned(c, "b"))
    return [batch.concatenate(_turned(out) if c.attr("transpose_output") else out)]


@shape_function("SparseMatrixSparseMatMul")
def sparse_matmul(c: ShapeContext) -> list[Shape]:
    left, right = _matrix(c), _matrix(c, 1)
    out = product_shape(left, right, _is_turned(c, "a"), _is_turned(c, "b"))
    return _makes(c, broadcast(left.slice(0, -2), right.slice(0, -2)).concatenate(out), c.attr("type"))


@shape_function("SparseMatrixMul")
def mul(c: ShapeContext) -> list[Shape]:
    shape, factor = _matrix(c), c.inputs[1]
    if factor.dims is None:
        raise GraphmillError("the rank of input 1, 'b', must be known")
    if not factor.dims:
        return _makes(c, shape, c.attr("T"))
    if len(factor.dims) != 3 or shape.rank != 3 or any(d not in (1, None) for d in factor.dims[1:]):
        raise GraphmillError(f"input 1, 'b', must be a scalar or [batch,1,1]; it has shape {factor}")
    merge_dims(shape[0], factor[0], "batches")
    return _makes(c, shape, c.attr("T"))


@shape_function("SparseMatrixAdd", "SparseMatrixSoftmaxGrad")
def of_two(c: ShapeContext) -> list[Shape]:
    both = _matrix(c).merge(_matrix(c, 1))
    if c.node.op == "SparseMatrixSoftmaxGrad":
        return _makes(c, both, c.attr("type"))
    c.rank(2, 0)
    c.rank(3, 0)
    return _makes(c, both, c.attr("T"))


@shape_function("SparseMatrixSoftmax")
def softmax(c: ShapeContext) -> list[Shape]:
    return _makes(c, _matrix(c), c.attr("type"))


@shape_function("SparseMatrixTranspose")
def transpose(c: ShapeContext) -> list[Shape]:
    return _makes(c, _turned(_matrix(c)), c.attr("type"))


def _turned(shape: Shape) -> Shape:
    last: tuple[Dim, Dim] = (shape[-1], shape[-2])
    return shape.slice(0, -2).concatenate(Shape(last))


@shape_function("SparseMatrixSparseCholesky")
def cholesky(c: ShapeContext) -> list[Shape]:
    c.rank_at_most(1, 2)
    return _makes(c, square(_matrix(c)), c.attr("type"))


@shape_function("SparseMatrixOrderingAMD")
def ordering(c: ShapeContext) -> list[Shape]:
    return [square(_matrix(c)).slice(0, -1)]
