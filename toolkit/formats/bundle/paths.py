"""Looking at files, local ones and those in object stores alike: what is there, how large, which bytes."""

from __future__ import annotations

import io
import mmap
import os
import threading
from pathlib import Path
from typing import Any

from toolkit.formats.bundle import remote
from toolkit.formats.io import open_regular

#: bytes that a stream reads ahead: a request to a store costs more than they do
_STREAM_BUFFER = 1 << 20


class ReadableFile:
    """An open regular file: bytes at a position, or the whole of it as a memory map.

    Raises:
        OSError: it cannot be opened, or it is a folder, a pipe or a device.
    """

    def __init__(self, path: str):
        self.path = path
        self._fd = open_regular(path)
        self.size = os.fstat(self._fd).st_size
        self._map: mmap.mmap | None = None
        self._mapping = threading.Lock()

    def read_at(self, offset: int, size: int) -> bytes:
        """`size` bytes at `offset`, fewer at the end of the file."""
        data = os.pread(self._fd, size, offset)
        while 0 < len(data) < size:
            more = os.pread(self._fd, size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def view(self, offset: int, size: int) -> memoryview:
        """Bytes of the file in memory, for an array; nothing is copied."""
        return memoryview(self.map)[offset : offset + size]

    @property
    def map(self) -> mmap.mmap:
        """The file in memory, read-only; it must not be empty."""
        with self._mapping:
            if self._map is None:
                self._map = mmap.mmap(self._fd, 0, access=mmap.ACCESS_READ)
            return self._map

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> ReadableFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_fd"):
            self.close()


def open_file(path: str) -> ReadableFile | remote.RemoteFile:
    """Open a local file or one in an object store.

    Raises:
        OSError: it cannot be opened.
        OpError: the store failed.
    """
    return remote.RemoteFile(path) if remote.is_remote(path) else ReadableFile(path)


def open_stream(path: str) -> io.BufferedReader:
    """The same as a file object with seek and tell, for libraries that want one."""
    return io.BufferedReader(_Stream(open_file(path)), _STREAM_BUFFER)


class _Stream(io.RawIOBase):
    """Reads a file by ranges, wherever it is."""

    def __init__(self, file: ReadableFile | remote.RemoteFile):
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._file.size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read_at(self._at, len(buffer))
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def close(self) -> None:
        self._file.close()
        super().close()


def read_file(path: str) -> bytes:
    """A whole small file; see `open_file`."""
    if remote.is_remote(path):
        return remote.read(path)
    with ReadableFile(path) as file:
        return file.read_at(0, file.size)


def exists(path: str) -> bool:
    """Whether there is such a file or folder."""
    return remote.exists(path) if remote.is_remote(path) else Path(path).exists()


def is_file(path: str) -> bool:
    """Whether it is a file."""
    return remote.is_file(path) if remote.is_remote(path) else Path(path).is_file()


def is_folder(path: str) -> bool:
    """Whether it is a folder."""
    return remote.is_folder(path) if remote.is_remote(path) else Path(path).is_dir()


def names_in(folder: str) -> list[str]:
    """The names of what is in a folder; nothing for one that does not exist."""
    if remote.is_remote(folder):
        return remote.names(folder)
    try:
        return [path.name for path in Path(folder).iterdir()]
    except OSError:
        return []


def size_and_time(path: str) -> tuple[int, float]:
    """The bytes of a file and when it was last written, in seconds since the epoch (0 where a store does not say).

    Raises:
        OSError: there is no such file.
        OpError: the store failed.
    """
    if remote.is_remote(path):
        return remote.size_and_time(path)
    found = Path(path).stat()
    return found.st_size, found.st_mtime


def resolved(path: str) -> str:
    """A path that is the same however it is written, for comparing."""
    return path.rstrip("/") if remote.is_remote(path) else os.path.realpath(path)


def is_inside(folder: str, path: str) -> bool:
    """Whether a path really is below a folder, whatever links and dots it goes through."""
    above = resolved(folder)
    return (
        "/.." not in path and path.startswith(above + "/")
        if remote.is_remote(path)
        else (not remote.is_remote(folder) and Path(os.path.realpath(path)).is_relative_to(above))
    )


def join(folder: str, name: str) -> str:
    """A name in a folder; an absolute path stays as it is."""
    return remote.join(folder, name) if remote.is_remote(folder) else str(Path(folder, name))


def split(path: str) -> tuple[str, str]:
    """The folder and the name of a path."""
    if remote.is_remote(path):
        folder, _, name = path.rpartition("/")
        return folder, name
    return str(Path(path).parent), Path(path).name
