"""SavedModels and partitions as tar archives: what is written, what is read, and what is refused."""

from __future__ import annotations

import io
import os
import random
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import models
from toolkit.errors import FormatError, GraphmillError
from toolkit.formats import bounds
from toolkit.formats.folders import archive
from toolkit.formats.inspection.detect import FileKind, detect
from toolkit.formats.models.model import Encoding, ModelKind, read_model, write_model


@pytest.fixture(autouse=True)
def _removed() -> Iterator[None]:
    before = archive.count_unpacked()
    yield
    archive.remove_unpacked(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with all that can be in one: empty files and folders, long names, names that are no ASCII."""
    root = tmp_path / "folder"
    (root / "variables").mkdir(parents=True)
    (root / "assets" / "empty").mkdir(parents=True)
    (root / "saved_model.pb").write_bytes(b"\x08\x01")
    (root / "variables" / "variables.data-00000-of-00001").write_bytes(os.urandom(3 * 512 + 1))
    (root / "assets" / ("long" * 40)).write_bytes(b"x" * 512)
    (root / "assets" / "größe.txt").write_bytes(b"")
    return root


def packed(folder: Path, first: str = "saved_model.pb") -> bytes:
    out = io.BytesIO()
    archive.write_archive(folder, out, first)
    return out.getvalue()


def content(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


def made(*members: tuple[str, bytes, Any], format: int = tarfile.PAX_FORMAT, **fields: Any) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for name, data, kind in members:
            info = tarfile.TarInfo(name)
            info.size, info.type = len(data), kind
            for key, value in fields.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def unpacked(data: bytes) -> Path:
    return archive.unpack(io.BytesIO(data), "model.tar")


# -- there and back --------------------------------------------------------------------------------------


def test_there_and_back(folder: Path, tmp_path: Path) -> None:
    data = packed(folder)
    assert content(unpacked(data)) == content(folder)
    for path in folder.rglob("*"):
        os.utime(path, (5, 5))
    assert packed(folder) == data
    (tmp_path / "other").mkdir()
    subprocess.run(["tar", "xf", "-", "-C", str(tmp_path / "other")], input=data, check=True)
    assert content(tmp_path / "other") == content(folder)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        infos = tar.getmembers()
    assert infos[0].name == "saved_model.pb"
    assert {(info.mtime, info.uid, info.gid, info.uname, info.gname) for info in infos} == {(0, 0, 0, "", "")}


@pytest.mark.parametrize("kind", ["gnu", "ustar", "pax", "v7"])
@pytest.mark.parametrize("inside", [".", "folder"])
def test_what_tar_writes(folder: Path, kind: str, inside: str) -> None:
    if kind in ("ustar", "v7"):
        (folder / "assets" / ("long" * 40)).unlink()
    where = folder if inside == "." else folder.parent
    command = ["tar", "cf", "-", f"--format={kind}", "-C", str(where), inside]
    data = subprocess.run(command, capture_output=True, check=True).stdout
    assert content(unpacked(data)) == content(folder)
    assert archive.is_archive(data[:512]) == (kind != "v7")


@pytest.mark.tensorflow
def test_a_saved_model(tmp_path: Path) -> None:
    import tensorflow as tf

    source = models.saved_model_tf2().path
    for name in ("model.tar", "again.tar"):
        write_model(read_model(source), tmp_path / name)
    assert (tmp_path / "model.tar").read_bytes() == (tmp_path / "again.tar").read_bytes()
    model = read_model(tmp_path / "model.tar")
    assert (model.kind, model.encoding) == (ModelKind.SAVED_MODEL, Encoding.BINARY)
    with tarfile.open(tmp_path / "model.tar") as tar:
        tar.extractall(tmp_path / "it", filter="data")
    mine, theirs = content(tmp_path / "it"), content(source)
    assert {k: v for k, v in mine.items() if "/" in k} == {k: v for k, v in theirs.items() if "/" in k}
    x = tf.constant([[1.0, 2, 3, 4]])
    expected = tf.saved_model.load(str(source)).signatures["serving_default"](x=x)  # pyright: ignore
    got = tf.saved_model.load(str(tmp_path / "it")).signatures["serving_default"](x=x)  # pyright: ignore
    assert all((got[key].numpy() == value.numpy()).all() for key, value in expected.items())


def test_a_stream_is_read_to_its_end_and_no_further_than_needed() -> None:
    class Endless(io.RawIOBase):
        def __init__(self, data: bytes):
            self.data, self.taken = data, 0

        def read(self, size: int = -1, /) -> bytes:
            piece = self.data[self.taken : self.taken + size] or b"\0" * size
            self.taken += len(piece)
            return piece

    data = made(("a", b"1", tarfile.REGTYPE))
    stream = Endless(data)
    archive.unpack(stream, "model.tar")  # type: ignore[arg-type]
    assert len(data) <= stream.taken < len(data) + (2 << 20)


# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (made(("../a", b"", tarfile.REGTYPE)), "'../a' would lie outside"),
        (made(("a/../../b", b"", tarfile.REGTYPE)), "would lie outside"),
        (made(("/etc/a", b"", tarfile.REGTYPE)), "'/etc/a' would lie outside"),
        (made(("a", b"", tarfile.SYMTYPE), linkname="/etc/passwd"), "'a' is a link"),
        (made(("a", b"", tarfile.LNKTYPE), linkname="b"), "'a' is a link"),
        (made(("a", b"", tarfile.FIFOTYPE)), "'a' is a pipe"),
        (made(("a", b"", tarfile.CHRTYPE)), "'a' is a device"),
        (made(("a", b"", tarfile.GNUTYPE_SPARSE)), "'a' is a file with holes"),
        (made(("a", b"", b"Z")), "of the unknown kind"),
        (made(("a", b"1", tarfile.REGTYPE), ("a", b"2", tarfile.REGTYPE)), "has 'a' twice"),
        (made(("a", b"1", tarfile.REGTYPE), ("a/b", b"2", tarfile.REGTYPE)), "has a file where 'a/b' needs a folder"),
        (made(("a", b"", tarfile.DIRTYPE), ("a", b"2", tarfile.REGTYPE)), "has 'a' twice"),
        (made(("a/" * 80 + "b", b"", tarfile.REGTYPE)), "would lie outside"),
        (made(("a", b"", tarfile.REGTYPE), pax_headers={"path": "../b"}), "'../b' would lie outside"),
        (made(("a", b"", tarfile.REGTYPE), pax_headers={"GNU.sparse.major": "1"}), "with holes"),
        (made(("a", b"", tarfile.REGTYPE), pax_headers={"size": "9" * 30}), "no number"),
        (made(("a", b"", tarfile.REGTYPE), pax_headers={"size": str(1 << 60)}), "has room for"),
        (made(("a", b"", tarfile.REGTYPE), pax_headers={"comment": "x" * 100_000}), "extended header"),
        (made(("n" * 300, b"", tarfile.REGTYPE)), "cannot be unpacked: File name too long"),
    ],
)
def test_refused(data: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(GraphmillError) as caught:
        unpacked(data)
    assert str(caught.value).startswith("model.tar: ") and said in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_sizes_that_headers_claim() -> None:
    data = bytearray(made(("a", b"", tarfile.REGTYPE)))
    data[124:136] = b"\x80" + (1 << 80).to_bytes(11, "big")
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    with pytest.raises(FormatError, match="has room for"):
        unpacked(bytes(data))
    data[124] = 0xFF
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    with pytest.raises(FormatError, match="is negative"):
        unpacked(bytes(data))


def test_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "TAR_MEMBERS", 5)
    unpacked(made(*((f"a{i}", b"", tarfile.REGTYPE) for i in range(5))))
    with pytest.raises(FormatError, match="more than 5 members"):
        unpacked(made(*((f"a{i}", b"", tarfile.REGTYPE) for i in range(6))))


def test_what_is_cut_off_and_what_is_damaged_is_one_line(folder: Path) -> None:
    data = packed(folder)
    end = len(data.rstrip(b"\0")) // 512 * 512 + 512
    rng = random.Random(7)
    cuts = {*range(0, end, 512), *(rng.randrange(end) for _ in range(30))}
    for cut in sorted(cuts):
        with pytest.raises(FormatError):
            unpacked(data[:cut])
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(end)] = rng.randrange(256)
        try:
            found = unpacked(bytes(damaged))
        except GraphmillError:
            continue
        assert all(path.is_file() or path.is_dir() for path in found.rglob("*"))
        archive.remove_unpacked(archive.count_unpacked() - 1)


def test_archives_of_other_things(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(made(("a.txt", b"hello", tarfile.REGTYPE)))
    found = detect(tmp_path / "a.tar")
    assert found.kind is FileKind.OTHER and found.looks_like == "a tar archive of other things"
    assert detect(tmp_path / "a.tar", unpacks=False).looks_like == "a tar archive"
    (tmp_path / "b.tar").write_bytes(made(("saved_model.pb", b"\xff" * 9, tarfile.REGTYPE)))
    with pytest.raises(FormatError) as caught:
        read_model(tmp_path / "b.tar")
    assert str(caught.value).startswith(f"{tmp_path / 'b.tar'}: saved_model.pb: ")


def test_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = unpacked(made(("a", b"", tarfile.REGTYPE)))
    assert found.is_dir() and list(tmp_path.iterdir())
    archive.remove_unpacked(archive.count_unpacked() - 1)
    assert not list(tmp_path.iterdir())
