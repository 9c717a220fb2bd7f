"""Shapes of sparse-tensor ops: triples of indices [n, rank], values [n], dense shape [rank]."""

from __future__ import annotations

from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape
from toolkit.graph.shapes.registry import ShapeContext, merge_dims, shape_function

_SOME = Shape([None])


@shape_function("SparseReorder")
def reorder(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 2), c.rank(1, 1)]


@shape_function("SparseSoftmax")
def softmax(c: ShapeContext) -> list[Shape]:
    c.rank(0, 2)
    return [c.rank(1, 1)]


@shape_function("SparseReshape")
def reshape(c: ShapeContext) -> list[Shape]:
    indices, target = c.rank(0, 2), c.rank(2, 1)
    return [Shape([indices[0], target[0]]), target]


@shape_function("SparseToDense")
def to_dense(c: ShapeContext) -> list[Shape]:
    return [c.constant_shape(1)]


@shape_function("SparseAdd")
def add(c: ShapeContext) -> list[Shape]:
    rank = c.rank(2, 1)[0]
    return [Shape([None, rank]), _SOME, c.rank(2, 1)]


@shape_function("SparseAddGrad")
def add_grad(c: ShapeContext) -> list[Shape]:
    return [Shape([c.rank(1, 2)[0]]), Shape([c.rank(2, 2)[0]])]


@shape_function("SparseTensorDenseMatMul")
def dense_matmul(c: ShapeContext) -> list[Shape]:
    c.rank(0, 2)
    c.rank(1, 1)
    left, right = c.constant_shape(2).with_rank(2), c.rank(3, 2)
    rows, inner = (left[1], left[0]) if c.attr("adjoint_a") else (left[0], left[1])
    merge_dims(inner, right[1] if c.attr("adjoint_b") else right[0], "inner sizes of the matrices")
    return [Shape([rows, right[0] if c.attr("adjoint_b") else right[1]])]


@shape_function("SparseTensorDenseAdd")
def dense_add(c: ShapeContext) -> list[Shape]:
    return [c.inputs[3]]


@shape_function("SparseDenseCwiseAdd", "SparseDenseCwiseDiv", "SparseDenseCwiseMul")
def dense_cwise(c: ShapeContext) -> list[Shape]:
    return [Shape([c.rank(0, 2)[0]])]


@shape_function("SparseConcat")
def concat(c: ShapeContext) -> list[Shape]:
    count = c.attr("N")
    rank: Dim = None
    rows: Dim = 0
    for i in range(count):
        indices = c.rank(i, 2)
        rank = merge_dims(rank, indices[1], "ranks")
        rank = merge_dims(rank, c.rank(2 * count + i, 1)[0], "ranks")
        more = indices[0]
        rows = None if rows is None or more is None else rows + more
    return [Shape([rows, rank]), Shape([rows]), Shape([rank])]


@shape_function("SparseSplit")
def split(c: ShapeContext) -> list[Shape]:
    count = c.attr("num_split")
    indices, values, shape = c.inputs[1], c.inputs[2], c.inputs[3]
    del indices, values
    rank = shape[0] if shape.rank == 1 else None
    return [*[Shape([None, rank])] * count, *[_SOME] * count, *[Shape([rank])] * count]


@shape_function("SparseSlice")
def slice_(c: ShapeContext) -> list[Shape]:
    shape = c.inputs[2]
    return [Shape([None, shape[0] if shape.rank == 1 else None]), _SOME, shape if shape.rank == 1 else Shape([None])]


@shape_function("SparseFillEmptyRows")
def fill_empty_rows(c: ShapeContext) -> list[Shape]:
    indices = c.rank(0, 2)
    rank = merge_dims(indices[1], c.rank(2, 1)[0], "ranks")
    sizes = c.vector(2)
    rows: Dim = sizes[0] if sizes else None
    return [Shape([None, rank]), _SOME, Shape([rows]), Shape([indices[0]])]


@shape_function("SparseFillEmptyRowsGrad")
def fill_empty_rows_grad(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 1), SCALAR]


@shape_function("SparseReduceSum", "SparseReduceMax")
def reduce(c: ShapeContext) -> list[Shape]:
    return [UNKNOWN]


@shape_function("SparseReduceSumSparse", "SparseReduceMaxSparse")
def reduce_sparse(c: ShapeContext) -> list[Shape]:
    return [UNKNOWN, UNKNOWN, UNKNOWN]


@shape_function("SparseSparseMaximum", "SparseSparseMinimum")
def pairwise(c: ShapeContext) -> list[Shape]:
    return [Shape([None, c.inputs[0][1] if c.inputs[0].rank == 2 else None]), _SOME]


@shape_function("SparseCross", "SparseCrossHashed", "SparseCrossV2")
def cross(c: ShapeContext) -> list[Shape]:
    return [Shape([None, 2]), _SOME, Shape([2])]


@shape_function("DenseToDenseSetOperation")
def dense_sets(c: ShapeContext) -> list[Shape]:
    first, second = c.rank_at_least(0, 2), c.rank_at_least(1, 2)
    first.slice(0, -1).merge(second.slice(0, -1))
    rank = first.rank or second.rank
    return [Shape([None, rank]), _SOME, Shape([rank])]


@shape_function("DenseToSparseSetOperation")
def dense_and_sparse_sets(c: ShapeContext) -> list[Shape]:
    rank = merge_dims(c.rank_at_least(0, 2).rank, c.rank(1, 2)[1], "ranks of both sets")
    rank = merge_dims(rank, c.rank(3, 1)[0], "ranks of both sets")
    return [Shape([None, rank]), _SOME, Shape([rank])]


@shape_function("SerializeSparse")
def serialize(c: ShapeContext) -> list[Shape]:
    return [Shape([3])]


@shape_function("SerializeManySparse")
def serialize_many(c: ShapeContext) -> list[Shape]:
    return [Shape([None, 3])]


@shape_function("DeserializeSparse")
def deserialize_any(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 1)
    if source.dims:
        merge_dims(source.dims[-1], 3, "the last size of 'serialized_sparse' and 3")
    return [Shape([None, None]), _SOME, Shape([None])]


@shape_function("DeserializeManySparse", "TakeManySparseFromTensorsMap")
def deserialize(c: ShapeContext) -> list[Shape]:
    return [Shape([None, None]), _SOME, Shape([None])]


@shape_function("AddSparseToTensorsMap")
def add_to_map(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("AddManySparseToTensorsMap")
def add_many_to_map(c: ShapeContext) -> list[Shape]:
    return [_SOME]


@shape_function("SparseToSparseSetOperation")
def sparse_sets(c: ShapeContext) -> list[Shape]:
    for first in (0, 3):
        c.rank(first, 2)
        c.rank(first + 1, 1)
    rank = merge_dims(c.rank(2, 1)[0], c.rank(5, 1)[0], "ranks of both sets")
    return [Shape([None, rank]), _SOME, Shape([rank])]


@shape_function("SparseSliceGrad")
def slice_gradient(c: ShapeContext) -> list[Shape]:
    """A gradient for each value of the tensor that was sliced."""
    return [Shape([c.rank(1, 2)[0]])]
