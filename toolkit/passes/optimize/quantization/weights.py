"""What the passes that store weights in fewer bits have in common: which constants, and how far off they are then."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.node import Node
from toolkit.passes.optimize.subgraph import Subgraphs, value_of

Array = Any


def require_minimum_size(minimum_size: int) -> None:
    """
    Raises:
        UsageError: the parameter is negative.
    """
    if minimum_size < 0:
        raise UsageError(
            f"minimum_size is {minimum_size}; expected the least count of numbers in a constant, 0 or more"
        )


def large_weights(found: Subgraphs, minimum_size: int) -> Iterator[tuple[Node, Array]]:
    """The float32 constants of at least so many numbers, all finite, that are read and not fed."""
    import numpy as np

    for node in list(found.graph):
        if node.op != "Const" or node.attr("dtype") != dtypes.float32 or found.is_fed(node) or not found.users(node):
            continue
        value = value_of(node)
        if value is not None and value.size >= max(1, minimum_size) and np.isfinite(value).all():
            yield node, value


def error_of(before: Array, after: Array) -> dict[str, float]:
    """How far weights are off: the largest error, and the root of the mean square against that of the weights."""
    import numpy as np

    exact: Array = before.astype(np.float64)
    stored: Array = np.asarray(after).astype(np.float64)
    off: Array = np.abs(stored - exact)
    size = math.sqrt(float((exact * exact).mean()))
    rms = math.sqrt(float((off * off).mean()))
    return {
        "largest": float(f"{off.max():.6g}"),
        "relative": float(f"{rms / size if size else 0.0:.6g}"),
    }
