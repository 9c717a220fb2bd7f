"""Reading and writing files: standard streams, atomic replacement, one clear message for what goes wrong.

"-" is standard input or standard output everywhere.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import sys
from collections.abc import Callable, Generator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Protocol

from toolkit.errors import ABOUT_INPUT, STDIN_NAME, FormatError, GraphmillError, UsageError, did_you_mean, os_status
from toolkit.formats import ahead

STDIO = "-"
#: Protocol buffers refuse messages of 2 GiB and more, in every implementation.
PROTO_LIMIT = 2**31 - 1
_CHUNK = 1 << 20

Writer = Callable[[BinaryIO], None]


class Readable(Protocol):
    """What is read from here to its end: a file, a pipe, bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes, all of them for -1; none at the end."""
        ...


def read_bytes(source: str | Path, *, is_message: bool = False) -> bytes:
    """The whole content of a file, or of standard input for "-".

    Args:
        is_message: refuse a file over the protobuf limit before it is read.

    Raises:
        GraphmillError: it is missing, a folder, not readable, or over the limit.
    """
    data = read_owned(source, is_message=is_message)
    return data if isinstance(data, bytes) else data[:]


def read_owned(source: str | Path, *, is_message: bool = False) -> bytes | mmap.mmap:
    """As `read_bytes`, but what was read ahead comes as it is: memory that is the caller's, to be changed as well."""
    name = os.fspath(source)
    if name == STDIO:
        return read_stdin()
    with open_input(name) as file:
        status = os.fstat(file.fileno())
        if is_message:
            check_size(status.st_size, name)
        try:
            if stat.S_ISREG(status.st_mode):
                begun = ahead.taken(name, status)
                return file.read() if begun is None else begun
            return read_stream(file, name)
        except OSError as error:
            raise _os_error(error, name) from None
        except MemoryError:
            raise GraphmillError("there is not enough memory to read it", file=name) from None


def read_piped(source: str | Path) -> bytes | None:
    """The content of standard input ("-") or of a pipe, which can be read only once; None for what lies on a disk.

    Raises:
        GraphmillError: it cannot be read.
    """
    name = os.fspath(source)
    try:
        mode = 0 if name == STDIO else Path(name).stat().st_mode
    except (OSError, ValueError):
        return None  # reading it as what it should be says what is wrong
    is_stream = name == STDIO or stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)
    return read_bytes(name) if is_stream else None


def read_stdin() -> bytes:
    """All of standard input as bytes.

    Raises:
        UsageError: standard input is a terminal, where nobody pipes anything in.
    """
    return read_stream(stdin_stream(), STDIN_NAME)


def stdin_stream() -> BinaryIO:
    """Standard input, for reading.

    Raises:
        UsageError: it is a terminal, where nobody pipes anything in.
    """
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise UsageError("there is no standard input; give a file")
    if sys.stdin.isatty():
        raise UsageError("nothing is piped into standard input; give a file or put a command in front of '|'")
    return stream


def read_stream(stream: Readable, name: str) -> bytes:
    """All of a pipe or device. It is held in memory, so it may not be larger than a message.

    Raises:
        FormatError: it is over PROTO_LIMIT.
    """
    pieces: list[bytes] = []
    size = 0
    while piece := stream.read(_CHUNK):
        size += len(piece)
        if size > PROTO_LIMIT:
            raise FormatError(f"more than {PROTO_LIMIT:,} bytes come through the pipe; give a file instead", file=name)
        pieces.append(piece)
    return b"".join(pieces)


def read_some(stream: Readable, size: int, name: str) -> bytes:
    """The first bytes of a stream: `size`, or all where there are fewer.

    Raises:
        GraphmillError: it cannot be read.
    """
    pieces: list[bytes] = []
    try:
        while size > 0 and (piece := stream.read(size)):
            pieces.append(piece)
            size -= len(piece)
    except OSError as error:
        raise _os_error(error, name) from None
    return b"".join(pieces)


class Joined:
    """Bytes that were taken from a stream, and what is left of it, as one stream."""

    def __init__(self, taken: bytes, rest: Readable):
        self._taken = taken
        self._rest = rest

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes; none at the end."""
        if not self._taken:
            return self._rest.read(size)
        end = len(self._taken) if size < 0 else size
        piece, self._taken = self._taken[:end], self._taken[end:]
        return piece if size >= 0 else piece + self._rest.read()


def open_input(name: str) -> BinaryIO:
    """Open a file for reading.

    Raises:
        GraphmillError: it is missing, a folder, or not readable.
    """
    try:
        return Path(name).open("rb")
    except (OSError, ValueError) as error:
        raise _os_error(error, name) from None


def open_regular(path: str | Path, flags: int = os.O_RDONLY, *, dir_fd: int | None = None) -> int:
    """Open a file that a model or a folder names, not a user: it has to be a regular one, and opening it never waits.

    A user may give a pipe. One that lies where a file is looked for would be waited for without end.

    Args:
        flags: of `os.open`. What is written may be a device, such as /dev/null, too.

    Returns:
        the descriptor.

    Raises:
        OSError: it cannot be opened; EISDIR for a folder, EINVAL for what is no regular file.
    """
    no_waiting = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags | no_waiting, 0o666, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a pipe that nobody reads
            raise _not_regular("a pipe or a socket", path) from None
        raise
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    if stat.S_ISCHR(mode) and flags & (os.O_WRONLY | os.O_RDWR):
        os.set_blocking(descriptor, True)
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise _not_regular("a pipe" if stat.S_ISFIFO(mode) else "a device", path)


def check_member(path: str | Path) -> None:
    """Refuse what lies where a folder has a file and is none: it would be waited for. A missing one passes.

    Raises:
        FormatError: it is a pipe, a socket or a device.
    """
    mode = _mode(Path(path))
    if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise FormatError("is a pipe, a socket or a device; a folder holds regular files", file=os.fspath(path))


def _not_regular(what: str, path: str | Path) -> OSError:
    return OSError(errno.EINVAL, f"it is {what}, not a regular file", os.fspath(path))


def check_size(size: int, name: str) -> None:
    """Refuse what protocol buffers cannot hold.

    Raises:
        FormatError: `size` is over PROTO_LIMIT.
    """
    if size > PROTO_LIMIT:
        raise FormatError(
            f"{size:,} bytes are over the protobuf limit of 2 GiB ({PROTO_LIMIT:,} bytes); a name that ends in .cpb, "
            "or a SavedModel's folder, splits it, and a checkpoint can hold the weights",
            file=name,
        )


def write_output(dest: str | Path, data: bytes | str, binary: bool | None = None) -> None:
    """Write a result to a file, atomically, or to standard output for "-".

    Args:
        binary: whether the data is no text for a terminal; by default, whether it is `bytes`.

    Raises:
        UsageError: binary data would go to a terminal.
        GraphmillError: the file cannot be written.
    """
    name = os.fspath(dest)
    payload = data.encode() if isinstance(data, str) else data
    if name != STDIO:
        write_atomic(name, payload)
        return
    is_binary = isinstance(data, bytes) if binary is None else binary
    if is_binary:
        _refuse_terminal()
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # a test or a notebook replaced it by a text stream
        sys.stdout.write(payload.decode())
        return
    sys.stdout.flush()
    stream.write(payload)
    stream.flush()


def write_pieces(dest: str | Path, writer: Writer) -> None:
    """Write a file atomically, or binary data to standard output for "-", a piece at a time.

    Raises:
        UsageError: it would go to a terminal.
        GraphmillError: the file cannot be written.
    """
    if os.fspath(dest) != STDIO:
        write_atomic(dest, writer)
        return
    pieces = BytesIO()
    writer(pieces)
    write_output(STDIO, pieces.getvalue())


def write_streamed(dest: str | Path, writer: Writer) -> None:
    """Write a file atomically, or binary data to standard output for "-" as it is made.

    Args:
        writer: only writes to what it is given, from beginning to end.

    Raises:
        UsageError: it would go to a terminal.
        GraphmillError: the file cannot be written.
    """
    if os.fspath(dest) != STDIO:
        write_atomic(dest, writer)
        return
    _refuse_terminal()
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:  # a test or a notebook replaced it by a text stream
        write_pieces(dest, writer)
        return
    sys.stdout.flush()
    writer(stream)
    stream.flush()


def _refuse_terminal() -> None:
    if sys.stdout.isatty():
        raise UsageError("the result is binary and standard output is a terminal; use -o FILE or a pipe")


def write_atomic(path: str | Path, data: bytes | Writer) -> None:
    """Write a file so that a reader sees the old content or the new, never a part.

    A temporary file in the same folder is written, synced and renamed; on any failure it is removed and what was
    there stays. A symbolic link keeps pointing where it did. Devices and pipes are written directly.

    Args:
        data: the content, or a function that writes it to the open binary file.

    Raises:
        GraphmillError: the folder is missing or not writable, the disk is full, `path` is a folder.
    """
    name = os.fspath(path)
    try:
        target = Path(os.path.realpath(name))
        mode = _mode(target)
        if mode is not None and stat.S_ISDIR(mode):
            raise GraphmillError("is a folder; give the name of a file to write", file=name)
        if mode is not None and not stat.S_ISREG(mode):
            with target.open("wb") as file:
                _fill(file, data)
            return
        with temporary_name(target) as scratch:
            _fill_fresh(scratch, data)
            scratch.replace(target)
        sync_folder(target.parent)
    except (OSError, ValueError) as error:
        raise _os_error(error, name, writing=True) from None


def write_in(folder: int | None, name: str, data: bytes) -> None:
    """Write a file that a model names, as `write_atomic` does, but where its name has come to be a link, a pipe or a
    folder, that is not followed, waited for or replaced. Devices are written directly.

    Args:
        folder: the descriptor of the folder that the name is in; None for a path.

    Raises:
        OSError: it cannot be written; EISDIR for a folder, EINVAL for a pipe, ELOOP for a link.
    """
    try:
        old = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        old = stat.S_IFREG
    if not stat.S_ISREG(old):
        flags = os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(open_regular(name, flags, dir_fd=folder), "wb") as file:
            file.write(data)
        return
    head, tail = os.path.split(name)
    scratch = os.path.join(head, _scratch_name(tail))  # noqa: PTH118 -- inside of the folder
    try:
        _fill_fresh(scratch, data, folder)
        os.replace(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch, dir_fd=folder)
        raise
    sync_folder(head or ".", folder)


def check_place(path: str | Path) -> None:
    """Refuse a place where `write_atomic` could not write, before anything is computed for it.

    Raises:
        GraphmillError: the folder is missing or not writable, `path` is a folder.
    """
    name = os.fspath(path)
    try:
        target = Path(os.path.realpath(name))
        mode = target.parent.stat().st_mode
        if target.is_dir():
            raise IsADirectoryError
        if not stat.S_ISDIR(mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if (not target.exists() or target.is_file()) and not os.access(target.parent, os.W_OK | os.X_OK):
            raise PermissionError
    except (OSError, ValueError) as error:
        raise _os_error(error, name, writing=True) from None


def _fill_fresh(scratch: str | Path, data: bytes | Writer, folder: int | None = None) -> None:
    """Write a new file and force it to disk."""
    # 0o666 under the umask: the permissions any fresh file gets
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(scratch, flags, 0o666, dir_fd=folder), "wb") as file:
        _fill(file, data)
        file.flush()
        os.fsync(file.fileno())


def _scratch_name(name: str) -> str:
    # a shortened name: the addition must not make a long but legal name too long
    return f".{name[:64]}.{os.urandom(6).hex()}.tmp"


def _fill(file: BinaryIO, data: bytes | Writer) -> None:
    if isinstance(data, bytes):
        file.write(data)
    else:
        data(file)


@contextlib.contextmanager
def temporary_name(target: Path) -> Generator[Path]:
    """A free name beside `target`; what is still there at the end is removed."""
    scratch = target.with_name(_scratch_name(target.name))
    try:
        yield scratch
    finally:
        if scratch.is_dir():
            import shutil

            shutil.rmtree(scratch, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                scratch.unlink()


def sync_folder(path: str | Path, inside: int | None = None) -> None:
    """Make renames in a folder durable; where folders cannot be synced, nothing happens.

    Args:
        inside: the descriptor of the folder that a relative path starts in.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY, dir_fd=inside)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None


def _os_error(error: OSError | ValueError, name: str, *, writing: bool = False) -> GraphmillError:
    if isinstance(error, IsADirectoryError):
        message = "is a folder, not a file"
    elif isinstance(error, FileNotFoundError):
        path = Path(name)
        if path.is_symlink():
            message = f"is a link to '{path.readlink()}', which does not exist"
        elif not path.parent.is_dir():
            message = f"there is no folder '{path.parent}'"
        else:
            message = "there is no such file" + ("" if writing else _close_names(path))
    elif isinstance(error, PermissionError):
        message = f"no permission to {'write' if writing else 'read'} it"
    elif isinstance(error, OSError):
        message = f"cannot be {'written' if writing else 'read'}: {error.strerror or error}"
        status = os_status(error)
        if not issubclass(status, ABOUT_INPUT):  # the disk is full or broken: exit 3
            return status(message, file=name)
    else:
        message = "is not a usable file name"
    return GraphmillError(message, file=name)


def _close_names(path: Path) -> str:
    try:
        return did_you_mean(path.name, (entry.name for entry in path.parent.iterdir()))
    except OSError:
        return ""
