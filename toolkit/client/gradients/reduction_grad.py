"""Gradients of reductions, scans and segment sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with, device
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.gradients.common import axis_list, conj, kept_dims, kept_sizes, known_value, shape_of
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.client.math import math_ops
from toolkit.errors import GraphError
from toolkit.graph import dtypes

no_gradient("All", "Any", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")


def _spread(op: Operation, grad: Tensor) -> Tensor:
    """The gradient of a sum over its whole input: by Tile where sizes or at least the rank is known."""
    x, axes = op.inputs
    dims, reduced = x.static_shape.dims, axis_list(known_value(axes))
    if dims is not None and reduced is not None:
        if reduced == list(range(len(dims))):
            grad = array_ops.reshape(grad, [1] * len(dims))
            sizes = (
                constant(x.static_shape.as_list(), dtypes.int32)
                if x.static_shape.is_fully_defined
                else array_ops.shape(x)
            )
            return array_ops.tile(grad, sizes)
        if x.static_shape.is_fully_defined:
            kept = kept_sizes(x.static_shape.as_list(), reduced)
            scaling = _tile_scaling(op.graph, x.static_shape.as_list(), kept, reduced)
            return array_ops.tile(array_ops.reshape(grad, kept), scaling)
    sizes = shape_of(x)
    if not op.get_attr("keep_dims"):
        with colocate_with(sizes.op):
            kept = kept_dims(sizes, axes)
        grad = array_ops.reshape(grad, kept)
    return array_ops.broadcast_to(grad, sizes)


def _tile_scaling(graph: Any, sizes: list[int], kept: list[int], axes: list[int]) -> list[int]:
    """How often each axis is repeated.

    TensorFlow works it out by nodes the first time in a graph, which nothing uses; they are made here as well, so
    that graphs stay the same.
    """
    seen = graph.extras.setdefault(f"{__name__}.reductions", set())
    if (key := (tuple(sizes), tuple(axes))) not in seen:
        seen.add(key)
        _ = sizes // math_ops.maximum(kept, 1)
    return [size // max(part, 1) for size, part in zip(sizes, kept, strict=True)]


@gradient("Sum")
def sum_(op: Operation, grad: Tensor) -> list[Gradient]:
    return [_spread(op, grad), None]


@gradient("Mean")
def mean(op: Operation, grad: Tensor) -> list[Gradient]:
    """The sum's gradient divided by how many elements each mean was taken of."""
    spread = _spread(op, grad)
    dtype = spread.dtype.base
    before, after = op.inputs[0].static_shape.num_elements, op.outputs[0].static_shape.num_elements
    if before is not None and after is not None:
        factor: Tensor = constant(np.array(before // max(after, 1), dtype.numpy))
    else:
        sizes = shape_of(op.inputs[0])
        rank = array_ops.size(sizes)
        axes = math_ops.cast(op.inputs[1], rank.dtype.base)
        axes = (axes + rank) % rank
        factor = math_ops.reduce_prod(array_ops.gather(sizes, axes))
    return [math_ops.divide(spread, math_ops.cast(factor, dtype)), None]


def _kept(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Any]:
    """A reduction's input, axes, output and gradient, the last two as if the reduced dimensions had been kept.

    The last result is the shape of those two.
    """
    x, axes = op.inputs
    y = op.outputs[0]
    sizes = shape_of(x)
    if op.get_attr("keep_dims"):
        return x, axes, y, grad, array_ops.shape(y)
    kept = kept_dims(sizes, axes)
    return x, axes, array_ops.reshape(y, kept), array_ops.reshape(grad, kept), kept


@gradient("Max", "Min")
def extremum(op: Operation, grad: Tensor) -> list[Gradient]:
    """Shared equally between the elements that are the largest (smallest)."""
    x, axes, y, grad, kept = _kept(op, grad)
    chosen = math_ops.cast(ops.equal(y, x), grad.dtype.base)
    count = array_ops.reshape(math_ops.reduce_sum(chosen, axes), kept)
    return [math_ops.divide(chosen, count) * grad, None]


@gradient("Prod")
def prod(op: Operation, grad: Tensor) -> list[Gradient]:
    """The product of all other elements, by cumulative products from both ends, so that zeros are no trouble."""
    x = op.inputs[0]
    sizes = shape_of(x)
    axes = array_ops.reshape(op.inputs[1], [-1])
    if not op.get_attr("keep_dims"):
        grad = array_ops.reshape(grad, kept_dims(sizes, op.inputs[1]))
    grad = array_ops.broadcast_to(grad, sizes)
    with device("/cpu:0"):  # what works out shapes stays beside them
        rank = array_ops.rank(x)
        reduced = (math_ops.cast(axes, rank.dtype.base) + rank) % rank
        others, _ = ops.list_diff(math_ops.range(0, rank), reduced, out_idx=reduced.dtype.base)
        order = array_ops.concat([reduced, others], 0)
        reduced_count = math_ops.reduce_prod(array_ops.gather(sizes, reduced))
        other_count = math_ops.reduce_prod(array_ops.gather(sizes, others))
    permuted = array_ops.transpose(x, order)
    permuted_sizes = array_ops.shape(permuted)
    flat = array_ops.reshape(permuted, (reduced_count, other_count))
    before = ops.cumprod(flat, 0, exclusive=True)
    after = ops.cumprod(flat, 0, exclusive=True, reverse=True)
    rest = array_ops.reshape(conj(before) * conj(after), permuted_sizes)
    back = grad * array_ops.transpose(rest, ops.invert_permutation(order))
    return [array_ops.reshape(back, sizes), None]


@gradient("Cumsum")
def cumsum(op: Operation, grad: Tensor) -> list[Gradient]:
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
    return [ops.cumsum(grad, op.inputs[1], exclusive=exclusive, reverse=not reverse), None]


@gradient("Cumprod")
def cumprod(op: Operation, grad: Tensor) -> list[Gradient]:
    """Wrong where an element is 0, as TensorFlow's is: the product is divided by it.

    Complex numbers are conjugated, which TensorFlow leaves out.
    """
    x, axis = op.inputs
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
    product = conj(ops.cumprod(x, axis, exclusive=exclusive, reverse=reverse))
    total = ops.cumsum(product * grad, axis, exclusive=exclusive, reverse=not reverse)
    return [ops.div_no_nan(total, conj(x), name="div_no_nan"), None]


@gradient("L2Loss")
def l2_loss(op: Operation, grad: Tensor) -> Gradient:
    return op.inputs[0] * grad


@gradient("EuclideanNorm")
def euclidean_norm(op: Operation, grad: Tensor) -> list[Gradient]:
    x, _, y, grad, _ = _kept(op, grad)
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
        safe = array_ops.where_v2(positive, part, array_ops.ones_like(part))
        log = array_ops.where_v2(positive, ops.log(safe), array_ops.fill(array_ops.shape(part), lowest))
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
    sizes = array_ops.shape(segments)
    tail = array_ops.ones(array_ops.expand_dims(rank - 1, 0), sizes.dtype.base)
    ones = array_ops.ones(array_ops.concat([sizes, tail], 0), grad.dtype.base)
    scaled = math_ops.divide(grad, ops.segment_sum(ones, segments))
    return [array_ops.gather(scaled, segments), None]


@gradient("UnsortedSegmentSum")
def unsorted_segment_sum(op: Operation, grad: Tensor) -> list[Gradient]:
    rows, _, _ = _rows(grad, op.inputs[1])
    return [rows, None, None]


@gradient("UnsortedSegmentMax", "UnsortedSegmentMin")
def unsorted_segment_extremum(op: Operation, grad: Tensor) -> list[Gradient]:
    """Shared equally between the elements that are the largest (smallest) of their segment."""
    x, segments, count = op.inputs
    best, valid, positive = _rows(op.outputs[0], segments)
    chosen = ops.logical_and(ops.equal(x, best), positive)
    shared = ops.unsorted_segment_sum(math_ops.cast(chosen, grad.dtype.base), segments, count)
    spread, _, _ = _rows(math_ops.divide(grad, shared), segments, valid, positive)
    return [array_ops.where_v2(chosen, spread, array_ops.zeros_like(spread)), None, None]


def _rows(
    params: Tensor, ids: Tensor, valid: Tensor | None = None, positive: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """params[ids], with zeros where the id is negative; also the ids made valid, and which were, as a mask."""
    valid = ops.maximum(ids, array_ops.zeros_like(ids)) if valid is None else valid
    assert valid is not None
    found = array_ops.gather(params, valid)
    if positive is None:
        positive = ops.greater_equal(ids, 0)
        sizes = array_ops.shape(positive)
        ones = array_ops.ones([array_ops.rank(found) - array_ops.rank(positive)], sizes.dtype.base)
        positive = array_ops.reshape(positive, array_ops.concat([sizes, ones], 0))
        positive = positive & array_ops.ones_like(found, dtypes.bool_)
    return array_ops.where_v2(positive, found, array_ops.zeros_like(found)), valid, positive


@gradient(
    "SparseSegmentSum",
    "SparseSegmentSumWithNumSegments",
    "SparseSegmentMean",
    "SparseSegmentSqrtN",
    "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtNWithNumSegments",
)
def sparse_segment(op: Operation, grad: Tensor) -> list[Gradient]:
    name = op.type.removesuffix("WithNumSegments") + "Grad"
    x, indices, segments, *count = op.inputs
    sizes = array_ops.shape(x)
    rows = sizes[0]
    if op.node.attr("sparse_gradient", False):
        values, unique = ops.function(name + "V2")(grad, indices, segments, rows)
        return [IndexedSlices(values, unique, sizes), None, None, *[None for _ in count]]
    by_x = ops.function(name)(grad, indices, segments, rows)
    return [by_x, None, None, *[None for _ in count]]


@gradient("SegmentMax", "SegmentMin")
def segment_extremum(op: Operation, grad: Tensor) -> list[Gradient]:
    """Shared equally between the rows' elements that are the largest (smallest) of their segment."""
    x, segments = op.inputs
    zeros = array_ops.zeros_like(x)
    chosen = ops.equal(x, array_ops.gather(op.outputs[0], segments))
    shared = grad / ops.segment_sum(math_ops.cast(chosen, grad.dtype.base), segments)
    return [array_ops.where_v2(chosen, array_ops.gather(shared, segments), zeros), None]


@gradient("SegmentProd")
def segment_prod(op: Operation, grad: Tensor) -> list[Gradient]:
    """The product of the others: without the zeros where an element is the only zero, by division elsewhere."""
    x, segments = op.inputs
    is_zero = ops.equal(x, array_ops.zeros_like(x))
    zeros = ops.segment_sum(math_ops.cast(is_zero, dtypes.int32), segments)
    grad = array_ops.where_v2(ops.greater(zeros, constant(1)), array_ops.zeros_like(grad), grad)
    nonzero = array_ops.where_v2(is_zero, array_ops.ones_like(x), x)
    others = array_ops.gather(ops.segment_prod(nonzero, segments), segments)
    divided = array_ops.gather(op.outputs[0], segments) / x
    partial = array_ops.where_v2(is_zero, others, divided)
    return [array_ops.gather(grad, segments) * partial, None]


@gradient("UnsortedSegmentProd")
def unsorted_segment_prod(op: Operation, grad: Tensor) -> list[Gradient]:
    x, segments, count = op.inputs
    is_zero = ops.equal(x, array_ops.zeros_like(x))
    zeros = ops.unsorted_segment_sum(math_ops.cast(is_zero, dtypes.int32), segments, count)
    grad = array_ops.where_v2(ops.greater(zeros, constant(1)), array_ops.zeros_like(grad), grad)
    nonzero = array_ops.where_v2(is_zero, array_ops.ones_like(x), x)
    product = ops.unsorted_segment_prod(nonzero, segments, count)
    valid = ops.maximum(segments, array_ops.zeros_like(segments))
    divided = array_ops.gather(op.outputs[0], valid) / x
    partial = array_ops.where_v2(is_zero, array_ops.gather(product, valid), divided)
    rows, _, _ = _rows(grad, segments)
    return [rows * partial, None, None]
