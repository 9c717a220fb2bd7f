"""Our messages have TensorFlow's wire format, field by field and byte by byte."""

from __future__ import annotations

import importlib
import mmap
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

import schemas
from schemas import graph_pb2, meta_graph_pb2, saved_model_pb2, tensor_pb2, types_pb2

STEMS = sorted(path.stem for path in Path(schemas.__file__).parent.glob("*.proto"))
TENSORFLOW_PACKAGES = (
    "tensorflow.core.framework",
    "tensorflow.core.protobuf",
    "tensorflow.core.util",
    "tensorflow.core.profiler",
    "tensorflow.core.util.quantization",
    "tensorflow.core.example",
    "tensorflow.python.training",
    "tensorflow.compiler.xla.tsl.protobuf",
    "tensorboard.plugins.projector",
)
#: messages that have gone from TensorFlow's package into TensorBoard's
OF_TENSORBOARD = frozenset({"EmbeddingInfo", "ProjectorConfig", "SpriteMetadata"})
#: what only its C++ code has modules of
EMBEDDED = {
    "tensorflow/tools/proto_splitter/versions.proto": "libtensorflow_framework.so.2",
    "tensorflow/tools/proto_splitter/chunk.proto": "libtensorflow_framework.so.2",
    "tensorflow/core/protobuf/master.proto": "libtensorflow_cc.so.2",
    "tensorflow/core/protobuf/worker.proto": "libtensorflow_cc.so.2",
}
# A field number that no message uses: one varint, and one string.
UNKNOWN = b"\x80\xbb\x3f\x2a" + b"\x8a\xbb\x3f\x03new"


def our_file(stem: str) -> descriptor.FileDescriptor:
    return importlib.import_module(f"schemas.{stem}_pb2").DESCRIPTOR


def walk(file: descriptor.FileDescriptor) -> Iterator[descriptor.Descriptor]:
    todo = list(file.message_types_by_name.values())
    while todo:
        message = todo.pop()
        if not message.GetOptions().map_entry:
            yield message
        todo.extend(message.nested_types)


def all_messages() -> list[str]:
    return sorted(message.full_name for stem in STEMS for message in walk(our_file(stem)))


def all_enums() -> list[str]:
    names = []
    for stem in STEMS:
        names.extend(enum.full_name for enum in our_file(stem).enum_types_by_name.values())
        names.extend(enum.full_name for message in walk(our_file(stem)) for enum in message.enum_types)
    return sorted(names)


def theirs(name: str) -> str:
    """Return TensorFlow's name of one of our messages or enums; others keep theirs."""
    if not name.startswith("graphmill."):
        return name
    plain = name.removeprefix("graphmill.")
    return f"{'tensorboard.projector' if plain in OF_TENSORBOARD else 'tensorflow'}.{plain}"


@pytest.fixture(scope="module")
def pool() -> descriptor_pool.DescriptorPool:
    """The descriptor pool, with TensorFlow's counterparts of all our files."""
    import tensorflow  # noqa: F401

    for stem in STEMS:
        for package in TENSORFLOW_PACKAGES:
            try:
                importlib.import_module(f"{package}.{stem}_pb2")
            except ModuleNotFoundError:
                continue
    found = descriptor_pool.Default()
    for name, library in EMBEDDED.items():
        found.AddSerializedFile(embedded(name, library))
    return found


def embedded(name: str, library: str) -> bytes:
    """The descriptor of a .proto file of which TensorFlow has no Python module: a library of its code has it."""
    import tensorflow as tf

    start = b"\n" + bytes([len(name)]) + name.encode()
    with (
        Path(tf.sysconfig.get_lib(), library).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        at = data.find(start)
        return data[at : data.find(b"b\x06proto3", at) + 8]


def by_number(fields: Iterable[descriptor.FieldDescriptor]) -> list[descriptor.FieldDescriptor]:
    """Sort fields: TensorFlow declares some in another order than we do."""
    return sorted(fields, key=lambda field: field.number)


def facts(message: descriptor.Descriptor) -> list[dict[str, Any]]:
    """Return all of each field that matters for its bytes, its presence and its JSON form."""
    proto = descriptor_pb2.DescriptorProto()
    message.CopyToProto(proto)
    declared = {field.number: field for field in proto.field}
    found = []
    for field in by_number(message.fields):
        kind = field.message_type or field.enum_type
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        label = declared[field.number].label
        found.append(
            {
                "name": field.name,
                "number": field.number,
                "type": declared[field.number].type,
                "label": label,
                "kind": facts(field.message_type) if is_map else theirs(kind.full_name) if kind else None,
                "presence": field.has_presence,
                "packed": field.is_packed,
                "oneof": field.containing_oneof.name if field.containing_oneof else None,
                "default": None if label == descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED else field.default_value,
                "json": field.json_name,
            }
        )
    return found


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", all_messages())
def test_fields_equal_tensorflows(pool: descriptor_pool.DescriptorPool, name: str) -> None:
    ours = pool.FindMessageTypeByName(name)
    other = pool.FindMessageTypeByName(theirs(name))
    assert facts(ours) == facts(other)
    assert {oneof.name for oneof in ours.oneofs} == {oneof.name for oneof in other.oneofs}
    assert {nested.name for nested in ours.nested_types} == {nested.name for nested in other.nested_types}
    assert {enum.name for enum in ours.enum_types} == {enum.name for enum in other.enum_types}


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", all_enums())
def test_enum_values_equal_tensorflows(pool: descriptor_pool.DescriptorPool, name: str) -> None:
    ours = pool.FindEnumTypeByName(name)
    other = pool.FindEnumTypeByName(theirs(name))
    assert {value.name: value.number for value in ours.values} == {value.name: value.number for value in other.values}
    assert ours.values[0].number == other.values[0].number


def fill(message: Message, source: random.Random, depth: int) -> None:
    """Set every field of a message to values that are not its defaults, one field of each oneof."""
    oneofs = {oneof.name: source.choice(by_number(oneof.fields)).name for oneof in message.DESCRIPTOR.oneofs}
    for field in by_number(message.DESCRIPTOR.fields):
        if field.containing_oneof and oneofs[field.containing_oneof.name] != field.name:
            continue
        value = getattr(message, field.name)
        if field.message_type and field.message_type.GetOptions().map_entry:
            key, item = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
            for _ in range(2):
                if not item.message_type:
                    value[scalar(key, source)] = scalar(item, source)
                elif depth:
                    fill(value[scalar(key, source)], source, depth - 1)
        elif field.message_type:
            if hasattr(value, "add"):
                for _ in range(2 if depth else 0):
                    fill(value.add(), source, depth - 1)
            elif depth:
                value.SetInParent()
                fill(value, source, depth - 1)
        elif hasattr(value, "extend"):
            value.extend(scalar(field, source) for _ in range(3))
        else:
            setattr(message, field.name, scalar(field, source))


def scalar(field: descriptor.FieldDescriptor, source: random.Random) -> Any:
    if field.enum_type:
        return source.choice(sorted(value.number for value in field.enum_type.values if value.number))
    if field.cpp_type == field.CPPTYPE_STRING:
        text = "".join(source.choice("abcdefgh\u00e9\u4e00") for _ in range(6))
        return text.encode() + b"\xff\x00" if field.type == field.TYPE_BYTES else text
    if field.cpp_type == field.CPPTYPE_BOOL:
        return True
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return source.randint(-1000, 1000) + 0.5
    wide = field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64)
    signed = field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_INT32)
    bits = 63 if wide else 31
    return source.randint(-(2**bits) if signed else 1, 2**bits - 1)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", all_messages())
def test_filled_messages_cross_unchanged(pool: descriptor_pool.DescriptorPool, name: str) -> None:
    ours = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    other = message_factory.GetMessageClass(pool.FindMessageTypeByName(theirs(name)))
    for seed in range(4):
        message = other()
        fill(message, random.Random(f"{name} {seed}"), 3)
        data = message.SerializeToString(deterministic=True)
        assert ours.FromString(data).SerializeToString(deterministic=True) == data
        message = ours()
        fill(message, random.Random(f"{name} {seed}"), 3)
        assert message.SerializeToString(deterministic=True) == data
        assert other.FromString(data).SerializeToString(deterministic=True) == data


@pytest.mark.parametrize("name", all_messages())
def test_unknown_fields_survive(name: str) -> None:
    ours = message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(name))
    message = ours()
    fill(message, random.Random(name), 2)
    data = message.SerializeToString(deterministic=True) + UNKNOWN
    assert ours.FromString(data).SerializeToString(deterministic=True) == data


def test_unknown_fields_of_parts_survive() -> None:
    node = graph_pb2.GraphDef(node=[{"name": "a", "op": "NoOp"}]).node[0].SerializeToString() + UNKNOWN
    data = b"\x0a" + bytes([len(node)]) + node
    graph = graph_pb2.GraphDef.FromString(data)
    assert graph.node[0].name == "a"
    assert graph.SerializeToString() == data


def test_unknown_enum_values_survive() -> None:
    data = b"\x08\xe7\x07"
    tensor = tensor_pb2.TensorProto.FromString(data)
    assert tensor.dtype == 999
    assert tensor.SerializeToString() == data


def test_reference_types_are_100_above_their_base() -> None:
    values = types_pb2.DataType.items()
    bases = {name: number for name, number in values if number and number < 100}
    assert {name: number for name, number in values if number > 100} == {
        f"{name}_REF": number + 100 for name, number in bases.items()
    }


@pytest.mark.tensorflow
def test_a_meta_graph_of_tensorflow_crosses_unchanged() -> None:
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        v1.get_variable("v", [3, 2], use_resource=False)
        v1.get_variable("r", [3, 2], use_resource=True)
        y = v1.matmul(x, v1.global_variables()[0])
        v1.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
        v1.train.Saver()
        meta = v1.train.export_meta_graph(clear_devices=False, collection_list=None)
        meta.signature_def["serving_default"].CopyFrom(
            v1.saved_model.signature_def_utils.predict_signature_def({"x": x}, {"y": y})
        )
    data = meta.SerializeToString(deterministic=True)
    ours = meta_graph_pb2.MetaGraphDef.FromString(data)
    assert ours.SerializeToString(deterministic=True) == data
    assert str(ours) == str(meta)
    assert [node.name for node in ours.graph_def.node] == [node.name for node in meta.graph_def.node]


@pytest.mark.tensorflow
def test_a_saved_model_of_tensorflow_crosses_unchanged(tmp_path: Path) -> None:
    import tensorflow as tf

    class Model(tf.Module):
        def __init__(self) -> None:
            self.weight = tf.Variable(tf.ones([3, 2]), name="weight")

        @tf.function(input_signature=[tf.TensorSpec([None, 3])])
        def __call__(self, x):
            return {"y": x @ self.weight}

    model = Model()
    tf.saved_model.save(model, str(tmp_path), signatures=model.__call__)
    data = (tmp_path / "saved_model.pb").read_bytes()
    ours = saved_model_pb2.SavedModel.FromString(data)
    module = importlib.import_module("tensorflow.core.protobuf.saved_model_pb2")
    again = module.SavedModel.FromString(ours.SerializeToString())
    assert again == module.SavedModel.FromString(data)
    assert ours.meta_graphs[0].object_graph_def.nodes
    assert "serving_default" in ours.meta_graphs[0].signature_def
