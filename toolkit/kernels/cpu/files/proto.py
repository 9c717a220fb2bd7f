"""DecodeProtoV2 and EncodeProto: fields of any protocol message as tensors, by its descriptor.

Descriptors come from a file with a FileDescriptorSet, from the attribute itself ("bytes://..."), or are those of
TensorFlow's own messages ("local://").
"""

from __future__ import annotations

import importlib
import struct
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from toolkit.errors import DataLossError, InvalidArgumentError
from toolkit.formats.bundle.wire import put_varint
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array
from toolkit.policy.access import Files, RefusedError

_FIELD = descriptor_pb2.FieldDescriptorProto
#: field type to its name, the tensor types it may have, and how it is written: a struct format, "varint", "zigzag",
#: or "bytes"
_KINDS: dict[int, tuple[str, tuple[DType, ...], str]] = {
    _FIELD.TYPE_DOUBLE: ("double", (dtypes.float64,), "<d"),
    _FIELD.TYPE_FLOAT: ("float", (dtypes.float32, dtypes.float64), "<f"),
    _FIELD.TYPE_INT64: ("int64", (dtypes.int64,), "varint"),
    _FIELD.TYPE_UINT64: ("uint64", (dtypes.uint64,), "varint"),
    _FIELD.TYPE_INT32: ("int32", (dtypes.int32, dtypes.int64), "varint"),
    _FIELD.TYPE_FIXED64: ("uint64", (dtypes.uint64,), "<Q"),
    _FIELD.TYPE_FIXED32: ("uint32", (dtypes.uint32, dtypes.uint64), "<I"),
    _FIELD.TYPE_BOOL: ("bool", (dtypes.bool_,), "varint"),
    _FIELD.TYPE_STRING: ("string", (dtypes.string,), "bytes"),
    _FIELD.TYPE_MESSAGE: ("message", (dtypes.string,), "bytes"),
    _FIELD.TYPE_BYTES: ("bytes", (dtypes.string,), "bytes"),
    _FIELD.TYPE_UINT32: ("uint32", (dtypes.uint32, dtypes.uint64), "varint"),
    _FIELD.TYPE_ENUM: ("enum", (dtypes.int32,), "varint"),
    _FIELD.TYPE_SFIXED32: ("int32", (dtypes.int32, dtypes.int64), "<i"),
    _FIELD.TYPE_SFIXED64: ("int64", (dtypes.int64,), "<q"),
    _FIELD.TYPE_SINT32: ("int32", (dtypes.int32, dtypes.int64), "zigzag"),
    _FIELD.TYPE_SINT64: ("int64", (dtypes.int64,), "zigzag"),
}
_WIRE_TYPES = {"<d": 1, "<Q": 1, "<q": 1, "<f": 5, "<I": 5, "<i": 5, "varint": 0, "zigzag": 0, "bytes": 2}


def _message(files: Files, name: str, source: bytes) -> Any:
    """The class of a message.

    Raises:
        InvalidArgumentError: the source cannot be read, or has no such message.
    """
    if source in (b"", b"local://"):
        # brings the messages that records hold into the pool
        importlib.import_module("schemas.example_pb2")
        pool, name = descriptor_pool.Default(), name.replace("tensorflow.", "graphmill.", 1)
    else:
        pool = descriptor_pool.DescriptorPool()
        for file in _descriptors(files, source).file:
            pool.Add(file)
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError:
        raise InvalidArgumentError(f"No descriptor found for message type {name}") from None


def _descriptors(files: Files, source: bytes) -> descriptor_pb2.FileDescriptorSet:
    try:
        if source.startswith(b"bytes://"):
            return descriptor_pb2.FileDescriptorSet.FromString(source.removeprefix(b"bytes://"))
        return descriptor_pb2.FileDescriptorSet.FromString(files.read(source.decode()))
    except RefusedError:
        raise
    except Exception:  # a file that is not there, protobuf's DecodeError
        raise InvalidArgumentError("Source does not represent serialized file descriptor set proto.") from None


def _fields(kind: Any, names: list[bytes]) -> list[Any]:
    known = kind.DESCRIPTOR.fields_by_name
    for name in names:
        require(name.decode() in known, f"Unknown field: {name.decode()} in message type {kind.DESCRIPTOR.full_name}")
    return [known[name.decode()] for name in names]


# -- decoding ---------------------------------------------------------------------------------------------


@kernel("DecodeProtoV2", kind=Kind.STATEFUL)
def decode_proto(op: KernelNode) -> Compute:
    """How often each field occurs in each message, and the values, padded with the field's default."""
    kind = _message(op.files, op.text("message_type"), op.attr("descriptor_source"))
    names: list[bytes] = op.attr("field_names")
    types: list[DType] = op.attr("output_types")
    layout = op.text("message_format")
    require(layout in ("binary", "text"), 'format must be one of "binary" or "text"')
    fields = _fields(kind, names)
    require(len(names) == len(types), "field_names and output_types attributes must have the same length")
    for field, dtype in zip(fields, types, strict=True):
        name, allowed, _ = _KINDS[field.type]
        require(
            dtype in allowed,
            f"Unexpected output type for {field.full_name}: {name} to DT_{dtype.name.upper()}",
        )

    def parse(text: bytes) -> Any:
        try:
            if layout == "text":
                return text_format.Parse(text, kind())
            return kind.FromString(text)
        except text_format.ParseError:
            raise DataLossError("Unable to parse text format proto") from None
        except Exception:  # protobuf's DecodeError, in each of its implementations
            raise DataLossError("CountFields: Failed to consume entire buffer") from None

    def compute(step: StepContext, messages: Array) -> list[Array]:
        parsed = [parse(text) for text in messages.reshape(-1).tolist()]
        found = [[_values(message, field) for message in parsed] for field in fields]
        sizes = np.array([[len(rows[m]) for rows in found] for m in range(len(parsed))], np.int32)
        outputs = [sizes.reshape(*messages.shape, len(fields))]
        for field, dtype, rows in zip(fields, types, found, strict=True):
            width = max([1, *map(len, rows)])
            out = np.full((len(rows), width), _default(field), dtype.numpy)
            for row, values in zip(out, rows, strict=True):
                row[: len(values)] = values if field.type != _FIELD.TYPE_INT32 else [_as_read(v, dtype) for v in values]
            outputs.append(out.reshape(*messages.shape, width))
        return outputs

    return compute


def _values(message: Any, field: Any) -> list[Any]:
    """What is in a field; without it, nothing, even if it has a default."""
    if field.is_repeated:
        values = list(getattr(message, field.name))
    elif field.has_presence:
        values = [getattr(message, field.name)] if message.HasField(field.name) else []
    else:
        values = [value for listed, value in message.ListFields() if listed.name == field.name]
    return [_plain(value) for value in values]


def _as_read(value: int, dtype: DType) -> int:
    """An int32 field in an int64 tensor: TensorFlow does not extend the sign."""
    return value & 0xFFFFFFFF if dtype is dtypes.int64 else value


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return value.SerializeToString() if hasattr(value, "SerializeToString") else value


def _default(field: Any) -> Any:
    if _KINDS[field.type][2] == "bytes":
        return b"" if field.is_repeated or field.type == _FIELD.TYPE_MESSAGE else _plain(field.default_value)
    return 0 if field.is_repeated else field.default_value


# -- encoding ---------------------------------------------------------------------------------------------


@kernel("EncodeProto", kind=Kind.STATEFUL)
def encode_proto(op: KernelNode) -> Compute:
    """Messages with the first `size` values of each field, fields in the order of their numbers."""
    kind = _message(op.files, op.text("message_type"), op.attr("descriptor_source"))
    names: list[bytes] = op.attr("field_names")
    types: list[DType] = op.attr("Tinput_types")
    fields = _fields(kind, names)
    require(len(names) == len(types), "Number of field names must match number of input values")
    order = sorted(range(len(fields)), key=lambda i: fields[i].number)

    def compute(step: StepContext, sizes: Array, *values: Array) -> Array:
        for field, dtype, value in zip(fields, types, values, strict=True):
            require(
                value.ndim >= 2,
                f"Invalid shape for field {field.name}.  Saw shape {shape_text(value)} but it should be at least a "
                "matrix.",
            )
            name, allowed, _ = _KINDS[field.type]
            shown = {"float32": "float", "float64": "double"}.get(dtype.name, dtype.name)
            require(
                dtype in allowed,
                f"Incompatible type for field {field.name}.  Saw dtype: {shown} but field type is: {name}",
            )
        prefix = values[0].shape[:-1]
        require(
            sizes.shape == (*prefix, len(fields)) and all(v.shape[:-1] == prefix for v in values),
            "sizes must have the shape of the values with one size for each field in the last dimension",
        )
        counts = sizes.reshape(-1, len(fields))
        flat = [value.reshape(-1, value.shape[-1]) for value in values]
        out: Array = np.empty(len(counts), object)
        for m in range(len(counts)):
            parts = bytearray()
            for i in order:
                size = int(counts[m, i])
                require(
                    size <= flat[i].shape[1],
                    f"Size to write must not be larger than value tensor; but saw: {size} > {flat[i].shape[1]} at "
                    f"message {m} field {i}",
                )
                parts += _encoded(fields[i], flat[i][m, :size].tolist())
            out[m] = bytes(parts)
        return out.reshape(prefix)

    return compute


def _encoded(field: Any, values: list[Any]) -> bytes:
    """The wire format of a field's values, packed where its file says so."""
    if not values:
        return b""
    how = _KINDS[field.type][2]
    written = [_written(how, value) for value in values]
    if field.is_packed:
        body = b"".join(written)
        return _varint(field.number << 3 | 2) + _varint(len(body)) + body
    tag = _varint(field.number << 3 | _WIRE_TYPES[how])
    return b"".join(tag + item for item in written)


def _written(how: str, value: Any) -> bytes:
    match how:
        case "bytes":
            return _varint(len(value)) + bytes(value)
        case "varint":
            return _varint(int(value))
        case "zigzag":
            return _varint(int(value) << 1 ^ int(value) >> 63)
        case _:
            packed: bytes = struct.pack(how, value)
            return packed


def _varint(value: int) -> bytes:
    out = bytearray()
    put_varint(out, value)
    return bytes(out)
