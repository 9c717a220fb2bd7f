"""What a child may use: memory, file sizes, its own folder; and what it is seen to touch beyond that."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

#: bytes of memory beyond what is there when a child starts
MEMORY = 2 << 30
#: bytes of a file
FILE_SIZE = 256 << 20
_PR_SET_PDEATHSIG = 1

#: what may be read: Python, the project, what the system's libraries look at
_READABLE = tuple(
    {
        os.path.realpath(path)
        for path in (
            sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]), "/usr", "/lib", "/lib64", "/proc", "/sys",
            "/dev/null", "/dev/urandom", "/etc/localtime", "/etc/fonts", "/etc/ssl", "/etc/mime.types",
            "/etc/ld.so.cache",
        )
    }
)  # fmt: skip
_WRITES = {
    "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.chown", "os.utime", "os.rename", "os.link",
    "os.symlink",
}  # fmt: skip
_FORBIDDEN = {
    "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "subprocess.Popen", "pty.spawn",
    "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "urllib.Request", "ftplib.connect",
    "smtplib.connect", "webbrowser.open",
}  # fmt: skip


class Audit:
    """Sees what Python opens, changes, starts and connects to.

    Attributes:
        folder: the only place where that is right; None while nothing is watched.
        seen: what was touched elsewhere: (event, what).
        programs: names of programs that may be started.
    """

    def __init__(self) -> None:
        self.folder: str | None = None
        self.seen: list[tuple[str, str]] = []
        self.programs: tuple[str, ...] = ("dot", "graphviz-pure")
        sys.dont_write_bytecode = True  # what Python would keep of a module is no file of the case
        sys.addaudithook(self._hook)

    def watch(self, folder: Path | None) -> None:
        self.folder = None if folder is None else os.path.realpath(folder)
        self.seen = []

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self.folder is None or not (event == "open" or event in _WRITES or event in _FORBIDDEN):
            return
        if event in _FORBIDDEN:
            what = str(args[0])
            if not (event in ("subprocess.Popen", "os.posix_spawn") and os.path.basename(what) in self.programs):  # noqa: PTH119
                self.seen.append((event, what))
            return
        folder, self.folder = self.folder, None  # looking at paths raises events of its own
        try:
            self._path(event, args, folder)
        finally:
            self.folder = folder

    def _path(self, event: str, args: tuple[Any, ...], folder: str) -> None:
        paths = args[:2] if event in ("os.rename", "os.link") else args[1:2] if event == "os.symlink" else args[:1]
        writes = event in _WRITES
        if event == "open":
            flags = args[2] if len(args) > 2 and isinstance(args[2], int) else 0
            if flags & os.O_PATH:  # a place on the way to a file, which this does not open
                return
            writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND))
        for path in paths:
            if isinstance(path, int) or path is None:
                continue
            try:
                real = os.path.realpath(os.fsdecode(path))
            except ValueError:  # a name that no file can have
                continue
            inside = real == folder or real.startswith(folder + os.sep) or real == "/dev/null"
            readable = not writes and any(real == place or real.startswith(place + os.sep) for place in _READABLE)
            if not inside and not readable:
                self.seen.append((f"{event}{' for writing' if writes and event == 'open' else ''}", real))


def limit() -> None:
    """Put limits on this process, and end it with its parent."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    data = int(_status("VmData")) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (data + MEMORY, data + MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def reset_peak() -> None:
    """Forget the most memory that was used."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The most bytes of memory that were in use since `reset_peak`."""
    return int(_status("VmHWM")) * 1024


def resident() -> int:
    """Bytes of memory in use."""
    return int(_status("VmRSS")) * 1024


def _status(key: str) -> str:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return line.split()[1]
    return "0"
