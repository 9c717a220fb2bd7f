"""Checkpoints in object stores (s3://, gs://, ...) through fsspec, which is an extra.

Objects are read by ranges. They are written whole: a checkpoint's files are made in the local folder for temporary
files and uploaded, the index last, so it is complete or absent there too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

from toolkit.errors import GraphmillError, UnavailableError, UsageError

T = TypeVar("T")
#: bytes that are asked for at once when a file is read from front to back: a request costs more than they do
_READ_AHEAD = 8 << 20

#: kinds of URLs whose files must be in a folder that exists
_WITH_FOLDERS = frozenset({"file", "local", "ftp", "hdfs", "arrow_hdfs", "webhdfs", "sftp", "smb", "ssh"})


def is_remote(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


def knows(path: str) -> bool:
    """Whether fsspec is installed and has heard of this kind of URL."""
    try:
        import fsspec
    except ImportError:
        return False
    kind = path.partition("://")[0].rpartition("::")[2]
    return kind in cast("list[str]", cast(Any, fsspec).available_protocols())


def join(folder: str, name: str) -> str:
    """A name in a remote folder; a URL stays as it is."""
    return name if is_remote(name) else f"{folder.rstrip('/')}/{name}"


def _filesystem(path: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it.

    Raises:
        UsageError: fsspec, or its package for this kind of URL, is not installed.
    """
    kind = path.partition("://")[0]
    try:
        import fsspec

        return cast(tuple[Any, str], cast(Any, fsspec).core.url_to_fs(path))
    except ImportError as error:
        raise UsageError(
            f"{kind}:// paths need fsspec and its package for {kind}: pip install 'graphmill[remote]' ({error})",
            file=path,
        ) from None
    except ValueError as error:
        raise UsageError(f"there is no such kind of path: {error}", file=path) from None


def _attempt(path: str, job: Callable[[Any, str], T]) -> T:
    """Do something with a remote file.

    Raises:
        FileNotFoundError: it does not exist.
        UnavailableError: anything else went wrong; the stores have exceptions of their own.
    """
    system, name = _filesystem(path)
    try:
        return job(system, name)
    except (FileNotFoundError, GraphmillError):
        raise
    except Exception as error:
        raise UnavailableError(f"the store failed: {type(error).__name__}: {error}", file=path) from error


def exists(path: str) -> bool:
    return _attempt(path, lambda system, name: bool(system.exists(name)))


def is_file(path: str) -> bool:
    return _attempt(path, lambda system, name: bool(system.isfile(name)))


def is_folder(path: str) -> bool:
    return _attempt(path, lambda system, name: bool(system.isdir(name)))


def names(folder: str) -> list[str]:
    """The names of what is in a folder; nothing for one that does not exist."""
    try:
        found = _attempt(folder, lambda system, name: system.ls(name, detail=False))
    except FileNotFoundError:
        return []
    return [str(path).rstrip("/").rpartition("/")[2] for path in found]


def size_and_time(path: str) -> tuple[int, float]:
    """The bytes of a file and when it was last written; 0 where the store does not say."""

    def look(system: Any, name: str) -> tuple[int, float]:
        try:
            written = float(system.modified(name).timestamp())
        except (NotImplementedError, AttributeError, KeyError):
            written = 0.0
        return int(system.size(name)), written

    return _attempt(path, look)


def read(path: str) -> bytes:
    """A whole file."""
    return _attempt(path, lambda system, name: cast(bytes, system.cat_file(name)))


def write(path: str, data: bytes) -> None:
    """Replace a whole file."""
    _attempt(path, lambda system, name: system.pipe_file(name, data))


def make_folder(path: str) -> None:
    """Create a folder, where the kind of URL has any; in object stores a name with slashes is all there is."""
    if path.partition("://")[0] in _WITH_FOLDERS:
        _attempt(path, lambda system, name: system.makedirs(name, exist_ok=True))


def upload(local: str, path: str) -> None:
    """Replace a file by a local one."""
    _attempt(path, lambda system, name: system.put_file(local, name))


def move(source: str, target: str) -> None:
    """Give a file another name in the same store."""
    _, name = _filesystem(target)
    _attempt(source, lambda system, old: system.mv(old, name))


def remove(path: str) -> None:
    """Remove a file if it is there."""
    with contextlib.suppress(FileNotFoundError):
        _attempt(path, lambda system, name: system.rm_file(name))


class RemoteFile:
    """A file that is read by ranges; the counterpart of `paths.ReadableFile`."""

    def __init__(self, path: str):
        self.path = path
        self.size: int = _attempt(path, lambda system, name: int(system.size(name)))
        self._ahead = (0, b"")  # where the last request began, and what it brought
        self._next = -1  # where the last read ended: the one that goes on there is worth reading ahead for

    def read_at(self, offset: int, size: int) -> bytes:
        """`size` bytes at `offset`, fewer at the end of the file."""
        end = min(offset + size, self.size)
        if end <= offset:
            return b""
        start, data = self._ahead
        if not start <= offset <= end <= start + len(data):
            last = min(offset + _READ_AHEAD, self.size) if offset == self._next else end
            start, data = offset, self._fetch(offset, max(end, last))
            self._ahead = (start, data)
        self._next = end
        return data[offset - start : end - start]

    def _fetch(self, start: int, end: int) -> bytes:
        data = _attempt(self.path, lambda system, name: cast(bytes, system.cat_file(name, start=start, end=end)))
        if len(data) != end - start:
            raise UnavailableError(f"the store gave {len(data)} bytes of {end - start}", file=self.path)
        return data

    def view(self, offset: int, size: int) -> bytes:
        """Bytes for an array."""
        return self.read_at(offset, size)

    def close(self) -> None:
        """Nothing is open between reads."""

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
