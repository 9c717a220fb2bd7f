"""A call that is asked for runs what makes its outputs, wherever its body has been put."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from schemas.graph_pb2 import GraphDef
from tests.compiler.modes import MODES, session
from toolkit.errors import InvalidArgumentError
from toolkit.graph.graph import Graph

_TYPES = 'attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tshape" value { type: DT_INT32 } }'
_CALL = 'attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }'
_PLACEHOLDERS = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "p" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } }
"""
#: a body whose output is a reshape that some inputs do not fit, and one that calls it
_LIBRARY = f"""
library {{
  function {{ signature {{ name: "body" input_arg {{ name: "a" type: DT_FLOAT }} output_arg {{ name: "r" type: DT_FLOAT }} }}
    node_def {{ name: "shape" op: "Const" attr {{ key: "dtype" value {{ type: DT_INT32 }} }}
      attr {{ key: "value" value {{ tensor {{ dtype: DT_INT32 tensor_shape {{ dim {{ size: 1 }} }} int_val: 3 }} }} }} }}
    node_def {{ name: "y" op: "Reshape" input: "a" input: "shape:output:0" {_TYPES} }}
    ret {{ key: "r" value: "y:output:0" }} }}
  function {{ signature {{ name: "outer" input_arg {{ name: "a" type: DT_FLOAT }} output_arg {{ name: "r" type: DT_FLOAT }} }}
    node_def {{ name: "c" op: "PartitionedCall" input: "a" {_CALL}
      attr {{ key: "f" value {{ func {{ name: "body" }} }} }} }}
    ret {{ key: "r" value: "c:output:0" }} }}
}}
"""  # noqa: E501 -- a function's signature
_NODES = {
    "call": f'node {{ name: "call" op: "PartitionedCall" input: "x" {_CALL} attr {{ key: "f" value {{ func {{ name: "body" }} }} }} }}',  # noqa: E501
    "call of a call": f'node {{ name: "call" op: "PartitionedCall" input: "x" {_CALL} attr {{ key: "f" value {{ func {{ name: "outer" }} }} }} }}',  # noqa: E501
    "branch": f"""node {{ name: "call" op: "StatelessIf" input: "p" input: "x" {_CALL}
      attr {{ key: "Tcond" value {{ type: DT_BOOL }} }}
      attr {{ key: "then_branch" value {{ func {{ name: "body" }} }} }}
      attr {{ key: "else_branch" value {{ func {{ name: "outer" }} }} }} }}""",
}


def _graph(kind: str) -> Any:
    return Graph.from_proto(text_format.Parse(_PLACEHOLDERS + _NODES[kind] + _LIBRARY, GraphDef()))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", _NODES)
def test_a_call_as_a_target(kind: str, mode: str) -> None:
    graph = _graph(kind)
    with session(graph, mode) as running:
        for choice in (True, False):
            feeds = {"x:0": np.zeros(3, np.float32), "p:0": np.bool_(choice)}
            assert running.run(graph.node("call"), feeds) is None
            with pytest.raises(InvalidArgumentError, match=r"4 value|4 elements|\[4\]"):
                running.run(graph.node("call"), {**feeds, "x:0": np.zeros(4, np.float32)})
            np.testing.assert_array_equal(running.run("call:0", feeds), np.zeros(3, np.float32))
