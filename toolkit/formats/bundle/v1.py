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
from toolkit.errors import DataLossError, FormatError, GraphmillError, InvalidArgumentError
from toolkit.formats.bounds import elements
from toolkit.formats.bundle import storage
from toolkit.formats.bundle.entry import Entry
from toolkit.formats.bundle.paths import ReadableFile, open_file
from toolkit.formats.bundle.regions import covers
from toolkit.formats.bundle.remote import RemoteFile
from toolkit.formats.bundle.slices import TensorSlice, encode_key, full
from toolkit.formats.bundle.source import Array, TensorSource
from toolkit.formats.bundle.state import is_pattern, matching
from toolkit.formats.bundle.storage import commit_all, failure
from toolkit.formats.bundle.table import TableReader, TableWriter
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

#: TF_CHECKPOINT_VERSION and its oldest reader
VERSION = 1
#: TensorFlow refuses to write and to read them; older graphmills wrote them
_ONLY_READ = frozenset({"bfloat16"})
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
        path: the file, or the pattern of several: "model-7-?????-of-00003".

    Raises:
        NotFoundError: there is no such file.
        DataLossError: it is damaged.
    """

    def __init__(self, path: str | Path):
        super().__init__(str(path))
        #: the tables of the checkpoint, by file
        self.tables: dict[str, TableReader] = {}
        self._files: list[ReadableFile | RemoteFile] = []
        slices: dict[str, list[TensorSlice]] = {}
        described: dict[str, tuple[DType, tuple[int, ...]]] = {}
        for name in matching(self.prefix) if is_pattern(self.prefix) else [self.prefix]:
            try:
                file = open_file(name)
            except OSError as error:
                raise failure(error, name, "opening it") from None
            self._files.append(file)
            self.tables[name] = TableReader(file.read_at, file.size, name)
            for tensor in self._description(name):
                try:
                    dtype = dtypes.from_enum(tensor.type)
                except GraphmillError as error:
                    raise DataLossError(f"tensor '{tensor.name}': {error.message}", file=name) from None
                dims = tuple(dim.size for dim in tensor.shape.dim)
                try:
                    elements(dims, dtype.size)
                except FormatError as error:
                    raise DataLossError(
                        f"tensor '{tensor.name}' has an impossible shape: {error.message}", file=name
                    ) from None
                described[tensor.name] = dtype, dims
                slices.setdefault(tensor.name, []).extend(_decode_slice(part) for part in tensor.slice)
        self.num_shards = len(self.tables)
        for name in sorted(described, key=lambda name: name.encode("utf-8", "surrogateescape")):
            dtype, dims = described[name]
            parts = tuple(slices[name])
            is_whole = len(parts) == 1 and parts[0].is_full
            size = math.prod(dims) * dtype.size
            self.entries[name] = Entry(name, dtype, Shape(dims), size, 0, 0, 0, () if is_whole else parts)

    def _description(self, file: str) -> Any:
        """What a file says of its tensors."""
        value = self.tables[file].get(b"")
        if value is None:
            raise DataLossError("the description of the tensors is missing", file=file)
        return self._parse(value, "the description of the tensors", file).meta.tensor

    def _message(self, key: bytes, what: str) -> Any:
        for file, table in self.tables.items():
            value = table.get(key)
            if value is not None:
                return self._parse(value, what, file)
        raise DataLossError(f"{what} is missing", file=self.prefix)

    def _parse(self, value: bytes, what: str, file: str) -> Any:
        try:
            return saved_tensor_slice_pb2.SavedTensorSlices.FromString(value)
        except DecodeError:
            raise DataLossError(f"{what} cannot be decoded", file=file) from None

    def parts(self, name: str) -> list[tuple[TensorSlice, Entry]]:
        entry = self.entry(name)
        found: list[tuple[TensorSlice, Entry]] = []
        for part in entry.slices:
            dims = self._part_dims(entry, part)
            size = math.prod(dims) * entry.dtype.size
            found.append((part, Entry(f"{name}[{part}]", entry.dtype, Shape(dims), size, 0, 0, 0)))
        return found

    def _part_dims(self, entry: Entry, part: TensorSlice) -> tuple[int, ...]:
        try:
            return part.shape(entry.dims)
        except InvalidArgumentError as error:
            raise DataLossError(f"tensor '{entry.name}': {error.message}", file=self.prefix) from None

    def read(self, name: str, verify: bool = True) -> Array:
        """A tensor as a numpy array; the CRCs of its blocks are always checked."""
        import numpy as np

        entry = self.entry(name)
        parts = entry.slices or (full(len(entry.dims)),)
        if len(parts) == 1 and parts[0].is_full:
            return self._read_part(entry, parts[0])
        values = [self._read_part(entry, part) for part in dict.fromkeys(parts)]
        regions = [part.bounds(entry.dims) for part in dict.fromkeys(parts)]
        if not covers(tuple((0, size) for size in entry.dims), regions):
            raise DataLossError(f"the parts of tensor '{name}' do not cover it", file=self.prefix)
        out = np.empty(entry.dims, entry.dtype.numpy)  # as many elements at most as the parts have
        for region, value in zip(regions, values, strict=True):
            out[tuple(slice(start, stop) for start, stop in region)] = value
        return out

    def _read_part(self, entry: Entry, part: TensorSlice) -> Array:
        import numpy as np

        dims = self._part_dims(entry, part)
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
            if len(values) % 2:
                raise DataLossError(f"{what} has half a complex number", file=self.prefix)
            flat = np.array(values, dtype.type(0).real.dtype).view(dtype)
        elif field == "half_val":
            flat = np.array(values, np.int32).astype(np.uint16).view(dtype)  # the low bits count
        else:
            try:
                flat = np.array(values, dtype)
            except OverflowError:
                raise DataLossError(f"{what} has values that {entry.dtype} cannot hold", file=self.prefix) from None
        if flat.size != math.prod(dims):
            raise DataLossError(f"{what} has {flat.size} values, not {math.prod(dims)}", file=self.prefix)
        return flat.reshape(dims)

    def close(self) -> None:
        for file in self._files:
            file.close()


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
        if dtype.name not in FIELDS or dtype.name in _ONLY_READ:
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
        values = np.ascontiguousarray(flat).view(dtype.numpy.type(0).real.dtype).tolist()
    elif field == "half_val":
        values = flat.view(np.uint16).tolist()
    elif dtype.kind == "s":
        values = [element.encode() if isinstance(element, str) else element for element in flat.tolist()]
    else:
        values = flat.tolist()
    getattr(message, field).extend(values)
