"""Shapes of ragged tensors: splits of rows, values, and both packed into variants."""

from __future__ import annotations

from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape
from toolkit.graph.shapes.registry import ShapeContext, shape_function

_SOME = Shape([None])


@shape_function("RaggedTensorToVariant")
def to_variant(c: ShapeContext) -> list[Shape]:
    """A variant, or one for each of the outermost rows."""
    splits = range(len(c.inputs) - 1)
    rows = [c.rank(index, 1)[0] for index in splits]
    if not c.attr("batched_input"):
        return [SCALAR]
    if rows:
        return [Shape([None if rows[0] is None else rows[0] - 1])]
    values = c.rank_at_least(0, 1)
    return [Shape([values[0] if values.rank is not None else None])]


@shape_function("RaggedTensorFromVariant")
def from_variant(c: ShapeContext) -> list[Shape]:
    rank: int = c.attr("output_ragged_rank")
    inner: int = c.attr("input_ragged_rank")
    if inner != -1 and c.inputs[0].dims is not None:
        c.rank(0, rank - inner)
    return [*[_SOME] * rank, UNKNOWN]


@shape_function("RaggedTensorToVariantGradient")
def variant_gradient(c: ShapeContext) -> list[Shape]:
    c.rank(2, 1)
    return [c.constant_shape(2)]


@shape_function("RaggedFillEmptyRows")
def fill_empty_rows(c: ShapeContext) -> list[Shape]:
    rows = c.rank(0, 1).merge(c.rank(1, 1))
    return [_SOME, _SOME, _SOME, rows]


@shape_function("RaggedFillEmptyRowsGrad")
def fill_empty_rows_gradient(c: ShapeContext) -> list[Shape]:
    c.rank(1, 1)
    return [c.rank(0, 1), SCALAR]


@shape_function("RaggedCross")
def cross(c: ShapeContext) -> list[Shape]:
    definition = c.node.op_def
    for argument, places in definition.arg_ranges(definition.inputs, c.node.attrs).items():
        for index in () if argument == "ragged_values" else places:
            c.rank(index, 2 if argument in ("sparse_indices", "dense_inputs") else 1)
    return [_SOME, _SOME]


@shape_function("DenseCountSparseOutput")
def dense_counts(c: ShapeContext) -> list[Shape]:
    values, weights = c.inputs
    return _counts((values if weights.num_elements == 0 else values.merge(weights)).rank)


@shape_function("SparseCountSparseOutput")
def sparse_counts(c: ShapeContext) -> list[Shape]:
    return _counts(c.rank(0, 2)[1])


@shape_function("RaggedCountSparseOutput")
def ragged_counts(c: ShapeContext) -> list[Shape]:
    rank = c.inputs[1].rank
    return _counts(None if rank is None else rank + 1)


def _counts(rank: Dim) -> list[Shape]:
    """Counts as a sparse tensor of that rank."""
    return [Shape([None, rank]), _SOME, Shape([rank])]
