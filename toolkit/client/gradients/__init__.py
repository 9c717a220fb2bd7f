"""Gradients by extending the graph: for each op type a function that adds the nodes of its derivative."""

from __future__ import annotations

from toolkit.client.gradients.backprop import Unconnected, gradients, hessians
from toolkit.client.gradients.registry import gradient, no_gradient

__all__ = ["Unconnected", "gradient", "gradients", "hessians", "no_gradient"]
