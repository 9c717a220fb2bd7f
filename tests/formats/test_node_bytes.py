"""Graphs read from bytes are those that messages give, and bytes that are not as they should be are left to them."""

from __future__ import annotations

import random

import pytest
from google.protobuf.message import DecodeError

from schemas.graph_pb2 import GraphDef
from tests.bench.large_graphs import write_graph
from toolkit.errors import GraphmillError
from toolkit.formats.models import graphdef
from toolkit.graph.check import check, colocations, is_sound
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node


def facts(node: Node) -> tuple[object, ...]:
    """All that a node is."""
    sources = [(src.id, index) for src, index in node.inputs]
    attrs = {key: node.attrs.proto(key).SerializeToString(deterministic=True) for key in sorted(node.attrs)}
    return node.id, node.name, node.op, node.device, sources, [src.id for src in node.control_inputs], attrs


def by_message(data: bytes) -> Graph | None:
    try:
        return Graph.from_proto(GraphDef.FromString(data))
    except (DecodeError, GraphmillError):
        return None


def require_same(data: bytes) -> bool:
    """Hold the two ways to read against each other; whether bytes were enough."""
    found = graphdef.from_bytes(data)
    if found is None:
        return False
    other = by_message(data)
    assert other is not None
    assert [facts(node) for node in found] == [facts(node) for node in other]
    assert all(found.node(node.name) is node and node.graph is found for node in found)
    whole = other.to_proto().SerializeToString(deterministic=True)
    assert found.to_proto().SerializeToString(deterministic=True) == whole
    assert b"".join(graphdef.to_parts(found)) == b"".join(graphdef.to_parts(other)) == whole
    return True


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("graphs") / "block.pb"
    write_graph(path, 300)
    return path.read_bytes()


def test_layers_loops_and_calls(block: bytes) -> None:
    assert require_same(block)


def test_what_is_not_usual_in_a_node(block: bytes) -> None:
    """Lengths of two bytes, devices, debug information, fields that are unknown, attributes in any order."""
    graph = GraphDef.FromString(block)
    long = "a" * 300
    node = graph.node.add(name=long, op="Identity", input=["x", "^y"], device="/job:" + "b" * 200)
    node.attr["T"].type = 1  # type: ignore[assignment]
    node.attr["_class"].list.s.append(b"loc:@x")
    node.experimental_debug_info.original_node_names.append("x")
    other = graph.node.add(name="split", op="Split", input=["x", long, f"{long}:0", "x:12"])
    other.attr["num_split"].i = 20
    for number in range(12):
        other.attr[f"_{number}"].s = b"c" * number * 10
    # field 99 of the node, and field 98 of the graph
    data = graph.SerializeToString() + b"\x0a\x0b\x0a\x01u\x12\x01U\x9a\x06\x02hi" + b"\x92\x06\x01z"
    assert require_same(data)


@pytest.mark.parametrize("size", [1 << 16, 2 << 16])
def test_where_one_piece_of_the_file_ends(block: bytes, size: int) -> None:
    """Whatever of a node stands there: bytes of a constant before it push it on, one by one."""
    graph = GraphDef.FromString(block)
    few = graph.node[:6]
    for more in range(size - 400, size + 40, 7):
        padded = GraphDef(node=few[:2], library=graph.library)
        node = padded.node.add(name="größe", op="Const")
        node.attr["value"].tensor.tensor_content = bytes(more)
        padded.node.extend(few[2:])
        padded.node.add(name="end", op="NoOp", input=["^größe", "^x"])
        assert require_same(padded.SerializeToString(deterministic=True))


def test_a_node_with_more_inputs_than_a_piece_has_bytes(block: bytes) -> None:
    graph = GraphDef.FromString(block)
    names = [node.name for node in graph.node]
    graph.node.add(name="all", op="NoOp", input=[f"^{name}" for name in names] * 12)
    graph.node.add(name="a" * (1 << 17), op="NoOp", input=["^all"])
    assert require_same(graph.SerializeToString(deterministic=True))


IRREGULAR = {
    "a name twice": b"\x0a\x06\x0a\x01a\x12\x01A" * 2,
    "an input that does not exist": b"\x0a\x09\x0a\x01a\x12\x01A\x1a\x01b",
    "a data input behind a control input": b"\x0a\x06\x0a\x01a\x12\x01A\x0a\x0d\x0a\x01b\x12\x01B\x1a\x02^a\x1a\x01a",
    "a name with a colon": b"\x0a\x08\x0a\x03a:1\x12\x01A",
    "the op before the name": b"\x0a\x06\x12\x01A\x0a\x01a",
    "an input behind the attributes": b"\x0a\x06\x0a\x01a\x12\x01A\x0a\x0c\x0a\x01b\x12\x01B*\x01\x0a\x1a\x01a",
    "an empty name among the attributes": b"\x0a\x0c\x0a\x01a\x12\x01A\x2a\x02\x0a\x00\x0a\x00",
    "no name": b"\x0a\x03\x12\x01A",
    "a name that is not UTF-8": b"\x0a\x06\x0a\x01\xff\x12\x01A",
    "a name longer than the node": b"\x0a\x06\x0a\x09a\x12\x01A",
    "a node longer than the file": b"\x0a\x26\x0a\x01a\x12\x01A",
    "an attribute that is none": b"\x0a\x09\x0a\x01a\x12\x01A\x2a\x01\xff",
    "the end within a length": b"\x0a\x86",
}  # fmt: skip


@pytest.mark.parametrize("data", IRREGULAR.values(), ids=IRREGULAR.keys())
def test_what_is_irregular_is_left_to_messages(data: bytes) -> None:
    assert graphdef.from_bytes(data) is None


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_are_read_as_messages_read_them(block: bytes, seed: int) -> None:
    rng = random.Random(seed)
    # the nodes around one place, so that what is damaged does not have to be looked for among hundreds
    nodes = GraphDef.FromString(block).node
    start = rng.randrange(len(nodes) - 12)
    whole = GraphDef(node=nodes[start : start + 12])
    names = {node.name for node in whole.node}
    for node in whole.node:
        kept = [text for text in node.input if text.removeprefix("^").partition(":")[0] in names]
        del node.input[:]
        node.input.extend(kept)
    data = whole.SerializeToString(deterministic=True)
    assert require_same(data)
    for _ in range(100):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 3))):
            at = rng.randrange(len(damaged))
            match rng.randrange(4):
                case 0:
                    damaged[at] = rng.randrange(256)
                case 1:
                    damaged[at] = (damaged[at] + rng.choice((-1, 1))) % 256
                case 2:
                    del damaged[at : at + rng.randrange(1, 6)]
                case _:
                    other = rng.randrange(len(damaged))
                    damaged[at:at] = damaged[other : other + rng.randrange(1, 12)]
        require_same(bytes(damaged))


@pytest.mark.parametrize(
    "lists",
    [
        [[b"loc:@x"], [b"loc:@y"], [b"loc:@x", b"loc:@y"], [b"loc:@" + b"x" * 130], [b"loc:@x"]],
        [[b"loc:@\xff"], [b"x", b"loc:@y"], [b""], []],
        [[b"loc:@x"], None, b"loc:@x"],
    ],
    ids=["names", "texts", "no list"],
)
def test_nodes_that_differ_in_their_companions_alone(lists: list[list[bytes] | bytes | None]) -> None:
    graph = GraphDef()
    graph.node.add(name="x", op="VariableV2").attr["dtype"].type = 1  # type: ignore[assignment]
    for number, each in enumerate(lists):
        node = graph.node.add(name=f"read_{number}", op="Identity", input=["x"])
        node.attr["T"].type = 1  # type: ignore[assignment]
        node.attr["zones"].s = b"\n\x06_class\x12\x04\n\x02\x12\x00"  # as if it stood in there
        if isinstance(each, bytes):
            node.attr["_class"].s = each
        elif each is not None:
            node.attr["_class"].list.s.extend(each)
    data = graph.SerializeToString(deterministic=True)
    assert require_same(data)
    found, other = graphdef.from_bytes(data), by_message(data)
    assert found is not None and other is not None
    assert [colocations(node) for node in found] == [colocations(node) for node in other]
    assert [str(finding) for finding in check(found)] == [str(finding) for finding in check(other)]
    assert [is_sound(node) for node in found][1:] == [True] * len(lists)
