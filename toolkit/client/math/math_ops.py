"""Arithmetic, comparison, reduction and matrix functions over the raw ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.construction.tensor import operator as operator_of_tensors
from toolkit.errors import GraphError
from toolkit.graph import dtypes

# -- operators --------------------------------------------------------------------------------------------


@operator_of_tensors("binary")
def binary_operator(operator: str, left: TensorLike, right: TensorLike) -> Tensor:
    """What Python's operators on tensors make; one side at least is a Tensor.

    The plain value among the two takes the other's type.
    """
    if operator[0].isupper():  # comparisons are raw ops, named as such
        return ops.function(operator)(left, right)
    default = operator
    with name_scope(None, default, [left, right]) as scope:
        if operator in _UNNAMED:
            pass  # these convert their own arguments
        elif not isinstance(left, Tensor):
            right = convert_to_tensor(right, name="y")
            left = convert_to_tensor(left, right.dtype.base, name="x")
        else:
            right = convert_to_tensor(right, left.dtype.base, name="y")
        return _OPERATORS[operator](left, right, scope)


def _op(name: str) -> Callable[[Tensor, Tensor, str], Tensor]:
    return lambda left, right, scope: ops.function(name)(left, right, name=scope)


def _logical(boolean: str, bitwise: str) -> Callable[[TensorLike, TensorLike, str], Tensor]:
    def combine(left: TensorLike, right: TensorLike, scope: str) -> Tensor:
        known = left if isinstance(left, Tensor) else right
        if known.dtype.base is not dtypes.bool_:
            return ops.function(bitwise)(left, right)
        return logical_xor(left, right, scope) if not boolean else ops.function(boolean)(left, right, name=scope)

    return combine


def logical_xor(x: TensorLike, y: TensorLike, name: str = "LogicalXor") -> Tensor:
    """Whether exactly one of the two holds."""
    either, both = ops.logical_or(x, y), ops.logical_and(x, y)
    return ops.logical_and(either, ops.logical_not(both), name=name)


def _add(left: Tensor, right: Tensor, scope: str) -> Tensor:
    return ops.function("Add" if left.dtype.base is dtypes.string else "AddV2")(left, right, name=scope)


#: what `/` computes in, for each integer type
_DIVISION_TYPES = {
    dtypes.uint8: dtypes.float32, dtypes.int8: dtypes.float32, dtypes.uint16: dtypes.float32,
    dtypes.int16: dtypes.float32, dtypes.uint32: dtypes.float64, dtypes.uint64: dtypes.float64,
    dtypes.int32: dtypes.float64, dtypes.int64: dtypes.float64,
}  # fmt: skip


def _truediv(left: Tensor, right: Tensor, scope: str) -> Tensor:
    if left.dtype.base is not right.dtype.base:
        raise GraphError(f"'{left.name}' / '{right.name}': types {left.dtype.base} and {right.dtype.base} differ")
    wide = _DIVISION_TYPES.get(left.dtype.base)
    if wide is not None:
        left, right = cast(left, wide), cast(right, wide)
    return ops.real_div(left, right, name=scope)


def _matmul(left: TensorLike, right: TensorLike, scope: str) -> Tensor:
    return matmul(left, right, name=scope)


_OPERATORS: dict[str, Callable[[Any, Any, str], Tensor]] = {
    "add": _add,
    "sub": _op("Sub"),
    "mul": _op("Mul"),
    "truediv": _truediv,
    "floordiv": _op("FloorDiv"),
    "mod": _op("FloorMod"),
    "pow": _op("Pow"),
    "matmul": _matmul,
    "and": _logical("LogicalAnd", "BitwiseAnd"),
    "or": _logical("LogicalOr", "BitwiseOr"),
    "xor": _logical("", "BitwiseXor"),
}
_UNNAMED = frozenset({"matmul", "and", "or", "xor"})


def add(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    with name_scope(name, "Add", [x, y]) as scope:
        left, right = _pair(x, y)
        return _add(left, right, scope)


def subtract(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    return ops.sub(x, y, name=name)


def multiply(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    return ops.mul(x, y, name=name)


def divide(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """True division: integers are divided as floating point numbers."""
    with name_scope(name, "truediv", [x, y]) as scope:
        left, right = _pair(x, y)
        return _truediv(left, right, scope)


def _pair(x: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]:
    if not isinstance(x, Tensor) and isinstance(y, Tensor):
        return convert_to_tensor(x, y.dtype.base, name="x"), y
    left = convert_to_tensor(x, name="x")
    return left, convert_to_tensor(y, left.dtype.base, name="y")


@operator_of_tensors("negative")
def negative(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.neg(x, name=name)


@operator_of_tensors("abs")
def abs(x: TensorLike, name: str | None = None) -> Tensor:
    """The magnitude; of complex numbers, as real ones."""
    with name_scope(name, "Abs", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.base.is_complex:
            return ops.complex_abs(x, Tout=real_type(x.dtype), name=scope)
        return ops.abs(x, name=scope)


def real_type(dtype: dtypes.DType) -> dtypes.DType:
    """The type of a complex type's parts; other types themselves."""
    return {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}.get(dtype.base, dtype.base)


@operator_of_tensors("invert")
def invert(x: TensorLike, name: str | None = None) -> Tensor:
    """`~x`: logical not of booleans, bitwise of integers."""
    x = convert_to_tensor(x)
    return ops.logical_not(x, name=name) if x.dtype.base is dtypes.bool_ else ops.invert(x, name=name)


def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Another type; nothing is added when it has that type already."""
    wanted = as_dtype(dtype).base
    if isinstance(x, Tensor) and x.dtype.base is wanted:
        return x
    with name_scope(name, "Cast", [x]) as scope:
        if isinstance(x, IndexedSlices):
            raise GraphError(f"'{x.name}': cast the values of IndexedSlices, not the slices")
        if hasattr(x, "with_values"):  # a sparse tensor stays one
            sparse: Any = x
            return sparse.with_values(cast(sparse.values, wanted, name=scope))
        x = convert_to_tensor(x, name="x")
        return x if x.dtype.base is wanted else ops.cast(x, DstT=wanted, name=scope)


def pow(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    return ops.pow(x, y, name=name)


def range(
    start: TensorLike, limit: TensorLike = None, delta: TensorLike = 1, name: str = "range", dtype: DTypeLike = None
) -> Tensor:
    """`start`, `start + delta`, ... below `limit`; with one argument, from 0. In `dtype`, or the widest type."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        wanted = None if dtype is None else as_dtype(dtype)
        tensors = [
            value if isinstance(value, Tensor) else convert_to_tensor(value, wanted, name=part)
            for value, part in ((start, "start"), (limit, "limit"), (delta, "delta"))
        ]
        order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
        wide = wanted or max((t.dtype.base for t in tensors), key=lambda d: order.index(d) if d in order else -1)
        return ops.range(*[cast(t, wide) for t in tensors], name=scope)


# -- reductions -------------------------------------------------------------------------------------------


def reduction_axes(x: Tensor, axis: TensorLike) -> TensorLike:
    """`axis`, or all axes of `x`: a Const when the rank is known, else computed from it."""
    if axis is not None:
        return axis
    if x.static_shape.rank:  # TensorFlow computes the axes of scalars as well, which have none
        return constant(np.arange(x.static_shape.rank, dtype=np.int32))
    return range(0, array_ops.rank(x))


def _reduce(op: str, x: TensorLike, axis: TensorLike, keepdims: bool, name: str | None) -> Tensor:
    x = convert_to_tensor(x, name="input")
    made: Tensor = ops.function(op)(x, reduction_axes(x, axis), keep_dims=keepdims, name=name)
    if axis is None and not keepdims:
        made.set_shape([])  # whatever rank `x` has
    return made


def reduce_sum(x: TensorLike, axis: TensorLike = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    return _reduce("Sum", x, axis, keepdims, name)


def reduce_mean(x: TensorLike, axis: TensorLike = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    return _reduce("Mean", x, axis, keepdims, name)


def reduce_max(x: TensorLike, axis: TensorLike = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    return _reduce("Max", x, axis, keepdims, name)


def reduce_min(x: TensorLike, axis: TensorLike = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    return _reduce("Min", x, axis, keepdims, name)


def reduce_prod(x: TensorLike, axis: TensorLike = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    return _reduce("Prod", x, axis, keepdims, name)


def reduce_all(x: TensorLike, axis: TensorLike = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    return _reduce("All", x, axis, keepdims, name)


def reduce_any(x: TensorLike, axis: TensorLike = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    return _reduce("Any", x, axis, keepdims, name)


def reduce_logsumexp(x: TensorLike, axis: TensorLike = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """log(sum(exp(x))), computed around the maximum so that it does not overflow."""
    with name_scope(name, "ReduceLogSumExp", [x]) as scope:
        x = convert_to_tensor(x, name="input_tensor")
        peak = reduce_max(x, axis, keepdims=True)
        finite = array_ops.stop_gradient(ops.select_v2(ops.is_finite(peak), peak, 0))
        total = ops.log(reduce_sum(ops.exp(ops.sub(x, finite)), axis, keepdims=keepdims))
        if not keepdims:
            finite = array_ops.reshape(finite, ops.shape(total))
        return add(total, finite, name=scope)


def argmax(
    x: TensorLike, axis: TensorLike = 0, output_type: DTypeLike = dtypes.int64, name: str | None = None
) -> Tensor:
    return ops.arg_max(x, axis, output_type=output_type, name=name)


def argmin(
    x: TensorLike, axis: TensorLike = 0, output_type: DTypeLike = dtypes.int64, name: str | None = None
) -> Tensor:
    return ops.arg_min(x, axis, output_type=output_type, name=name)


def add_n(values: Sequence[TensorLike], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and type; a single one is passed on (through Identity when it is named).

    Raises:
        GraphError: there are none.
    """
    if not values:
        raise GraphError("add_n needs at least one tensor")
    if len(values) == 1:
        only = convert_to_tensor(values[0])
        return array_ops.identity(only, name=name) if name else only
    return ops.add_n(list(values), name=name)


def cumsum(
    x: TensorLike, axis: TensorLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    return ops.cumsum(x, axis, exclusive=exclusive, reverse=reverse, name=name)


# -- matrices ---------------------------------------------------------------------------------------------


def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of matrices, or of stacks of them (which broadcast against each other).

    Raises:
        GraphError: a matrix is to be both transposed and adjoint.
    """
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise GraphError("matmul takes either transpose or adjoint of a matrix, not both")
    with name_scope(name, "MatMul", [a, b]) as scope:
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, a.dtype.base, name="b")
        ranks = (a.static_shape.rank, b.static_shape.rank)
        if any(r is None or r > 2 for r in ranks):
            if transpose_a:
                a, adjoint_a = _conjugate(a), True
            if transpose_b:
                b, adjoint_b = _conjugate(b), True
            return ops.batch_mat_mul_v2(a, b, adj_x=adjoint_a, adj_y=adjoint_b, name=scope)
        if adjoint_a:
            a, transpose_a = _conjugate(a), True
        if adjoint_b:
            b, transpose_b = _conjugate(b), True
        return ops.mat_mul(a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=scope)


def _conjugate(x: Tensor) -> Tensor:
    return ops.conj(x) if x.dtype.base.is_complex else x


@operator_of_tensors("sum_rows")
def unsorted_segment_sum(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    return ops.unsorted_segment_sum(data, segment_ids, num_segments, name=name)


def equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    return ops.equal(x, y, name=name)


def not_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    return ops.not_equal(x, y, name=name)


def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> Tensor | IndexedSlices:
    """A scalar times a tensor, or times the values of IndexedSlices.

    Raises:
        GraphError: the scalar is of a shape that is none.
    """
    dtype = x.dtype.base if isinstance(x, Tensor | IndexedSlices) else convert_to_tensor(x).dtype.base
    factor = convert_to_tensor(scalar, dtype, name="scalar")
    if factor.static_shape.rank not in (0, None):
        raise GraphError(f"scalar_mul takes a scalar, not '{factor.name}' of shape {factor.static_shape}")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(ops.mul(factor, x.values, name=name), x.indices, x.dense_shape)
    return ops.mul(factor, x, name=name)


def sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.sigmoid(x, name=name)


def tanh(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.tanh(x, name=name)


def square(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.square(x, name=name)


def sqrt(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.sqrt(x, name=name)


def rsqrt(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.rsqrt(x, name=name)


def exp(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.exp(x, name=name)


def log(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.log(x, name=name)


def maximum(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    return ops.maximum(x, y, name=name)


def minimum(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    return ops.minimum(x, y, name=name)
