"""What tests of edits share: a small graph, edits applied, and refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.graphs import F
from toolkit.formats.arrays import tensor
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph, Signature, TensorInfo
from toolkit.graph.shape import Shape
from toolkit.passes.edit.apply import EditResult, apply_edits
from toolkit.passes.edit.table import EditsError, parse_edits

X, Y = np.float32([0.5, -1.0]), np.float32([2.0, 0.25])


def edited(meta: MetaGraph | Graph, text: str) -> EditResult:
    meta = MetaGraph(meta) if isinstance(meta, Graph) else meta
    return apply_edits(meta, parse_edits(text, "edits"))


def refusals(meta: MetaGraph | Graph, text: str) -> list[str]:
    with pytest.raises(EditsError) as caught:
        edited(meta, text)
    return [str(error) for error in caught.value.errors]


def small() -> Graph:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 2])})
    h = graph.add("Tanh", "h", [x], attrs={"T": F})
    pair = graph.add("IdentityN", "pair", [h, x], attrs={"T": [F, F]})
    graph.add("AddV2", "y", [pair.output(0), pair.output(1)], attrs={"T": F})
    graph.add("Neg", "unused", [h], attrs={"T": F})
    return graph


def baked(size: int, sizes: list[int]) -> MetaGraph:
    """[size, 4, 6] -> Reshape to `sizes` -> product with [12, 5] or the like."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([size, 4, 6])})
    value = tensor.from_array(np.int32(sizes))
    shape = graph.add("Const", "shape", attrs={"dtype": dtypes.int32, "value": value})
    y = graph.add("Reshape", "y", [x, shape], attrs={"T": F, "Tshape": dtypes.int32, "_output_shapes": [Shape(sizes)]})
    meta = MetaGraph(graph)
    meta.signatures["s"] = Signature(
        {"x": TensorInfo("x:0", F, Shape([size, 4, 6]))}, {"y": TensorInfo("y:0", F, Shape([abs(s) for s in sizes]))}
    )
    del y
    return meta
