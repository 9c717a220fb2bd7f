"""Shapes of string ops."""

from __future__ import annotations

from toolkit.errors import GraphmillError
from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape, broadcast, of_rank
from toolkit.graph.shapes.math import reduced
from toolkit.graph.shapes.registry import ShapeContext, merge_dims, shape_function


@shape_function(
    "AsString", "DecodeBase64", "EncodeBase64", "StaticRegexFullMatch", "StaticRegexReplace", "StringLength",
    "StringLower", "StringStrip", "StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong",
    "StringToNumber", "StringUpper", "UnicodeScript", "UnicodeTranscode",
)  # fmt: skip
def unchanged(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("RegexReplace", "RegexFullMatch")
def regex(c: ShapeContext) -> list[Shape]:
    for index in range(1, len(c.inputs)):
        c.rank(index, 0)
    return [c.inputs[0]]


@shape_function("Substr")
def substr(c: ShapeContext) -> list[Shape]:
    c.inputs[1].merge(c.inputs[2])
    return [broadcast(c.inputs[0], c.inputs[1])]


@shape_function("StringJoin")
def string_join(c: ShapeContext) -> list[Shape]:
    """Scalars join everything else, which has one shape."""
    out: Shape = SCALAR
    for shape in c.inputs:
        if shape.rank is None:
            out = UNKNOWN if out == SCALAR else out
        elif shape.rank:
            out = shape if out in (SCALAR, UNKNOWN) else out.merge(shape)
    if out != SCALAR and out.dims is not None and any(shape.rank is None for shape in c.inputs):
        return [out]
    return [out]


@shape_function("StringFormat")
def string_format(c: ShapeContext) -> list[Shape]:
    template, mark = c.text("template"), c.text("placeholder")
    count = template.count(mark) if mark else None
    if count is not None and count != len(c.inputs):
        raise GraphmillError(f"the template has {count} placeholder(s) for {len(c.inputs)} input(s)")
    return [SCALAR]


@shape_function("ReduceJoin")
def reduce_join(c: ShapeContext) -> list[Shape]:
    return [reduced(c.inputs[0], c.integers(1), c.attr("keep_dims"))]


@shape_function("UnsortedSegmentJoin")
def unsorted_segment_join(c: ShapeContext) -> list[Shape]:
    data, ids = c.inputs[0], c.inputs[1]
    if data.dims is None or ids.dims is None:
        return [UNKNOWN]
    data.slice(0, len(ids.dims)).merge(ids)
    return [Shape([c.integer(2)]).concatenate(data.slice(len(ids.dims)))]


@shape_function("StringSplit", "StringSplitV2")
def string_split(c: ShapeContext) -> list[Shape]:
    c.rank(0, 1)
    return [Shape([None, 2]), Shape([None]), Shape([2])]


@shape_function("StringNGrams")
def string_ngrams(c: ShapeContext) -> list[Shape]:
    return [Shape([None]), c.rank(1, 1)]


@shape_function("UnicodeEncode")
def unicode_encode(c: ShapeContext) -> list[Shape]:
    length: Dim = c.rank(1, 1)[0]
    if length == 0:
        raise GraphmillError("input 1, 'input_splits', must not be empty")
    return [Shape([None if length is None else length - 1])]


@shape_function("UnicodeDecode", "UnicodeDecodeWithOffsets")
def unicode_decode(c: ShapeContext) -> list[Shape]:
    total = c.inputs[0].num_elements
    splits = Shape([None if total is None else total + 1])
    return [splits, *[Shape([None])] * (c.node.num_outputs - 1)]


@shape_function("RaggedRange")
def ragged_range(c: ShapeContext) -> list[Shape]:
    size: Dim = None
    for shape in c.inputs:
        if shape.rank == 1:
            size = merge_dims(size, shape[0], "numbers of starts, limits and deltas")
    if all(shape.rank == 0 for shape in c.inputs):
        size = 1
    return [Shape([None if size is None else size + 1]), Shape([None])]


@shape_function("RaggedTensorToTensor")
def ragged_to_tensor(c: ShapeContext) -> list[Shape]:
    given, values = c.inputs[0], c.inputs[1]
    target = UNKNOWN if isinstance(c.constant(0), int) else c.constant_shape(0)
    kinds = c.attr("row_partition_types")
    depth = len(kinds) - (1 if kinds and kinds[0] == b"FIRST_DIM_SIZE" else 0)
    if values.dims is None:
        return [target]
    natural = of_rank(depth + 1).concatenate(values.slice(1))
    if target.dims is None:
        return [natural if given.rank is not None else UNKNOWN]
    if len(target.dims) != len(natural.dims or ()):
        return [target]
    return [Shape([t if t is not None else n for t, n in zip(target, natural, strict=True)])]


@shape_function("RaggedTensorToSparse")
def ragged_to_sparse(c: ShapeContext) -> list[Shape]:
    rank = c.attr("RAGGED_RANK")
    values = c.inputs[-1]
    depth = None if values.rank is None else values.rank + rank
    return [Shape([None, depth]), Shape([None]), Shape([depth])]


@shape_function("RaggedGather")
def ragged_gather(c: ShapeContext) -> list[Shape]:
    splits = c.attr("OUTPUT_RAGGED_RANK")
    indices = c.inputs[-1]
    depth: int = c.attr("PARAMS_RAGGED_RANK")
    values = c.inputs[depth]
    size: Dim = indices[0] if indices.rank == 1 else None
    first = Shape([None if size is None else size + 1])
    rest = UNKNOWN if values.dims is None else Shape([None]).concatenate(values.slice(1))
    return [first, *[Shape([None])] * (splits - 1), rest] if splits else [rest]
