"""The Kullback-Leibler divergence of two distributions, by a table of functions for pairs of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.flow.control_flow import Assert
from toolkit.client.math import math_ops
from toolkit.errors import UsageError

#: (distribution, other, name=) -> the divergence
DivergenceFunction = Callable[..., Any]
_FUNCTIONS: dict[tuple[type, type], DivergenceFunction] = {}


class RegisterKL:
    """`@RegisterKL(One, Other)` before a function makes it the divergence of these classes, and of their subclasses.

    Raises:
        TypeError: what follows is no function.
        UsageError: the pair has a function.
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type):
        self._pair = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: DivergenceFunction) -> DivergenceFunction:
        if not callable(kl_fn):
            raise TypeError(f"a divergence is a function of two distributions, not {kl_fn!r}")
        if self._pair in _FUNCTIONS:
            one, other = self._pair
            raise UsageError(f"the divergence of {one.__name__} and {other.__name__} is registered already")
        _FUNCTIONS[self._pair] = kl_fn
        return kl_fn


def _found(one: Any, other: Any) -> DivergenceFunction | None:
    """The function of the nearest classes."""
    pairs = [
        (i + j, _FUNCTIONS[a, b]) for i, a in enumerate(one.__mro__) for j, b in enumerate(other.__mro__)
        if (a, b) in _FUNCTIONS
    ]  # fmt: skip
    return min(pairs, key=lambda pair: pair[0])[1] if pairs else None


def kl_divergence(
    distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Any:
    """The expectation under the first of the logarithm of the densities' ratio.

    Raises:
        NotImplementedError: nobody has registered a function for their classes.
    """
    function = _found(distribution_a.__class__, distribution_b.__class__)
    if function is None:
        names = f"{type(distribution_a).__name__} and {type(distribution_b).__name__}"
        raise NotImplementedError(f"there is no divergence of {names}; register a function with RegisterKL")
    with name_scope("KullbackLeibler"):
        found = function(distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return found
        found = array_ops.identity(found, name="kl")
        message = f"the divergence of {distribution_a.name} and {distribution_b.name} is not a number:"
        fine = ops.logical_not(math_ops.reduce_any(ops.is_nan(found)))
        with control_dependencies([Assert(fine, [message, found])]):
            return array_ops.identity(found, name="checked_kl")


def cross_entropy(ref: Any, other: Any, allow_nan_stats: bool = True, name: str | None = None) -> Any:
    """The entropy of the first, and the divergence of the second."""
    with name_scope(name, "cross_entropy"):
        return ref.entropy() + kl_divergence(ref, other, allow_nan_stats=allow_nan_stats)
