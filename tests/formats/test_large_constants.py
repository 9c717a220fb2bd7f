"""Large constants stay in the bytes of their file; whoever asks sees what a parser of messages would show."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.graph_pb2 import GraphDef
from tests.formats.test_node_bytes import require_same
from toolkit.errors import GraphmillError
from toolkit.formats.ahead import read_ahead
from toolkit.formats.arrays.tensor import from_array, to_array
from toolkit.formats.models import graphdef
from toolkit.formats.models.large_constants import WORTH
from toolkit.formats.models.model import read_model
from toolkit.graph.check import require_valid
from toolkit.graph.graph import Graph
from toolkit.graph.infer import infer
from toolkit.graph.node import Node

TYPES = (np.float32, np.float64, np.int64, np.uint8)


def message(values: dict[str, Any]) -> GraphDef:
    """Constants by name, in nodes that begin at odd places of the file."""
    graph = GraphDef()
    for name, array in values.items():
        node = graph.node.add(name=name, op="Const")
        node.attr["value"].tensor.CopyFrom(from_array(array))
        node.attr["dtype"].type = node.attr["value"].tensor.dtype
    return graph


def owned(data: bytes) -> mmap.mmap:
    made = mmap.mmap(-1, len(data))
    made[:] = data
    return made


def read(data: bytes | mmap.mmap) -> Graph:
    graph = graphdef.from_bytes(data)
    assert graph is not None
    return graph


def packed(node: Node) -> memoryview:
    found = node.packed
    assert found is not None
    return found.content


@pytest.fixture
def values() -> dict[str, Any]:
    random = np.random.default_rng(0)
    made = {f"{'n' * place}{place}": (random.random((64, 2048)) * 99).astype(each) for place, each in enumerate(TYPES)}
    return made | {"small": np.arange(6, dtype=np.float32), "last": np.ones(WORTH, np.int8)}


@pytest.mark.parametrize("is_owned", [False, True])
def test_values_and_bytes_are_those_of_the_message(values: dict[str, Any], is_owned: bool) -> None:
    data = message(values).SerializeToString()
    graph = read(owned(data) if is_owned else data)
    require_valid(graph)
    shapes = infer(graph)
    for name, array in values.items():
        node = graph.node(name)
        assert shapes[node.output(0)].as_list() == list(array.shape)
        if name != "small":
            found = node.packed
            assert found is not None
            made = to_array(*found)
            assert made.flags.aligned and not made.flags.writeable
            np.testing.assert_array_equal(made, array, strict=True)
        np.testing.assert_array_equal(to_array(node.attr("value")), array, strict=True)
    assert b"".join(graphdef.to_parts(graph)) == message(values).SerializeToString(deterministic=True)


def test_both_ways_to_read(values: dict[str, Any]) -> None:
    assert require_same(message(values).SerializeToString(deterministic=True))


def test_owned_bytes_are_looked_at_where_they_are(values: dict[str, Any]) -> None:
    data = owned(message(values).SerializeToString())
    array = to_array(*_packed_of(read(data), "nnn3"))
    assert np.shares_memory(array, np.frombuffer(data, np.uint8))


def _packed_of(graph: Graph, name: str) -> Any:
    return graph.node(name).packed


def test_a_changed_value_is_the_new_one(values: dict[str, Any]) -> None:
    graph = read(message(values).SerializeToString())
    node = graph.node("0")
    node.attrs["value"] = from_array(np.float32(1))
    assert node.packed is None
    assert to_array(node.attr("value")) == 1
    copied = graph.subgraph([graph.node("n1")]).node("n1")
    assert packed(copied) == packed(graph.node("n1"))


def test_content_of_another_length_is_found() -> None:
    wrong = message({"c": np.zeros(WORTH, np.float32)})
    wrong.node[0].attr["value"].tensor.tensor_content += b"x"
    graph = read(wrong.SerializeToString())
    assert len(packed(graph.node("c"))) == 4 * WORTH + 1
    with pytest.raises(GraphmillError, match="its value has 262145 bytes"):
        require_valid(graph, runtime=True)


def irregular(name: str) -> bytes:
    graph = message({"c": np.zeros(WORTH, np.float32)})
    node, tensor = graph.node[0], graph.node[0].attr["value"].tensor
    match name:
        case "other fields":
            tensor.float_val.append(1)
        case "a version":
            tensor.version_number = 3
        case "large elsewhere":
            node.attr["_other"].s = b"x" * WORTH
        case "debug information":
            node.experimental_debug_info.original_node_names.append("x")
        case _:
            raise ValueError(name)
    return graph.SerializeToString(deterministic=True)


@pytest.mark.parametrize("name", ["other fields", "a version", "large elsewhere", "debug information"])
def test_what_is_not_usual_is_left_to_messages(name: str) -> None:
    data = irregular(name)
    assert require_same(data)
    assert read(data).node("c").packed is None


def test_two_values_are_left_to_messages() -> None:
    once = message({"c": np.zeros(WORTH, np.float32)}).node[0]
    twice = once.SerializeToString(deterministic=True) + _entry(once.SerializeToString(deterministic=True))
    data = GraphDef().SerializeToString() + graphdef.field_of(1, twice)
    graph = graphdef.from_bytes(data)
    assert graph is None or graph.node("c").packed is None


def _entry(node: bytes) -> bytes:
    """The bytes of the last attribute of a node: its value."""
    return node[node.rindex(b"*", 0, node.index(b"\n\x05value")) :]


def test_a_file_that_was_read_ahead(values: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.pb"
    wide = {f"w{i}": np.full((512, 1024), i, np.float32) for i in range(4)}
    path.write_bytes(message(wide).SerializeToString())
    read_ahead(str(path))
    graph = read_model(path).graph
    for name, array in wide.items():
        np.testing.assert_array_equal(to_array(*_packed_of(graph, name)), array, strict=True)


def test_a_file_that_was_read_ahead_and_is_no_good(tmp_path: Path) -> None:
    path = tmp_path / "model.pb"
    graph = message({f"w{i}": np.full((512, 1024), i, np.float32) for i in range(4)})
    graph.node.add(name="w0", op="NoOp")
    path.write_bytes(graph.SerializeToString())
    read_ahead(str(path))
    with pytest.raises(GraphmillError, match="w0"):
        read_model(path)
