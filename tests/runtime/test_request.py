"""What a run asks for, where the file itself is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format

from schemas.graph_pb2 import GraphDef
from schemas.meta_graph_pb2 import MetaGraphDef
from toolkit.errors import GraphError
from toolkit.formats.models.metagraph import from_proto
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.tensorref import parse_tensor
from toolkit.runtime.jobs.request import resolve
from toolkit.runtime.session import Session


@pytest.mark.parametrize(
    ("x", "y", "fetches", "told"),
    [
        ("gone:0", "y:0", [], "the signature's input 'in' is the tensor 'gone:0': .*gone"),
        ("x:0", "gone:0", [], "the signature's output 'out' is the tensor 'gone:0': .*gone"),
        ("x:0", "gone:0", ["out"], "the signature's output 'out' is the tensor 'gone:0': .*gone"),
        ("x:3", "y:0", [], "the signature's input 'in' is the tensor 'x:3': "),
    ],
)
def test_a_signature_that_names_what_is_not_there(x: str, y: str, fetches: list[str], told: str) -> None:
    meta = MetaGraphDef()
    text_format.Parse(
        f"""graph_def {{
          node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
          node {{ name: "y" op: "Neg" input: "x" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }} }}
        signature_def {{ key: "serve" value {{
          inputs {{ key: "in" value {{ name: "{x}" dtype: DT_FLOAT }} }}
          outputs {{ key: "out" value {{ name: "{y}" dtype: DT_FLOAT }} }} }} }}""",
        meta,
    )
    with pytest.raises(GraphError, match=told) as error:
        resolve(from_proto(meta), feeds={"in": 1.0}, fetches=fetches, signature="serve")
    assert "--feed" not in str(error.value)


@pytest.mark.parametrize("op", ["_Arg", "_Retval"])
def test_a_function_that_has_arguments_in_its_body(op: str) -> None:
    given = 'input: "x"' if op == "_Retval" else ""
    float_ = 'attr { key: "T" value { type: DT_FLOAT } }'
    types = " ".join(f'attr {{ key: "{key}" value {{ list {{ type: DT_FLOAT }} }} }}' for key in ("Tin", "Tout"))
    graph = GraphDef()
    text_format.Parse(
        f"""node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
        node {{ name: "y" op: "PartitionedCall" input: "x" {types}
                attr {{ key: "f" value {{ func {{ name: "f" }} }} }} }}
        library {{ function {{ signature {{ name: "f" input_arg {{ name: "x" type: DT_FLOAT }}
            output_arg {{ name: "o" type: DT_FLOAT }} }}
            node_def {{ name: "stray" op: "{op}" {given} {float_} attr {{ key: "index" value {{ i: 0 }} }} }}
            node_def {{ name: "n" op: "Neg" input: "x" {float_} }} ret {{ key: "o" value: "n:y:0" }} }} }}""",
        graph,
    )
    with Session(Graph.from_proto(graph)) as session, pytest.raises(GraphError, match=f"{op} in the body") as error:
        session.run("y:0", {"x:0": np.float32(1)})
    assert error.value.node == "stray"


def test_names_of_a_bare_graph_are_found_without_a_message_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weights would be copied, for a list of outputs that nobody sees."""
    proto = GraphDef()
    text_format.Parse(
        """node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
        node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }""",
        proto,
    )
    graph = Graph.from_proto(proto)

    def to_proto(_: Graph) -> GraphDef:
        raise AssertionError("the graph was made a message")

    monkeypatch.setattr(Graph, "to_proto", to_proto)
    request = resolve(MetaGraph(graph), feeds={"x": 1.0}, fetches=["y"])
    assert request.fetches == {"y": graph.output(parse_tensor("y:0"))}
