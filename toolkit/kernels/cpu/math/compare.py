"""Comparison, logic and selection."""

from __future__ import annotations

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import broadcasting, np, require, shape_text
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array

simple("Less")(broadcasting(np.less))
simple("LessEqual")(broadcasting(np.less_equal))
simple("Greater")(broadcasting(np.greater))
simple("GreaterEqual")(broadcasting(np.greater_equal))
simple("LogicalAnd")(broadcasting(np.logical_and))
simple("LogicalOr")(broadcasting(np.logical_or))


@kernel("Equal", "NotEqual")
def equal(op: KernelNode) -> Compute:
    """Without `incompatible_shape_error`, operands that do not broadcast are simply unequal: one scalar."""
    negate = op.op == "NotEqual"
    strict = op.attr("incompatible_shape_error")
    function = np.not_equal if negate else np.equal
    checked = broadcasting(lambda x, y: np.asarray(function(x, y), bool))

    def compute(x: Array, y: Array) -> Array:
        try:
            return checked(x, y)
        except InvalidArgumentError:
            if strict:
                raise
            return np.asarray(negate)

    return compute


@kernel("ApproximateEqual")
def approximate_equal(op: KernelNode) -> Compute:
    tolerance = op.attr("tolerance")

    def compute(x: Array, y: Array) -> Array:
        require(x.shape == y.shape, f"x and y must be of the same shape. {shape_text(x)} vs. {shape_text(y)}")
        wide = np.float32 if x.dtype.itemsize < 4 and x.dtype.kind not in "iu" else x.dtype
        difference = np.abs(np.subtract(x.astype(wide), y.astype(wide)))
        limit = np.asarray(tolerance, np.float32).astype(x.dtype).astype(wide)
        return np.asarray(difference < limit)

    return compute


@simple("Select")
def select(condition: Array, x: Array, y: Array) -> Array:
    """The V1 form: `condition` is a scalar, a vector that chooses rows, or of the branches' shape."""
    if x.shape != y.shape:
        raise InvalidArgumentError(
            f"'then' and 'else' must have the same size, but received: {shape_text(x)} vs. {shape_text(y)}"
        )
    if condition.ndim == 0:
        return x if condition else y
    if condition.ndim == 1 and x.ndim >= 1 and condition.shape != x.shape:
        require(
            condition.shape[0] == x.shape[0],
            f"Number of batches of 'then' must match size of 'cond', but saw: {x.shape[0]} vs. {condition.shape[0]}",
        )
        condition = condition.reshape((-1,) + (1,) * (x.ndim - 1))
    elif condition.shape != x.shape:
        raise InvalidArgumentError(
            f"'then' and 'else' must have the same size as 'cond': {shape_text(x)} vs. {shape_text(condition)}"
        )
    return np.where(condition, x, y)


@simple("SelectV2")
def select_v2(condition: Array, x: Array, y: Array) -> Array:
    try:
        return np.where(condition, x, y)
    except ValueError:
        raise InvalidArgumentError(
            f"condition {shape_text(condition)}, then {shape_text(x)}, and else {shape_text(y)} must be broadcastable"
        ) from None


@simple("Where")
def where(x: Array) -> Array:
    """The coordinates of the elements that are not zero, one row each, in row-major order."""
    require(x.ndim > 0, "the input of Where must have at least 1 dimension")
    return np.argwhere(x).astype(np.int64)


@simple("ClipByValue")
def clip_by_value(x: Array, low: Array, high: Array) -> Array:
    for bound, name in ((low, "clip_value_min"), (high, "clip_value_max")):
        require(
            bound.ndim == 0 or bound.shape == x.shape,
            f"{name} must be a scalar or of the shape {shape_text(x)} of the input, got {shape_text(bound)}",
        )
    return np.asarray(np.minimum(np.maximum(x, low), high))
