"""Gradients by extending the graph: for each op type a function that adds the nodes of its derivative."""

from __future__ import annotations

from typing import Any

from toolkit.client.gradients.backprop import AggregationMethod, Unconnected, gradients, hessians
from toolkit.client.gradients.registry import gradient, no_gradient

__all__ = ["AggregationMethod", "Unconnected", "gradient", "gradients", "hessians", "no_gradient"]

_CUSTOM = ("NoGradient", "NotDifferentiable", "RegisterGradient", "custom_gradient", "grad_pass_through")


def __getattr__(name: str) -> Any:
    if name not in _CUSTOM:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from toolkit.client.gradients import custom  # which needs variables, and these gradients

    return getattr(custom, name)
