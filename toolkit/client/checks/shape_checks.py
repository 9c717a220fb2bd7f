"""Tensors that are made to have a shape, when the graph is made or when it runs (`tf.contrib.framework`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_scalar
from toolkit.client.construction.convert import as_shape, convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow import control_flow
from toolkit.client.flow.control_flow import Assert
from toolkit.client.math import math_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.errors import GraphError
from toolkit.graph import dtypes


def reduce_sum_n(tensors: Sequence[Tensor], name: str | None = None) -> Tensor:
    """The sum of all numbers of all tensors.

    Raises:
        ValueError: there are none.
    """
    if not tensors:
        raise ValueError("reduce_sum_n needs at least one tensor")
    with name_scope(name, "reduce_sum_n", list(tensors)) as scope:
        sums = [math_ops.reduce_sum(each, name=f"{each.op.name}/sum") for each in tensors]
        return sums[0] if len(sums) == 1 else math_ops.add_n(sums, name=scope)


def remove_squeezable_dimensions(predictions: Any, labels: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The two without the last dimension of size 1 that one of them has more than the other."""
    with name_scope(name, "remove_squeezable_dimensions", [predictions, labels]):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        ranks = predictions.static_shape.rank, labels.static_shape.rank
        if ranks[0] is not None and ranks[1] is not None:
            if ranks[0] == ranks[1] - 1:
                labels = array_ops.squeeze(labels, [-1])
            elif ranks[0] == ranks[1] + 1:
                predictions = array_ops.squeeze(predictions, [-1])
            return predictions, labels
        more = array_ops.rank(predictions) - array_ops.rank(labels)
        return _squeezed_if(predictions, 1, more), _squeezed_if(labels, -1, more)


def _squeezed_if(x: Tensor, wanted: int, more: Tensor) -> Tensor:
    """`x` without its last dimension where the difference of ranks is the wanted one."""
    shape = x.static_shape
    if shape.rank is not None and shape[-1] not in (None, 1):
        return x
    return control_flow.cond(ops.equal(wanted, more), lambda: array_ops.squeeze(x, [-1]), lambda: x)


def with_same_shape(expected_tensor: Tensor, tensor: Tensor) -> Tensor:
    """The second tensor, which has the shape of the first.

    Raises:
        GraphError: it is known to have another.
    """
    with name_scope(f"{tensor.op.name}/", None, [expected_tensor, tensor]):
        shape = expected_tensor.static_shape
        wanted: Any = shape.as_list() if shape.is_fully_defined else array_ops.shape(expected_tensor, "expected_shape")
        return with_shape(wanted, tensor)


def with_shape(expected_shape: Any, tensor: Tensor) -> Tensor:
    """The tensor, which has a shape: known when the graph is made, or asserted when it runs.

    Args:
        expected_shape: sizes, or a tensor of int32 that holds them; [] also takes a tensor of one number.

    Raises:
        GraphError: the tensor is known to have another shape, or the expected one is no list of int32.
    """
    if isinstance(tensor, SparseTensor):
        raise GraphError("with_shape takes a dense tensor, not a SparseTensor")
    known: Sequence[int | None] | None = None
    if isinstance(expected_shape, Tensor):
        if expected_shape.dtype.base is not dtypes.int32:
            raise GraphError(f"'{expected_shape.name}' has type {expected_shape.dtype.base}; shapes are of int32")
    elif isinstance(expected_shape, np.ndarray):
        given: Any = cast("Any", expected_shape)
        if given.ndim > 1 or (given.dtype != np.int32 and given.size):
            raise GraphError(f"the expected shape of '{tensor.name}' is a list of int32, not {given!r}")
        known = [int(size) for size in given]
    else:
        known = as_shape(expected_shape).as_list()
    actual = tensor.static_shape
    if known is not None and not known and (not actual.is_fully_defined or actual.as_list() == [1]):
        with name_scope(f"{tensor.op.name}/", None, [tensor]):
            return array_ops.reshape(tensor, [])
    if known is None or not actual.is_fully_defined:
        return _asserted(expected_shape if known is None else known, tensor, known)
    if not actual.is_compatible_with(as_shape(known)):
        raise GraphError(f"'{tensor.name}' has shape {actual}; {known} is expected")
    return tensor


def _asserted(expected: Any, tensor: Tensor, known: Sequence[int | None] | None) -> Tensor:
    with name_scope(f"{tensor.op.name}/", None, [tensor]):
        wanted: TensorLike = expected if known is None else np.array([size or -1 for size in known], np.int32)
        with name_scope(None, "assert_shape", [tensor]) as scope:
            sizes = array_ops.shape(tensor, name="actual")
            holds = _is_shape(wanted, tensor, sizes)
            text = f"'{tensor.name}' has another shape than expected: [expected] [actual]"
            asserted = Assert(holds, [text, wanted, sizes], name=scope)
        with control_dependencies([asserted]):
            found = array_ops.identity(tensor)
        if known is not None:
            found.set_shape(known)
        return found


def _is_shape(expected: TensorLike, tensor: Tensor, sizes: Tensor) -> Tensor:
    with name_scope(None, "is_shape", [tensor]) as scope:
        count = array_ops.size(expected)
        with name_scope(None, "is_rank", [tensor]) as inner:
            wanted = convert_to_tensor(count, name="expected")
            same_rank = ops.equal(wanted, array_ops.rank(tensor, name="actual"), name=inner)
        with name_scope(None, "shape_tensor_equal", [expected, sizes]) as inner:
            free = ops.equal(expected, -1)
            same = ops.equal(expected, sizes, name="equal")
            same_sizes = math_ops.reduce_all(ops.logical_or(free, same, name="exclude_partial_shape"), name=inner)
        return ops.logical_and(same_rank, same_sizes, name=scope)


def assert_scalar_int(tensor: TensorLike, name: str | None = None) -> Tensor:
    """The tensor, which is one whole number.

    Raises:
        GraphError: it is of another type, or no scalar.
    """
    with name_scope(name, "assert_scalar_int", [tensor]) as scope:
        tensor = convert_to_tensor(tensor)
        if not tensor.dtype.base.is_integer:
            raise GraphError(f"'{tensor.name}' has type {tensor.dtype.base}; a whole number is expected")
        return assert_scalar(tensor, name=scope)
