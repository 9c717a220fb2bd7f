"""The query language for nodes."""

from __future__ import annotations

import pytest

from tests.passes import validate_graphs as graphs
from toolkit.errors import UsageError
from toolkit.graph.graph import Graph
from toolkit.graph.query import parse, shortest_path

#: query to the names of the nodes of `graphs.net` that it means
MEANT = {
    "op = Conv2D": "conv/out",
    "op = Conv2D and attr.padding = SAME and under conv": "conv/out",
    "op = Conv2D and attr.padding = VALID": "",
    "op in (Conv2D, Relu)": "conv/out relu",
    "op != Const and under conv": "conv/out conv/biased",
    "op ~ '*Add' or name = prob": "conv/biased prob",
    "name !~ '*/*' and op = Const": "",
    "scope = conv and not op = Const": "conv/out conv/biased",
    "scope = ''  and inputs = 0": "x",
    "inputs >= 2": "conv/out conv/biased flat logits",
    "fan-in = 0 and op = Placeholder": "x",
    "fan-out = 0": "prob",
    "fan-out > 1": "",
    "dtype = int32": "flat/shape",
    "dtype != float32": "flat/shape",
    "has attr.padding": "conv/out",
    "not (op = Const or inputs > 1)": "x relu prob",
    "op = Const and under conv or op = Relu": "conv/kernel conv/bias relu",
    "op = Const and (under dense or under flat)": "flat/shape dense/kernel",
    "before conv/out": "x conv/kernel",
    "after flat": "logits prob",
    "after x and before logits and op = Relu": "relu",
    "attr.strides = [1, 1, 1, 1]": "",
    "attr.strides = '[1, 1, 1, 1]'": "conv/out",
    "attr.strides = 1": "conv/out",
    "attr.data_format = NHWC": "conv/out conv/biased",
    "attr.transpose_a = false": "logits",
    "attr.dtype = int32": "flat/shape",
    "attr.shape = '[?,8,8,3]'": "x",
    "device = '' and op = Softmax": "prob",
    'name = "conv/out"': "conv/out",
    "function = '' and op = Softmax": "prob",
    "under con": "",
    "under conv/": "conv/kernel conv/out conv/bias conv/biased",
}


@pytest.mark.parametrize("text", MEANT)
def test_queries(text: str) -> None:
    graph = Graph.from_proto(graphs.net())
    if text == "attr.strides = [1, 1, 1, 1]":  # values with spaces or commas stand in quotes
        with pytest.raises(UsageError, match="column 18: ',' comes too much"):
            parse(text)
        return
    found = [node.name for node in parse(text).select(graph)]
    assert found == MEANT[text].split()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: expected a test such as 'op = Conv2D'"),
        ("opp = Conv2D", "column 1: there is no field 'opp'; did you mean 'op'"),
        ("op == Conv2D", "column 5: expected a value, found '='"),
        ("op Conv2D", "column 4: expected =, !=, ~"),
        ("op = Conv2D andd name = a", "column 13: 'andd' comes too much; did you mean 'and'"),
        ("op = Conv2D and", "column 16: expected a test"),
        ("(op = Conv2D", "column 13: a '\\)' is missing"),
        ("op = Conv2D)", "column 12: '\\)' comes too much"),
        ("op = 'Conv2D", "column 6: the quote is not closed"),
        ("inputs > many", "column 10: 'many' is not a number"),
        ("inputs = two", "column 10: 'two' is not a number"),
        ("op in Conv2D", "column 7: expected '\\(' and a list"),
        ("op in (Conv2D", "column 14: a '\\)' is missing"),
        ("under", "column 6: expected a scope, found the end"),
        ("not", "column 4: expected a test"),
        ("op ! Conv2D", "column 4: '!' has no meaning here"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(text)


def test_paths() -> None:
    graph = Graph.from_proto(graphs.loop())
    consumers = graph.consumers()

    def path(start: str, end: str) -> list[str] | None:
        found = shortest_path(graph.node(start), graph.node(end), consumers)
        return None if found is None else [edge.dst.name for edge in found]

    assert path("n", "exit") == ["enter_n", "less", "cond", "switch", "exit"]
    assert path("plus", "merge") == ["next", "merge"]  # around the back edge
    assert path("body", "one") == ["one"]  # a control edge
    assert path("exit", "n") is None
    assert path("n", "n") == []
