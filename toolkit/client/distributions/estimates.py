"""What is known of distributions from samples: moving averages, percentiles, posteriors (tf.contrib.distributions)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops, sorting
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import colocate_with, control_dependencies, name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.location_scale import Normal
from toolkit.client.linalg import linalg_ops
from toolkit.client.math import math_ops
from toolkit.client.variables import initializers
from toolkit.client.variables.store import get_variable, variable_scope
from toolkit.errors import ArgumentTypeError, ArgumentValueError
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys


def _floating(name: str, dtype: Any) -> Any:
    if not dtype.is_floating:
        raise ArgumentTypeError(f"{name}: expected floats, got {dtype}")
    return dtype


def assign_moving_mean_variance(
    mean_var: Any, variance_var: Any, value: Any, decay: Any, name: str | None = None
) -> tuple[Any, Any]:
    """Let variables follow the mean and variance of a value; returns both as they are afterwards.

    Source: Welford, "Note on a Method for Calculating Corrected Sums of Squares and Products", 1962, with weights that
    fall.

    Raises:
        TypeError: they are no floats, or of two types.
    """
    dtype = _floating("mean_var", mean_var.dtype.base)
    if variance_var.dtype.base != dtype:
        raise ArgumentTypeError(f"mean_var is of {dtype}, variance_var of {variance_var.dtype.base}")
    with name_scope(name, "assign_moving_mean_variance"), colocate_with(variance_var), colocate_with(mean_var):
        value, kept = convert_to_tensor(value, dtype, name="value"), convert_to_tensor(decay, dtype, name="decay")
        change = value - mean_var.to_tensor()
        with control_dependencies([change]):
            mean = mean_var.assign_add((1.0 - kept) * change)
            before = variance_var.to_tensor()
            return mean, variance_var.assign_sub((1.0 - kept) * (before - kept * math_ops.square(change)))


def moving_mean_variance(
    value: Any, decay: Any, collections: Sequence[str] | None = None, name: str | None = None
) -> tuple[Any, Any]:
    """`assign_moving_mean_variance` of variables that are made for it, and start at 0."""
    with variable_scope(name, "moving_mean_variance", [value]):
        value = convert_to_tensor(value, name="value")
        dtype, shape = _floating("value", value.dtype.base_dtype), value.static_shape
        kept = [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
        variance, mean = (
            get_variable(each, shape, dtype, initializers.Zeros(), trainable=False, collections=kept)
            for each in ("moving_variance", "moving_mean")
        )
        return assign_moving_mean_variance(mean, variance, value, decay)


def assign_log_moving_mean_exp(log_mean_exp_var: Any, log_value: Any, decay: Any, name: str | None = None) -> Any:
    """Let a variable follow the logarithm of the mean of exp(log_value); see `assign_moving_mean_variance`."""
    dtype = _floating("log_mean_exp_var", log_mean_exp_var.dtype.base)
    with name_scope(name, "assign_log_moving_mean_exp"), colocate_with(log_mean_exp_var):
        value, kept = (
            convert_to_tensor(log_value, dtype, name="log_value"),
            convert_to_tensor(decay, dtype, name="decay"),
        )
        change = value - log_mean_exp_var.to_tensor()
        parts = [math_ops.log(kept) * array_ops.ones_like(change), change + ops.log1p(-kept)]
        return log_mean_exp_var.assign_add(math_ops.reduce_logsumexp(array_ops.stack(parts), 0))


_ROUNDED = {"lower": ops.ceil, "higher": ops.floor, "nearest": ops.round}


def percentile(
    x: Any, q: Any, axis: Any = None, interpolation: str | None = None, keep_dims: bool = False,
    validate_args: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The value below which `q` percent of the values are.

    Args:
        q: 0 to 100.
        axis: None: over all.
        interpolation: "lower", "higher" or "nearest" of two values that it lies between.

    Raises:
        ValueError: another interpolation; an axis that is not known now.
    """
    chosen = "nearest" if interpolation is None else interpolation
    if chosen not in _ROUNDED:
        raise ArgumentValueError(f"interpolation: expected one of {', '.join(_ROUNDED)}, got {chosen!r}")
    with name_scope(name, "percentile"):
        x, share = convert_to_tensor(x, name="x"), math_ops.cast(q, dtypes.float64)
        if validate_args:
            from toolkit.client.checks.assertions import assert_greater_equal, assert_less_equal

            low, high = (convert_to_tensor(end, dtypes.float64) for end in (0.0, 100.0))
            with control_dependencies([assert_greater_equal(share, low), assert_less_equal(share, high)]):
                share = array_ops.identity(share)
        rank = x.static_shape.rank
        if axis is None:
            rows, over = array_ops.reshape(x, [-1]), list(range(rank or 0))
        else:
            known = static_value(convert_to_tensor(axis))
            if known is None or rank is None:
                raise ArgumentValueError("axis and the number of dimensions of x have to be known")
            over = sorted({int(each) % rank for each in known.ravel()})
            others = [each for each in range(rank) if each not in over]
            moved = array_ops.transpose(x, [*others, *over])
            rows = array_ops.reshape(moved, array_ops.concat([array_ops.shape(moved)[: len(others)], [-1]], 0))
        count = array_ops.shape(rows)[-1]
        at = _ROUNDED[chosen]((math_ops.cast(count, dtypes.float64) - 1) * (1.0 - share / 100.0))
        index = math_ops.minimum(math_ops.maximum(math_ops.cast(at, dtypes.int32), 0), count - 1)
        found = sorting.sort(rows, direction="DESCENDING")[..., index]
        for each in over if keep_dims else ():
            found = array_ops.expand_dims(found, each)
        return found


def normal_conjugates_known_scale_posterior(prior: Any, scale: Any, s: Any, n: Any) -> Normal:
    """The mean's distribution after `n` normal draws of a known scale, whose sum is `s`.

    Args:
        prior: a Normal, before.

    Raises:
        TypeError: the prior is none, or s of another type.
    """
    mean, variance = _posterior(prior, scale, s, n)
    return Normal(mean, math_ops.sqrt(variance))


def normal_conjugates_known_scale_predictive(prior: Any, scale: Any, s: Any, n: Any) -> Normal:
    """The next draw's distribution; see `normal_conjugates_known_scale_posterior`."""
    mean, variance = _posterior(prior, scale, s, n)
    return Normal(mean, math_ops.sqrt(variance + math_ops.square(scale)))


def _posterior(prior: Any, scale: Any, s: Any, n: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(prior, Normal):
        raise ArgumentTypeError(f"prior: expected a Normal, got {type(prior).__name__}")
    total = convert_to_tensor(s)
    if total.dtype.base_dtype != prior.dtype:
        raise ArgumentTypeError(f"s is of {total.dtype.base_dtype}, the prior of {prior.dtype}")
    before, each = math_ops.square(prior.scale), math_ops.square(scale)
    variance = 1.0 / (1 / before + math_ops.cast(n, prior.dtype) / each)
    return (prior.loc / before + total / each) * variance, variance


def reduce_weighted_logsumexp(
    logx: Any, w: Any = None, axis: Any = None, keep_dims: bool = False, return_sign: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """log(abs(sum(w * exp(logx)))) without overflow, and the sum's sign where `return_sign`."""
    with name_scope(name, "reduce_weighted_logsumexp"):
        logx = convert_to_tensor(logx, name="logx")
        if w is None:
            found = math_ops.reduce_logsumexp(logx, axis, keep_dims)
            return (found, array_ops.ones_like(found)) if return_sign else found
        weights = convert_to_tensor(w, logx.dtype, name="w")
        logs = logx + math_ops.log(math_ops.abs(weights))
        largest = math_ops.reduce_max(logs, axis, keepdims=True)
        largest = array_ops.where(ops.is_inf(largest), array_ops.zeros_like(largest), largest)
        total = math_ops.reduce_sum(ops.sign(weights) * math_ops.exp(logs - largest), axis, keep_dims)
        sign = ops.sign(total)
        shift = largest if keep_dims else array_ops.reshape(largest, array_ops.shape(total))
        found = shift + math_ops.log(sign * total)
        return (found, sign) if return_sign else found


def matrix_diag_transform(matrix: Any, transform: Any = None, name: str | None = None) -> Tensor:
    """A matrix with a function of its diagonal as diagonal."""
    with name_scope(name, "matrix_diag_transform"):
        matrix = convert_to_tensor(matrix, name="matrix")
        return matrix if transform is None else ops.matrix_set_diag(matrix, transform(linalg_ops.diag_part(matrix)))


def tridiag(below: Any = None, diag: Any = None, above: Any = None, name: str | None = None) -> Tensor:
    """A matrix [..., n, n] of its diagonal [..., n] and those below and above [..., n - 1].

    Raises:
        ValueError: all are None.
    """
    with name_scope(name, "tridiag"):
        parts: list[Tensor] = []
        for given, before in ((below, True), (above, False)):
            if given is not None:
                row = convert_to_tensor(given)
                column = array_ops.zeros_like(row[..., :1])
                padded = array_ops.concat([column, row] if before else [row, column], -1)
                zeros = array_ops.zeros_like(padded[..., :1, None] + padded[..., None])
                shifted = linalg_ops.diag(padded)
                # the diagonal moves down by a row, or right by a column
                whole = array_ops.concat([shifted[..., 1:], zeros], -1) if before else None
                if whole is None:
                    whole = array_ops.concat([zeros, shifted[..., :-1]], -1)
                parts.append(whole)
        if diag is not None:
            parts.append(linalg_ops.diag(convert_to_tensor(diag)))
        if not parts:
            raise ArgumentValueError("tridiag: give one of below, diag and above")
        return math_ops.add_n(parts)
