"""Weights rounded to few different numbers, so that the file compresses well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.errors import UsageError
from toolkit.graph.graph import Graph
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.quantization.weights import error_of, large_weights, require_minimum_size
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs


@dataclass(frozen=True)
class RoundWeights(Optimization):
    """Round the numbers of large float32 constants to the middles of equal steps between the least and the largest.

    The report has `errors`: by constant the `largest` error, half a step at most, and the `relative` one.

    Attributes:
        num_steps: how many different numbers a constant has at most.
        minimum_size: numbers from which on a constant is rounded.
    """

    name: ClassVar[str] = "round_weights"
    once: ClassVar[bool] = True

    num_steps: int = 256
    minimum_size: int = 16

    def __post_init__(self) -> None:
        if self.num_steps < 1:
            raise UsageError(f"num_steps is {self.num_steps}; expected how many different numbers are left, at least 1")
        require_minimum_size(self.minimum_size)

    def apply(self, graph: Graph) -> PassResult:
        import numpy as np

        found = Subgraphs(graph, self.kept)
        errors: dict[str, Any] = {}
        for node, value in large_weights(found, self.minimum_size):
            low, high = np.float32(value.min()), np.float32(value.max())
            if low == high:
                continue  # it has one number already
            width = np.float32((np.float64(high) - np.float64(low)) / self.num_steps)
            if not np.isfinite(width) or width < np.finfo(np.float32).tiny:
                continue
            steps = np.floor((value - low) / width).clip(0, self.num_steps - 1).astype(np.float32)
            rounded = (low + width * (steps + np.float32(0.5))).astype(np.float32)
            if np.array_equal(rounded, value):
                continue
            found.set_value(node, rounded)
            errors[node.name] = error_of(value, rounded)
        return found.result({"errors": errors})
