"""Checkpoints as .npz and .safetensors files and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.formats.bundle_cases import equal, plain_tensors, small_checkpoint
from toolkit.errors import FormatError, GraphmillError, NotFoundError
from toolkit.formats.bundle import BundleReader, save
from toolkit.formats.bundle.locate import open_tensors
from toolkit.formats.bundle.transfer import convert

SUFFIXES = (".npz", ".safetensors")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_type_there_and_back(tmp_path: Path, suffix: str) -> None:
    tensors = plain_tensors()
    save(tmp_path / "a", {n: a for n, (a, _) in tensors.items()}, {n: t for n, (_, t) in tensors.items()})
    convert(tmp_path / "a", tmp_path / f"b{suffix}")
    with open_tensors(tmp_path / f"b{suffix}") as reader:
        assert set(reader) == set(tensors)
        for name, (array, dtype) in tensors.items():
            entry = reader.entry(name)
            assert entry.dtype is dtype and entry.dims == array.shape
            assert equal(reader.read(name), array), name
            if dtype.kind != "s":
                assert b"".join(reader.chunks(entry)) == array.tobytes()
    convert(tmp_path / f"b{suffix}", tmp_path / "c")
    with BundleReader(tmp_path / "c") as reader:
        for name, (array, dtype) in tensors.items():
            assert reader.entry(name).dtype is dtype
            assert equal(reader.read(name), array), name


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_partitioned_variables_become_whole(tmp_path: Path, suffix: str) -> None:
    tensors = small_checkpoint(tmp_path / "a", 2)
    convert(tmp_path / "a", tmp_path / f"b{suffix}")
    with open_tensors(tmp_path / f"b{suffix}") as reader:
        assert equal(reader.read("part"), tensors["part"])
        assert equal(reader.read_slice("part", [1, 0], [2, -1]), tensors["part"][1:3])


def test_numpy_reads_the_archive(tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "a")
    convert(tmp_path / "a", tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz") as archive:
        assert archive["bias"].tolist() == [1.5, -2.0]
        assert archive["words"].tolist() == [b"to", b"", b"be"]


def test_archives_of_numpy_are_read(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", **{"x/y": np.arange(3), "text": np.array(["ä", "b"])})
    convert(tmp_path / "a.npz", tmp_path / "b")
    with BundleReader(tmp_path / "b") as reader:
        assert reader.read("x/y").tolist() == [0, 1, 2]
        assert reader.read("text").tolist() == ["ä".encode(), b"b"]


def test_fortran_order(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.savez(tmp_path / "a.npz", x=array)
    convert(tmp_path / "a.npz", tmp_path / "b")
    assert BundleReader(tmp_path / "b").read("x").tolist() == array.tolist()


def raw_safetensors(path: Path, header: Any, data: bytes) -> None:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_the_layout_of_safetensors(tmp_path: Path) -> None:
    save(tmp_path / "a", {"b": np.float32([1, 2]), "a": np.array([True])})
    convert(tmp_path / "a", tmp_path / "a.safetensors")
    data = (tmp_path / "a.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    assert json.loads(data[8 : 8 + length]) == {
        "__metadata__": {"format": "tf"},
        "a": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [1, 9]},
    }
    assert data[8 + length :] == b"\1" + np.float32([1, 2]).tobytes()


def test_safetensors_of_others_are_read(tmp_path: Path) -> None:
    header = {"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}
    raw_safetensors(tmp_path / "a.safetensors", header, b"\x80\x3f\x00\x40")
    with open_tensors(tmp_path / "a.safetensors") as reader:
        assert reader.entry("w").dtype.name == "bfloat16"
        assert reader.read("w").astype(float).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, r"'w' is float32\[2\] and has 4 bytes, not 8"),
        ({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, "'w' reaches past the end of the file"),
        ({"w": {"dtype": "F6", "shape": [0], "data_offsets": [0, 0]}}, "type F6, which TensorFlow does not have"),
        ({"w": {"dtype": "F32"}}, "damaged .safetensors header"),
        (["w"], "damaged .safetensors header"),
    ],
)
def test_bad_safetensors(tmp_path: Path, header: Any, message: str) -> None:
    raw_safetensors(tmp_path / "a.safetensors", header, b"\0" * 4)
    with pytest.raises(GraphmillError, match=message):
        open_tensors(tmp_path / "a.safetensors")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_that_are_something_else(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    with pytest.raises(NotFoundError):
        open_tensors(path)
    for content in (b"", b"hello, this is text"):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"x\.\w+: not a"):
            open_tensors(path)


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{}], object))
    with pytest.raises(FormatError, match=r"a\.npz:x: holds Python objects"):
        open_tensors(tmp_path / "a.npz")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truncated_files(tmp_path: Path, suffix: str) -> None:
    small_checkpoint(tmp_path / "a")
    path = tmp_path / f"b{suffix}"
    convert(tmp_path / "a", path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(GraphmillError):
            convert(path, tmp_path / "c")
        assert not list(tmp_path.glob("c.*"))
