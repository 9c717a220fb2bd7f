"""Every flipped bit and every truncation is detected, and no reader crashes on it."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.formats.bundle_cases import SUFFIXES, equal, small_checkpoint
from toolkit.errors import GraphmillError, NotFoundError
from toolkit.formats.bundle import BundleReader, save, wire
from toolkit.formats.bundle.check import check
from toolkit.formats.bundle.slices import encode_key, parse_slice
from toolkit.formats.bundle.storage import TEMPORARY, TemporaryFile, commit_all
from toolkit.formats.bundle.writer import write_index
from toolkit.formats.records import crc


def read_all(prefix: Path, expected: dict[str, Any]) -> None:
    """Each tensor has its value or raises one of our errors."""
    try:
        reader = BundleReader(prefix)
    except GraphmillError:
        return
    with reader:
        for name, array in expected.items():
            with contextlib.suppress(GraphmillError):
                assert equal(reader.read(name), array), name


def flips(data: bytes, bits: Iterator[int]) -> Iterator[bytes]:
    damaged = bytearray(data)
    for bit in bits:
        damaged[bit // 8] ^= 1 << bit % 8
        yield bytes(damaged)
        damaged[bit // 8] ^= 1 << bit % 8


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_bit_of_a_small_checkpoint(tmp_path: Path, suffix: str) -> None:
    expected = small_checkpoint(tmp_path / "c")
    assert check(str(tmp_path / "c")).findings == []
    file = tmp_path / f"c{suffix}"
    whole = file.read_bytes()
    for at, damaged in enumerate(flips(whole, iter(range(8 * len(whole))))):
        file.write_bytes(damaged)
        assert check(str(tmp_path / "c")).findings, f"bit {at} of {file.name}"
        read_all(tmp_path / "c", expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_truncation_of_a_small_checkpoint(tmp_path: Path, suffix: str) -> None:
    expected = small_checkpoint(tmp_path / "c")
    file = tmp_path / f"c{suffix}"
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert check(str(tmp_path / "c")).findings, f"{file.name} cut to {length}"
        read_all(tmp_path / "c", expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bytes_after_the_end(tmp_path: Path, suffix: str) -> None:
    small_checkpoint(tmp_path / "c")
    with (tmp_path / f"c{suffix}").open("ab") as file:
        file.write(b"\0")
    assert check(str(tmp_path / "c")).findings


def large_checkpoint(prefix: Path) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    # Names without a common prefix fill an index block with about a thousand of them.
    tensors: dict[str, Any] = {rng.bytes(110).hex(): rng.standard_normal((i % 5, 3)) for i in range(2500)}
    tensors["text"] = np.array([bytes([i % 256]) * (i % 200) for i in range(1000)], object)
    save(prefix, tensors)
    return tensors


def random_flips(tmp_path: Path, count: int) -> None:
    """Flips in place, one at a time, in files of several index blocks."""
    large_checkpoint(tmp_path / "c")
    with BundleReader(tmp_path / "c") as reader:
        assert len(reader.table.blocks) > 2
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for suffix in SUFFIXES:
        file = tmp_path / f"c{suffix}"
        size = file.stat().st_size
        with file.open("r+b") as stream:
            for _ in range(count):
                bit = rng.randrange(8 * size)
                stream.seek(bit // 8)
                byte = stream.read(1)[0]
                for value in (byte ^ 1 << bit % 8, byte):
                    if value == byte:
                        assert check(str(tmp_path / "c")).findings, f"seed {seed}: bit {bit} of {file.name}"
                    stream.seek(bit // 8)
                    stream.write(bytes([value]))
                    stream.flush()
    assert check(str(tmp_path / "c")).findings == []


def test_random_bits_of_a_large_checkpoint(tmp_path: Path) -> None:
    random_flips(tmp_path, 8)


@pytest.mark.long
def test_ten_thousand_random_bits(tmp_path: Path) -> None:
    random_flips(tmp_path, 5000)


def test_findings_name_tensor_file_and_offset(tmp_path: Path) -> None:
    save(tmp_path / "c", {"a": np.zeros(4), "b": np.ones(4), "s": np.array([b"text"], object)})
    data = tmp_path / "c.data-00000-of-00001"
    whole = data.read_bytes()
    data.write_bytes(whole[:40] + b"\1" + whole[41:66] + b"\1" + whole[67:])
    findings = check(str(tmp_path / "c")).findings
    assert [(f.kind, f.tensor, f.offset, f.file) for f in findings] == [
        ("crc", "b", 32, str(data)), ("crc", "s", 64, str(data)),
    ]  # fmt: skip


def test_missing_files(tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "c", 2)
    (tmp_path / "c.data-00000-of-00002").unlink()
    findings = check(str(tmp_path / "c")).findings
    assert [f.kind for f in findings] == ["missing-shard"]
    assert "'bias'" in findings[0].message
    (tmp_path / "c.index").unlink()
    assert [f.kind for f in check(str(tmp_path / "c")).findings] == ["index"]
    with pytest.raises(NotFoundError):
        check(str(tmp_path / "other"))


def test_notes_of_files_that_do_not_belong(tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "c")
    (tmp_path / f"c.index{TEMPORARY}1-ab").touch()
    (tmp_path / "c.data-00000-of-00003").touch()
    report = check(str(tmp_path / "c"))
    assert report.findings == []
    assert len(report.notes) == 2


def write_checkpoint(prefix: Path, entries: dict[bytes, wire.RawEntry], data: bytes) -> list[tuple[str, str]]:
    """A checkpoint with any entries; what checking it finds."""
    Path(f"{prefix}.data-00000-of-00001").write_bytes(data)
    index = TemporaryFile(f"{prefix}.index")
    write_index(index, entries, 1)
    index.sync()
    commit_all([index])
    return [(finding.kind, finding.tensor) for finding in check(str(prefix)).findings]


def entry(data: bytes, at: int, size: int = 4, **changes: Any) -> wire.RawEntry:
    made = wire.RawEntry(1, (size // 4,), 0, at, size, crc.masked(data[at : at + size]))
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_entries_that_do_not_fit(tmp_path: Path) -> None:
    data = bytes(range(16))
    whole = {b"a": entry(data, 0, 8), b"b": entry(data, 8, 8)}
    prefix = tmp_path / "c"
    assert write_checkpoint(prefix, whole, data) == []
    assert write_checkpoint(prefix, {**whole, b"b": entry(data, 4, 12)}, data) == [("overlap", "b")]
    assert write_checkpoint(prefix, {**whole, b"b": entry(data, 12)}, data) == [("gap", "")]
    assert write_checkpoint(prefix, {b"a": entry(data, 0, 8)}, data) == [("gap", "")]
    assert write_checkpoint(prefix, {**whole, b"b": entry(data, 8, 8, dims=(3,))}, data) == [("entry", "b")]
    assert ("entry", "b") in write_checkpoint(prefix, {**whole, b"b": entry(data, 8, 8, shard=1)}, data)
    assert write_checkpoint(prefix, {**whole, b"b": entry(data, 8, 8, offset=12)}, data) == [
        ("gap", ""), ("truncated", "b"),
    ]  # fmt: skip
    assert write_checkpoint(prefix, {**whole, b"b": entry(data, 8, 8, dtype=99)}, data) == [("index", "")]
    # Padding between tensors, as writers that align them leave it.
    padded = data[:4] + bytes(4) + data[8:]
    aligned = {b"a": entry(padded, 0), b"b": entry(padded, 8, 8)}
    assert write_checkpoint(prefix, aligned, padded) == []
    assert BundleReader(prefix).read("b").tobytes() == data[8:]


def test_parts_that_do_not_fit(tmp_path: Path) -> None:
    data = bytes(range(16))
    first, second = parse_slice("0,2"), parse_slice("2,2")
    keys = [encode_key("p", part) for part in (first, second)]
    whole = wire.RawEntry(1, (4,), slices=(first, second))
    good = {b"p": whole, keys[0]: entry(data, 0, 8), keys[1]: entry(data, 8, 8)}
    prefix = tmp_path / "c"
    assert write_checkpoint(prefix, good, data) == []
    lost = {b"p": whole, keys[0]: good[keys[0]]}
    assert ("parts", "p") in write_checkpoint(prefix, lost, data)
    alone = {**good, b"p": wire.RawEntry(1, (4,), slices=(first,))}
    assert write_checkpoint(prefix, alone, data) == [("parts", "p"), ("parts", "p[2,2]")]
    twice = parse_slice("1,2")
    shared = {b"p": wire.RawEntry(1, (4,), slices=(first, twice)), keys[0]: good[keys[0]]}
    shared[encode_key("p", twice)] = entry(data, 8, 8)
    assert write_checkpoint(prefix, shared, data) == [("overlap", "p")]
    other = {**good, keys[1]: entry(data, 8, 8, dtype=3)}
    assert ("parts", "p") in write_checkpoint(prefix, other, data)
