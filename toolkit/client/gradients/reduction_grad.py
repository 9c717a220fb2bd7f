"""Gradients of reductions, scans and segment sums."""

from __future__ import annotations

import numpy as np

from toolkit.client import array_ops, math_ops, ops
from toolkit.client.convert import constant
from toolkit.client.gradients.common import axis_list, kept_dims, known_value, shape_of
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.client.operation import Operation
from toolkit.client.tensor import Tensor
from toolkit.errors import GraphError
from toolkit.graph import dtypes

no_gradient("All", "Any", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")


def _spread(op: Operation, grad: Tensor) -> Tensor:
    """The gradient of a reduction's result over its whole input."""
    x, axes = op.inputs
    sizes = shape_of(x)
    if not op.get_attr("keep_dims"):
        rank, reduced = x.static_shape.rank, axis_list(known_value(axes))
        if rank is not None and reduced is not None and len({a % max(rank, 1) for a in reduced}) == rank:
            grad = array_ops.reshape(grad, [1] * rank)  # reduced to a scalar: no need for the sizes
        else:
            grad = array_ops.reshape(grad, kept_dims(sizes, axes))
    return array_ops.broadcast_to(grad, sizes)


@gradient("Sum")
def sum_(op: Operation, grad: Tensor) -> list[Gradient]:
    return [_spread(op, grad), None]


@gradient("Mean")
def mean(op: Operation, grad: Tensor) -> list[Gradient]:
    """The sum's gradient divided by how many elements each mean was taken of."""
    spread = _spread(op, grad)
    before, after = op.inputs[0].static_shape.num_elements, op.outputs[0].static_shape.num_elements
    if before is not None and after is not None and after:
        factor: Tensor = constant(np.array(before // after, grad.dtype.base.numpy))
    elif after == 1:
        factor = math_ops.cast(array_ops.size(op.inputs[0]), grad.dtype.base)
    else:
        sizes = shape_of(op.inputs[0])
        results = shape_of(op.outputs[0])
        count = math_ops.reduce_prod(sizes) // ops.maximum(math_ops.reduce_prod(results), 1)
        factor = math_ops.cast(count, grad.dtype.base)
    return [math_ops.divide(spread, factor), None]


def _kept(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A reduction's input, axes, output and gradient, the last two as if the reduced dimensions had been kept."""
    x, axes = op.inputs
    y = op.outputs[0]
    if op.get_attr("keep_dims"):
        return x, axes, y, grad
    sizes = kept_dims(shape_of(x), axes)
    return x, axes, array_ops.reshape(y, sizes), array_ops.reshape(grad, sizes)


@gradient("Max", "Min")
def extremum(op: Operation, grad: Tensor) -> list[Gradient]:
    """Shared equally between the elements that are the largest (smallest)."""
    x, axes, y, grad = _kept(op, grad)
    chosen = math_ops.cast(ops.equal(y, x), grad.dtype.base)
    count = math_ops.reduce_sum(chosen, axes, keepdims=True)
    return [math_ops.divide(chosen, count) * grad, None]


@gradient("Prod")
def prod(op: Operation, grad: Tensor) -> list[Gradient]:
    """The product of all other elements, by cumulative products from both ends, so that zeros are no trouble."""
    x, axes = op.inputs
    axes = array_ops.reshape(axes, [-1])
    sizes = shape_of(x)
    if not op.get_attr("keep_dims"):
        grad = array_ops.reshape(grad, kept_dims(sizes, axes))
    grad = array_ops.broadcast_to(grad, sizes)
    rank = array_ops.rank(x)
    reduced = (math_ops.cast(axes, dtypes.int32) + rank) % rank
    others, _ = ops.list_diff(math_ops.range(rank), reduced, out_idx=dtypes.int32)
    order = array_ops.concat([reduced, others], 0)
    reduced_count = math_ops.reduce_prod(array_ops.gather(sizes, reduced))
    other_count = math_ops.reduce_prod(array_ops.gather(sizes, others))
    permuted = array_ops.transpose(x, order)
    flat = array_ops.reshape(permuted, array_ops.stack([reduced_count, other_count]))
    before = ops.cumprod(flat, 0, exclusive=True)
    after = ops.cumprod(flat, 0, exclusive=True, reverse=True)
    rest = array_ops.reshape(before * after, shape_of(permuted))
    back = array_ops.transpose(rest, ops.invert_permutation(order))
    return [array_ops.reshape(grad * back, sizes), None]


@gradient("Cumsum")
def cumsum(op: Operation, grad: Tensor) -> list[Gradient]:
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
    return [ops.cumsum(grad, op.inputs[1], exclusive=exclusive, reverse=not reverse), None]


@gradient("Cumprod")
def cumprod(op: Operation, grad: Tensor) -> list[Gradient]:
    """Wrong where an element is 0, as TensorFlow's is: the product is divided by it."""
    x, axis = op.inputs
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
    product = ops.cumprod(x, axis, exclusive=exclusive, reverse=reverse)
    total = ops.cumsum(product * grad, axis, exclusive=exclusive, reverse=not reverse)
    return [ops.div_no_nan(total, x), None]


@gradient("L2Loss")
def l2_loss(op: Operation, grad: Tensor) -> Gradient:
    return op.inputs[0] * grad


@gradient("EuclideanNorm")
def euclidean_norm(op: Operation, grad: Tensor) -> list[Gradient]:
    x, _, y, grad = _kept(op, grad)
    return [x * ops.div_no_nan(grad, y) if x.dtype.base.is_complex else ops.div_no_nan(x, y / grad), None]


@gradient("CumulativeLogsumexp")
def cumulative_logsumexp(op: Operation, grad: Tensor) -> list[Gradient]:
    """In logarithms as well: gradients above and below zero apart, each e^(x + log-sum of log(grad) - y)."""
    x, axis = op.inputs
    y = op.outputs[0]
    attrs = {"exclusive": op.get_attr("exclusive"), "reverse": not op.get_attr("reverse")}
    lowest = constant(np.array(np.finfo(grad.dtype.base.numpy).min, grad.dtype.base.numpy))

    def half(part: Tensor) -> Tensor:
        positive = ops.greater(part, array_ops.zeros_like(part))
        safe = array_ops.where(positive, part, array_ops.ones_like(part))
        log = array_ops.where(positive, ops.log(safe), array_ops.fill(array_ops.shape(part), lowest))
        return ops.exp(ops.cumulative_logsumexp(log - y, axis, **attrs) + x)

    return [half(grad) - half(-grad), None]


@gradient("NthElement")
def nth_element(op: Operation, grad: Tensor) -> list[Gradient]:
    """Shared equally between the elements that are the n-th."""
    x = op.inputs[0]
    chosen = math_ops.cast(ops.equal(array_ops.expand_dims(op.outputs[0], -1), x), grad.dtype.base)
    count = math_ops.reduce_sum(chosen, -1, keepdims=True)
    return [math_ops.divide(chosen, count) * array_ops.expand_dims(grad, -1), None]


@gradient("ApproxTopK", accepts_none=True)
def approx_top_k(op: Operation, grad: Tensor | None, _: Gradient) -> Gradient:
    """Each gradient goes back to where its value stood."""
    if grad is None:
        return None
    x, places = op.inputs[0], op.outputs[1]
    rank = x.static_shape.rank
    if rank is None:
        raise GraphError("the gradient of ApproxTopK needs a known rank", node=op.name)
    axis = op.get_attr("reduction_dimension") % rank
    sizes = array_ops.shape(x)
    shape = array_ops.shape(places)
    coordinates: list[Tensor] = []
    for i in range(rank):
        along = array_ops.reshape(math_ops.range(shape[i]), [-1 if j == i else 1 for j in range(rank)])
        coordinates.append(places if i == axis else array_ops.broadcast_to(along, shape))
    return ops.scatter_nd(array_ops.stack(coordinates, -1), grad, sizes)


# -- segments ---------------------------------------------------------------------------------------------


@gradient("SegmentSum")
def segment_sum(op: Operation, grad: Tensor) -> list[Gradient]:
    return [array_ops.gather(grad, op.inputs[1]), None]


@gradient("SegmentMean")
def segment_mean(op: Operation, grad: Tensor) -> list[Gradient]:
    x, segments = op.inputs
    rank = array_ops.rank(x)
    ones = array_ops.fill(array_ops.expand_dims(array_ops.shape(x)[0], 0), constant(np.array(1, grad.dtype.base.numpy)))
    counts = ops.segment_sum(ones, segments)
    tail = array_ops.fill(array_ops.expand_dims(rank - 1, 0), constant(1))
    wide = array_ops.concat([array_ops.shape(counts), tail], 0)
    return [array_ops.gather(grad / array_ops.reshape(counts, wide), segments), None]


@gradient("UnsortedSegmentSum")
def unsorted_segment_sum(op: Operation, grad: Tensor) -> list[Gradient]:
    rows, _, _ = _rows(grad, op.inputs[1])
    return [rows, None, None]


@gradient("UnsortedSegmentMax", "UnsortedSegmentMin")
def unsorted_segment_extremum(op: Operation, grad: Tensor) -> list[Gradient]:
    x, segments, count = op.inputs
    best, _, _ = _rows(op.outputs[0], segments)
    chosen = ops.equal(x, best)
    shared = ops.unsorted_segment_sum(math_ops.cast(chosen, grad.dtype.base), segments, count)
    spread, _, _ = _rows(grad / shared, segments)
    return [array_ops.where(chosen, spread, array_ops.zeros_like(spread)), None, None]


def _rows(params: Tensor, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """params[ids], with zeros where the id is negative; also the ids made valid, and which were."""
    valid = ops.maximum(ids, array_ops.zeros_like(ids))
    found = array_ops.gather(params, valid)
    positive = ops.greater_equal(ids, array_ops.zeros_like(ids))
    mask = positive
    if found.static_shape.rank is not None and positive.static_shape.rank is not None:
        for _ in range(found.static_shape.rank - positive.static_shape.rank):
            mask = array_ops.expand_dims(mask, -1)
    else:
        extra = array_ops.rank(found) - array_ops.rank(positive)
        tail = array_ops.fill(array_ops.expand_dims(extra, 0), constant(1))
        mask = array_ops.reshape(mask, array_ops.concat([array_ops.shape(positive), tail], 0))
    return array_ops.where(mask, found, array_ops.zeros_like(found)), valid, positive


@gradient("SparseSegmentSum", "SparseSegmentSumWithNumSegments")
def sparse_segment_sum(op: Operation, grad: Tensor) -> list[Gradient]:
    x, indices, segments, *count = op.inputs
    rows = array_ops.shape(x)[0]
    return [
        ops.unsorted_segment_sum(array_ops.gather(grad, segments), indices, rows),
        None,
        None,
        *[None for _ in count],
    ]


@gradient(
    "SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments"
)
def sparse_segment_mean(op: Operation, grad: Tensor) -> list[Gradient]:
    name = op.type.removesuffix("WithNumSegments") + "Grad"
    x, indices, segments, *count = op.inputs
    by_x = ops.function(name)(grad, indices, segments, array_ops.shape(x)[0])
    return [by_x, None, None, *[None for _ in count]]


@gradient("SegmentMax", "SegmentMin")
def segment_extremum(op: Operation, grad: Tensor) -> list[Gradient]:
    """Shared equally between the rows' elements that are the largest (smallest) of their segment."""
    x, segments = op.inputs
    zeros = array_ops.zeros_like(x)
    chosen = ops.equal(x, array_ops.gather(op.outputs[0], segments))
    shared = grad / ops.segment_sum(math_ops.cast(chosen, grad.dtype.base), segments)
    return [array_ops.where(chosen, array_ops.gather(shared, segments), zeros), None]


@gradient("SegmentProd")
def segment_prod(op: Operation, grad: Tensor) -> list[Gradient]:
    """The product of the others: without the zeros where an element is the only zero, by division elsewhere."""
    x, segments = op.inputs
    is_zero = ops.equal(x, array_ops.zeros_like(x))
    zeros = ops.segment_sum(math_ops.cast(is_zero, dtypes.int32), segments)
    grad = array_ops.where(ops.greater(zeros, constant(1)), array_ops.zeros_like(grad), grad)
    nonzero = array_ops.where(is_zero, array_ops.ones_like(x), x)
    others = array_ops.gather(ops.segment_prod(nonzero, segments), segments)
    divided = array_ops.gather(op.outputs[0], segments) / x
    partial = array_ops.where(is_zero, others, divided)
    return [array_ops.gather(grad, segments) * partial, None]


@gradient("UnsortedSegmentProd")
def unsorted_segment_prod(op: Operation, grad: Tensor) -> list[Gradient]:
    x, segments, count = op.inputs
    is_zero = ops.equal(x, array_ops.zeros_like(x))
    zeros = ops.unsorted_segment_sum(math_ops.cast(is_zero, dtypes.int32), segments, count)
    grad = array_ops.where(ops.greater(zeros, constant(1)), array_ops.zeros_like(grad), grad)
    nonzero = array_ops.where(is_zero, array_ops.ones_like(x), x)
    product = ops.unsorted_segment_prod(nonzero, segments, count)
    valid = ops.maximum(segments, array_ops.zeros_like(segments))
    divided = array_ops.gather(op.outputs[0], valid) / x
    partial = array_ops.where(is_zero, array_ops.gather(product, valid), divided)
    rows, _, _ = _rows(grad, segments)
    return [rows * partial, None, None]
