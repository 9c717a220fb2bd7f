"""Calls that are put in place while there is room, and stay calls beyond."""

from __future__ import annotations

import numpy as np
import pytest

from schemas.graph_pb2 import GraphDef
from schemas.node_def_pb2 import NodeDef
from schemas.types_pb2 import DT_FLOAT
from toolkit.compiler.importer import state
from toolkit.graph.graph import Graph
from toolkit.runtime.session import Session

DEPTH = 6


def call(node: NodeDef, function: str) -> None:
    node.op = "PartitionedCall"
    for name in ("Tin", "Tout"):
        node.attr[name].list.type.append(DT_FLOAT)
    node.attr["f"].func.name = function


def doubling() -> GraphDef:
    """Functions that each call the next one twice; the last one adds its argument to itself."""
    graph = GraphDef()
    node = graph.node.add(name="x", op="Placeholder")
    node.attr["dtype"].type = DT_FLOAT
    node.attr["shape"].shape.SetInParent()
    call(graph.node.add(name="y", input=["x"]), "f0")
    for number in range(DEPTH):
        function = graph.library.function.add()
        function.signature.name = f"f{number}"
        function.signature.input_arg.add(name="a", type=DT_FLOAT)
        function.signature.output_arg.add(name="r", type=DT_FLOAT)
        if number == DEPTH - 1:
            function.node_def.add(name="sum", op="AddV2", input=["a", "a"]).attr["T"].type = DT_FLOAT
            function.ret["r"] = "sum:z:0"
        else:
            call(function.node_def.add(name="p", input=["a"]), f"f{number + 1}")
            call(function.node_def.add(name="q", input=["p:output:0"]), f"f{number + 1}")
            function.ret["r"] = "q:output:0"
    return graph


@pytest.mark.parametrize(("room", "calls"), [(1 << 16, 0), (400, 0), (100, 1), (20, 1), (0, 1)])
def test_a_function_that_is_too_large_is_called(room: int, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_MAX_INLINED", room)
    with Session(Graph.from_proto(doubling())) as session:
        np.testing.assert_equal(session.run("y:0", {"x:0": 1.0}), np.float32(2.0**2 ** (DEPTH - 1)))
        lines = session.explain("y:0", {"x:0": 1.0})
    assert sum("PartitionedCall" in line for line in lines) >= calls
    assert calls or not any("PartitionedCall" in line for line in lines), lines
