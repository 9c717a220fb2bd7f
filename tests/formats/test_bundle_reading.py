"""Reading and writing checkpoints without TensorFlow: values, parts, errors."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from schemas.tensor_bundle_pb2 import BundleEntryProto
from tests.formats.bundle_cases import equal, plain_tensors, small_checkpoint
from toolkit.errors import (
    AlreadyExistsError,
    DataLossError,
    FormatError,
    InvalidArgumentError,
    NotFoundError,
)
from toolkit.formats.bundle import BundleReader, BundleWriter, merge, restore, save, wire
from toolkit.formats.bundle.check import check
from toolkit.formats.bundle.locate import find_prefix
from toolkit.formats.bundle.storage import TEMPORARY, TemporaryFile, commit_all
from toolkit.formats.bundle.table import TableWriter
from toolkit.formats.bundle.writer import write_index
from toolkit.formats.records import crc
from toolkit.graph import dtypes


@pytest.mark.parametrize("num_shards", [1, 2, 5])
def test_round_trip(tmp_path: Path, num_shards: int) -> None:
    tensors = small_checkpoint(tmp_path / "c", num_shards)
    with BundleReader(tmp_path / "c") as reader:
        assert list(reader) == sorted(tensors)
        assert reader.num_shards == num_shards
        for name, array in tensors.items():
            assert name in reader
            assert equal(reader.read(name), array), name
            assert reader.entry(name).bytes == (array.nbytes if name != "words" else 11)
    assert len(list(tmp_path.iterdir())) == num_shards + 1


def test_arrays_are_views_of_the_file_and_read_only(tmp_path: Path) -> None:
    save(tmp_path / "c", {"a": np.arange(1000.0)})
    array = BundleReader(tmp_path / "c").read("a")
    assert not array.flags.owndata
    with pytest.raises(ValueError):
        array[0] = 1


def test_misaligned_tensors_are_aligned_when_they_are_read(tmp_path: Path) -> None:
    save(tmp_path / "c", {"a": np.array([True]), "b": np.arange(5.0)})
    array = BundleReader(tmp_path / "c").read("b")
    assert array.flags.aligned and array.tolist() == [0, 1, 2, 3, 4]


def test_arrays_stay_valid_after_closing(tmp_path: Path) -> None:
    save(tmp_path / "c", {"a": np.arange(5.0)})
    with BundleReader(tmp_path / "c") as reader:
        array = reader.read("a")
    assert array.sum() == 10


def test_layouts_of_arrays(tmp_path: Path) -> None:
    """Transposed, strided, big-endian and scalar arrays are written as their values."""
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    arrays = {
        "t": base.T,
        "s": base[::2, 1::2],
        "big": base.astype(">f4"),
        "py": np.float32(3),
        "text": np.array(["ü", "b"]),
    }
    save(tmp_path / "c", arrays)
    with BundleReader(tmp_path / "c") as reader:
        assert equal(reader.read("t"), np.ascontiguousarray(base.T))
        assert equal(reader.read("s"), np.ascontiguousarray(base[::2, 1::2]))
        assert equal(reader.read("big"), base)
        assert reader.read("py").shape == ()
        assert reader.read("text").tolist() == ["ü".encode(), b"b"]


def test_an_array_may_change_after_it_was_added(tmp_path: Path) -> None:
    array = np.zeros(1 << 20, np.float32)
    with BundleWriter(tmp_path / "c") as writer:
        for value in range(4):
            array[:] = value
            writer.add(f"v{value}", array)
    with BundleReader(tmp_path / "c") as reader:
        assert [reader.read(name)[-1] for name in reader] == [0, 1, 2, 3]


def test_all_types(tmp_path: Path) -> None:
    tensors = plain_tensors()
    save(tmp_path / "c", {n: a for n, (a, _) in tensors.items()}, {n: t for n, (_, t) in tensors.items()})
    with BundleReader(tmp_path / "c") as reader:
        for name, (array, dtype) in tensors.items():
            assert reader.entry(name).dtype is dtype
            assert equal(reader.read(name), array)


def test_parts(tmp_path: Path) -> None:
    kernel = small_checkpoint(tmp_path / "c")["part"]
    with BundleReader(tmp_path / "c") as reader:
        assert [str(part) for part in reader.entry("part").slices] == ["0,2:-", "2,2:-"]
        assert equal(reader.read_slice("part", [1, 0], [2, -1]), kernel[1:3])
        assert equal(reader.read_slice("part", [0, 1], [1, 2]), kernel[:1, 1:])
        assert equal(reader.read_slice("bias", [1], [1]), np.array([-2.0]))
        with pytest.raises(
            InvalidArgumentError, match=r"tensor 'part': slice '3,2:-' reaches outside of shape \[4, 3\]"
        ):
            reader.read_slice("part", [3, 0], [2, -1])


def test_parts_with_a_hole(tmp_path: Path) -> None:
    with BundleWriter(tmp_path / "c") as writer:
        writer.add_slice("p", (4,), "0,1", np.zeros(1))
        writer.add_slice("p", (4,), "2,2", np.zeros(2))
    reader = BundleReader(tmp_path / "c")
    assert reader.read_slice("p", [2], [2]).shape == (2,)
    with pytest.raises(DataLossError, match="the parts of tensor 'p' do not cover it"):
        reader.read("p")


def test_overlapping_parts_cover(tmp_path: Path) -> None:
    full = np.arange(4.0)
    with BundleWriter(tmp_path / "c") as writer:
        writer.add_slice("p", (4,), "0,3", full[:3])
        writer.add_slice("p", (4,), "1,3", full[1:])
    assert equal(BundleReader(tmp_path / "c").read("p"), full)


def test_offsets_beyond_four_gigabytes(tmp_path: Path) -> None:
    """A sparse data file: the tensor is at 5 GiB."""
    array = np.arange(3.0)
    offset = 5 << 30
    with (tmp_path / "c.data-00000-of-00001").open("wb") as file:
        file.seek(offset)
        file.write(array.tobytes())
    index = TemporaryFile(str(tmp_path / "c.index"))
    write_index(index, {b"a": wire.RawEntry(2, (3,), 0, offset, 24, crc.masked(array))}, 1)
    index.sync()
    commit_all([index])
    with BundleReader(tmp_path / "c") as reader:
        assert reader.entry("a").offset == offset
        assert equal(reader.read("a"), array)
        assert b"".join(reader.chunks(reader.entry("a"))) == array.tobytes()


def test_reading_from_threads(tmp_path: Path) -> None:
    save(tmp_path / "c", {f"w{i}": np.full(1000, i) for i in range(50)})
    with BundleReader(tmp_path / "c") as reader, ThreadPoolExecutor(8) as pool:
        assert [int(array[0]) for array in pool.map(reader.read, [f"w{i}" for i in range(50)] * 4)] == [*range(50)] * 4


def test_missing_tensor(tmp_path: Path) -> None:
    save(tmp_path / "c", {"dense/kernel": np.zeros(2)})
    with pytest.raises(NotFoundError, match=r"c: there is no tensor 'dense/kernle'.*did you mean 'dense/kernel'\?"):
        restore(tmp_path / "c", ["dense/kernle"])


def test_missing_checkpoint(tmp_path: Path) -> None:
    save(tmp_path / "model-10", {"a": np.zeros(2)})
    with pytest.raises(NotFoundError, match=r"model-11.index' does not exist; did you mean 'model-10'\?"):
        BundleReader(tmp_path / "model-11")


def test_missing_data_file(tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "c", 2)
    (tmp_path / "c.data-00001-of-00002").unlink()
    reader = BundleReader(tmp_path / "c")
    assert reader.read("bias").size == 2
    with pytest.raises(NotFoundError, match=r"c\.data-00001-of-00002: the data file with tensor 'empty' is missing"):
        reader.read("empty")


def test_damage_names_tensor_file_and_offset(tmp_path: Path) -> None:
    save(tmp_path / "c", {"a": np.zeros(4), "b": np.ones(4)})
    data = tmp_path / "c.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:33] + b"\1" + data.read_bytes()[34:])
    reader = BundleReader(tmp_path / "c")
    assert reader.read("a").sum() == 0
    with pytest.raises(DataLossError, match=r"data-00000-of-00001: tensor 'b' at offset 32 \(32 bytes\) has CRC"):
        reader.read("b")
    assert reader.read("b", verify=False).shape == (4,)


def test_truncated_data(tmp_path: Path) -> None:
    save(tmp_path / "c", {"a": np.zeros(4), "b": np.ones(4)})
    data = tmp_path / "c.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:40])
    reader = BundleReader(tmp_path / "c")
    assert reader.read("a").sum() == 0
    with pytest.raises(DataLossError, match="tensor 'b' is at offset 32 with 32 bytes, but the file has 40: truncated"):
        reader.read("b")


def write_raw_index(path: Path, header: bytes, **entries: bytes) -> None:
    with path.open("wb") as file:
        table = TableWriter(file.write)
        table.add(b"", header)
        for name, entry in sorted(entries.items()):
            table.add(name.encode(), entry)
        table.finish()


@pytest.mark.parametrize(
    ("header", "error", "message"),
    [
        (b"\x08\x01\x10\x01\x1a\x02\x08\x01", FormatError, "big-endian machine, which is not supported"),
        (b"\x08\x01\x1a\x04\x08\x02\x10\x02", FormatError, "asks for readers of version 2 or later"),
        (b"\x1a\x02\x08\x01", DataLossError, "says there are 0 data files"),
        (b"\xff", DataLossError, "the header is damaged"),
    ],
)
def test_headers_that_are_refused(tmp_path: Path, header: bytes, error: type[Exception], message: str) -> None:
    write_raw_index(tmp_path / "c.index", header)
    with pytest.raises(error, match=message):
        BundleReader(tmp_path / "c")


def test_resources_are_no_tensors_of_a_checkpoint(tmp_path: Path) -> None:
    entry = BundleEntryProto(dtype=dtypes.resource.enum, size=8)
    entry.shape.dim.add(size=1)
    write_raw_index(tmp_path / "c.index", b"\x08\x01\x1a\x02\x08\x01", a=entry.SerializeToString())
    with pytest.raises(DataLossError, match="the entry of tensor 'a' is malformed: its type is resource"):
        BundleReader(tmp_path / "c")


@pytest.mark.parametrize("content", [b"", b"x" * 47, b"x" * 48, b"\0" * 1000])
def test_files_that_are_no_index(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c.index").write_bytes(content)
    with pytest.raises(DataLossError, match=r"c\.index: "):
        BundleReader(tmp_path / "c")


def test_restore_checks_types_and_shapes(tmp_path: Path) -> None:
    save(tmp_path / "c", {"a": np.zeros((2, 3), np.float32)})
    assert restore(tmp_path / "c", ["a"], None, [dtypes.float32.ref])[0].shape == (2, 3)
    with pytest.raises(InvalidArgumentError, match="'a' is float32 in the checkpoint and int32 in the graph"):
        restore(tmp_path / "c", ["a"], None, [dtypes.int32])
    with pytest.raises(
        InvalidArgumentError, match=r"'a' has shape \[2,3\] in the checkpoint and \[3, 3\] in the graph"
    ):
        restore(tmp_path / "c", ["a"], ["3 3 0,1:-"])


@pytest.mark.parametrize("spec", ["4 0,2:x", "4 0", "a 0,1", "4 3,2", "4 0,0", "4 -:-"])
def test_bad_slices(tmp_path: Path, spec: str) -> None:
    with pytest.raises(InvalidArgumentError):
        save(tmp_path / "c", {"a": np.zeros(2)}, None, {"a": spec})
    assert list(tmp_path.iterdir()) == []


def test_what_a_writer_refuses(tmp_path: Path) -> None:
    def attempt(*tensors: tuple[str, object], **options: object) -> None:
        save(tmp_path / "c", list(tensors), **options)  # type: ignore[arg-type]

    with pytest.raises(AlreadyExistsError, match="tensor 'a' has been added already"):
        attempt(("a", 1.0), ("a", 2.0))
    with pytest.raises(InvalidArgumentError, match="not a name for a tensor"):
        attempt(("", 1.0))
    with pytest.raises(InvalidArgumentError, match="tensor 'a' holds float64; int32 needs int32"):
        attempt(("a", 1.0), dtypes=[dtypes.int32])
    with pytest.raises(InvalidArgumentError, match="holds a dict where string needs bytes"):
        attempt(("a", np.array({}, object)))
    with pytest.raises(InvalidArgumentError, match=r"part '0,2' of tensor 'a' has shape \[2\], not \[3\]"):
        attempt(("a", np.zeros(3)), slices=["4 0,2"])
    with pytest.raises(InvalidArgumentError, match="the parts of tensor 'a' disagree"):
        attempt(("a", np.zeros(2)), ("a", np.zeros(2, np.float32)), slices=["4 0,2", "4 2,2"])
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_when_a_block_raises(tmp_path: Path) -> None:
    with pytest.raises(KeyError), BundleWriter(tmp_path / "c", 3) as writer:
        writer.add("a", np.zeros(10))
        assert all(TEMPORARY in path.name for path in tmp_path.iterdir())
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_a_forgotten_writer_leaves_nothing(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "c", 2)
    writer.add("a", np.zeros(10))
    del writer
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_closed_writer(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "c")
    writer.finish()
    with pytest.raises(InvalidArgumentError, match="closed"):
        writer.add("a", 1.0)
    assert list(BundleReader(tmp_path / "c")) == []


def test_replacing_a_checkpoint_removes_its_other_data_files(tmp_path: Path) -> None:
    small_checkpoint(tmp_path / "c", 3)
    save(tmp_path / "c.other", {"a": np.zeros(1)})
    save(tmp_path / "c", {"a": np.zeros(1)})
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "c.data-00000-of-00001", "c.index", "c.other.data-00000-of-00001", "c.other.index",
    ]  # fmt: skip


def test_merge_refuses_duplicates_and_missing_shares(tmp_path: Path) -> None:
    save(tmp_path / "a", {"x": np.zeros(1)})
    save(tmp_path / "b", {"x": np.zeros(1)})
    with pytest.raises(InvalidArgumentError, match="tensor 'x' is in more than one of the checkpoints"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "all")
    with pytest.raises(NotFoundError):
        merge([tmp_path / "a", tmp_path / "none"], tmp_path / "all")
    assert len(list(tmp_path.iterdir())) == 4
    merge([tmp_path / "a", tmp_path / "none"], tmp_path / "all", allow_missing=True)
    assert list(BundleReader(tmp_path / "all")) == ["x"]


def test_finding_prefixes(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    small_checkpoint(folder / "ckpt-2")
    prefix = str(folder / "ckpt-2")
    for text in (prefix, f"{prefix}.index", f"{prefix}.data-00000-of-00001", str(folder)):
        assert find_prefix(text) == prefix
    small_checkpoint(folder / "ckpt-10")
    with pytest.raises(Exception, match=r"has 2 checkpoints \(ckpt-2, ckpt-10\) and no state file"):
        find_prefix(folder)
    with pytest.raises(NotFoundError, match="there is no checkpoint in the folder"):
        find_prefix(tmp_path)


NUMBERS = st.sampled_from(["f4", "f8", "f2", "i1", "i4", "i8", "u2", "u8", "?", "c8", "c16"])
ARRAYS = st.one_of(
    NUMBERS.flatmap(lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))),
    st.lists(st.binary(max_size=50), max_size=6).map(lambda items: np.array([*items, None], object)[:-1]),
)


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.text(min_size=1, max_size=20).filter(lambda t: t[0] != "\0"), ARRAYS, max_size=12),
    st.integers(1, 3),
)
def test_any_tensors(tmp_path_factory: pytest.TempPathFactory, tensors: dict[str, Any], num_shards: int) -> None:
    prefix = tmp_path_factory.mktemp("any") / "c"
    with BundleWriter(prefix, num_shards) as writer:
        for at, (name, array) in enumerate(tensors.items()):
            writer.add(name, array, shard=at % num_shards)
    with BundleReader(prefix) as reader:
        assert set(reader) == set(tensors)
        for name, array in tensors.items():
            assert equal(reader.read(name), array)
    assert check(str(prefix)).findings == []
