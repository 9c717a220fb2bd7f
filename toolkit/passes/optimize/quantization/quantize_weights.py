"""Weights stored in 8 bits, as the Graph Transform Tool's quantize_weights did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.quantization.weights import error_of, large_weights, require_minimum_size
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs

Array = Any


@dataclass(frozen=True)
class QuantizeWeights(Optimization):
    """Store large float32 constants as quint8 with their range, each with a Dequantize behind it.

    The report has `bytes_saved` and `errors`: by constant the `largest` error, at most half a step of the range, and
    the `relative` one of all its numbers.

    Attributes:
        minimum_size: numbers from which on a constant is stored so.
    """

    name: ClassVar[str] = "quantize_weights"

    minimum_size: int = 1024

    def __post_init__(self) -> None:
        require_minimum_size(self.minimum_size)

    def apply(self, graph: Graph) -> PassResult:
        import numpy as np

        found = Subgraphs(graph, self.kept)
        errors: dict[str, Any] = {}
        saved = 0
        for node, value in large_weights(found, self.minimum_size):
            low, high = range_of(value)
            if not np.isfinite(np.float32(high) - np.float32(low)):
                continue
            stored = quantized(value, low, high)
            name = node.name
            const = found.add_constant(f"{name}_quantized_const", stored, [node], dtypes.from_name("quint8"))
            least = found.add_constant(f"{name}_quantized_min", np.float32(low), [node])
            most = found.add_constant(f"{name}_quantized_max", np.float32(high), [node])
            inputs = [const.output(), least.output(), most.output()]
            found.make(node, "Dequantize", inputs, {"T": dtypes.from_name("quint8"), "mode": "MIN_FIRST"})
            errors[name] = error_of(value, dequantized(stored, low, high))
            saved += value.nbytes - stored.nbytes
        return found.result({"bytes_saved": saved, "errors": errors})


def range_of(value: Array) -> tuple[float, float]:
    """The range in which numbers are quantized: 0 is in it, and it is not empty."""
    low, high = min(float(value.min()), 0.0), max(float(value.max()), 0.0)
    if low == high:
        return low, low + 1.0
    return low, high


def quantized(value: Array, low: float, high: float) -> Array:
    """Numbers as quint8 (MIN_FIRST): whole steps above the range's lower end, which lies on a step."""
    import numpy as np

    scale = _scale(low, high)
    steps = _round(value.astype(np.float64) * scale) - _round(np.float64(low) * scale)
    return np.clip(steps, 0, 255).astype(dtypes.from_name("quint8").numpy)


def dequantized(stored: Array, low: float, high: float) -> Array:
    """What Dequantize makes of them."""
    import numpy as np

    scale = _scale(low, high)
    return (_round(np.float64(low) * scale) / scale + stored.astype(np.float64) / scale).astype(np.float32)


def _scale(low: float, high: float) -> float:
    """Steps for each unit: 255 of them make the range."""
    return 255.0 / (high - low)


def _round(value: Array) -> Array:
    """Halves away from zero, as C rounds."""
    import numpy as np

    return np.copysign(np.floor(np.abs(value) + 0.5), value)
