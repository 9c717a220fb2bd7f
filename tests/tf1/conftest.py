"""Default graphs are the client's own again after each file, and TensorFlow's loggers quiet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolkit.client.construction import context
from toolkit.client.construction.graph import Graph


@pytest.fixture(autouse=True)
def default_graphs() -> Iterator[None]:
    from toolkit.tensorflow.families.framework.graph import Graph as TensorFlowsGraph

    context.reset_default_graph()
    before = context.use_graph_type(TensorFlowsGraph)
    yield
    context.use_graph_type(Graph if before is TensorFlowsGraph else before)
    context.reset_default_graph()
