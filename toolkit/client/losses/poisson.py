"""The loss of counts."""

from __future__ import annotations

import math

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops


def log_poisson_loss(
    targets: TensorLike, log_input: TensorLike, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """exp(log_input) - log_input * targets: how unlikely counts are where exp(log_input) are expected.

    Args:
        compute_full_loss: add Stirling's formula for log(targets!), which does not depend on `log_input`; it is taken
            as 0 up to 1, where the formula is far off.
    """
    with name_scope(name, "log_poisson_loss", [log_input, targets]):
        log_input = convert_to_tensor(log_input, name="log_input")
        targets = convert_to_tensor(targets, name="targets")
        result = ops.exp(log_input) - log_input * targets
        if not compute_full_loss:
            return result
        half, two_pi = constant(0.5, targets.dtype.base), constant(2 * math.pi, targets.dtype.base)
        stirling = targets * math_ops.log(targets) - targets + half * math_ops.log(two_pi * targets)
        zeros, ones = array_ops.zeros_like(targets), array_ops.ones_like(targets)
        is_small = ops.logical_and(ops.greater_equal(targets, zeros), ops.less_equal(targets, ones))
        return result + array_ops.where(is_small, zeros, stirling)
