"""Files that are read while something else is done."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolkit.errors import GraphmillError
from toolkit.formats import ahead, io


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "graph.pb"
    path.write_bytes(b"\n" + bytes(ahead.WORTH))
    return path


def test_what_was_read_is_taken_once(file: Path) -> None:
    ahead.read_ahead(str(file))
    data = ahead.taken(str(file), file.stat())
    assert data is not None and data[:] == file.read_bytes()
    assert ahead.taken(str(file), file.stat()) is None


def test_read_bytes_gives_the_file(file: Path) -> None:
    ahead.read_ahead(str(file))
    assert io.read_bytes(str(file), is_message=True) == file.read_bytes()


def test_a_file_that_was_replaced_or_changed_is_read_again(file: Path) -> None:
    ahead.read_ahead(str(file))
    assert ahead._current is not None
    ahead._current._thread.join()
    other = file.with_name("other")
    other.write_bytes(b"\n" + b"x" * ahead.WORTH)
    other.replace(file)
    assert io.read_bytes(file) == b"\n" + b"x" * ahead.WORTH
    ahead.read_ahead(str(file))
    assert ahead._current is not None
    ahead._current._thread.join()
    with file.open("r+b") as written:
        written.write(b"\nyy")
    os.utime(file, ns=(1, 1))  # however coarse the clock of the file system is
    assert io.read_bytes(file)[:4] == b"\nyyx"


def test_what_is_not_begun(tmp_path: Path, file: Path) -> None:
    small, archive = tmp_path / "small.pb", tmp_path / "archive.tar"
    small.write_bytes(b"\n\0")
    archive.write_bytes(b"a" * (ahead.WORTH + 1))
    for name in ("-", "", "\0", str(tmp_path / "missing"), str(tmp_path), str(small)):
        ahead.read_ahead(str(file))
        ahead.read_ahead(name)
        assert ahead._current is None
    ahead.read_ahead(str(archive))
    assert ahead.taken(str(archive), archive.stat()) is None
    assert io.read_bytes(archive) == archive.read_bytes()


def test_a_file_that_goes_away_is_missed_where_it_is_asked_for(file: Path) -> None:
    ahead.read_ahead(str(file))
    file.unlink()
    with pytest.raises(GraphmillError, match=r"(?i)no such file"):
        io.read_bytes(file)
