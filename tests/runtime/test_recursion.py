"""Functions that call themselves."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format

from schemas.graph_pb2 import GraphDef
from toolkit.errors import ResourceExhaustedError
from toolkit.graph.graph import Graph
from toolkit.runtime.session import Session


@pytest.mark.parametrize("executor", ["compiled", "node by node", "tokens"])
@pytest.mark.parametrize("op", ["PartitionedCall", "StatefulPartitionedCall"])
def test_a_function_that_calls_itself_without_end(op: str, executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off" if executor == "node by node" else "strict")
    kinds = " ".join(f'attr {{ key: "{key}" value {{ list {{ type: DT_FLOAT }} }} }}' for key in ("Tin", "Tout"))
    call = f'op: "{op}" input: "x" {kinds} attr {{ key: "f" value {{ func {{ name: "again" }} }} }}'
    text = f"""
        node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
        node {{ name: "y" {call} }}
        library {{ function {{
          signature {{ name: "again" input_arg {{ name: "x" type: DT_FLOAT }}
                       output_arg {{ name: "o" type: DT_FLOAT }} }}
          node_def {{ name: "inner" {call} }}
          ret {{ key: "o" value: "inner:output:0" }} }} }}
    """
    graph = Graph.from_proto(text_format.Parse(text, GraphDef()))
    with (
        Session(graph, force_tokens=executor == "tokens") as session,
        pytest.raises(ResourceExhaustedError, match="does one call itself without end") as told,
    ):
        session.run("y:0", {"x:0": np.float32(1)})
    assert told.value.node == "inner" and "\n" not in str(told.value)
