"""Reading and writing files: atomic replacement, permissions, standard streams, clear errors."""

from __future__ import annotations

import io as stdio
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import pytest

from toolkit.errors import GraphmillError, UsageError
from toolkit.formats import io


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_write_and_replace(tmp_path: Path) -> None:
    path = tmp_path / "a.pb"
    io.write_atomic(path, b"one")
    io.write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    io.write_atomic(str(path), lambda file: [file.write(b"x") for _ in range(3)])  # type: ignore[arg-type,return-value]
    assert path.read_bytes() == b"xxx"
    assert names(tmp_path) == ["a.pb"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_failure_leaves_the_old_file_and_nothing_else(error: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "a.pb"
    path.write_bytes(b"old")

    def writer(file: BinaryIO) -> None:
        file.write(b"half")
        raise error

    with pytest.raises(error):
        io.write_atomic(path, writer)
    assert path.read_bytes() == b"old"
    with pytest.raises(error):
        io.write_atomic(tmp_path / "new.pb", writer)
    assert names(tmp_path) == ["a.pb"]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.pb"
    path.write_bytes(b"old")

    for number, code in ((28, 3), (5, 3), (30, 2), (36, 2)):  # full, broken; read-only, too long a name

        def refuse(descriptor: int, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(GraphmillError, match=rf"a\.pb: cannot be written: {os.strerror(number)}") as caught:
            io.write_atomic(path, b"new")
        assert caught.value.exit_code == code
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.pb"]


def test_killed_while_writing(tmp_path: Path) -> None:
    path = tmp_path / "a.pb"
    path.write_bytes(b"old")
    script = (
        "import os, signal, sys\n"
        "from toolkit.formats import io\n"
        "def writer(file):\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "io.write_atomic(sys.argv[1], writer)\n"
    )
    result = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert result.returncode == -9
    assert path.read_bytes() == b"old"


def test_readers_never_see_a_part(tmp_path: Path) -> None:
    path = tmp_path / "a.pb"
    contents = [bytes([digit]) * 200_000 for digit in range(4)]
    io.write_atomic(path, contents[0])
    stop = threading.Event()
    seen: list[bytes] = []

    def read() -> None:
        while not stop.is_set():
            seen.append(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(40):
        io.write_atomic(path, contents[number % 4])
    stop.set()
    reader.join()
    assert set(seen) <= set(contents)


@pytest.fixture
def umask() -> Iterator[None]:
    old = os.umask(0o027)
    yield
    os.umask(old)


@pytest.mark.usefixtures("umask")
def test_permissions_are_those_of_a_fresh_file(tmp_path: Path) -> None:
    io.write_atomic(tmp_path / "a.pb", b"x")
    (tmp_path / "b.pb").write_bytes(b"x")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.pb", "b.pb")}
    assert modes == {0o640}


def test_a_link_keeps_pointing(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.pb").symlink_to(tmp_path / "real/a.pb")
    io.write_atomic(tmp_path / "link.pb", b"x")
    assert (tmp_path / "link.pb").is_symlink()
    assert (tmp_path / "real/a.pb").read_bytes() == b"x"


def test_devices_are_written_directly() -> None:
    io.write_atomic("/dev/null", b"x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_long_name(tmp_path: Path) -> None:
    name = "n" * 250
    io.write_atomic(tmp_path / name, b"x")
    assert names(tmp_path) == [name]


def test_where_files_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path, message in [
        (tmp_path, "is a folder; give the name of a file to write"),
        (tmp_path / "no/a.pb", "there is no folder '.*no'"),
        (tmp_path / "file/a.pb", "file"),
        ("a\0b", "is not a usable file name"),
        (tmp_path / ("n" * 300), "too long"),
    ]:
        with pytest.raises(GraphmillError, match=message):
            io.write_atomic(path, b"x")
        with pytest.raises(GraphmillError):
            io.check_place(path)


def test_a_place_is_checked_without_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old").write_bytes(b"old")
    for place in ("new", "old", "/dev/null"):
        io.check_place(tmp_path / place)
    assert names(tmp_path) == ["old"]

    def refuse(path: object, mode: int) -> bool:  # root may do everything
        return False

    monkeypatch.setattr("os.access", refuse)
    with pytest.raises(GraphmillError, match="new: no permission to write it"):
        io.check_place(tmp_path / "new")
    io.check_place("/dev/null")  # written directly: its folder does not matter


def test_where_files_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "model.pb").write_bytes(b"x")
    for path, message in [
        (tmp_path, "is a folder, not a file"),
        (tmp_path / "no/a.pb", "there is no folder '.*no'"),
        (tmp_path / "mode1.pb", r"there is no such file; did you mean 'model\.pb'\?"),
    ]:
        with pytest.raises(GraphmillError, match=message):
            io.read_bytes(path)


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")  # root may do everything, so modes would not show it

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(GraphmillError, match=r"a\.pb: no permission to read it"):
        io.read_bytes(tmp_path / "a.pb")
    with pytest.raises(GraphmillError, match=r"b\.pb: no permission to write it"):
        io.write_atomic(tmp_path / "b.pb", b"x")


def test_binary_never_goes_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = stdio.BytesIO()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=out, isatty=lambda: True, flush=lambda: None))
    with pytest.raises(UsageError, match="use -o FILE or a pipe"):
        io.write_output("-", b"\n\x01", binary=True)
    assert out.getvalue() == b""
    io.write_output("-", "text\n", binary=False)
    assert out.getvalue() == b"text\n"


def test_standard_output_and_files(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    io.write_output("-", b"\n\x01")
    assert capsysbinary.readouterr().out == b"\n\x01"
    io.write_output(tmp_path / "a", "é")
    assert (tmp_path / "a").read_bytes() == "é".encode()
