"""Bytes and text into tensors: raw numbers, CSV, TensorProto, compressed data, JSON examples."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from itertools import pairwise
from typing import Any

from schemas import example_pb2, tensor_pb2
from toolkit.errors import FormatError, GraphmillError, InvalidArgumentError
from toolkit.formats import inflate
from toolkit.formats.arrays.tensor import from_array, to_array
from toolkit.graph.attrs import shape_to_proto
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape
from toolkit.kernels.cpu.common import np, require, require_scalar, shape_text
from toolkit.kernels.cpu.strings.basic import map_strings, scalar, strings
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def _native(data: bytes, dtype: DType, little: bool, count: int) -> Array:
    out = np.frombuffer(data, np.uint8).reshape(-1, dtype.size)
    part = dtype.size // 2 if dtype.is_complex else dtype.size
    if not little and part > 1:
        out = np.ascontiguousarray(out.reshape(-1, part)[:, ::-1])
    return np.frombuffer(out.tobytes(), dtype.numpy, count)


@kernel("DecodeRaw")
def decode_raw(op: KernelNode) -> Compute:
    dtype, little = op.attr("out_type"), op.attr("little_endian")

    def compute(x: Array) -> Array:
        texts: list[bytes] = x.ravel().tolist()
        if not texts:
            return np.zeros((*x.shape, 0), dtype.numpy)
        size = len(texts[0])
        for i, text in enumerate(texts):
            require(
                len(text) == size,
                f"DecodeRaw requires input strings to all be the same size, but element {i} has size {size} != "
                f"{len(text)}",
            )
        require(
            size % dtype.size == 0,
            f"Input to DecodeRaw has length {size} that is not a multiple of {dtype.size}, the size of {dtype}",
        )
        count = size // dtype.size
        return _native(b"".join(texts), dtype, little, count * len(texts)).reshape(*x.shape, count)

    return compute


@kernel("DecodePaddedRaw")
def decode_padded_raw(op: KernelNode) -> Compute:
    """As DecodeRaw, of the first `fixed_length` bytes; shorter strings are padded with zeros."""
    dtype, little = op.attr("out_type"), op.attr("little_endian")

    def compute(x: Array, length: Array) -> Array:
        require(length.ndim == 0, f"k must be scalar, got shape {shape_text(length)}")
        size = int(length)
        require(
            size > 0 and size % dtype.size == 0,
            f"fixed_length ({size}) must be a multiple of the size of out_type ({dtype.size})",
        )
        texts = [text[:size].ljust(size, b"\0") for text in x.ravel().tolist()]
        count = size // dtype.size
        return _native(b"".join(texts), dtype, little, count * len(texts)).reshape(*x.shape, count)

    return compute


# -- CSV -----------------------------------------------------------------------------------------------------


def split_record(record: str, delimiter: str, quoted: bool) -> list[str]:
    """The fields of one CSV record (RFC 4180).

    Raises:
        InvalidArgumentError: quotes or line breaks where they must not be.
    """
    if not quoted or not any(c in record for c in '"\r\n'):
        return record.split(delimiter)
    fields: list[str] = []
    at = 0
    while True:
        while record[at : at + 1] in ("\r", "\n"):  # in front of a field they do not count
            at += 1
        if record[at : at + 1] == '"':
            text: list[str] = []
            at += 1
            while True:
                end = record.find('"', at)
                if end < 0:
                    raise InvalidArgumentError("Quoted field has to end with quote followed by delim or end")
                text.append(record[at:end])
                at = end + 1
                if record[at : at + 1] != '"':
                    break
                text.append('"')
                at += 1
            fields.append("".join(text))
            if at < len(record) and record[at] != delimiter:
                raise InvalidArgumentError("Quote inside a string has to be escaped by another quote")
        else:
            end = record.find(delimiter, at)
            end = len(record) if end < 0 else end
            field = record[at:end]
            if any(c in field for c in '"\r\n'):
                raise InvalidArgumentError("Unquoted fields cannot have quotes/CRLFs inside")
            fields.append(field)
            at = end
        if at >= len(record):
            return fields
        at += 1  # the delimiter
        if at == len(record):
            return [*fields, ""]


@kernel("DecodeCSV")
def decode_csv(op: KernelNode) -> Compute:
    types: list[DType] = op.attr("OUT_TYPE")
    delimiter, na_value = op.text("field_delim"), op.text("na_value")
    quoted, select = op.attr("use_quote_delim"), list(op.attr("select_cols"))
    require(len(delimiter) == 1, "field_delim should be only 1 char")
    require(len(types) < 2**31, "Out type too large")
    if select:
        require(len(select) == len(types), f"select_cols should match output size: {len(select)} vs. {len(types)}")
        require(
            all(a < b for a, b in pairwise(select)) and select[0] >= 0,
            "select_cols should be strictly increasing indices",
        )

    def convert(text: str, dtype: DType, default: Array, field: int, record: int) -> Any:
        if not text or text == na_value:
            if default.size != 1:
                raise InvalidArgumentError(f"Field {field} is required but missing in record {record}!")
            return default.reshape(-1)[0]
        if dtype.kind == "s":
            return text.encode("utf-8", "surrogateescape")
        try:
            if "_" in text:
                raise ValueError
            value = int(text) if dtype.is_integer else float(text)
            if dtype.is_integer and not -(2 ** (8 * dtype.size - 1)) <= value < 2 ** (8 * dtype.size - 1):
                raise ValueError
            return value
        except ValueError:
            raise InvalidArgumentError(f"Field {field} in record {record} is not a valid {dtype}: {text}") from None

    def compute(records: Array, *defaults: Array) -> list[Array]:
        for i, default in enumerate(defaults):
            require(default.ndim <= 1, f"Each record default should be at most rank 1, got shape {shape_text(default)}")
            require(default.size <= 1, f"There should only be 1 default per field but field {i} has {default.size}")
        columns: list[list[Any]] = [[] for _ in types]
        for number, record in enumerate(records.ravel().tolist()):
            fields = split_record(record.decode("utf-8", "surrogateescape"), delimiter, quoted)
            if select:
                found = sum(c < len(fields) for c in select)
                require(found == len(select), f"Expect {len(types)} fields but have only {found} in record {number}")
                fields = [fields[c] for c in select]
            require(len(fields) == len(types), f"Expect {len(types)} fields but have {len(fields)} in record {number}")
            for i, (text, dtype) in enumerate(zip(fields, types, strict=True)):
                columns[i].append(convert(text, dtype, defaults[i], i, number))
        return [
            strings(column, records.shape)
            if dtype.kind == "s"
            else np.array(column, dtype.numpy).reshape(records.shape)
            for column, dtype in zip(columns, types, strict=True)
        ]

    return compute


# -- tensors -------------------------------------------------------------------------------------------------


@kernel("ParseTensor")
def parse_tensor(op: KernelNode) -> Compute:
    dtype = op.attr("out_type")

    def compute(serialized: Array) -> Array:
        require_scalar(serialized, "serialized")
        try:
            proto = tensor_pb2.TensorProto.FromString(serialized.item())
            given = proto.dtype
            value = to_array(proto) if given == dtype.enum else None
        except GraphmillError as error:
            raise InvalidArgumentError(f"Could not parse `serialized`: {error}") from None
        except Exception:  # protobuf's DecodeError, in each of its implementations
            raise InvalidArgumentError("Could not parse `serialized` as TensorProto") from None
        require(value is not None, f"Type mismatch between parsed tensor ({given}) and dtype ({dtype.enum})")
        return value

    return compute


@kernel("SerializeTensor")
def serialize_tensor(op: KernelNode) -> Compute:
    dtype = op.attr("T")

    def compute(value: Array) -> Array:
        if dtype.kind == "s":
            proto = from_array(value, dtype)
        else:
            proto = tensor_pb2.TensorProto(dtype=dtype.enum)
            shape_to_proto(Shape(value.shape), proto.tensor_shape)
            content = np.ascontiguousarray(value)
            proto.tensor_content = content.astype(content.dtype.newbyteorder("<"), copy=False).tobytes()
        return scalar(proto.SerializeToString(deterministic=True))

    return compute


@kernel("DecodeCompressed")
def decode_compressed(op: KernelNode) -> Compute:
    kind = op.text("compression_type")
    forms = {"": 0, "ZLIB": inflate.ZLIB, "GZIP": inflate.GZIP}
    if kind not in forms:
        raise InvalidArgumentError("Only ZLIB, GZIP or NONE are supported compressions", node=op.name)

    def decode(text: bytes) -> bytes:
        try:
            return inflate.inflate(text, forms[kind]) if kind else text
        except FormatError as error:
            raise InvalidArgumentError(f"the input is not {kind} data: {error.message}") from None

    return lambda x: map_strings(decode, x)


@kernel("DecodeJSONExample")
def decode_json_example(op: KernelNode) -> Compute:
    def decode(text: bytes) -> bytes:
        from google.protobuf import json_format

        try:
            return json_format.Parse(text, example_pb2.Example()).SerializeToString(deterministic=True)
        except (json_format.ParseError, ValueError, RecursionError) as error:
            raise InvalidArgumentError(f"Error while parsing JSON: {error}") from None

    return lambda x: map_strings(decode, x)
