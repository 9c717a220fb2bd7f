"""A graph of one matrix product, whose results may be off by how its terms are added and no more."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.formats.arrays.tensor import from_array
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape

_SIZE = 64


def one_product(size: int = _SIZE) -> tuple[Graph, Any, Any]:
    """ "y:0" is the relu of "x:0" times a constant matrix, both of this size.

    Returns:
        the graph, an array for "x:0", and how far two orders of adding may lie apart, for each result.
    """
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32, "shape": Shape([size, size])})
    weights = np.random.default_rng(1).standard_normal((size, size)).astype(np.float32)
    w = graph.add("Const", "w", attrs={"dtype": dtypes.float32, "value": from_array(weights)})
    product = graph.add("MatMul", "product", [x, w], attrs={"T": dtypes.float32})
    graph.add("Relu", "y", [product], attrs={"T": dtypes.float32})
    value = np.random.default_rng(2).standard_normal((size, size)).astype(np.float32)
    # one order of adding so many terms or another: each within so many units in the last place of their magnitudes' sum
    return graph, value, size * np.finfo(np.float32).eps * (np.abs(value) @ np.abs(weights))
