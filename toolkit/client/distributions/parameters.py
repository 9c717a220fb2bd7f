"""Parameters of distributions: what belongs together, and what is checked when a step runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_equal, assert_less_equal, assert_near, assert_non_negative
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.errors import UsageError
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape, broadcast


def salted(seed: int | None, salt: str) -> int | None:
    """Another seed for a second draw."""
    if seed is None:
        return None
    return int(hashlib.md5(f"{seed}{salt}".encode(), usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF


def logits_and_probs(
    logits: Any, probs: Any, multidimensional: bool = False, validate_args: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Both from one of them.

    Args:
        multidimensional: the last axis has classes; else each number is of an event of its own.

    Raises:
        UsageError: both are given or none, or they are no floats.
    """
    with name_scope(name, None, [probs, logits]):
        if (probs is None) == (logits is None):
            raise UsageError("a distribution takes probs or logits, one of both")
        if probs is None:
            given = _floats(convert_to_tensor(logits, name="logits"), "logits")
            if multidimensional:
                return given, nn_ops.softmax(given, name="probs")
            return given, math_ops.sigmoid(given, name="probs")
        chances = _floats(convert_to_tensor(probs, name="probs"), "probs")
        if validate_args:
            with name_scope("validate_probs"):
                one = constant(1.0, chances.dtype.base)
                checks = [assert_non_negative(chances)]
                if multidimensional:
                    total = math_ops.reduce_sum(chances, -1)
                    checks.append(assert_near(total, one, message="probs of the classes must add up to 1"))
                else:
                    checks.append(assert_less_equal(chances, one, message="probs must not be above 1"))
                chances = with_dependencies(checks, chances)
        with name_scope("logits"):
            if multidimensional:
                return math_ops.log(chances), chances
            return math_ops.log(chances) - ops.log1p(-1.0 * chances), chances


def _floats(given: Tensor, what: str) -> Tensor:
    if not given.dtype.base.is_floating:
        raise UsageError(f"{what} of a distribution are floats, not {given.dtype.base.name}")
    return given


def whole_numbers(x: TensorLike, what: str) -> Tensor:
    """x, checked to be 0, 1, 2, ..."""
    given = convert_to_tensor(x, name="x")
    checks = [assert_non_negative(given, message=f"{what} must not be negative")]
    if given.dtype.base.is_floating:
        checks.append(assert_equal(given, ops.floor(given), message=f"{what} must be whole numbers"))
    return with_dependencies(checks, given)


def log_combinations(n: TensorLike, counts: TensorLike) -> Tensor:
    """The logarithm of how many ways there are to put n things into places of these sizes."""
    with name_scope("log_combinations", None, [n, counts]):
        n, counts = convert_to_tensor(n, name="n"), convert_to_tensor(counts, name="counts")
        return ops.lgamma(n + 1) - math_ops.reduce_sum(ops.lgamma(counts + 1), [-1])


def joined_shape(parameters: Sequence[Tensor]) -> Shape:
    """The shape that parameters have together."""
    found = parameters[0].static_shape
    for each in parameters[1:]:
        found = broadcast(found, each.static_shape)
    return found


def joined_shape_tensor(parameters: Sequence[Tensor]) -> Tensor:
    """The same, computed."""
    found = array_ops.shape(parameters[-1])
    for each in reversed(parameters[:-1]):
        found = ops.broadcast_args(array_ops.shape(each), found)
    return found


def filled(shape: Tensor, value: float, dtype: DType, name: str | None = None) -> Tensor:
    """One number everywhere."""
    return ops.fill(shape, constant(value, dtype), name=name)
