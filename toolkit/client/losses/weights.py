"""Weights of losses and metrics: of the shape of the values, of size 1 along some axes, or one number."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow import control_flow
from toolkit.client.math import math_ops
from toolkit.errors import GraphError


def assert_broadcastable(weights: TensorLike, values: TensorLike) -> Any:
    """An operation that fails unless weights fit values: a scalar, or of the same rank with sizes that are 1 or equal.

    What is known of the shapes is judged now.

    Raises:
        GraphError: the shapes are known and do not fit.
    """
    with name_scope(None, "assert_broadcastable", (weights, values)) as scope:
        weights, weights_shape, weights_rank = _measured(weights, "weights")
        values, values_shape, values_rank = _measured(values, "values")
        fewer, more = weights.static_shape, values.static_shape
        if fewer.rank is not None and more.rank is not None:
            if fewer.rank == 0:
                return ops.no_op(name="static_scalar_check_success")
            if fewer.rank != more.rank:
                raise _misfit(weights, values, f"they have {fewer.rank} and {more.rank} dimensions")
            for axis, (one, other) in enumerate(zip(fewer, more, strict=True)):
                if one is not None and other is not None and one not in (1, other):
                    raise _misfit(weights, values, f"along axis {axis} they have sizes {one} and {other}")
            if fewer.is_fully_defined and more.is_fully_defined:
                return ops.no_op(name="static_dims_check_success")
        return _asserted(scope, weights, weights_shape, weights_rank, values, values_shape, values_rank)


def _misfit(weights: Tensor, values: Tensor, why: str) -> GraphError:
    return GraphError(
        f"weights '{weights.name}' {weights.static_shape} do not fit values '{values.name}' {values.static_shape}: "
        f"{why}; give a scalar, or sizes that are equal or 1"
    )


def _measured(value: TensorLike, what: str) -> tuple[Tensor, Tensor, Tensor]:
    """A tensor with its shape and its rank as tensors, in a scope of its own."""
    with name_scope(None, what, (value,)) as scope:
        tensor = convert_to_tensor(value, name=scope)
        return tensor, array_ops.shape(tensor, name="shape"), array_ops.rank(tensor, name="rank")


def _asserted(
    scope: str, weights: Tensor, weights_shape: Tensor, weights_rank: Tensor, values: Tensor, values_shape: Tensor,
    values_rank: Tensor,
) -> Operation:  # fmt: skip
    """The check for when the step runs."""
    is_scalar = math_ops.equal(0, weights_rank, name="is_scalar")

    def sizes_fit() -> Tensor:
        with name_scope(None, "has_invalid_dims", (weights_shape, values_shape)) as scope:
            wanted = array_ops.expand_dims(values_shape, -1)
            allowed = array_ops.concat((wanted, array_ops.ones_like(wanted)), 1)
            given = array_ops.expand_dims(weights_shape, -1)
            others = ops.dense_to_dense_set_operation(given, allowed, set_operation="a-b")[1]
            count = array_ops.size(others, name="num_invalid_dims")
            return math_ops.equal(0, count, name=scope)

    def has_fitting_shape() -> Tensor:
        with name_scope(None, "has_valid_nonscalar_shape", (weights_rank, values_rank)) as scope:
            same = math_ops.equal(values_rank, weights_rank, name="is_same_rank")
            return control_flow.cond(same, sizes_fit, lambda: same, name=scope)

    fits = control_flow.cond(is_scalar, lambda: is_scalar, has_fitting_shape, name="is_valid_shape")
    data = [
        "weights can not be broadcast to values.", "weights.shape=", weights.name, weights_shape, "values.shape=",
        values.name, values_shape, "is_scalar=", is_scalar,
    ]  # fmt: skip
    return control_flow.Assert(fits, data, name=scope)


def broadcast_weights(weights: TensorLike, values: TensorLike) -> Tensor:
    """Weights in the shape of values; as they are where the shapes are known to be the same.

    Raises:
        GraphError: the shapes do not fit.
    """
    with name_scope(None, "broadcast_weights", (weights, values)) as scope:
        values = convert_to_tensor(values, name="values")
        weights = convert_to_tensor(weights, values.dtype.base, name="weights")
        given, wanted = weights.static_shape, values.static_shape
        if given.is_fully_defined and wanted.is_fully_defined and given.as_list() == wanted.as_list():
            return weights
        with control_dependencies((assert_broadcastable(weights, values),)):
            return math_ops.multiply(weights, array_ops.ones_like(values), name=scope)


def check_same_shape(one: Tensor, other: Tensor) -> None:
    """Refuse two tensors whose shapes are known to differ.

    Raises:
        GraphError: they do.
    """
    if not one.static_shape.is_compatible_with(other.static_shape):
        raise GraphError(
            f"'{one.name}' has shape {one.static_shape} and '{other.name}' {other.static_shape}; they must be the same"
        )


def fitted_weights(weights: TensorLike, values: Tensor) -> Tensor:
    """Weights with an axis of size 1 more or less at the end, where that makes their rank the values'; scalars stay."""
    weights = convert_to_tensor(weights)
    given, wanted = weights.static_shape, values.static_shape
    if given.rank == 0:
        return weights
    if given.rank is not None and wanted.rank is not None:
        if given.rank - wanted.rank == 1:
            return array_ops.squeeze(weights, [-1])
        if wanted.rank - given.rank == 1:
            return array_ops.expand_dims(weights, [-1])
        return weights
    rank_now = array_ops.rank(weights)
    more_now = rank_now - array_ops.rank(values)
    may_squeeze = given.rank is None or given[-1] in (1, None)

    def grown() -> Tensor:
        return control_flow.cond(
            math_ops.equal(more_now, -1), lambda: array_ops.expand_dims(weights, [-1]), lambda: weights
        )

    def adjusted() -> Tensor:
        squeezed = (lambda: array_ops.squeeze(weights, [-1])) if may_squeeze else (lambda: weights)
        return control_flow.cond(math_ops.equal(more_now, 1), squeezed, grown)

    return control_flow.cond(math_ops.equal(rank_now, 0), lambda: weights, adjusted)
