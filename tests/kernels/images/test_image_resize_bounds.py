"""Sizes that no machine has room for are refused before anything is worked out for them."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.kernels.cpu.images import resize as image_resize
from toolkit.runtime.session import Session


@pytest.mark.parametrize("op", ["ResizeNearestNeighbor", "ResizeBilinear", "ResizeBicubic", "ResizeArea"])
def test_enormous_images_are_refused_at_once(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object) -> None:
        raise AssertionError("rows are worked out for an image that there is no room for")

    for name in ("positions", "nearest", "linear", "cubic", "area"):
        monkeypatch.setattr(image_resize.Grid, name, never)
    graph = Graph()
    images = placeholder(graph, "images", np.float32, [1, 2, 2, 1])
    size = placeholder(graph, "size", np.int32, [2])
    graph.add(op, "resized", [images, size], attrs={"T": dtypes.float32})
    feeds = {"images:0": np.ones((1, 2, 2, 1), np.float32), "size:0": np.array([2**31 - 1] * 2, np.int32)}
    with Session(graph) as session, pytest.raises(InvalidArgumentError, match="more bytes than there are addresses"):
        session.run("resized:0", feeds)


def placeholder(graph: Graph, name: str, dtype: type[np.generic], shape: list[int]) -> Node:
    return graph.add("Placeholder", name, attrs={"dtype": dtypes.from_numpy(np.dtype(dtype)), "shape": Shape([*shape])})
