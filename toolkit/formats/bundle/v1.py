"""Checkpoints in the format before TensorBundle: one table whose values are messages (V1).

The entry at key "" describes all tensors (SavedTensorSlices.meta); every part of a tensor is a message at its slice
key (SavedTensorSlices.data), whose values sit in the typed fields of a TensorProto without a type or shape.
Format: tensorflow/core/util/saved_tensor_slice.proto and tensor_slice_writer.cc.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from schemas import saved_tensor_slice_pb2
from toolkit.errors import DataLossError, GraphmillError, InvalidArgumentError
from toolkit.formats.bundle import storage
from toolkit.formats.bundle.entry import Entry
from toolkit.formats.bundle.paths import open_file
from toolkit.formats.bundle.regions import covers
from toolkit.formats.bundle.slices import TensorSlice, encode_key, full
from toolkit.formats.bundle.source import Array, TensorSource
from toolkit.formats.bundle.storage import commit_all, failure
from toolkit.formats.bundle.table import TableReader, TableWriter
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

#: TF_CHECKPOINT_VERSION and its oldest reader
VERSION = 1
#: a message must stay below 2 GiB
_MAX_TENSOR = (1 << 31) - (1 << 20)
#: the field of TensorProto with the values of each type; what is not here cannot be in a V1 checkpoint
FIELDS = {
    "float32": "float_val", "float64": "double_val", "int32": "int_val", "uint8": "int_val", "int16": "int_val",
    "int8": "int_val", "uint16": "int_val", "string": "string_val", "complex64": "scomplex_val",
    "complex128": "dcomplex_val", "int64": "int64_val", "bool": "bool_val", "qint8": "int_val",
    "quint8": "int_val", "qint32": "int_val", "qint16": "int_val", "quint16": "int_val", "float16": "half_val",
    "bfloat16": "half_val", "uint32": "uint32_val", "uint64": "uint64_val",
}  # fmt: skip


class V1Reader(TensorSource):
    """A V1 checkpoint; reads a tensor's blocks when it is asked for.

    Args:
        path: the file.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: it is damaged.
    """

    def __init__(self, path: str | Path):
        super().__init__(str(path))
        try:
            self._file = open_file(self.prefix)
        except OSError as error:
            raise failure(error, self.prefix, "opening it") from None
        self.table = TableReader(self._file.read_at, self._file.size, self.prefix)
        meta = self._message(b"", "the description of the tensors").meta
        for tensor in meta.tensor:
            try:
                dtype = dtypes.from_enum(tensor.type)
            except GraphmillError as error:
                raise DataLossError(f"tensor '{tensor.name}': {error.message}", file=self.prefix) from None
            dims = tuple(dim.size for dim in tensor.shape.dim)
            parts = tuple(_decode_slice(part) for part in tensor.slice)
            size = math.prod(dims) * dtype.size
            whole = len(parts) == 1 and parts[0].is_full
            self.entries[tensor.name] = Entry(tensor.name, dtype, Shape(dims), size, 0, 0, 0, () if whole else parts)
        self.entries = dict(sorted(self.entries.items(), key=lambda item: item[0].encode("utf-8", "surrogateescape")))

    def _message(self, key: bytes, what: str) -> Any:
        value = self.table.get(key)
        if value is None:
            raise DataLossError(f"{what} is missing", file=self.prefix)
        try:
            return saved_tensor_slice_pb2.SavedTensorSlices.FromString(value)
        except DecodeError:
            raise DataLossError(f"{what} cannot be decoded", file=self.prefix) from None

    def parts(self, name: str) -> list[tuple[TensorSlice, Entry]]:
        entry = self.entry(name)
        return [
            (
                part,
                Entry(
                    f"{name}[{part}]", entry.dtype, Shape(part.shape(entry.dims)),
                    math.prod(part.shape(entry.dims)) * entry.dtype.size, 0, 0, 0,
                ),
            )
            for part in entry.slices
        ]  # fmt: skip

    def read(self, name: str, verify: bool = True) -> Array:
        """A tensor as a numpy array; the CRCs of its blocks are always checked."""
        import numpy as np

        entry = self.entry(name)
        parts = entry.slices or (full(len(entry.dims)),)
        if len(parts) == 1 and parts[0].is_full:
            return self._read_part(entry, parts[0])
        out = np.empty(entry.dims, entry.dtype.numpy)
        regions = [part.bounds(entry.dims) for part in parts]
        for part, region in zip(parts, regions, strict=True):
            out[tuple(slice(start, stop) for start, stop in region)] = self._read_part(entry, part)
        if not covers(tuple((0, size) for size in entry.dims), regions):
            raise DataLossError(f"the parts of tensor '{name}' do not cover it", file=self.prefix)
        return out

    def _read_part(self, entry: Entry, part: TensorSlice) -> Array:
        import numpy as np

        dims = part.shape(entry.dims)
        what = f"part '{part}' of tensor '{entry.name}'"
        data = self._message(encode_key(entry.name, part), what).data.data
        field = FIELDS.get(entry.dtype.name)
        if field is None:
            raise DataLossError(f"tensor '{entry.name}' has type {entry.dtype}, which V1 cannot hold", file=self.prefix)
        values = getattr(data, field)
        dtype = entry.dtype.numpy
        if entry.dtype.kind == "s":
            flat = np.empty(len(values), object)
            flat[:] = list(values)
        elif entry.dtype.kind == "c":
            flat = np.array(values, dtype.type(0).real.dtype).view(dtype)
        elif field == "half_val":
            flat = np.array(values, np.uint16).view(dtype)
        else:
            flat = np.array(values, dtype)
        if flat.size != math.prod(dims):
            raise DataLossError(f"{what} has {flat.size} values, not {math.prod(dims)}", file=self.prefix)
        return flat.reshape(dims)

    def close(self) -> None:
        self._file.close()


def _decode_slice(message: Any) -> TensorSlice:
    return TensorSlice(
        tuple((extent.start, extent.length if extent.HasField("length") else -1) for extent in message.extent)
    )


def write_v1(path: str | Path, tensors: dict[str, tuple[Array, DType]]) -> None:
    """Write a V1 checkpoint, byte for byte as TensorFlow's SaveSlices op does; the file appears when it is complete.

    All messages are in memory at once, as the format sorts them by key.

    Args:
        tensors: name to array and type; all are written whole.

    Raises:
        InvalidArgumentError: the format has no such type, or a tensor is over protobuf's 2 GiB.
        OpError: writing failed.
    """
    messages: dict[bytes, bytes] = {}
    head = saved_tensor_slice_pb2.SavedTensorSlices()
    for name, (array, dtype) in sorted(tensors.items()):
        if dtype.name not in FIELDS:
            raise InvalidArgumentError(f"tensor '{name}' is {dtype}; the V1 format cannot hold that", file=str(path))
        if array.nbytes > _MAX_TENSOR:
            raise InvalidArgumentError(f"tensor '{name}' is too large for the V1 format (2 GiB)", file=str(path))
        item = head.meta.tensor.add(name=name, type=dtype.enum)
        item.shape.SetInParent()
        for size in array.shape:
            item.shape.dim.add(size=size)
        whole = full(array.ndim)
        message = saved_tensor_slice_pb2.SavedTensorSlices()
        message.data.name = name
        for part in (item.slice.add(), message.data.slice):
            part.SetInParent()
            for _ in whole.extents:
                part.extent.add()
        _put_values(message.data.data, array.reshape(-1), dtype)
        messages[encode_key(name, whole)] = message.SerializeToString()
    head.meta.versions.producer = VERSION
    file = storage.create(str(path))
    try:
        table = TableWriter(file.write)
        table.add(b"", head.SerializeToString())
        for key in sorted(messages):
            table.add(key, messages[key])
        table.finish()
        file.sync()
        commit_all([file])
    except BaseException:
        file.discard()
        raise


def _put_values(message: Any, flat: Array, dtype: DType) -> None:
    import numpy as np

    field = FIELDS[dtype.name]
    message.SetInParent()
    if dtype.kind == "c":
        values = flat.view(dtype.numpy.type(0).real.dtype).tolist()
    elif field == "half_val":
        values = flat.view(np.uint16).tolist()
    elif dtype.kind == "s":
        values = [element.encode() if isinstance(element, str) else element for element in flat.tolist()]
    else:
        values = flat.tolist()
    getattr(message, field).extend(values)
