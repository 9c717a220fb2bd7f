"""Shapes of matrix products, reductions, segments, ranges."""

from __future__ import annotations

import math

from toolkit.errors import GraphmillError
from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape, broadcast, of_rank
from toolkit.graph.shapes.registry import ShapeContext, axis_of, merge_dims, shape_function


def product_shape(a: Shape, b: Shape, transpose_a: bool, transpose_b: bool) -> Shape:
    rows, inner_a = (a[-1], a[-2]) if transpose_a else (a[-2], a[-1])
    inner_b, columns = (b[-1], b[-2]) if transpose_b else (b[-2], b[-1])
    merge_dims(inner_a, inner_b, "inner sizes of the matrices")
    return Shape([rows, columns])


@shape_function("MatMul", "SparseMatMul")
def matmul(c: ShapeContext) -> list[Shape]:
    return [product_shape(c.rank(0, 2), c.rank(1, 2), c.attr("transpose_a"), c.attr("transpose_b"))]


@shape_function("_FusedMatMul")
def fused_matmul(c: ShapeContext) -> list[Shape]:
    return [product_shape(c.rank(0, 2), c.rank(1, 2), c.attr("transpose_a"), c.attr("transpose_b"))]


@shape_function("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(c: ShapeContext) -> list[Shape]:
    a, b = c.rank_at_least(0, 2), c.rank_at_least(1, 2)
    if c.node.op == "BatchMatMul":
        if a.dims is not None and b.dims is None:
            b = of_rank(len(a.dims))
        elif b.dims is not None and a.dims is None:
            a = of_rank(len(b.dims))
    tail_a, tail_b = (a if a.dims else Shape([None, None])), (b if b.dims else Shape([None, None]))
    tail = product_shape(tail_a, tail_b, c.attr("adj_x"), c.attr("adj_y"))
    if c.node.op == "BatchMatMul":
        return [a.slice(0, -2).merge(b.slice(0, -2)).concatenate(tail)]
    if a.dims is None or b.dims is None:
        return [UNKNOWN]
    return [broadcast(a.slice(0, -2), b.slice(0, -2)).concatenate(tail)]


@shape_function("Einsum")
def einsum(c: ShapeContext) -> list[Shape]:
    equation = c.text("equation")
    left, arrow, output = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != len(c.inputs):
        raise GraphmillError(f"the equation '{equation}' does not describe {len(c.inputs)} input(s)")
    sizes: dict[str, Dim] = {}
    batch = Shape(())
    for term, shape in zip(terms, c.inputs, strict=True):
        if shape.dims is None:
            if "..." in term:
                batch = UNKNOWN
            for label in term.replace("...", ""):
                sizes.setdefault(label, None)
            continue
        before, dots, after = term.partition("...")
        extra = len(shape.dims) - len(before) - len(after)
        if extra < 0 or (not dots and extra):
            raise GraphmillError(f"shape {shape} does not fit '{term}' of the equation '{equation}'")
        middle = shape.dims[len(before) : len(before) + extra]
        named = [*zip(before, shape.dims, strict=False)]
        named += zip(after, shape.dims[len(before) + extra :], strict=True)
        for label, size in named:
            sizes[label] = merge_dims(sizes.get(label), size, f"sizes of '{label}'")
        if dots:
            batch = broadcast(batch, Shape(middle))
    before, dots, after = output.partition("...")
    try:
        head, tail = ([sizes[label] for label in part] for part in (before, after))
    except KeyError as error:
        raise GraphmillError(f"'{error.args[0]}' is only in the output of the equation '{equation}'") from None
    out = Shape(head)
    if dots:
        out = out.concatenate(batch)
    elif batch.dims is None or batch.dims:
        raise GraphmillError(f"the output of the equation '{equation}' lacks '...'")
    return [out.concatenate(Shape(tail))]


def reduced(shape: Shape, axes: list[int] | None, keep: bool, axes_shape: Shape = UNKNOWN) -> Shape:
    """The shape after reducing over `axes`; None when they are not known."""
    if axes is None:
        if keep:
            return UNKNOWN if shape.dims is None else of_rank(len(shape.dims))
        return UNKNOWN
    if shape.dims is None:
        return UNKNOWN
    gone = {axis_of(a, len(shape.dims), "reduction axis") for a in axes}
    if keep:
        return Shape([1 if i in gone else d for i, d in enumerate(shape.dims)])
    return Shape([d for i, d in enumerate(shape.dims) if i not in gone])


@shape_function("Sum", "Mean", "Prod", "Max", "Min", "All", "Any", "EuclideanNorm")
def reduction(c: ShapeContext) -> list[Shape]:
    source = c.inputs[0]
    axes = c.integers(1)
    if source.dims == ():
        if axes:
            raise GraphmillError(f"a scalar has no axis; the reduction is over {axes}")
        return [SCALAR]
    keep = c.attr("keep_dims")
    if axes is None and not keep and source.dims is not None and c.inputs[1].rank is not None:
        count = c.inputs[1].num_elements
        # As many distinct axes as are given go; axes may repeat, so only one known axis count is certain.
        if count == 1:
            return [of_rank(len(source.dims) - 1)]
    return [reduced(source, axes, keep)]


@shape_function("ArgMax", "ArgMin")
def arg_max(c: ShapeContext) -> list[Shape]:
    source, axis = c.inputs[0], c.integer(1)
    c.rank(1, 0)
    if source.dims is None:
        return [UNKNOWN]
    if len(source.dims) <= 1:
        return [SCALAR]
    if axis is None:
        return [of_rank(len(source.dims) - 1)]
    position = axis_of(axis, len(source.dims))
    return [Shape([d for i, d in enumerate(source.dims) if i != position])]


@shape_function("Cumsum", "Cumprod", "CumulativeLogsumexp")
def cumulative(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("Range")
def range_(c: ShapeContext) -> list[Shape]:
    for index in range(3):
        c.rank(index, 0)
    start, limit, delta = (c.number(i) for i in range(3))
    if start is None or limit is None or delta is None:
        return [Shape([None])]
    if not all(math.isfinite(value) for value in (start, limit, delta)):
        raise GraphmillError(f"a range from {start} to {limit} in steps of {delta} is not finite")
    if delta == 0:
        raise GraphmillError("delta must not be 0")
    if (delta > 0 and start > limit) or (delta < 0 and start < limit):
        raise GraphmillError(f"a range from {start} to {limit} cannot go in steps of {delta}")
    if isinstance(start, int) and isinstance(limit, int) and isinstance(delta, int):
        return [Shape([-((start - limit) // delta)])]
    steps = abs((limit - start) / delta)
    if not math.isfinite(steps):
        raise GraphmillError(f"a range from {start} to {limit} in steps of {delta} never ends")
    return [Shape([math.ceil(steps)])]


@shape_function("LinSpace")
def lin_space(c: ShapeContext) -> list[Shape]:
    for index in range(3):
        c.rank(index, 0)
    count = c.integer(2)
    if count is not None and count <= 0:
        raise GraphmillError(f"num must be positive; it is {count}")
    return [Shape([count])]


@shape_function("Cross")
def cross(c: ShapeContext) -> list[Shape]:
    both = c.inputs[0].merge(c.inputs[1])
    c.rank_at_least(0, 1)
    if both.dims:
        merge_dims(both.dims[-1], 3, "the last size and 3")
    return [both]


@shape_function("HistogramFixedWidth")
def histogram(c: ShapeContext) -> list[Shape]:
    c.rank(1, 1)
    count = c.constant(2)
    if isinstance(count, int) and count <= 0:
        raise GraphmillError(f"nbins must be positive; it is {count}")
    return [Shape([c.integer(2)])]


@shape_function("Bucketize")
def bucketize(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("DenseBincount")
def dense_bincount(c: ShapeContext) -> list[Shape]:
    source, size = c.rank_at_most(0, 2), c.integer(1)
    c.rank(1, 0)
    if size is not None and size < 0:
        raise GraphmillError(f"size must not be negative; it is {size}")
    if source.rank is None:
        return [UNKNOWN]
    return [Shape([size]) if source.rank <= 1 else Shape([source[0], size])]


@shape_function("SparseBincount", "RaggedBincount")
def sparse_bincount(c: ShapeContext) -> list[Shape]:
    if c.node.op == "RaggedBincount":
        size = c.integer(2)
        return [UNKNOWN if size is None else Shape([None, size])]
    size, dense = c.integer(3), c.integers(2)
    if dense is not None and len(dense) not in (1, 2):
        raise GraphmillError(f"input 2, 'dense_shape', must be that of a vector or a matrix; it is {dense}")
    if size is None or dense is None:
        return [UNKNOWN]
    return [Shape([size]) if len(dense) == 1 else Shape([dense[0], size])]


def _segment_rows(c: ShapeContext) -> Shape:
    data, ids = c.inputs[0], c.inputs[1]
    if ids.dims is not None and data.dims is not None:
        if len(ids.dims) > len(data.dims):
            raise GraphmillError(f"segment ids of shape {ids} do not fit data of shape {data}")
        data.slice(0, len(ids.dims)).merge(ids)
    return data


@shape_function("SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum")
def segment(c: ShapeContext) -> list[Shape]:
    ids = c.rank(1, 1)
    data = c.rank_at_least(0, 1)
    if data.dims is None:
        return [UNKNOWN]
    del ids
    return [Shape([None]).concatenate(data.slice(1))]


@shape_function("SegmentMaxV2", "SegmentMinV2", "SegmentProdV2", "SegmentSumV2",
                "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum")  # fmt: skip
def unsorted_segment(c: ShapeContext) -> list[Shape]:
    data, ids = c.inputs[0], c.inputs[1]
    c.rank(2, 0)
    count = c.integer(2)
    if ids.dims is None or data.dims is None:
        return [UNKNOWN]
    if count is not None and count < 0:
        raise GraphmillError(f"num_segments must not be negative; it is {count}")
    _segment_rows(c)
    return [Shape([count]).concatenate(data.slice(len(ids.dims)))]


@shape_function("SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum")
def sparse_segment(c: ShapeContext) -> list[Shape]:
    data = c.rank_at_least(0, 1)
    c.rank(1, 1).merge(c.rank(2, 1))
    return [UNKNOWN if data.dims is None else Shape([None]).concatenate(data.slice(1))]


@shape_function(
    "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments", "SparseSegmentSumWithNumSegments"
)
def sparse_segment_count(c: ShapeContext) -> list[Shape]:
    data = c.rank_at_least(0, 1)
    c.rank(1, 1).merge(c.rank(2, 1))
    return [UNKNOWN if data.dims is None else Shape([c.integer(3)]).concatenate(data.slice(1))]


@shape_function("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", "SparseSegmentSumGrad")
def sparse_segment_grad(c: ShapeContext) -> list[Shape]:
    data = c.rank_at_least(0, 1)
    c.rank(1, 1).merge(c.rank(2, 1))
    c.rank(3, 0)
    return [UNKNOWN if data.dims is None else Shape([c.integer(3)]).concatenate(data.slice(1))]


@shape_function("SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2", "SparseSegmentSumGradV2")
def sparse_segment_grad_v2(c: ShapeContext) -> list[Shape]:
    data = c.rank_at_least(0, 1)
    rest = UNKNOWN if data.dims is None else Shape([None]).concatenate(data.slice(1))
    return [rest, Shape([None])]


@shape_function("MatrixDeterminant")
def determinant(c: ShapeContext) -> list[Shape]:
    return [square(c.rank_at_least(0, 2)).slice(0, -2)]


def square(shape: Shape) -> Shape:
    """A batch of square matrices.

    Raises:
        GraphmillError: they are not square.
    """
    if shape.dims is None:
        return shape
    side = merge_dims(shape.dims[-2], shape.dims[-1], "rows and columns of a square matrix")
    return Shape([*shape.dims[:-2], side, side])


@shape_function("LogMatrixDeterminant")
def log_determinant(c: ShapeContext) -> list[Shape]:
    batch = square(c.rank_at_least(0, 2)).slice(0, -2)
    return [batch, batch]


@shape_function("MatrixInverse", "MatrixExponential", "MatrixLogarithm", "MatrixSquareRoot", "Cholesky",
                "BatchCholesky", "BatchMatrixInverse")  # fmt: skip
def square_to_square(c: ShapeContext) -> list[Shape]:
    return [square(c.rank_at_least(0, 2))]


@shape_function("CholeskyGrad", "BatchCholeskyGrad")
def cholesky_grad(c: ShapeContext) -> list[Shape]:
    return [square(c.rank_at_least(0, 2))]


@shape_function("BatchMatrixDeterminant")
def batch_determinant(c: ShapeContext) -> list[Shape]:
    return [square(c.rank_at_least(0, 2)).slice(0, -2)]


def _solve(c: ShapeContext, must_be_square: bool) -> Shape:
    lhs, rhs = c.rank_at_least(0, 2), c.rank_at_least(1, 2)
    if must_be_square:
        lhs = square(lhs)
    if lhs.dims is None and rhs.dims is None:
        return UNKNOWN
    lhs = lhs if lhs.dims is not None else Shape([*rhs.slice(0, -2), None, None])
    rhs = rhs if rhs.dims is not None else Shape([*lhs.slice(0, -2), None, None])
    assert lhs.dims is not None
    assert rhs.dims is not None
    batch = lhs.slice(0, -2).merge(rhs.slice(0, -2))
    rows = merge_dims(lhs.dims[-2], rhs.dims[-2], "rows of both matrices")
    if must_be_square:
        rows = merge_dims(rows, lhs.dims[-1])
    return batch.concatenate(Shape([rows if must_be_square else lhs.dims[-1], rhs.dims[-1]]))


@shape_function("MatrixSolve", "BatchMatrixSolve", "BatchMatrixTriangularSolve")
def matrix_solve(c: ShapeContext) -> list[Shape]:
    return [_solve(c, True)]


@shape_function("MatrixTriangularSolve")
def triangular_solve(c: ShapeContext) -> list[Shape]:
    lhs, rhs = square(c.rank_at_least(0, 2)), c.rank_at_least(1, 2)
    if lhs.dims is None or rhs.dims is None:
        return [UNKNOWN]
    batch = broadcast(lhs.slice(0, -2), rhs.slice(0, -2))
    rows = merge_dims(lhs.dims[-2], rhs.dims[-2], "rows of both matrices")
    return [batch.concatenate(Shape([rows, rhs.dims[-1]]))]


@shape_function("MatrixSolveLs", "BatchMatrixSolveLs")
def matrix_solve_ls(c: ShapeContext) -> list[Shape]:
    c.rank(2, 0)
    return [_solve(c, False)]


@shape_function("BandedTriangularSolve")
def banded_solve(c: ShapeContext) -> list[Shape]:
    bands, rhs = c.rank_at_least(0, 2), c.rank_at_least(1, 2)
    if bands.dims is None or rhs.dims is None:
        return [UNKNOWN]
    count, side = bands.dims[-2:]
    if count is not None and side is not None and count > side:
        raise GraphmillError(f"there are {count} bands in a matrix of {side} rows")
    batch = broadcast(bands.slice(0, -2), rhs.slice(0, -2))
    rows = merge_dims(bands.dims[-1], rhs.dims[-2], "rows of both matrices")
    return [batch.concatenate(Shape([rows, rhs.dims[-1]]))]


@shape_function("TridiagonalMatMul")
def tridiagonal_matmul(c: ShapeContext) -> list[Shape]:
    rows, rhs = c.inputs[0], c.inputs[3]
    for index in range(3):
        rows = rows.merge(c.rank_at_least(index, 2))
    if rows.dims and rhs.dims:
        merge_dims(rows.dims[-1], rhs.dims[-2], "sides of the matrix and rows of the right")
    return [rhs]


@shape_function("TridiagonalSolve")
def tridiagonal_solve(c: ShapeContext) -> list[Shape]:
    diagonals, rhs = c.rank_at_least(0, 2), c.rank_at_least(1, 2)
    if diagonals.dims is None or rhs.dims is None:
        return [rhs]
    batch = diagonals.slice(0, -2).merge(rhs.slice(0, -2))
    merge_dims(diagonals.dims[-2], 3, "rows of 'diagonals' and 3")
    rows = merge_dims(diagonals.dims[-1], rhs.dims[-2], "sides of the matrix and rows of the right")
    return [batch.concatenate(Shape([rows, rhs.dims[-1]]))]


@shape_function("Qr")
def qr(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 2)
    if source.dims is None:
        return [UNKNOWN, UNKNOWN]
    rows, columns = source.dims[-2:]
    batch = source.dims[:-2]
    least = None if rows is None or columns is None else min(rows, columns)
    if c.attr("full_matrices"):
        return [Shape([*batch, rows, rows]), Shape([*batch, rows, columns])]
    return [Shape([*batch, rows, least]), Shape([*batch, least, columns])]


@shape_function("Svd", "BatchSvd")
def svd(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 2)
    if source.dims is None:
        rest = UNKNOWN if c.attr("compute_uv") else Shape([0])
        return [UNKNOWN, rest, rest]
    rows, columns = source.dims[-2:]
    batch = source.dims[:-2]
    least = None if rows is None or columns is None else min(rows, columns)
    if not c.attr("compute_uv"):
        return [Shape([*batch, least]), Shape([0]), Shape([0])]
    if c.attr("full_matrices"):
        return [Shape([*batch, least]), Shape([*batch, rows, rows]), Shape([*batch, columns, columns])]
    return [Shape([*batch, least]), Shape([*batch, rows, least]), Shape([*batch, columns, least])]


@shape_function("SelfAdjointEig", "BatchSelfAdjointEig")
def self_adjoint_eig(c: ShapeContext) -> list[Shape]:
    source = square(c.rank_at_least(0, 2))
    if source.dims is None:
        return [UNKNOWN]
    side = source.dims[-1]
    return [Shape([*source.dims[:-2], None if side is None else side + 1, side])]


@shape_function("SelfAdjointEigV2", "BatchSelfAdjointEigV2", "Eig")
def self_adjoint_eig_v2(c: ShapeContext) -> list[Shape]:
    source = square(c.rank_at_least(0, 2))
    vectors = source if c.attr("compute_v") else Shape([0])
    return [source.slice(0, -1), vectors]


@shape_function("Lu")
def lu(c: ShapeContext) -> list[Shape]:
    source = square(c.rank_at_least(0, 2))
    return [source, source.slice(0, -1)]


@shape_function("FFT", "IFFT")
def fft(c: ShapeContext) -> list[Shape]:
    return [c.rank_at_least(0, 1)]


@shape_function("FFT2D", "IFFT2D")
def fft2d(c: ShapeContext) -> list[Shape]:
    return [c.rank_at_least(0, 2)]


@shape_function("FFT3D", "IFFT3D", "BatchFFT3D", "BatchIFFT3D")
def fft3d(c: ShapeContext) -> list[Shape]:
    return [c.rank_at_least(0, 3)]


@shape_function("BatchFFT", "BatchIFFT")
def batch_fft(c: ShapeContext) -> list[Shape]:
    return [c.rank_at_least(0, 2)]


@shape_function("BatchFFT2D", "BatchIFFT2D")
def batch_fft2d(c: ShapeContext) -> list[Shape]:
    return [c.rank_at_least(0, 2)]


@shape_function("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D")
def rfft(c: ShapeContext) -> list[Shape]:
    op = c.node.op
    rank = int(op[-2]) if op.endswith("D") else 1
    source = c.rank_at_least(0, rank)
    merge_dims(c.rank(1, 1)[0], rank, "length of fft_length and the rank of the transform")
    if source.dims is None:
        return [UNKNOWN]
    lengths = c.vector(1, rank)
    sizes = list(source.dims)
    forward = op.startswith("R")
    for i in range(rank):
        axis = len(sizes) - rank + i
        length: Dim = lengths[i] if lengths else None
        if length is not None and forward and i == rank - 1 and length:
            length = length // 2 + 1
        sizes[axis] = length
    return [Shape(sizes)]


@shape_function("RequantizationRange", "RequantizationRangePerChannel", "ComputeBatchSize")
def scalars(c: ShapeContext) -> list[Shape]:
    return [SCALAR] * c.node.num_outputs
