"""DecodeProtoV2 and EncodeProto against TensorFlow's kernels, on messages made for the test."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkit import Session
from toolkit import client as gm
from toolkit.client import ops
from toolkit.errors import BY_CODE, GraphError, InvalidArgumentError, OpError

pytestmark = pytest.mark.tensorflow
F = descriptor_pb2.FieldDescriptorProto

#: field name, type, whether repeated
FIELDS = [
    ("d", F.TYPE_DOUBLE, False), ("i", F.TYPE_INT32, True), ("s", F.TYPE_STRING, True),
    ("b", F.TYPE_BYTES, False), ("u", F.TYPE_UINT64, False), ("e", F.TYPE_BOOL, False),
    ("m", F.TYPE_MESSAGE, True), ("f", F.TYPE_FLOAT, True), ("fx", F.TYPE_FIXED32, False),
    ("si", F.TYPE_SINT64, True), ("sf", F.TYPE_SFIXED64, True), ("l", F.TYPE_INT64, True),
    ("z", F.TYPE_SINT32, False), ("q", F.TYPE_FIXED64, True), ("v", F.TYPE_UINT32, True),
    ("x", F.TYPE_SFIXED32, True),
]  # fmt: skip


def made(syntax: str) -> tuple[bytes, Any]:
    """The descriptor source of a message with those fields, and its class; proto2 fields have defaults."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{syntax}.proto", package="t", syntax=syntax)
    message = file.message_type.add(name="M")
    for number, (name, kind, repeated) in enumerate(FIELDS, 1):
        field = message.field.add(name=name, number=number, type=kind, label=3 if repeated else 1)
        if kind == F.TYPE_MESSAGE:
            field.type_name = ".t.M"
        elif syntax == "proto2" and not repeated:
            field.default_value = {"d": "2.5", "b": "bb", "e": "true"}.get(name, "7")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.M"))
    return b"bytes://" + descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), kind


def both(tf: ModuleType, op: str, inputs: dict[str, Any], **attrs: Any) -> list[Any]:
    """The op's outputs, equal in both; or the status of the error that both give."""

    def outcome(call: Any) -> tuple[str, list[Any]]:
        try:
            return "", call()
        except OpError as error:
            return error.status, []
        except GraphError:  # refused while the graph is made, where TensorFlow's eager op refuses what it is given
            return InvalidArgumentError.status, []
        except tf.errors.OpError as error:
            return BY_CODE[error.error_code].status, []

    def ours() -> list[Any]:
        with gm.Graph().as_default() as graph:
            given = {k: [*map(gm.constant, v)] if isinstance(v, list) else gm.constant(v) for k, v in inputs.items()}
            found = ops.function(op)(**given, **attrs)
            flat = [t for part in (found if isinstance(found, tuple) else [found])
                    for t in (part if isinstance(part, list) else [part])]  # fmt: skip
            return Session(graph).run(flat)

    def theirs() -> list[Any]:
        typed = {k: [tf.as_dtype(str(t)) for t in v] if k == "output_types" else v for k, v in attrs.items()}
        return [t.numpy() for t in tf.nest.flatten(getattr(tf.raw_ops, op)(**inputs, **typed))]

    mine, wanted = outcome(ours), outcome(theirs)
    assert mine[0] == wanted[0]
    for a, b in zip(mine[1], wanted[1], strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape and a.dtype == b.dtype
        assert a.tolist() == b.tolist()
    return mine[1] if not mine[0] else [mine[0]]


def messages(kind: Any) -> list[bytes]:
    first = kind(d=1.5, i=[1, -2, 3], s=["x", "yy"], b=b"\x00", u=2**63 + 1, e=True, f=[0.5], fx=7, si=[-3, 4], l=[-1])
    first.m.add(i=[9])
    second = kind(s=["é"], z=-5, q=[2**64 - 1], v=[3], x=[-4], sf=[-6, 7], d=0.0)
    return [first.SerializeToString(), kind().SerializeToString(), second.SerializeToString()]


TYPES = {
    "d": "float64", "i": "int32", "s": "string", "b": "string", "u": "uint64", "e": "bool", "m": "string",
    "f": "float32", "fx": "uint32", "si": "int64", "sf": "int64", "l": "int64", "z": "int32", "q": "uint64",
    "v": "uint32", "x": "int32",
}  # fmt: skip


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_every_kind_of_field(tf: ModuleType, syntax: str) -> None:
    source, kind = made(syntax)
    data = np.array(messages(kind), object)
    for name, dtype in TYPES.items():
        for part in (data, data[1:2], data.reshape(3, 1)):
            both(
                tf,
                "DecodeProtoV2",
                {"bytes": part},
                message_type="t.M",
                field_names=[name],
                output_types=[dtype],
                descriptor_source=source,
            )


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_there_and_back(tf: ModuleType, syntax: str) -> None:
    source, kind = made(syntax)
    names = [name for name, _, _ in FIELDS]
    attrs = {"message_type": "t.M", "field_names": names, "descriptor_source": source}
    data = np.array(messages(kind), object)
    sizes, *values = both(tf, "DecodeProtoV2", {"bytes": data}, output_types=[TYPES[n] for n in names], **attrs)
    (again,) = both(tf, "EncodeProto", {"sizes": sizes, "values": values}, **attrs)
    assert [kind.FromString(text) for text in again] == [kind.FromString(text) for text in data]


def test_types(tf: ModuleType) -> None:
    """Which tensor types each field may have."""
    source, kind = made("proto3")
    data = np.array(messages(kind)[:1], object)
    for name in TYPES:
        for dtype in ("int32", "int64", "uint32", "uint64", "float32", "float64", "bool", "string", "int8"):
            both(
                tf,
                "DecodeProtoV2",
                {"bytes": data},
                message_type="t.M",
                field_names=[name],
                output_types=[dtype],
                descriptor_source=source,
            )


@pytest.mark.parametrize(
    ("attrs", "data"),
    [
        ({"field_names": ["none"]}, b""),
        ({"message_type": "t.None"}, b""),
        ({"descriptor_source": b"/no/such/file"}, b""),
        ({"descriptor_source": b"bytes://\x01"}, b""),
        ({"message_format": "yaml"}, b""),
        ({}, b"\xff\xff"),
        ({"message_format": "text"}, b"i: 3 i: 4"),
        ({"message_format": "text"}, b"i 3"),
    ],
)
def test_mistakes_and_text(tf: ModuleType, attrs: dict[str, Any], data: bytes) -> None:
    source, _ = made("proto3")
    given = {
        "message_type": "t.M",
        "field_names": ["i"],
        "output_types": ["int32"],
        "descriptor_source": source,
    } | attrs
    both(tf, "DecodeProtoV2", {"bytes": np.array([data], object)}, **given)


def test_a_file_of_descriptors(tf: ModuleType, tmp_path: Path) -> None:
    source, kind = made("proto3")
    path = tmp_path / "descriptors.pb"
    path.write_bytes(source.removeprefix(b"bytes://"))
    data = np.array(messages(kind), object)
    both(
        tf,
        "DecodeProtoV2",
        {"bytes": data},
        message_type="t.M",
        field_names=["i"],
        output_types=["int32"],
        descriptor_source=str(path),
    )


def test_messages_of_tensorflow(tf: ModuleType) -> None:
    example = tf.train.Example()
    example.features.feature["a"].int64_list.value.append(3)
    data = np.array([example.SerializeToString()], object)
    both(
        tf,
        "DecodeProtoV2",
        {"bytes": data},
        message_type="tensorflow.Example",
        field_names=["features"],
        output_types=["string"],
    )


@pytest.mark.parametrize(
    ("sizes", "values", "names"),
    [
        ([[1, 3]], [np.float64([[1.5]]), np.int32([[1, 2, 3]])], ["d", "i"]),
        ([[2]], [np.int64([[1, 2, 3]])], ["i"]),
        ([[4]], [np.int32([[1, 2, 3]])], ["i"]),
        ([[1]], [np.float32([[1.5]])], ["d"]),
        ([1], [np.float64([1.5])], ["d"]),
        ([[2]], [np.float64([[1.5, 2]])], ["d"]),
        ([[1, 1]], [np.float64([[1.5]])], ["d"]),
    ],
)
def test_encoding(tf: ModuleType, sizes: Any, values: list[Any], names: list[str]) -> None:
    source, _ = made("proto3")
    both(
        tf,
        "EncodeProto",
        {"sizes": np.int32(sizes), "values": values},
        message_type="t.M",
        field_names=names,
        descriptor_source=source,
    )


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4), min_size=1, max_size=4))
def test_integers_by_chance(tf: ModuleType, rows: list[list[int]]) -> None:
    source, kind = made("proto3")
    data = np.array([kind(i=row, l=row, si=row, x=row).SerializeToString() for row in rows], object)
    names = ["i", "l", "si", "x"]
    attrs = {"message_type": "t.M", "field_names": names, "descriptor_source": source}
    sizes, *values = both(
        tf, "DecodeProtoV2", {"bytes": data}, output_types=["int32", "int64", "int64", "int32"], **attrs
    )
    both(tf, "EncodeProto", {"sizes": sizes, "values": values}, **attrs)
