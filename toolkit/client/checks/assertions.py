"""Operations that fail in the step when something does not hold; what is known before is judged at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, constant, convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with, name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.flow.control_flow import Assert, with_dependencies
from toolkit.client.math import math_ops
from toolkit.errors import GraphError, InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType

Data = Sequence[TensorLike] | None


def _prefix(message: str | None) -> str:
    return f"{message}.  " if message else ""


def _pair(
    sign: str, scope: str, op: Callable[..., Tensor], known: Callable[..., Any], x: TensorLike, y: TensorLike,
    data: Data, summarize: int | None, message: str | None, name: str | None,
) -> Operation:  # fmt: skip
    """Asserts a relation between all elements of two tensors.

    Raises:
        InvalidArgumentError: both are known, and it does not hold.
    """
    with name_scope(name, scope, [x, y, data]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y")
        if data is None:
            data = [
                f"Condition x {sign} y did not hold element-wise:", f"x ({x.name}) = ", x, f"y ({y.name}) = ", y
            ]  # fmt: skip
        shown: list[Any] = [*([] if message is None else [message]), *data]
        holds = math_ops.reduce_all(op(x, y))
        left, right = static_value(x), static_value(y)
        if left is not None and right is not None and not np.all(known(left, right)):
            raise InvalidArgumentError(
                f"{scope}: {'' if message is None else message + '; '}x {sign} y does not hold for x = "
                f"{left.tolist()} and y = {right.tolist()}"
            )
        return Assert(holds, shown, summarize=summarize)


def assert_equal(
    x: TensorLike, y: TensorLike, data: Data = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless x == y, element by element."""
    with name_scope(name, "assert_equal", [x, y, data]):
        if x is y:
            return ops.no_op()
    return _pair("==", "assert_equal", ops.equal, np.equal, x, y, data, summarize, message, name)


def assert_none_equal(
    x: TensorLike, y: TensorLike, data: Data = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless x != y, element by element."""
    return _pair("!=", "assert_none_equal", ops.not_equal, np.not_equal, x, y, data, summarize, message, name)


def assert_less(
    x: TensorLike, y: TensorLike, data: Data = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless x < y, element by element."""
    return _pair("<", "assert_less", ops.less, np.less, x, y, data, summarize, message, name)


def assert_less_equal(
    x: TensorLike, y: TensorLike, data: Data = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless x <= y, element by element."""
    return _pair("<=", "assert_less_equal", ops.less_equal, np.less_equal, x, y, data, summarize, message, name)


def assert_greater(
    x: TensorLike, y: TensorLike, data: Data = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless x > y, element by element."""
    return _pair(">", "assert_greater", ops.greater, np.greater, x, y, data, summarize, message, name)


def assert_greater_equal(
    x: TensorLike, y: TensorLike, data: Data = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless x >= y, element by element."""
    compare = ops.greater_equal
    return _pair(">=", "assert_greater_equal", compare, np.greater_equal, x, y, data, summarize, message, name)


def _sign(
    what: str, scope: str, x: TensorLike, data: Data, summarize: int | None, message: str | None, name: str | None,
    zero_first: bool, check: Callable[..., Operation],
) -> Operation:  # fmt: skip
    with name_scope(name, scope, [x, data]):
        x = convert_to_tensor(x, name="x")
        if data is None:
            said = [f"Condition x {what} 0 did not hold element-wise:", f"x ({x.name}) = "]
            if what == "<=":
                said = ["".join(said)]  # one text in TensorFlow, by a comma that is not there
            data = [_prefix(message), *said, x]
        zero = constant(0, x.dtype.base)
        return check(zero, x, data, summarize) if zero_first else check(x, zero, data, summarize)


def assert_negative(
    x: TensorLike, data: Data = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless all elements are below 0."""
    return _sign("<", "assert_negative", x, data, summarize, message, name, False, assert_less)


def assert_positive(
    x: TensorLike, data: Data = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless all elements are above 0."""
    return _sign(">", "assert_positive", x, data, summarize, message, name, True, assert_less)


def assert_non_negative(
    x: TensorLike, data: Data = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails when an element is below 0."""
    return _sign(">=", "assert_non_negative", x, data, summarize, message, name, True, assert_less_equal)


def assert_non_positive(
    x: TensorLike, data: Data = None, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails when an element is above 0."""
    return _sign("<=", "assert_non_positive", x, data, summarize, message, name, False, assert_less_equal)


def assert_near(
    x: TensorLike,
    y: TensorLike,
    rtol: TensorLike = None,
    atol: TensorLike = None,
    data: Data = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fails unless |x - y| < atol + rtol * |y|; both default to ten times the type's precision."""
    with name_scope(name, "assert_near", [x, y, rtol, atol, data]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base, name="y")
        least = 10 * float(np.finfo(x.dtype.base.numpy).eps) if x.dtype.base.is_floating else 0
        rtol = convert_to_tensor(least if rtol is None else rtol, x.dtype.base, name="rtol")
        atol = convert_to_tensor(least if atol is None else atol, x.dtype.base, name="atol")
        if data is None:
            data = [
                _prefix(message), f"x and y not equal to tolerance rtol = {_shown(rtol)}, atol = {_shown(atol)}",
                f"x ({x.name}) = ", x, f"y ({y.name}) = ", y,
            ]  # fmt: skip
        allowed = atol + rtol * ops.abs(y)
        return Assert(math_ops.reduce_all(ops.less(ops.abs(x - y), allowed)), data, summarize=summarize)


def _shown(tensor: Tensor) -> str:
    """A scalar as TensorFlow prints it."""
    return f'Tensor("{tensor.name}", shape=(), dtype={tensor.dtype.base.name})'


def check_finite(t: TensorLike, message: str, name: str | None = None) -> Tensor:
    """A tensor that fails when it has elements that are infinite or no numbers."""
    with name_scope(name, "VerifyFinite", [t]):
        t = convert_to_tensor(t, name="t")
        with colocate_with(t.op):
            return with_dependencies([ops.check_numerics(t, message=message)], t)


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> Operation:
    """Nothing, for a tensor of integers.

    Raises:
        GraphError: it is of another type.
    """
    with name_scope(name, "assert_integer", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.base.is_integer:
            raise GraphError(f"{_prefix(message)}'{x.name}' has type {x.dtype}, where integers are expected")
        return ops.no_op(name="statically_determined_was_integer")


def assert_type(
    tensor: TensorLike, tf_type: DTypeLike, message: str | None = None, name: str | None = None
) -> Operation:
    """Nothing, for a tensor of that type.

    Raises:
        GraphError: it is of another one.
    """
    with name_scope(name, "assert_type", [tensor]):
        tensor = convert_to_tensor(tensor, name="tensor")
        wanted = as_dtype(tf_type)
        if tensor.dtype.base is not wanted.base:
            raise GraphError(f"{_prefix(message)}'{tensor.name}' has type {tensor.dtype}, where {wanted} is expected")
        return ops.no_op(name="statically_determined_correct_type")


def _rank(
    scope: str, wording: str, x: TensorLike, rank: TensorLike, compare: Callable[..., Tensor],
    known: Callable[[int, int], bool], data: Data, summarize: int | None, message: str | None, name: str | None,
) -> Operation:  # fmt: skip
    with name_scope(name, scope, [x, rank, data]):
        x = convert_to_tensor(x, name="x")
        rank = convert_to_tensor(rank, name="rank")
        if data is None:
            data = [
                _prefix(message), f"Tensor {x.name} must have {wording}", rank, "Received shape: ", array_ops.shape(x)
            ]  # fmt: skip
        assert_type(rank, dtypes.int32)
        wanted = static_value(rank)
        if wanted is not None:
            if wanted.ndim != 0:
                raise GraphError(f"rank: expected one number, got {wanted.tolist()}")
            found = x.static_shape.rank
            if found is not None:
                if not known(found, int(wanted)):
                    raise GraphError(
                        f"{_prefix(message)}'{x.name}' of shape {x.static_shape} must have {wording} {int(wanted)}"
                    )
                return ops.no_op(name="static_checks_determined_all_ok")
        holds = compare(array_ops.rank(x), rank)
        if wanted is None:
            checked = assert_rank(rank, 0, data=["Rank must be a scalar. Received rank: ", rank])
            holds = with_dependencies([checked], holds)
        return Assert(holds, data, summarize=summarize)


def assert_rank(
    x: TensorLike, rank: TensorLike, data: Data = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless a tensor has that many dimensions.

    Raises:
        GraphError: both are known and differ; the rank is no integer.
    """
    return _rank(
        "assert_rank", "rank", x, rank, ops.equal, lambda a, b: a == b, data, summarize, message, name
    )  # fmt: skip


def assert_rank_at_least(
    x: TensorLike, rank: TensorLike, data: Data = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless a tensor has that many dimensions or more.

    Raises:
        GraphError: both are known, and it has less; the rank is no integer.
    """
    return _rank(
        "assert_rank_at_least", "rank at least", x, rank, ops.greater_equal, lambda a, b: a >= b, data, summarize,
        message, name,
    )  # fmt: skip


def assert_rank_in(
    x: TensorLike, ranks: Sequence[TensorLike], data: Data = None, summarize: int | None = None,
    message: str | None = None, name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless a tensor has one of these numbers of dimensions.

    Raises:
        GraphError: all are known, and it has none of them.
    """
    with name_scope(name, "assert_rank_in", [x, *ranks, data]):
        x = convert_to_tensor(x, name="x")
        tensors = [convert_to_tensor(rank, name="rank") for rank in ranks]
        if data is None:
            data = [
                _prefix(message), f"Tensor {x.name} must have rank in", *tensors, "Received shape: ",
                array_ops.shape(x),
            ]  # fmt: skip
        for tensor in tensors:
            assert_type(tensor, dtypes.int32)
        wanted = [static_value(tensor) for tensor in tensors]
        found = x.static_shape.rank
        if found is not None and all(value is not None for value in wanted):
            numbers = [int(value) for value in wanted if value is not None]
            if found not in numbers:
                raise GraphError(
                    f"{_prefix(message)}'{x.name}' of shape {x.static_shape} must have one of the ranks {numbers}"
                )
            return ops.no_op(name="static_checks_determined_all_ok")
        rank = array_ops.rank(x)
        holds = functools.reduce(ops.logical_or, [ops.equal(tensor, rank) for tensor in tensors])
        return Assert(holds, data, summarize=summarize)


def assert_scalar(tensor: TensorLike, name: str | None = None, message: str | None = None) -> Tensor:
    """The tensor, which is a scalar.

    Raises:
        GraphError: it is none, or of unknown shape.
    """
    with name_scope(name, "assert_scalar", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name=scope)
        if tensor.static_shape.rank != 0:
            raise GraphError(f"{_prefix(message)}'{tensor.name}' has shape {tensor.static_shape}, not that of a scalar")
        return tensor


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether something is a tensor of numbers."""
    return isinstance(tensor, Tensor) and tensor.dtype.base.kind in "fiuc"


def assert_same_float_dtype(tensors: Sequence[Any] | None = None, dtype: DTypeLike = None) -> DType:
    """The one floating type of tensors; float32 where there is nothing to tell.

    Raises:
        GraphError: they are of several types, or of one that is not floating.
    """
    found = None if dtype is None else as_dtype(dtype).base
    for tensor in tensors or ():
        if tensor is None:
            continue
        kind = tensor.dtype.base
        if found is not None and kind is not found:
            raise GraphError(f"'{tensor.name}' has type {kind}, where {found} is expected")
        found = kind
    if found is None:
        return dtypes.float32
    if not found.is_floating:
        raise GraphError(f"expected a floating type, got {found}")
    return found


def assert_proper_iterable(values: Any) -> None:
    """Nothing, for a list or another iterable that is no tensor, array or string.

    Raises:
        TypeError: it is none.
    """
    if isinstance(values, Tensor | IndexedSlices | np.ndarray | bytes | str) or not hasattr(values, "__iter__"):
        kind = type(cast("object", values))
        raise TypeError(f"values: expected a list of values, got {kind.__name__}")
