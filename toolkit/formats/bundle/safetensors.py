"""The safetensors format (https://github.com/huggingface/safetensors): a JSON header, then the tensors' bytes.

It has no strings, complex, quantized or 4-bit types. What it lacks is kept all the same, so that a checkpoint comes
back as it was: plain types as unsigned bytes with one more dimension, strings in the header's metadata. Readers that
do not know the metadata see the rest.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from toolkit.errors import AlreadyExistsError, DataLossError, FormatError, GraphmillError, InvalidArgumentError
from toolkit.formats.bounds import elements
from toolkit.formats.bundle import storage
from toolkit.formats.bundle.entry import Entry
from toolkit.formats.bundle.paths import open_file
from toolkit.formats.bundle.source import CHUNK, Array, TensorSource
from toolkit.formats.bundle.storage import commit_all, failure
from toolkit.formats.settings.documents import load_json
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

_TYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e5m2": "F8_E5M2",
    "float8_e4m3fn": "F8_E4M3", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint64": "U64",
    "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
_NAMES = {code: name for name, code in _TYPES.items()}
#: keys of `__metadata__`, whose values must be strings
_DTYPES, _STRINGS = "graphmill.dtypes", "graphmill.strings"
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_MAX_HEADER = 100 << 20
_ALIGNMENT = 8


class SafetensorsReader(TensorSource):
    """A .safetensors file, memory-mapped.

    Raises:
        GraphmillError: it cannot be opened, or is damaged.
    """

    def __init__(self, path: str | Path):
        super().__init__(str(path))
        try:
            self._file = open_file(self.prefix)
        except OSError as error:
            raise failure(error, self.prefix, "opening it") from None
        self._strings: dict[str, Any] = {}
        length = int.from_bytes(self._file.read_at(0, 8), "little")
        if self._file.size < 8 or length > min(_MAX_HEADER, self._file.size - 8):
            raise FormatError("not a .safetensors file: its header does not fit into it", file=self.prefix)
        self._base = 8 + length
        try:
            header = _mapping(load_json(self._file.read_at(8, length), unique=True), "it")
            metadata = _mapping(header.pop("__metadata__", {}), "'__metadata__'")
            kinds = _mapping(load_json(_text(metadata.get(_DTYPES, "{}"))), f"'{_DTYPES}'")
            self._strings = _mapping(load_json(_text(metadata.get(_STRINGS, "{}"))), f"'{_STRINGS}'")
            for name, item in sorted(header.items()):
                self.entries[name] = self._entry(name, item, kinds.get(name))
            self._check_disjoint()
            for name, item in self._strings.items():
                if name in self.entries:
                    raise FormatError(f"tensor '{name}' is there twice, as numbers and as strings")
                self.entries[name] = _string_entry(name, item)
        except FormatError as error:
            message = f"a damaged .safetensors header: {error.message}"
            raise FormatError(message, file=self.prefix) from None
        except GraphmillError as error:
            raise error.at(file=self.prefix) from None

    def _entry(self, name: str, item: Any, kind: str | None) -> Entry:
        fields = _mapping(item, f"tensor '{name}'")
        code, dims, offsets = fields.get("dtype"), _sizes(fields, "shape", name), _sizes(fields, "data_offsets", name)
        if len(offsets) != 2:
            raise FormatError(f"tensor '{name}' has {len(offsets)} offsets, not a start and an end")
        start, end = offsets
        if kind is None:
            if not isinstance(code, str) or code not in _NAMES:
                raise FormatError(f"tensor '{name}' has type {code}, which TensorFlow does not have")
            dtype = dtypes.from_name(_NAMES[code])
        else:
            dtype = dtypes.from_name(_text(kind)).base
            if dtype.kind in "srv" or not dims or dims[-1] != dtype.size:
                raise FormatError(f"tensor '{name}' of bytes {dims} cannot hold {dtype}")
            dims = dims[:-1]
        try:
            expected = elements(dims, dtype.size) * dtype.size
        except FormatError as error:
            raise FormatError(f"tensor '{name}' has an impossible shape: {error.message}") from None
        if end - start != expected:
            raise FormatError(f"tensor '{name}' is {dtype}{dims} and has {end - start} bytes, not {expected}")
        if self._base + end > self._file.size:
            raise DataLossError(f"tensor '{name}' reaches past the end of the file: truncated")
        return Entry(name, dtype, Shape(dims), expected, 0, self._base + start, 0)

    def _check_disjoint(self) -> None:
        """Refuse tensors that share bytes: the format does not allow it, and together they would be larger than it."""
        end, last = 0, ""
        for entry in sorted(self.entries.values(), key=lambda entry: (entry.offset, entry.bytes)):
            if entry.bytes and entry.offset < end:
                raise FormatError(f"tensor '{entry.name}' shares bytes with '{last}'")
            end, last = max(end, entry.offset + entry.bytes), entry.name

    def gaps(self) -> list[tuple[int, int]]:
        """Where in the file bytes belong to no tensor: (offset, size). The format allows none."""
        found: list[tuple[int, int]] = []
        end = self._base
        spans = [(entry.offset, entry.offset + entry.bytes) for entry in self.entries.values() if entry.offset]
        for start, stop in [*sorted(spans), (self._file.size, self._file.size)]:
            if start > end:
                found.append((end, start - end))
            end = max(end, stop)
        return found

    def read(self, name: str, verify: bool = True) -> Array:
        """A tensor as a numpy array, a view of the file where its alignment allows it; there are no CRCs."""
        import numpy as np

        entry = self.entry(name)
        if entry.dtype.kind in "sv":
            item = self._strings[name]
            out = np.empty(len(item["base64"]), object)
            out[:] = [base64.b64decode(element) for element in item["base64"]]
            return out.reshape(entry.dims)
        dtype = entry.dtype.numpy
        if entry.bytes == 0:
            return np.empty(entry.dims, dtype)
        raw = np.frombuffer(self._file.view(entry.offset, entry.bytes), np.uint8)
        if entry.offset % dtype.alignment:
            raw = raw.copy()
        return raw.view(dtype).reshape(entry.dims)

    def chunks(self, entry: Entry, size: int = CHUNK, verify: bool = True) -> Iterator[bytes]:
        for start in range(0, entry.bytes, size):
            yield self._file.read_at(entry.offset + start, min(size, entry.bytes - start))

    def close(self) -> None:
        self._file.close()


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FormatError(f"{what} is no object")
    return cast("dict[str, Any]", value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise FormatError("'__metadata__' holds something else than text")
    return value


def _sizes(fields: dict[str, Any], key: str, name: str) -> list[int]:
    """A list of whole numbers that are not negative."""
    values = fields.get(key)
    if not isinstance(values, list) or not all(type(size) is int and size >= 0 for size in cast("list[Any]", values)):
        raise FormatError(f"tensor '{name}' has no '{key}', or one that is not a list of sizes")
    return cast("list[int]", values)


def _string_entry(name: str, item: Any) -> Entry:
    """The entry of strings in the metadata; the elements are as many as its shape says."""
    fields = _mapping(item, f"tensor '{name}'")
    texts, dims = fields.get("base64"), _sizes(fields, "shape", name)
    dtype = dtypes.from_name(_text(fields.get("dtype"))).base
    if dtype.kind not in "sv" or not isinstance(texts, list):
        raise FormatError(f"tensor '{name}' of the metadata is no tensor of strings")
    found = cast("list[Any]", texts)
    if elements(dims) != len(found) or not all(isinstance(text, str) and _BASE64.fullmatch(text) for text in found):
        raise FormatError(f"tensor '{name}' of shape {dims} has {len(found)} strings, or some that are not base64")
    size = sum(len(element) * 3 // 4 - element.count("=") for element in found)
    return Entry(name, dtype, Shape(dims), size, 0, 0, 0)


class SafetensorsWriter:
    """Writes a .safetensors file; it appears when `finish` has succeeded.

    The header comes first, so what will be added must be known, in order.

    Args:
        path: the file.
        plan: (name, type, sizes) of every tensor that will be added.

    Raises:
        OpError: the file cannot be created.
    """

    def __init__(self, path: str | Path, plan: Iterable[tuple[str, DType, Sequence[int]]]):
        self._header: dict[str, Any] = {}
        self._waiting: list[str] = []
        self._kinds: dict[str, str] = {}
        self._strings: dict[str, Any] = {}
        offset = 0
        for name, dtype, dims in plan:
            if dtype.kind in "sv":
                self._strings[name] = {"dtype": dtype.name, "shape": list(dims), "base64": None}
                continue
            sizes = list(dims)
            if dtype.name not in _TYPES:
                self._kinds[name] = dtype.name
                sizes.append(dtype.size)
            end = offset + math.prod(dims) * dtype.size
            code = _TYPES.get(dtype.name, "U8")
            self._header[name] = {"dtype": code, "shape": sizes, "data_offsets": [offset, end]}
            self._waiting.append(name)
            offset = end
        self._waiting.reverse()
        self._started = False
        self._file = storage.create(str(path))

    def add(self, name: str, array: Array, dtype: DType | None = None) -> None:
        """Write a tensor; see `BundleWriter.add`. Strings come before everything else."""
        import numpy as np

        array = np.asarray(array)
        dtype = dtype or dtypes.from_numpy(array.dtype)
        if dtype.kind in "sv":
            found = [
                element.encode() if isinstance(element, str) else element for element in array.reshape(-1).tolist()
            ]
            if name not in self._strings or self._started:
                raise InvalidArgumentError(f"tensor '{name}' was not announced", file=self._file.path)
            self._strings[name]["base64"] = [base64.b64encode(element).decode() for element in found]
            return
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.add_raw(name, dtype, array.shape, (flat[at : at + CHUNK].tobytes() for at in range(0, flat.nbytes, CHUNK)))

    def add_raw(
        self, name: str, dtype: DType, dims: Sequence[int], pieces: Iterable[bytes], crc_: int | None = None
    ) -> None:
        """Write a plain tensor from its little-endian bytes."""
        try:
            self._start()
            if not self._waiting or self._waiting.pop() != name:
                raise AlreadyExistsError(f"tensor '{name}' comes out of turn", file=self._file.path)
            for piece in pieces:
                self._file.write(piece)
        except BaseException:
            self.abort()
            raise

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        metadata = {"format": "tf"}
        if self._kinds:
            metadata[_DTYPES] = json.dumps(self._kinds, sort_keys=True)
        if self._strings:
            metadata[_STRINGS] = json.dumps(self._strings, sort_keys=True)
        text = json.dumps(
            {"__metadata__": metadata, **self._header}, separators=(",", ":"), ensure_ascii=False
        ).encode()
        text = text.ljust(-(-len(text) // _ALIGNMENT) * _ALIGNMENT)
        self._file.write(len(text).to_bytes(8, "little") + text)

    def finish(self) -> None:
        """Make the file appear."""
        try:
            self._start()
            if self._waiting:
                raise InvalidArgumentError(f"tensor '{self._waiting[-1]}' was announced and not added")
            self._file.sync()
            commit_all([self._file])
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Remove what was written."""
        self._file.discard()
