"""Shapes of ops that rearrange: diagonals, blocks, patches, reversals."""

from __future__ import annotations

import math

from toolkit.errors import GraphmillError
from toolkit.graph.shape import UNKNOWN, Dim, Shape, of_rank
from toolkit.graph.shapes.registry import ShapeContext, axis_of, merge_dims, shape_function


@shape_function("ReverseV2")
def reverse_v2(c: ShapeContext) -> list[Shape]:
    c.rank(1, 1)
    axes = c.integers(1)
    rank = c.inputs[0].rank
    if axes is not None and rank is not None:
        found = [axis_of(a, rank) for a in axes]
        if len(set(found)) != len(found):
            raise GraphmillError(f"axes {axes} name one axis twice")
    return [c.inputs[0]]


@shape_function("Reverse")
def reverse(c: ShapeContext) -> list[Shape]:
    length = c.rank(1, 1)[0]
    return [c.inputs[0] if length is None else c.inputs[0].with_rank(length)]


@shape_function("ReverseSequence")
def reverse_sequence(c: ShapeContext) -> list[Shape]:
    source, lengths = c.inputs[0], c.rank(1, 1)
    if source.dims is None:
        return [source]
    batch = axis_of(c.attr("batch_dim"), len(source.dims), "batch_dim")
    axis_of(c.attr("seq_dim"), len(source.dims), "seq_dim")
    sizes = list(source.dims)
    sizes[batch] = merge_dims(sizes[batch], lengths[0], "the batch size and the number of lengths")
    return [Shape(sizes)]


@shape_function("Diag")
def diag(c: ShapeContext) -> list[Shape]:
    c.rank_at_least(0, 1)
    return [c.inputs[0].concatenate(c.inputs[0])]


@shape_function("DiagPart")
def diag_part(c: ShapeContext) -> list[Shape]:
    source = c.inputs[0]
    if source.dims is None:
        return [UNKNOWN]
    half = len(source.dims) // 2
    if len(source.dims) % 2 or not half:
        raise GraphmillError(f"the input must have an even rank above 0; it has shape {source}")
    return [source.slice(0, half).merge(source.slice(half))]


@shape_function("MatrixBandPart")
def matrix_band_part(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("MatrixDiag")
def matrix_diag(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 1)
    return [UNKNOWN if source.dims is None else Shape([*source.dims, source.dims[-1]])]


@shape_function("MatrixDiagPart")
def matrix_diag_part(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 2)
    if source.dims is None:
        return [UNKNOWN]
    rows, columns = source.dims[-2:]
    return [Shape([*source.dims[:-2], None if rows is None or columns is None else min(rows, columns)])]


def _band(c: ShapeContext, index: int) -> tuple[int, int] | None:
    """The lowest and highest diagonal of a matrix-diagonal op's `k`."""
    k = c.integers(index)
    if k is None:
        return None
    if len(k) not in (1, 2):
        raise GraphmillError(f"input {index}, 'k', must be one or two diagonals; it is {k}")
    low, high = (k[0], k[0]) if len(k) == 1 else (k[0], k[1])
    if low > high:
        raise GraphmillError(f"the lowest diagonal {low} is above the highest {high}")
    return low, high


@shape_function("MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part_v2(c: ShapeContext) -> list[Shape]:
    source, band = c.rank_at_least(0, 2), _band(c, 1)
    if source.dims is None or band is None:
        return [UNKNOWN]
    rows, columns = source.dims[-2:]
    low, high = band
    longest = None
    if rows is not None and columns is not None:
        longest = min(rows + min(high, 0), columns - max(low, 0))
        for k in band:
            if not (-rows < k < columns or k == 0):
                raise GraphmillError(f"diagonal {k} is outside a matrix of {rows} x {columns}")
    middle = [] if low == high else [high - low + 1]
    return [Shape([*source.dims[:-2], *middle, longest])]


@shape_function("MatrixDiagV2", "MatrixDiagV3")
def matrix_diag_v2(c: ShapeContext) -> list[Shape]:
    source, band = c.rank_at_least(0, 1), _band(c, 1)
    if source.dims is None or band is None:
        return [UNKNOWN]
    low, high = band
    longest = source.dims[-1]
    batch = source.dims[:-1] if low == high else source.dims[:-2]
    rows, columns = c.integer(2), c.integer(3)
    rows = None if rows == -1 else rows
    columns = None if columns == -1 else columns
    known = c.constant(2) is not None and c.constant(3) is not None
    if longest is not None and known:
        least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
        if rows is None and columns is None:
            rows = columns = max(least_rows, least_columns)
        rows = least_rows if rows is None else rows
        columns = least_columns if columns is None else columns
    return [Shape([*batch, rows, columns])]


@shape_function("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 2)
    diagonal = c.rank_at_least(1, 1)
    if diagonal.dims is None:
        return [source]
    if source.dims is None:
        band = (0, 0) if c.node.op == "MatrixSetDiag" else _band(c, 2)
        if band is None:
            return [Shape([*diagonal.dims[:-1], None, None])]  # one diagonal, TensorFlow supposes
        batch = diagonal.dims[:-1] if band[0] == band[1] else diagonal.dims[:-2]
        return [Shape([*batch, None, None])]
    if c.node.op != "MatrixSetDiag":
        band, rank = _band(c, 2), len(source.dims)
        if band is None:
            c.rank_at_most(1, rank)
        else:
            c.rank(1, rank - 1 if band[0] == band[1] else rank)
        return [source]
    c.rank(1, len(source.dims) - 1)
    rows, columns = source.dims[-2:]
    if rows is not None and columns is not None:
        merge_dims(diagonal.dims[-1], min(rows, columns), "the diagonal's and the matrix's sizes")
    batch, given = source.slice(0, -2), diagonal.slice(0, -1)
    if not source.is_fully_defined or batch.is_compatible_with(given):  # else the run reports it
        batch = batch.merge(given)
    return [batch.concatenate(source.slice(-2))]


@shape_function("EditDistance")
def edit_distance(c: ShapeContext) -> list[Shape]:
    first, second = c.constant_shape(2), c.constant_shape(5)
    if first.dims is None or second.dims is None:
        return [UNKNOWN]
    a, b = first.with_rank(len(first.dims)), second.with_rank(len(first.dims))
    # Each size of the batch is the larger of the two.
    pairs = zip(a.slice(0, -1), b.slice(0, -1), strict=True)
    return [Shape([None if x is None or y is None else max(x, y) for x, y in pairs])]


def _blocks(
    c: ShapeContext, source: Shape, blocks: list[int] | None, pads: list[list[int | None]] | None, *, to_batch: bool
) -> Shape:
    if source.dims is None:
        return UNKNOWN
    if blocks is None:
        return of_rank(len(source.dims))
    if any(block < 1 for block in blocks):
        raise GraphmillError(f"block sizes must be at least 1; they are {blocks}")
    sizes = list(source.dims)
    rows = pads
    batch = sizes[0]
    factor = math.prod(blocks)
    if to_batch:
        sizes[0] = None if batch is None else batch * factor
    else:
        if batch is not None and batch % factor:
            raise GraphmillError(f"batch size {batch} cannot be divided by the blocks {blocks}")
        sizes[0] = None if batch is None else batch // factor
    for i, block in enumerate(blocks):
        size = sizes[i + 1]
        before, after = rows[i] if rows else (None, None)
        if size is None or before is None or after is None:
            sizes[i + 1] = None
        elif to_batch:
            padded = size + before + after
            if padded % block:
                raise GraphmillError(f"padded size {padded} cannot be divided by block {block}")
            sizes[i + 1] = padded // block
        else:
            sizes[i + 1] = size * block - before - after
    return Shape(sizes)


@shape_function("SpaceToBatchND", "BatchToSpaceND")
def space_to_batch_nd(c: ShapeContext) -> list[Shape]:
    count = c.rank(1, 1)[0]
    if count is not None:
        c.rank_at_least(0, count + 1)
    blocks = c.integers(1)
    pads = None if blocks is None else c.pairs(2, len(blocks))
    return [_blocks(c, c.inputs[0], blocks, pads, to_batch=c.node.op == "SpaceToBatchND")]


@shape_function("SpaceToBatch", "BatchToSpace")
def space_to_batch(c: ShapeContext) -> list[Shape]:
    block = c.attr("block_size")
    return [_blocks(c, c.rank(0, 4), [block, block], c.pairs(1, 2), to_batch=c.node.op == "SpaceToBatch")]


@shape_function("SpaceToDepth", "DepthToSpace")
def space_to_depth(c: ShapeContext) -> list[Shape]:
    block, layout = c.attr("block_size"), c.text("data_format")
    vectorized = layout == "NCHW_VECT_C"
    source = c.rank(0, 5 if vectorized else 4)
    height, width, depth = (2, 3, 1) if layout.startswith("NCHW") else (1, 2, 3)
    sizes = list(source)
    if vectorized:
        sizes[4] = 4
    to_depth = c.node.op == "SpaceToDepth"
    for axis in (height, width):
        size = sizes[axis]
        if size is None:
            continue
        if to_depth and size % block:
            raise GraphmillError(f"size {size} cannot be divided by block {block}")
        sizes[axis] = size // block if to_depth else size * block
    channels = sizes[depth]
    if channels is not None:
        if not to_depth and channels % (block * block):
            raise GraphmillError(f"depth {channels} cannot be divided by {block * block}")
        sizes[depth] = channels * block * block if to_depth else channels // (block * block)
    return [Shape(sizes)]


@shape_function("ExtractImagePatches")
def extract_image_patches(c: ShapeContext) -> list[Shape]:
    from toolkit.graph.shapes.nn import window_size

    source = c.rank(0, 4)
    sizes, strides, rates = c.numbers("ksizes", 4), c.numbers("strides", 4), c.numbers("rates", 4)
    padding = c.text("padding")
    rows, columns = (window_size(source[i], sizes[i], strides[i], padding, rates[i]) for i in (1, 2))
    depth = source[3]
    return [Shape([source[0], rows, columns, None if depth is None else depth * sizes[1] * sizes[2]])]


@shape_function("ExtractVolumePatches")
def extract_volume_patches(c: ShapeContext) -> list[Shape]:
    from toolkit.graph.shapes.nn import window_size

    source = c.rank(0, 5)
    sizes, strides = c.numbers("ksizes", 5), c.numbers("strides", 5)
    padding = c.text("padding")
    inner = [window_size(source[i], sizes[i], strides[i], padding) for i in (1, 2, 3)]
    depth = source[4]
    return [Shape([source[0], *inner, None if depth is None else depth * sizes[1] * sizes[2] * sizes[3]])]


@shape_function("QuantizeAndDequantize", "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient",
                "FakeQuantWithMinMaxVars")  # fmt: skip
def fake_quant(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_per_channel(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 1)
    if source.dims is None:
        return [source]
    last: Dim = source.dims[-1]
    for index in (1, 2):
        last = merge_dims(last, c.rank(index, 1)[0], "channels and the length of min and max")
    return [Shape([*source.dims[:-1], last])]


@shape_function("BatchMatrixBandPart", "BatchMatrixDiag", "BatchMatrixDiagPart", "BatchMatrixSetDiag")
def unknown_one(c: ShapeContext) -> list[Shape]:
    return [UNKNOWN]
