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
        pytest.raises(ResourceExhaustedError, match="'again' calls itself, without end perhaps") as told,
    ):
        session.run("y:0", {"x:0": np.float32(1)})
    assert told.value.node == "inner" and "\n" not in str(told.value)


def test_calls_that_are_deep_but_end_are_not_told_of_recursion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off")
    depth = 2000
    types = " ".join(f'attr {{ key: "{key}" value {{ list {{ type: DT_FLOAT }} }} }}' for key in ("Tin", "Tout"))

    def call(callee: int) -> str:
        function = f'attr {{ key: "f" value {{ func {{ name: "f{callee}" }} }} }}'
        return f'op: "PartitionedCall" input: "x" {types} {function}'

    def function(level: int) -> str:
        float_ = 'attr { key: "T" value { type: DT_FLOAT } }'
        body = call(level + 1) if level + 1 < depth else f'op: "Neg" input: "x" {float_}'
        result = "output" if level + 1 < depth else "y"
        return f"""function {{ signature {{ name: "f{level}" input_arg {{ name: "x" type: DT_FLOAT }}
            output_arg {{ name: "o" type: DT_FLOAT }} }}
            node_def {{ name: "inner" {body} }} ret {{ key: "o" value: "inner:{result}:0" }} }}"""

    text = f"""node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
        node {{ name: "y" {call(0)} }} library {{ {" ".join(map(function, range(depth)))} }}"""
    graph = Graph.from_proto(text_format.Parse(text, GraphDef()))
    with Session(graph) as session, pytest.raises(ResourceExhaustedError, match=r"too deep for the stack$"):
        session.run("y:0", {"x:0": np.float32(1)})
