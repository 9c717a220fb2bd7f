"""Graphs that somebody broke on purpose: one line that names node, op and attribute; no traceback, and no hang."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from schemas.attr_value_pb2 import AttrValue
from schemas.graph_pb2 import GraphDef
from tests.fuzz.graphs_mutate import mutate
from tests.graph import shape_cases
from toolkit.errors import BugError, GraphError, GraphmillError
from toolkit.graph import dtypes, infer, opdefs
from toolkit.graph.attrs import FuncRef, encode
from toolkit.graph.graph import Graph
from toolkit.graph.shape import MAX_RANK, Shape, of_rank
from toolkit.graph.tensorref import parse_input
from toolkit.graph.values.evaluator import Evaluator
from toolkit.graph.values.table import functions
from toolkit.graph.values.value import LIMIT
from toolkit.passes.measuring.measure import measure

F = dtypes.float32


def value(**fields: Any) -> AttrValue:
    return AttrValue(**fields)


def listed(**fields: Any) -> AttrValue:
    return AttrValue(list=AttrValue.ListValue(**fields))


@pytest.mark.parametrize(
    ("op", "name", "given", "said"),
    [
        ("MaxPool", "ksize", value(i=2), "must be a list(int); it is a int"),
        ("MaxPool", "ksize", listed(s=[b"x"]), "must be a list(int); it holds string values"),
        ("MaxPool", "ksize", listed(i=[1, 2]), "must have at least 4 element(s); it has 2"),
        ("MaxPool", "padding", value(s=b"\xff"), "must be one of EXPLICIT, SAME, VALID; it is \ufffd"),
        ("MatMul", "T", value(type=9999), "is no data type: 9999 is not a data type number"),
        ("MatMul", "transpose_a", value(s=b"yes"), "must be a bool; it is a string"),
        ("Split", "num_split", value(i=-3), "must be at least 1; it is -3"),
        ("Split", "num_split", AttrValue(), "must be a int; it is empty"),
        ("Placeholder", "shape", value(shape=encode(Shape([1])).shape), ""),
        ("PartitionedCall", "f", value(placeholder="f"), "must be a func; it is a placeholder"),
    ],
)
def test_an_attribute_is_what_its_op_declares(op: str, name: str, given: AttrValue, said: str) -> None:
    graph = Graph()
    node = graph.add(op, "n", attrs={name: given})
    if not said:
        assert node.attr(name) == Shape([1])
        return
    with pytest.raises(GraphError) as caught:
        node.attr(name)
    assert str(caught.value).startswith(f"node 'n': attribute '{name}' of {op} {said}")
    assert node.attr_or(name, "other") == "other"


def test_an_empty_list_may_be_an_empty_message() -> None:
    node = Graph().add("Placeholder", "n", attrs={"_output_shapes": AttrValue(), "_class": AttrValue()})
    assert node.attr("_output_shapes") == node.attr("_class") == []


def test_text_that_is_none() -> None:
    node = Graph().add("Enter", "n", attrs={"frame_name": b"a\xff"})
    with pytest.raises(GraphError, match=r"node 'n': attribute 'frame_name' of Enter is not UTF-8 text: a\\xff"):
        node.text("frame_name")


@pytest.mark.parametrize("count", [2**17 + 1, 2**31, 2**62, 2**63 - 1])
@pytest.mark.parametrize(
    ("op", "name"), [("Unpack", "num"), ("Split", "num_split"), ("DynamicPartition", "num_partitions")]
)
def test_a_number_in_a_file_takes_no_memory(op: str, name: str, count: int) -> None:
    node = Graph().add(op, "n", attrs={"T": F, name: count})
    with pytest.raises(GraphError, match=f"attribute '{name}' of {op} .* {count}"):
        _ = node.output_types


def test_shapes_have_bounds() -> None:
    assert of_rank(MAX_RANK).rank == MAX_RANK
    for make in (lambda: of_rank(2**62), lambda: Shape([1] * (MAX_RANK + 1)), lambda: Shape([2**63])):
        with pytest.raises(GraphmillError, match=r"a (rank|shape|size) of"):
            make()
    with pytest.raises(GraphmillError, match=r"shape \[2\] has no dimension 1"):
        _ = Shape([2])[1]


@pytest.mark.parametrize("text", ["a:" + "9" * 5000, "a:\u0663", "a:9999999999", "a:-1"])
def test_what_is_no_index_is_part_of_the_name(text: str) -> None:
    assert parse_input(text) == (text, 0)


def constant(graph: Graph, name: str, values: list[int], shape: list[int]) -> Any:
    from schemas.tensor_pb2 import TensorProto

    proto = TensorProto(dtype=dtypes.int64.enum, int64_val=values)  # type: ignore[arg-type]
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    return graph.add("Const", name, attrs={"dtype": dtypes.int64, "value": proto})


def _power(graph: Graph) -> Any:
    sources = [constant(graph, "a", [3], []), constant(graph, "b", [2**62], [])]
    return graph.add("Pow", "n", sources, attrs={"T": dtypes.int64})


def _empty_rows(graph: Graph) -> Any:
    return graph.add("Unpack", "n", [constant(graph, "a", [], [2**62, 0])], attrs={"T": dtypes.int64, "num": 1})


def _repeated_axes(graph: Graph) -> Any:
    sources = [constant(graph, "a", [1], [LIMIT]), constant(graph, "b", [0], [9])]
    return graph.add("Transpose", "n", sources, attrs={"T": dtypes.int64, "Tperm": dtypes.int64})


def _many_parts(graph: Graph) -> Any:
    source = constant(graph, "a", [1], [LIMIT])
    return graph.add("Pack", "n", [source] * 5000, attrs={"T": dtypes.int64, "N": 5000})


@pytest.mark.parametrize("make", [_power, _empty_rows, _repeated_axes, _many_parts])
def test_values_are_followed_only_while_they_are_small(make: Callable[[Graph], Any]) -> None:
    node = make(Graph())
    assert Evaluator(lambda output: Shape(None))(node.output()) is None


def test_a_mistake_in_a_value_function_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What malformed nodes raise makes a value unknown; a misspelt attribute of ours is none of it."""

    def misspelt(args: Any) -> Any:
        return args.nodes

    monkeypatch.setitem(functions, "Const", misspelt)
    with pytest.raises(AttributeError, match="nodes"):
        Evaluator(lambda output: Shape(None))(constant(Graph(), "a", [1], [1]).output())


def doubling(depth: int, times: int) -> Graph:
    """Functions that each call the next one several times, one after the other."""
    proto = GraphDef()
    for i in range(depth):
        function = proto.library.function.add()
        function.signature.name = f"f{i}"
        function.signature.input_arg.add(name="a", type=1)
        function.signature.output_arg.add(name="r", type=1)
        last = "a"
        for t in range(times):
            node = function.node_def.add(name=f"c{t}", op="Tanh" if i + 1 == depth else "PartitionedCall")
            node.input.append(last)
            if i + 1 == depth:
                encode(F, node.attr["T"])
                last = f"c{t}:y:0"
            else:
                encode([F], node.attr["Tin"])
                encode([F], node.attr["Tout"])
                encode(FuncRef(f"f{i + 1}"), node.attr["f"])
                last = f"c{t}:output:0"
        function.ret["r"] = last
    graph = Graph.from_proto(proto)
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([3])})
    graph.add("PartitionedCall", "y", [x], attrs={"Tin": [F], "Tout": [F], "f": FuncRef("f0")})
    return graph


def test_functions_that_call_the_next_twice_are_counted_once_each() -> None:
    found = measure(doubling(40, 2))
    assert found.by_op["Tanh"].nodes == 2**40
    assert found.by_op["PartitionedCall"].nodes == 2**40 - 1


def test_functions_that_call_the_next_thirty_times_have_shapes() -> None:
    shapes = infer.infer(doubling(10, 30))
    assert shapes[shapes_of(shapes, "y")] == Shape([3])


def shapes_of(shapes: infer.ShapeMap, name: str) -> Any:
    return next(output for output in shapes if output.node.name == name)


@pytest.mark.parametrize("seed", range(8))
def test_shape_functions_say_what_is_wrong(seed: int) -> None:
    """Whatever is in a graph, the shape functions either find shapes or raise an error about the graph."""
    rng = random.Random(seed)
    ops = sorted(opdefs.names())
    for _ in range(60):
        try:
            proto = shape_cases.random_node(rng.choice(ops), rng.randrange(10**6)).to_proto()
        except (GraphmillError, KeyError, ValueError):
            continue  # no such node can be made
        mutate(rng, proto)
        text = str(proto)
        try:
            infer.infer(Graph.from_proto(proto))
        except BugError as error:
            raise AssertionError(text) from error
        except GraphmillError:
            pass


def test_what_is_no_attribute_is_told() -> None:
    graph = Graph()
    with pytest.raises(GraphError, match=r"cannot be an attribute; a tensor is given as a TensorProto"):
        graph.add("Const", "c", attrs={"dtype": dtypes.float32, "value": np.ones(2, np.float32)})
    with pytest.raises(GraphError, match=r"<object object at .* \(object\) cannot be an attribute$"):
        graph.add("Const", "d", attrs={"value": object()})
    assert graph.add("Pack", "p", attrs={"N": np.int64(2)}).attr("N") == 2
