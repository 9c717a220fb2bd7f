"""A large file is read by another thread while this one imports what will look at it.

Most of the time that reading takes goes into memory that is touched for the first time, and needs no interpreter: a
network of 100 MB is there when the modules are. `toolkit.formats.io.read_bytes` takes what was read if the file is
still what it was; whatever goes wrong here is met again there, where somebody is told.
"""

from __future__ import annotations

import mmap
import os
import stat
import threading
from io import FileIO

from toolkit.forks import held_over_forks

#: bytes from which on a file takes longer to read (some 2 ms) than a thread to start, with much room
WORTH = 4 << 20
#: what protocol buffers refuse is not read at all
_MOST = 2**31 - 1
#: how a GraphDef begins: with its first node; archives and other models are read in other ways
_BEGINS = b"\n"

#: what tells whether a file is the same and as it was: device, number, size, time of change
_Identity = tuple[int, int, int, int]


class _Ahead:
    """One file, which is being read."""

    def __init__(self, name: str):
        self.name = name
        self._found: tuple[_Identity, mmap.mmap] | None = None
        # a process that ends on a mistake before it asks for the file does not wait for it
        self._thread = threading.Thread(target=self._read, name="graphmill read", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            with open(self.name, "rb", buffering=0) as file:  # noqa: PTH123 -- the name as it was given
                before = _identity(os.fstat(file.fileno()))
                if file.read(1) != _BEGINS:
                    return
                file.seek(0)
                data = _memory(before[2])
                if _fill(data, file) and before == _identity(os.fstat(file.fileno())):
                    self._found = before, data
        except (OSError, ValueError, MemoryError):
            pass  # it is read again, and said

    def take(self, status: os.stat_result) -> mmap.mmap | None:
        """What was read, once it is; None where it is not all of the file of this status. It is not kept."""
        self._thread.join()
        found, self._found = self._found, None
        return found[1] if found is not None and found[0] == _identity(status) else None


_lock = held_over_forks()
_current: _Ahead | None = None


def read_ahead(name: str) -> None:
    """Begin to read a file that `read_bytes` will be asked for under this name, if it is a GraphDef of some size.

    One file at a time: what was begun before and not taken is forgotten.
    """
    global _current
    try:
        status = os.stat(name)  # noqa: PTH116
        is_worth_it = stat.S_ISREG(status.st_mode) and WORTH <= status.st_size <= _MOST
    except (OSError, ValueError):
        is_worth_it = False  # whoever opens it says what is wrong
    with _lock:
        _current = _Ahead(name) if is_worth_it else None


def taken(name: str, status: os.stat_result) -> mmap.mmap | None:
    """The content of a file that was begun under this name, in memory that is the caller's from now on; None where none
    was, or it is another file by now."""
    global _current
    with _lock:
        found = _current
        if found is None or found.name != name:
            return None
        _current = None
    return found.take(status)


def _memory(size: int) -> mmap.mmap:
    """Memory of this process alone.

    Not in large pages: in a virtual machine whose host gives it memory when that is first touched, 100 MB of them took
    a new process 70 to 160 ms, and 70 to 100 in small ones.
    """
    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows, where it is always so
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _fill(data: mmap.mmap, file: FileIO) -> bool:
    """Whether a file has the bytes, which are then there."""
    whole, at = memoryview(data), 0
    while at < len(whole):
        count = file.readinto(whole[at:])
        if not count:
            return False
        at += count
    return not file.read(1)


def _identity(status: os.stat_result) -> _Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
