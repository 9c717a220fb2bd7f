"""Folders in one stream: a tar archive of a SavedModel's or of partitions' folder, as it goes through a pipe.

`tar xf` unpacks what is written here, and what `tar cf` makes of a SavedModel is read. Written are plain files and
folders, without times and owners, so the same folder gives the same bytes. What is read is unpacked into a temporary
folder, which is gone when the program ends; links, devices, holes and paths that lead out of it are refused, and a
stream that ends early is, too.

Python's tarfile writes, and does not read: it takes a stream that ends between two members for a whole one, so that
what a broken pipe left out would be missed, and it reads extended headers of any size into memory.

The format: POSIX.1-1988 (ustar), with the extended headers of POSIX.1-2001 (pax) for names that do not fit; GNU tar's
long names are read. Headers have 512 bytes, contents are padded to that, and two empty headers are the end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from toolkit.errors import FormatError, GraphmillError, name_place
from toolkit.formats import bounds
from toolkit.formats.io import Readable

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

#: where and how every header of the formats that are read says so
_MAGIC_OFFSET, _MAGIC = 257, b"ustar"
SUFFIX = ".tar"
_BLOCK = 512
#: bytes of the end of an archive
END_SIZE = 2 * _BLOCK
_CHUNK = 1 << 20
#: what is read beyond the end: GNU tar fills up 10 KiB, and whoever writes must not find the pipe closed
_PADDING = 1 << 20
_FILE, _FOLDER = b"0\0", b"5"
_EXTENDED, _GLOBAL, _LONG_NAME = b"x", b"g", b"L"
_REFUSED = {
    b"1": "a link", b"2": "a link", b"3": "a device", b"4": "a device", b"6": "a pipe", b"S": "a file with holes",
}  # fmt: skip
#: folders that were unpacked and are still there
_unpacked: list[TemporaryDirectory[str]] = []


# -- writing ---------------------------------------------------------------------------------------------


def write_archive(folder: Path, file: BinaryIO, first: str) -> None:
    """Write all files and folders in a folder as a tar archive; links are followed.

    Args:
        first: the file that comes first, which says what the archive is.

    Raises:
        OSError: something cannot be read or written.
    """
    import tarfile

    paths = sorted(folder.rglob("*"), key=lambda path: (path.name != first or path.parent != folder, path.parts))
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for path in paths:
            info = tarfile.TarInfo(path.relative_to(folder).as_posix())
            if path.is_dir():
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(info)
                continue
            with path.open("rb") as content:
                info.size = os.fstat(content.fileno()).st_size
                archive.addfile(info, content)


def is_archive(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a tar archive."""
    return head.startswith(_MAGIC, _MAGIC_OFFSET)


def may_be_archive(source: str) -> bool:
    """Whether something that is to be read is, or may turn out to be, a tar archive: a stream can be read only once."""
    path = Path(source)
    try:
        if source == "-" or not path.is_file():
            return source == "-" or (path.exists() and not path.is_dir())
        with path.open("rb") as file:
            return is_archive(file.read(_BLOCK))
    except (OSError, ValueError):
        return False


# -- reading ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Member:
    name: str
    kind: bytes
    size: int


def unpack(stream: Readable, shown: str) -> Path:
    """Unpack a tar archive into a temporary folder.

    A folder that is alone in the archive, as in what `tar cf model.tar model` writes, is taken in its place.

    Args:
        stream: read from here to its end; it need not be a file.
        shown: what messages call it.

    Raises:
        FormatError: it is damaged or cut off, or has members that are no plain files or folders.
        GraphmillError: it cannot be unpacked here.
    """
    from tempfile import TemporaryDirectory

    try:
        holder = TemporaryDirectory(prefix="graphmill-")
    except OSError as error:
        raise GraphmillError(f"there is no place to unpack it: {error.strerror}", file=shown) from None
    _unpacked.append(holder)
    root = Path(os.path.realpath(holder.name))
    name_place(str(root), shown)
    reader = _Reader(stream, root)
    try:
        for member in reader.members():
            reader.place(member)
        return _inner(root)
    except GraphmillError as error:
        remove_unpacked(len(_unpacked) - 1)
        raise error.at(file=shown) from None


def count_unpacked() -> int:
    """How many folders were unpacked and are still there."""
    return len(_unpacked)


def remove_unpacked(since: int = 0) -> None:
    """Remove what was unpacked after there were `since` folders; the rest goes when the program ends."""
    while len(_unpacked) > since:
        holder = _unpacked.pop()
        name_place(os.path.realpath(holder.name), None)
        holder.cleanup()


def _inner(root: Path) -> Path:
    while len(entries := list(root.iterdir())) == 1 and entries[0].is_dir():
        root = entries[0]
    return root


class _Reader:
    def __init__(self, stream: Readable, root: Path):
        self._stream = stream
        self._root = root
        self._count = 0

    def members(self) -> Iterator[_Member]:
        """The files and folders of the archive, each to be taken before the next."""
        names: dict[str, Any] = {}
        while True:
            header = self._read(_BLOCK, "a header")
            if not any(header):
                break
            self._count += 1
            if self._count > bounds.TAR_MEMBERS:
                raise FormatError(f"the tar archive has more than {bounds.TAR_MEMBERS:,} members")
            member = self._parse(header)
            if member.kind in (_EXTENDED, _GLOBAL, _LONG_NAME):
                text = self._extra(member)
                if member.kind == _LONG_NAME:
                    names["path"] = text.rstrip(b"\0")
                elif member.kind == _EXTENDED:
                    names |= _records(text)
                continue
            yield self._renamed(member, names)
            names = {}
        left = _PADDING
        while left > 0 and (piece := self._stream.read(min(left, _CHUNK))):
            left -= len(piece)

    def place(self, member: _Member) -> None:
        """Write a member below the folder."""
        from shutil import disk_usage

        path = self._path(member.name)
        try:
            if member.kind == _FOLDER:
                path.mkdir(parents=True, exist_ok=True)
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            free = disk_usage(self._root).free - bounds.TAR_LEFT_FREE
            if member.size > free:
                raise FormatError(
                    f"the tar archive's '{member.name}' has {member.size:,} bytes, and {self._root.parent} has room "
                    f"for {max(0, free):,}; set TMPDIR to a larger place"
                )
            with path.open("xb") as file:
                self._copy(member, file)
        except (FileExistsError, NotADirectoryError):
            if path.exists() or path.is_symlink():
                raise FormatError(f"the tar archive has '{member.name}' twice") from None
            raise FormatError(f"the tar archive has a file where '{member.name}' needs a folder") from None
        except OSError as error:
            raise GraphmillError(f"'{member.name}' cannot be unpacked: {error.strerror}") from None

    def _copy(self, member: _Member, file: BinaryIO) -> None:
        left = member.size
        while left:
            piece = self._stream.read(min(left, _CHUNK))
            if not piece:
                raise FormatError(f"the tar archive is cut off: '{member.name}' lacks {left:,} of its bytes")
            file.write(piece)
            left -= len(piece)
        self._read(-member.size % _BLOCK, f"the end of '{member.name}'")

    def _read(self, size: int, what: str) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._stream.read(size - len(data))
            if not piece:
                raise FormatError(f"the tar archive is cut off where {what} should be")
            data += piece
        return data

    def _parse(self, header: bytes) -> _Member:
        where = f"header {self._count:,}"
        blank = header[:148] + b" " * 8 + header[156:]
        if sum(blank) != _number(header[148:156], f"the checksum of {where}"):
            raise FormatError(f"the tar archive is damaged: the checksum of {where} is wrong")
        name = header[:100].rstrip(b"\0").partition(b"\0")[0]
        if header[257:263] == b"ustar\0":
            prefix = header[345:500].partition(b"\0")[0]
            name = prefix + b"/" + name if prefix else name
        return _Member(_text(name), header[156:157], _number(header[124:136], f"the size in {where}"))

    def _extra(self, member: _Member) -> bytes:
        """The content of a header that speaks of the next member."""
        if member.size > bounds.TAR_HEADER:
            raise FormatError(f"an extended header of the tar archive has {member.size:,} bytes")
        data = self._read(member.size, "an extended header")
        self._read(-member.size % _BLOCK, "the end of an extended header")
        return data

    def _renamed(self, member: _Member, names: dict[str, Any]) -> _Member:
        """A member as the headers before it say, which is a file or a folder."""
        name = _text(names["path"]) if "path" in names else member.name
        size = _decimal(names["size"]) if "size" in names else member.size
        kind = member.kind
        if kind in _REFUSED or any(key.startswith("GNU.sparse") for key in names):
            what = _REFUSED.get(kind, "a file with holes")
            raise FormatError(
                f"the tar archive's '{name}' is {what}; it may hold files and folders (tar --dereference)"
            )
        if kind not in _FILE and kind != _FOLDER:
            raise FormatError(f"the tar archive's '{name}' is of the unknown kind {kind!r}")
        is_folder = kind == _FOLDER or name.endswith("/")
        return _Member(name, _FOLDER if is_folder else b"0", 0 if is_folder else size)

    def _path(self, name: str) -> Path:
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or len(parts) > bounds.TAR_DEPTH or (not parts and name[:1] != "."):
            raise FormatError(f"the tar archive's '{name}' would lie outside of the folder that it stands for")
        return self._root.joinpath(*parts)


def _number(field: bytes, what: str) -> int:
    """A number of a header: octal, or in GNU's binary form for the large ones."""
    if field[0] & 0x80:
        value = int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
        if field[0] & 0x40:
            raise FormatError(f"the tar archive is damaged: {what} is negative")
        return value
    text = field.strip(b"\0 ")
    try:
        return int(text or b"0", 8) if text.isdigit() or not text else int("x")
    except ValueError:
        raise FormatError(f"the tar archive is damaged: {what} is no number") from None


def _records(data: bytes) -> dict[str, bytes]:
    """The records of an extended header, each "LENGTH KEY=VALUE\\n"."""
    found: dict[str, bytes] = {}
    at = 0
    while at < len(data):
        digits, space, _ = data[at : at + 20].partition(b" ")
        length = int(digits) if space and digits.isdigit() else 0
        record = data[at + len(digits) + 1 : at + length]
        key, equals, value = record.partition(b"=")
        if not equals or not value.endswith(b"\n") or at + length > len(data):
            raise FormatError("the tar archive is damaged: an extended header is no list of records")
        found[_text(key)] = value[:-1]
        at += length
    return found


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > bounds.TAR_DIGITS:
        raise FormatError("the tar archive is damaged: a size in an extended header is no number")
    return int(text)


def _text(name: bytes) -> str:
    if b"\0" in name:
        raise FormatError("the tar archive is damaged: a name has a NUL character")
    return os.fsdecode(name)
