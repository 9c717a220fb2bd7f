"""NumPy's .npz archives as tensor files.

An archive holds one array for each tensor, keyed by its name; numpy.load reads it. Types that numpy lacks are kept
as unsigned integers of their width, strings as fixed-width bytes, and the member `GRAPHMILL` (JSON) says what they
were, so that the way back gives the same tensors.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from toolkit.errors import AlreadyExistsError, FormatError, GraphmillError, InvalidArgumentError
from toolkit.formats.arrays.npy import SUFFIX, Archive, ArrayHeader
from toolkit.formats.bundle import paths, storage
from toolkit.formats.bundle.entry import Entry
from toolkit.formats.bundle.remote import is_remote
from toolkit.formats.bundle.source import CHUNK, Array, TensorSource
from toolkit.formats.bundle.storage import commit_all, failure
from toolkit.formats.settings.documents import load_json
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

#: the member with the types that numpy cannot express
GRAPHMILL = "__graphmill__.json"
# Archives are the same whenever they are written.
_DATE = (1980, 1, 1, 0, 0, 0)


def is_native(dtype: DType) -> bool:
    """Whether numpy itself has the type."""
    return dtype.kind in "fiucb" and not dtype.is_quantized and dtype.numpy.isbuiltin == 1


class NpzReader(TensorSource):
    """An .npz archive; arrays are read when they are asked for.

    Raises:
        GraphmillError: it cannot be opened or is no .npz archive.
    """

    def __init__(self, path: str | Path):
        super().__init__(str(path))
        try:
            self._archive = Archive(
                paths.open_stream(self.prefix) if is_remote(self.prefix) else self.prefix, self.prefix
            )
        except OSError as error:
            raise failure(error, self.prefix, "opening it") from None
        self._notes: dict[str, dict[str, Any]] = {}
        if GRAPHMILL in self._archive.members:
            self._notes = self._read_notes()
        for member in self._archive.members:
            if not member.endswith(SUFFIX):
                continue
            name = member.removesuffix(SUFFIX)
            header = self._archive.header(member)
            try:
                dtype = self._dtype(name, header)
            except GraphmillError as error:
                raise FormatError(f"array '{name}': {error.message}", file=self.prefix) from None
            size = header.count * (dtype.size or header.dtype.itemsize)
            self.entries[name] = Entry(name, dtype, Shape(header.shape), size, 0, 0, 0)

    def _read_notes(self) -> dict[str, dict[str, Any]]:
        notes = load_json(self._archive.bytes(GRAPHMILL), self.prefix)
        found = cast("dict[str, Any]", notes if isinstance(notes, dict) else {"": None})
        if not all(map(_is_note, found.values())):
            raise FormatError(f"a damaged .npz archive: '{GRAPHMILL}' is not as graphmill writes it", file=self.prefix)
        return found

    def _dtype(self, name: str, header: ArrayHeader) -> DType:
        """The type of an array, whose elements have the width that its header says."""
        noted = self._notes.get(name, {}).get("dtype")
        if noted is None:
            return dtypes.from_numpy(header.dtype)
        dtype = dtypes.from_name(noted).base
        stored = header.dtype
        fits = stored.kind in "SU" if dtype.kind in "sv" else stored.itemsize == dtype.size and stored.kind in "iufcb"
        if dtype.kind == "r" or not fits:
            raise FormatError(f"elements of numpy type '{stored}' cannot be {dtype}")
        return dtype

    def read(self, name: str, verify: bool = True) -> Array:
        """A tensor as a numpy array; the archive's CRC is always checked."""
        entry = self.entry(name)
        array = self._archive.array(name + SUFFIX)
        if entry.dtype.kind in "sv":
            return self._objects(name, array)
        if not is_native(entry.dtype):
            array = array.view(entry.dtype.numpy)
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))

    def _objects(self, name: str, array: Array) -> Array:
        import numpy as np

        if array.dtype.kind == "U":
            try:
                array = cast(Array, np.char.encode(array, "utf-8"))
            except (ValueError, SystemError):  # numbers that are no characters
                raise FormatError(f"array '{name}' holds strings that are not Unicode", file=self.prefix) from None
        out: Array = np.empty(array.size, object)
        lengths: list[int] | None = self._notes.get(name, {}).get("lengths")
        elements: list[bytes] = array.reshape(-1).tolist()
        if lengths is not None:  # numpy drops the zero bytes at the end of each
            width = array.dtype.itemsize
            if len(lengths) != len(elements) or not all(
                len(element) <= length <= width for element, length in zip(elements, lengths, strict=True)
            ):
                raise FormatError(f"array '{name}' has strings of other lengths than it says", file=self.prefix)
            elements = [element.ljust(length, b"\0") for element, length in zip(elements, lengths, strict=True)]
        out[:] = elements
        return out.reshape(array.shape)

    def close(self) -> None:
        self._archive.close()


def _is_note(note: Any) -> bool:
    """Whether a value is what the writer says of an array: its type, the lengths of its strings."""
    if not isinstance(note, dict):
        return False
    fields = cast("dict[str, Any]", note)
    lengths = fields.get("lengths", [])
    plain = isinstance(lengths, list) and all(type(length) is int for length in cast("list[Any]", lengths))
    return plain and isinstance(fields.get("dtype", ""), str)


class NpzWriter:
    """Writes an .npz archive, an array at a time; it appears when `finish` has succeeded.

    Raises:
        OpError: the file cannot be created.
    """

    def __init__(self, path: str | Path):
        self._file = storage.create(str(path))
        self._zip = zipfile.ZipFile(self._file.stream(), "w", zipfile.ZIP_STORED, allowZip64=True)
        self._notes: dict[str, Any] = {}
        self._names: set[str] = set()

    def add(self, name: str, array: Array, dtype: DType | None = None) -> None:
        """Write a tensor; see `BundleWriter.add`."""
        import numpy as np

        array = np.asarray(array)
        dtype = dtype or dtypes.from_numpy(array.dtype)
        if dtype.kind in "sv":
            self._add_strings(name, array, dtype)
            return
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        pieces = (flat[at : at + CHUNK].tobytes() for at in range(0, flat.nbytes, CHUNK))
        self.add_raw(name, dtype, array.shape, pieces)

    def add_raw(
        self, name: str, dtype: DType, dims: Sequence[int], pieces: Iterable[bytes], crc_: int | None = None
    ) -> None:
        """Write a plain tensor from its little-endian bytes."""
        import numpy as np

        stored = dtype.numpy
        if not is_native(dtype):
            self._notes[name] = {"dtype": dtype.name}
            stored = np.dtype(f"u{dtype.size}") if not dtype.is_quantized else stored
        self._put(name, stored, dims, pieces)

    def _add_strings(self, name: str, array: Array, dtype: DType) -> None:
        import numpy as np

        elements = [element.encode() if isinstance(element, str) else element for element in array.reshape(-1).tolist()]
        if not all(isinstance(element, bytes) for element in elements):
            raise InvalidArgumentError(f"tensor '{name}' holds objects that are no strings")
        note: dict[str, Any] = {} if dtype.kind == "s" else {"dtype": dtype.name}
        if any(element.endswith(b"\0") for element in elements):
            note["lengths"] = [len(element) for element in elements]
        if note:
            self._notes[name] = note
        width = max((len(element) for element in elements), default=0) or 1
        stored = np.dtype(f"S{width}")
        self._put(name, stored, array.shape, iter([b"".join(element.ljust(width, b"\0") for element in elements)]))

    def _put(self, name: str, stored: Any, dims: Sequence[int], pieces: Iterable[bytes]) -> None:
        import numpy as np

        if name in self._names:
            raise AlreadyExistsError(f"tensor '{name}' has been added already", file=self._file.path)
        self._names.add(name)
        try:
            info = zipfile.ZipInfo(name + SUFFIX, _DATE)
            with self._zip.open(info, "w", force_zip64=True) as member:
                header = {"descr": np.lib.format.dtype_to_descr(stored), "fortran_order": False, "shape": tuple(dims)}
                np.lib.format.write_array_header_1_0(member, header)
                for piece in pieces:
                    member.write(piece)
        except BaseException:
            self.abort()
            raise

    def finish(self) -> None:
        """Make the archive appear."""
        try:
            if self._notes:
                self._zip.writestr(zipfile.ZipInfo(GRAPHMILL, _DATE), json.dumps(self._notes, sort_keys=True))
            self._zip.close()
            self._file.sync()
            commit_all([self._file])
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Remove what was written."""
        self._zip.fp = None  # closing an unfinished archive would write its directory
        self._file.discard()
