"""Losses of weights: their sum, the sum of their squares."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.graph.metagraph import GraphKeys

Regularizer = Callable[[Any], "Tensor | None"]


def _checked(scale: Any, what: str) -> Any:
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"{what}: expected a float, got the whole number {scale}")
    if isinstance(scale, numbers.Real) and float(scale) < 0.0:
        raise ValueError(f"{what}: expected a number that is not negative, got {float(scale):g}")
    return scale


def _scaled(scale: Any, scope: str | None, default: str, penalty: Callable[[Any], Tensor]) -> Regularizer:
    if isinstance(scale, numbers.Real) and float(scale) == 0.0:
        return lambda _: None

    def loss(weights: Any) -> Tensor:
        with name_scope(scope, default, [weights]) as name:
            factor = convert_to_tensor(scale, weights.dtype.base, name="scale")
            return ops.mul(factor, penalty(weights), name=name)

    return loss


def l1_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """scale * sum(abs(weights)).

    Raises:
        ValueError: the scale is negative, or no float.
    """

    def l1(weights: Any) -> Tensor:
        return math_ops.reduce_sum(math_ops.abs(weights))

    return _scaled(_checked(scale, "scale"), scope, "l1_regularizer", l1)


def l2_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """scale * sum(weights ** 2) / 2.

    Raises:
        ValueError: the scale is negative, or no float.
    """
    return _scaled(_checked(scale, "scale"), scope, "l2_regularizer", nn_ops.l2_loss)


def l1_l2_regularizer(scale_l1: Any = 1.0, scale_l2: Any = 1.0, scope: str | None = None) -> Regularizer | None:
    """Both.

    Raises:
        ValueError: a scale is negative, or no float.
    """
    _checked(scale_l1, "scale_l1")
    _checked(scale_l2, "scale_l2")
    scope = scope or "l1_l2_regularizer"
    if scale_l1 == 0.0:
        return l2_regularizer(scale_l2, scope)
    if scale_l2 == 0.0:
        return l1_regularizer(scale_l1, scope)
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope)


def sum_regularizer(regularizer_list: Sequence[Any], scope: str | None = None) -> Regularizer | None:
    """The sum of several; None where there are none."""
    used = [each for each in regularizer_list if each is not None]
    if not used:
        return None

    def loss(weights: Any) -> Tensor | None:
        with name_scope(scope, "sum_regularizer", [weights]) as name:
            terms = [term for each in used if (term := each(weights)) is not None]
            return math_ops.add_n(terms, name=name) if terms else None

    return loss


def apply_regularization(regularizer: Regularizer, weights_list: Any = None) -> Tensor:
    """The sum of the regularizer's losses of all weights, in REGULARIZATION_LOSSES.

    Args:
        weights_list: default: the collection WEIGHTS.

    Raises:
        ValueError: there are no weights, or a loss is no scalar.
    """
    graph = get_default_graph()
    weights: list[Any] = list(weights_list or graph.get_collection("weights"))
    if not weights:
        raise ValueError("there are no weights to regularize; give weights_list, or fill the collection 'weights'")
    with name_scope("get_regularization_penalty", None, weights) as scope:
        found = [regularizer(each) for each in weights]
        losses = [constant(0.0) if loss is None else loss for loss in found]
        for loss in losses:
            if loss.static_shape.rank != 0:
                raise ValueError(f"a regularizer gives a scalar; '{loss.name}' has shape {loss.static_shape}")
        total = math_ops.add_n(losses, name=scope)
    graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total
