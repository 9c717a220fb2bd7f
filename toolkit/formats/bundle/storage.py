"""The file operations that checkpoints are made of, in one place, so that tests can make each of them fail.

A file is written under a temporary name, forced to disk and renamed; a reader sees all of it or none.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from toolkit.errors import NotFoundError, OpError, ResourceExhaustedError, os_status
from toolkit.formats.bundle import remote

#: what stands between a file's final name and the token of its writer while it is being written
TEMPORARY = ".tempstate"

#: after so many bytes the system is asked to start writing them to disk, so that forcing them at the end is short
_WRITEBACK = 32 << 20
_SYNC_FILE_RANGE_WRITE = 2

# The calls that can fail or be the last one before a crash. Tests replace them.
sys_write = os.write
sys_fsync = os.fsync
sys_replace = os.replace
sys_unlink = os.unlink


def failure(error: OSError, path: str, doing: str) -> OpError:
    """An operating system error as the status that TensorFlow reports for it, with one clear message."""
    status = os_status(error)
    if status is NotFoundError:
        return NotFoundError(f"no such file or folder while {doing}", file=path)
    left = "; nothing was left behind" if status is ResourceExhaustedError else ""
    return status(f"{(error.strerror or str(error)).lower()} while {doing}{left}", file=path)


def start_writeback(fd: int, offset: int, size: int) -> None:
    """Ask the system to start writing a part of a file to disk, without waiting; where it cannot, nothing happens."""
    import ctypes

    with contextlib.suppress(OSError):
        sync_file_range: Any = getattr(ctypes.CDLL(None), "sync_file_range", None)
        if sync_file_range is not None:
            sync_file_range(fd, ctypes.c_int64(offset), ctypes.c_int64(size), ctypes.c_uint(_SYNC_FILE_RANGE_WRITE))


class TemporaryFile:
    """A file being written; it appears under its name when `commit_all` renames it.

    Args:
        path: the final name.

    Raises:
        OpError: it cannot be created.
    """

    def __init__(self, path: str):
        self.path = path
        self.temporary = f"{path}{TEMPORARY}{os.getpid()}-{os.urandom(6).hex()}"
        self.size = 0
        self._started = 0  # writing to disk has been started for the bytes before
        self.is_committed = False
        try:
            self._fd = os.open(self.temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise failure(error, path, "creating it") from None

    def write(self, data: Any) -> None:
        """Append bytes, or the bytes of a contiguous array.

        Raises:
            OpError: the disk is full or fails.
        """
        view = memoryview(data)
        try:
            while len(view):
                written = sys_write(self._fd, view)
                self.size += written
                view = view[written:]
            if self.size - self._started >= _WRITEBACK:
                start_writeback(self._fd, self._started, self.size - self._started)
                self._started = self.size
        except OSError as error:
            raise failure(error, self.path, "writing it") from None

    def stream(self) -> Any:
        """A file object that appends to this file, for libraries that want one."""
        return _Stream(self)

    def sync(self) -> None:
        """Force what was written to disk, and close the file.

        Raises:
            OpError: the disk is full or fails.
        """
        if self._fd < 0:
            return
        try:
            sys_fsync(self._fd)
        except OSError as error:
            raise failure(error, self.path, "forcing it to disk") from None
        finally:
            self._close()

    def commit(self) -> None:
        """Give a synced file its name.

        Raises:
            OpError: it fails.
        """
        rename(self.temporary, self.path)
        self.is_committed = True

    def discard(self) -> None:
        """Remove what was written. Does nothing once the file has its final name."""
        self._close()
        with contextlib.suppress(OSError):
            sys_unlink(self.temporary)

    def undo(self) -> None:
        """Take back the final name, where it was given."""
        if self.is_committed:
            with contextlib.suppress(OSError):
                sys_unlink(self.path)

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RemoteTemporary(TemporaryFile):
    """A file for an object store: written here, uploaded when it gets its name.

    Args:
        path: its URL.

    Raises:
        OpError: it cannot be created.
    """

    def __init__(self, path: str):  # the base's would create it beside its final name
        self.path = path
        self.size = 0
        self._started = 0
        self.is_committed = False
        try:
            self._fd, self.temporary = tempfile.mkstemp(prefix="checkpoint-")
        except OSError as error:
            raise failure(error, path, "creating it") from None

    def commit(self) -> None:
        remote.upload(self.temporary, self.path)
        self.is_committed = True
        super().discard()

    def undo(self) -> None:
        if self.is_committed:
            with contextlib.suppress(OpError):
                remote.remove(self.path)


def create(path: str) -> TemporaryFile:
    """Start a file that appears when it is committed, here or in an object store; its folder is created.

    Raises:
        OpError: it cannot be created.
    """
    make_folder(path)
    return RemoteTemporary(path) if remote.is_remote(path) else TemporaryFile(path)


class _Stream(io.RawIOBase):
    """What zipfile needs of a file: write and tell."""

    def __init__(self, file: TemporaryFile):
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(data)
        return len(data)

    def tell(self) -> int:
        return self._file.size


def commit_all(files: Iterable[TemporaryFile]) -> None:
    """Give synced files their names, in order, and force the folder to disk.

    Raises:
        OpError: a rename fails.
    """
    folders: set[str] = set()
    for file in files:
        file.commit()
        if not remote.is_remote(file.path):
            folders.add(str(Path(file.path).parent))
    for folder in folders:
        sync_folder(folder)


def rename(source: str, target: str) -> None:
    """Rename, replacing the target.

    Raises:
        OpError: it fails.
    """
    try:
        sys_replace(source, target)
    except OSError as error:
        raise failure(error, target, "renaming it into place") from None


def sync_folder(folder: str) -> None:
    """Force a folder's entries to disk, where the file system can."""
    with contextlib.suppress(OSError):
        fd = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sys_fsync(fd)
        finally:
            os.close(fd)


def make_folder(path: str) -> None:
    """Create the folder that a file is to be in.

    Raises:
        OpError: it cannot be created.
    """
    if remote.is_remote(path):
        remote.make_folder(path.rpartition("/")[0])
        return
    folder = Path(path).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise failure(error, str(folder), "creating the folder") from None


def write_file(path: str, data: bytes) -> None:
    """Replace a small file as a whole.

    Raises:
        OpError: it cannot be written.
    """
    if remote.is_remote(path):
        remote.write(path, data)
        return
    file = TemporaryFile(path)
    try:
        file.write(data)
        file.sync()
        commit_all([file])
    except BaseException:
        file.discard()
        raise


def remove(path: str) -> None:
    """Remove a file if it is there.

    Raises:
        OpError: it cannot be removed.
    """
    if remote.is_remote(path):
        remote.remove(path)
        return
    try:
        sys_unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise failure(error, path, "removing it") from None
