"""Special functions, polynomials, counts of integers, order of elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import cond
from toolkit.client.math import math_ops
from toolkit.errors import UsageError
from toolkit.graph import dtypes

Unary = Callable[..., Tensor]


def _elementwise(op: str, scope: str) -> Unary:
    """The function of an op of one argument that stands in a scope of its own."""

    def call(x: TensorLike, name: str | None = None) -> Tensor:
        with name_scope(name, scope, [x]):
            return ops.function(op)(x)

    call.__name__ = call.__qualname__ = scope
    call.__doc__ = f"{op} of every element."
    return call


bessel_i0 = _elementwise("BesselI0", "bessel_i0")
bessel_i0e = _elementwise("BesselI0e", "bessel_i0e")
bessel_i1 = _elementwise("BesselI1", "bessel_i1")
bessel_i1e = _elementwise("BesselI1e", "bessel_i1e")
bessel_j0 = _elementwise("BesselJ0", "bessel_j0")
bessel_j1 = _elementwise("BesselJ1", "bessel_j1")
bessel_k0 = _elementwise("BesselK0", "bessel_k0")
bessel_k0e = _elementwise("BesselK0e", "bessel_k0e")
bessel_k1 = _elementwise("BesselK1", "bessel_k1")
bessel_k1e = _elementwise("BesselK1e", "bessel_k1e")
bessel_y0 = _elementwise("BesselY0", "bessel_y0")
bessel_y1 = _elementwise("BesselY1", "bessel_y1")
dawsn = _elementwise("Dawsn", "dawsn")
expint = _elementwise("Expint", "expint")
fresnel_cos = _elementwise("FresnelCos", "fresnel_cos")
fresnel_sin = _elementwise("FresnelSin", "fresnel_sin")
spence = _elementwise("Spence", "spence")
erfinv = _elementwise("Erfinv", "erfinv")
ndtri = _elementwise("Ndtri", "ndtri")


def erfcinv(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of erfc."""
    with name_scope(name, "erfcinv", [x]):
        x = convert_to_tensor(x, name="start")
        return -ndtri(0.5 * x) * math.sqrt(0.5)


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return ops.div_no_nan(constant(1.0, x.dtype.base, name="one"), x, name=scope)


def multiply_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x * y, and 0 where y is 0, whatever x is."""
    with name_scope(name, "multiply_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        return ops.mul_no_nan(x, convert_to_tensor(y, x.dtype.base, name="y"), name=scope)


def xdivy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y, and 0 where x is 0."""
    with name_scope(name, "xdivy", [x]):
        return ops.xdivy(x, y)


def xlog1py(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x * log(1 + y), and 0 where x is 0."""
    with name_scope(name, "xlog1py", [x]):
        return ops.xlog1py(x, y)


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of the Beta function, over the last axis."""
    with name_scope(name, "lbeta", [x]):
        x = convert_to_tensor(x, name="x")
        parts = math_ops.reduce_sum(ops.lgamma(x), [-1])
        return parts - ops.lgamma(math_ops.reduce_sum(x, [-1]))


def polyval(coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None) -> Tensor:
    """A polynomial by Horner's rule; the coefficient of the highest power comes first.

    Raises:
        UsageError: coeffs is no list.
    """
    if not isinstance(coeffs, list):
        raise UsageError(f"coeffs: expected a list, got {type(coeffs).__name__}")
    with name_scope(name, "polyval", [*coeffs, x]):
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return array_ops.zeros_like(x, name=name)
        tensors = [convert_to_tensor(c, name=f"coeff_{i}") for i, c in enumerate(coeffs)]
        found = tensors[0]
        for tensor in tensors[1:]:
            found = tensor + found * x
        return found


def sobol_sample(
    dim: TensorLike, num_results: TensorLike, skip: TensorLike = 0, dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Points of the Sobol sequence, [num_results, dim]."""
    with name_scope(name, "sobol", [dim, num_results, skip]):
        return ops.sobol_sample(dim, num_results, skip, dtype=as_dtype(dtype))


def _in_order(x: Tensor, compare: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Whether each element stands in a relation to the one before, over all elements in order."""
    x = array_ops.reshape(x, [-1])
    few = ops.less(array_ops.size(x), 2)
    rest = array_ops.shape(x) - 1

    def neighbours() -> Tensor:
        after = array_ops.strided_slice(x, [1], [1] + rest)  # noqa: RUF005 (a tensor)
        return compare(after, array_ops.strided_slice(x, [0], rest))

    return math_ops.reduce_all(cond(few, lambda: constant([], dtypes.bool_), neighbours))


def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether no element is less than the one before."""
    with name_scope(name, "is_non_decreasing", [x]):
        return _in_order(convert_to_tensor(x), ops.greater_equal)


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether each element is more than the one before."""
    with name_scope(name, "is_strictly_increasing", [x]):
        return _in_order(convert_to_tensor(x), ops.greater)


def bincount(
    arr: TensorLike,
    weights: TensorLike = None,
    minlength: TensorLike = None,
    maxlength: TensorLike = None,
    dtype: DTypeLike = dtypes.int32,
) -> Tensor:
    """How often each number occurs, or the sum of its weights.

    Args:
        arr: integers from 0 on.
        minlength, maxlength: the least and the greatest length of the result.
        dtype: the type of counts; weights have their own.
    """
    with name_scope(None, "bincount", [v for v in (arr, weights) if v is not None]):
        arr = convert_to_tensor(arr, name="arr")
        if not arr.dtype.base.is_integer:
            arr = math_ops.cast(arr, dtypes.int32)
        kind = arr.dtype.base
        nonempty = math_ops.cast(ops.greater(array_ops.size(arr), 0), kind)
        length = nonempty * (math_ops.reduce_max(arr) + 1)
        if minlength is not None:
            length = ops.maximum(convert_to_tensor(minlength, kind, name="minlength"), length)
        if maxlength is not None:
            length = ops.minimum(convert_to_tensor(maxlength, kind, name="maxlength"), length)
        if weights is None:
            flat = array_ops.reshape(arr, [-1])
            heavy = constant([], as_dtype(dtype))
        else:
            heavy = array_ops.reshape(weights, [-1])
            flat = array_ops.reshape(arr, [-1])
        return ops.dense_bincount(flat, length, heavy, binary_output=False)


def _segment_counts(data: Tensor, segment_ids: Tensor, num_segments: Tensor) -> Tensor:
    """How many rows each segment has, at least 1, in a shape that broadcasts over the rows."""
    known = segment_ids.static_shape
    sizes = convert_to_tensor(known, name="Shape/shape_as_tensor") if known.is_fully_defined else ops.shape(segment_ids)
    rows = array_ops.ones(sizes, data.dtype.base)
    counts = ops.unsorted_segment_sum(rows, segment_ids, num_segments)
    length = num_segments[None]
    inner = array_ops.rank(data) - array_ops.rank(segment_ids)
    shape = array_ops.concat([length, array_ops.ones([inner], dtypes.int32)], 0)
    return ops.maximum(array_ops.reshape(counts, shape), 1)


def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The mean of the rows of each segment; 0 where it has none."""
    with name_scope(name, "UnsortedSegmentMean"):
        data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        counts = _segment_counts(data, segment_ids, convert_to_tensor(num_segments))
        return ops.unsorted_segment_sum(data, segment_ids, num_segments) / counts


def unsorted_segment_sqrt_n(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """The sum of the rows of each segment, divided by the square root of how many it has."""
    with name_scope(name, "UnsortedSegmentSqrtN"):
        data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        counts = _segment_counts(data, segment_ids, convert_to_tensor(num_segments))
        return ops.unsorted_segment_sum(data, segment_ids, num_segments) / ops.sqrt(counts)
