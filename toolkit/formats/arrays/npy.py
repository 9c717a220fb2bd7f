"""NumPy's own files, .npy and .npz, read with every size checked against the bytes that are there.

A header says type, order and shape; memory is taken when that many bytes follow. Pickles are never loaded. An archive's
members are stored or deflated, each once, and no two share bytes.
"""

from __future__ import annotations

import ast
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from toolkit.errors import FormatError
from toolkit.formats import bounds

#: a numpy array of any type
Array = Any

MAGIC = b"\x93NUMPY"
#: the numbers of types that others have added to numpy (ml_dtypes) begin here; a type of numpy's own may be another
#: object than numpy's, which `isbuiltin` does not tell from those
USER_DEFINED = 256
SUFFIX = ".npy"
#: numpy's own limit of a header's length
_MOST_HEADER = 10_000
_CHUNK = 1 << 20
#: whole numbers as Python 2 wrote them
_LONG = re.compile(r"(?<=\d)L\b")
#: what damage makes zipfile raise
_DAMAGE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, OSError, EOFError, ValueError, RuntimeError,
    OverflowError, KeyError, IndexError, TypeError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArrayHeader:
    """What an .npy file says of its array.

    Attributes:
        dtype: numpy's type.
        is_fortran: the elements are in column-major order.
        offset: where the elements begin.
        count: how many there are.
    """

    shape: tuple[int, ...]
    dtype: Any
    is_fortran: bool
    offset: int
    count: int


def read_header(file: BinaryIO, size: int, where: str) -> ArrayHeader:
    """The header of an .npy file; the file then stands at the elements.

    Args:
        size: bytes of the file.
        where: the file, for errors.

    Raises:
        FormatError: it is none, holds Python objects or records, or announces more elements than follow.
    """
    start = file.read(8)
    if start[:6] != MAGIC or len(start) < 8:
        raise FormatError("not a whole .npy array: it does not begin as one", file=where)
    width = {1: 2, 2: 4, 3: 4}.get(start[6])
    if width is None:
        raise FormatError(f"not a whole .npy array: version {start[6]} is not known; 1 to 3 are", file=where)
    length = int.from_bytes(file.read(width), "little")
    if length > min(_MOST_HEADER, size):
        raise FormatError(f"not a whole .npy array: a header of {length:,} bytes", file=where)
    text = file.read(length)
    if len(text) != length:
        raise FormatError("not a whole .npy array: it ends within its header", file=where)
    shape, dtype, is_fortran = _parse(text.decode("utf-8" if start[6] == 3 else "latin-1", "replace"), where)
    offset = 8 + width + length
    try:
        count = bounds.elements(shape, dtype.itemsize)
    except FormatError as error:
        raise FormatError(f"not a whole .npy array: {error.message}", file=where) from None
    if count * dtype.itemsize > size - offset:
        raise FormatError(
            f"not a whole .npy array: shape {list(shape)} of {dtype} takes {count * dtype.itemsize:,} bytes, of which "
            f"{max(size - offset, 0):,} are there",
            file=where,
        )
    return ArrayHeader(shape, dtype, is_fortran, offset, count)


def _parse(text: str, where: str) -> tuple[tuple[int, ...], Any, bool]:
    import numpy as np

    try:
        fields: Any = ast.literal_eval(_LONG.sub("", text).strip())
        description, is_fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
        plain = isinstance(shape, tuple) and all(type(size) is int for size in cast("tuple[Any, ...]", shape))
        if not plain or not isinstance(is_fortran, bool):
            raise ValueError
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        raise FormatError("not a whole .npy array: the header is damaged", file=where) from None
    if not isinstance(description, str):
        raise FormatError("holds records of several fields, and a tensor has elements of one type", file=where)
    try:
        dtype = np.dtype(description)
    except (TypeError, ValueError, SyntaxError, OverflowError, MemoryError):
        raise FormatError(f"not a whole .npy array: there is no type '{description[:40]}'", file=where) from None
    if dtype.hasobject:
        raise FormatError(
            "holds Python objects (a pickle), which are never loaded; keep strings as fixed-width bytes (dtype S) "
            "or in a .json file",
            file=where,
        )
    if dtype.fields is not None or dtype.subdtype is not None:
        raise FormatError("holds records of several fields, and a tensor has elements of one type", file=where)
    if dtype.itemsize == 0:
        raise FormatError(f"holds elements of type '{dtype}', which have no bytes", file=where)
    return cast("tuple[int, ...]", shape), dtype, is_fortran


def read_array(file: BinaryIO, size: int, where: str) -> Array:
    """The array of an .npy file; see `read_header`."""
    import numpy as np

    header = read_header(file, size, where)
    data = np.empty(header.count, header.dtype)
    plain: Any = data.view(np.uint8) if header.count else b""
    view = memoryview(plain)
    at = 0
    while at < len(view):
        piece = file.read(min(_CHUNK, len(view) - at))
        if not piece:
            raise FormatError(f"not a whole .npy array: it ends at byte {header.offset + at:,}", file=where)
        view[at : at + len(piece)] = piece
        at += len(piece)
    if header.is_fortran:
        return data.reshape(header.shape[::-1]).transpose()
    return data.reshape(header.shape)


def _read_bytes(file: BinaryIO, size: int, where: str) -> bytes:
    return file.read(size)


class Archive:
    """An .npz archive.

    Args:
        file: its path, or an open file.
        path: its name, for errors.

    Attributes:
        members: what is in it by name, folders left out.

    Raises:
        FormatError: it is no zip file; a member is there twice, is packed or encrypted in another way than archives
            of arrays are, announces more than its bytes can become, or shares bytes with another.
        OSError: the file cannot be opened.
    """

    def __init__(self, file: str | BinaryIO, path: str):
        self.path = path
        try:
            self._zip = zipfile.ZipFile(file)
        except OSError:
            raise
        except _DAMAGE as error:
            raise FormatError(
                f"not an .npz archive (no zip file, or its end is missing): {' '.join(str(error).split())}", file=path
            ) from None
        self.members: dict[str, zipfile.ZipInfo] = {}
        for info in self._zip.infolist():
            if not info.filename.endswith("/"):
                self._check(info)
                self.members[info.filename] = info
        stored = sum(info.compress_size for info in self.members.values())
        if stored > self._zip.start_dir:
            raise FormatError(
                f"a damaged .npz archive: its members take {stored:,} bytes, and there are {self._zip.start_dir:,}",
                file=path,
            )

    def _check(self, info: zipfile.ZipInfo) -> None:
        name = info.filename
        if name in self.members:
            raise FormatError(f"a damaged .npz archive: '{name}' is in it twice", file=self.path)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            what = "encrypted" if info.flag_bits & 1 else f"compressed in way {info.compress_type}"
            raise FormatError(
                f"not an .npz archive as NumPy writes them: '{name}' is {what}; stored and deflated members are read",
                file=self.path,
            )
        most = info.compress_size
        if info.compress_type == zipfile.ZIP_DEFLATED:
            most = bounds.DEFLATE_LIMIT * (most + 1)
        if info.file_size > most:
            raise FormatError(
                f"a damaged .npz archive: '{name}' cannot become {info.file_size:,} bytes from {info.compress_size:,}",
                file=self.path,
            )

    def header(self, name: str, where: str = "") -> ArrayHeader:
        """The header of a member.

        Raises:
            FormatError: see `read_header`, or the archive is damaged.
        """
        return self._read(name, where, read_header)

    def array(self, name: str, where: str = "") -> Array:
        """The array of a member; its checksum is checked.

        Raises:
            FormatError: see `read_header`, or the archive is damaged.
        """
        return self._read(name, where, read_array)

    def bytes(self, name: str, where: str = "") -> bytes:
        """The bytes of a member.

        Raises:
            FormatError: the archive is damaged.
        """
        return self._read(name, where, _read_bytes)

    def _read(self, name: str, where: str, read: Any) -> Any:
        info = self.members[name]
        shown = where or f"{self.path}:{name.removesuffix(SUFFIX)}"
        try:
            with self._zip.open(info) as file:
                found = read(file, info.file_size, shown)
                if read is not read_header:
                    while file.read(_CHUNK):  # to the end, where the checksum is compared
                        pass
                return found
        except FormatError:
            raise
        except _DAMAGE as error:
            raise FormatError(f"damaged: {' '.join(str(error).split())}", file=shown) from None

    def close(self) -> None:
        self._zip.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
