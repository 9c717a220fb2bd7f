"""Partitioned tensors and parts of tensors, read a piece at a time: the same bytes as when read at once."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.bundle_cases import equal
from toolkit.errors import DataLossError
from toolkit.formats.bundle import BundleReader, BundleWriter, save
from toolkit.formats.bundle.compare import EQUAL, compare
from toolkit.formats.bundle.regions import blocks, covers, overlap, rechunk, whole
from toolkit.formats.bundle.source import CHUNK
from toolkit.formats.bundle.stats import statistics
from toolkit.formats.bundle.surgery import arithmetic, reshard
from toolkit.graph import dtypes


def grid(dims: Sequence[int], cuts: Sequence[Sequence[int]]) -> list[tuple[tuple[int, int], ...]]:
    """The boxes of a tensor cut at some indices along every axis."""
    boxes: list[tuple[tuple[int, int], ...]] = [()]
    for size, at in zip(dims, cuts, strict=True):
        edges = sorted({0, size, *(cut % size for cut in at)})
        boxes = [(*box, pair) for box in boxes for pair in pairwise(edges)]
    return boxes


def write_parts(prefix: Path, array: Any, boxes: list[tuple[tuple[int, int], ...]], num_shards: int = 1) -> None:
    with BundleWriter(prefix, num_shards) as writer:
        writer.add("before", np.zeros(3, np.int8))  # so that nothing is aligned
        for at, box in enumerate(boxes):
            part = ":".join(f"{start},{stop - start}" for start, stop in box)
            index = tuple(slice(*extent) for extent in box)
            writer.add_slice("p", array.shape, part, array[index], shard=at % num_shards)


DIMS = st.lists(st.integers(1, 7), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), dims=DIMS)
def test_streaming_is_reading(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, dims: list[int]) -> None:
    folder = tmp_path_factory.mktemp("regions")
    array = np.arange(math.prod(dims), dtype=np.float32).reshape(dims)
    cuts = [data.draw(st.lists(st.integers(0, 6), max_size=2)) for _ in dims]
    write_parts(folder / "c", array, grid(dims, cuts), data.draw(st.integers(1, 3)))
    size = data.draw(st.sampled_from([1, 4, 12, 64, 4096]))
    bounds = tuple(tuple(sorted((data.draw(st.integers(0, d)), data.draw(st.integers(0, d))))) for d in dims)
    index = tuple(slice(*extent) for extent in bounds)
    with BundleReader(folder / "c") as reader:
        entry = reader.entry("p")
        pieces = list(reader.chunks(entry, size))
        assert b"".join(pieces) == array.tobytes()
        assert all(len(piece) == size for piece in pieces[:-1])
        assert b"".join(reader.region_chunks(entry, bounds, size)) == array[index].tobytes()


@settings(max_examples=60, deadline=None)
@given(data=st.data(), dims=DIMS, size=st.integers(1, 200))
def test_blocks_cut_a_region_in_order(data: st.DataObject, dims: list[int], size: int) -> None:
    bounds = tuple(tuple(sorted((data.draw(st.integers(0, d)), data.draw(st.integers(0, d))))) for d in dims)
    index = tuple(slice(*extent) for extent in bounds)
    numbers = np.arange(math.prod(dims)).reshape(dims)
    found = [numbers[tuple(slice(*extent) for extent in block)].ravel() for block in blocks(bounds, dims, 4, size)]
    assert np.concatenate([np.empty(0, int), *found]).tolist() == numbers[index].ravel().tolist()
    for block in blocks(whole(dims), dims, 4, size):
        count = math.prod(stop - start for start, stop in block)
        assert 4 * count <= size or count == 1 or all(stop - start == 1 for start, stop in block[:-1])


def test_small_things() -> None:
    assert list(blocks((), (), 4, 1)) == [()]
    assert overlap(((0, 3),), ((2, 5),)) == ((2, 3),)
    assert overlap(((0, 2),), ((2, 5),)) is None
    assert covers(((0, 4),), [((0, 3),), ((1, 4),)])
    assert not covers(((0, 4),), [((0, 2),), ((1, 3),)])
    assert list(rechunk([b"abc", b"", b"defgh"], 3)) == [b"abc", b"def", b"gh"]


def test_surgery_of_partitioned_tensors(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((50, 30)).astype("f4") for _ in range(2)]
    for at, array in enumerate(arrays):
        write_parts(tmp_path / f"p{at}", array, grid((50, 30), [[20], [7, 11]][:: 1 if at else -1]))
        save(tmp_path / f"w{at}", {"before": np.zeros(3, np.int8), "p": array})
    readers = {name: BundleReader(tmp_path / name) for name in ("p0", "p1", "w0", "w1")}
    for kind in "pw":
        pair = [readers[f"{kind}0"], readers[f"{kind}1"]]
        arithmetic.average(pair, tmp_path / f"average-{kind}", [1.0, 3.0])
        arithmetic.cast(pair[0], tmp_path / f"cast-{kind}", dtypes.from_name("bfloat16"), lambda name: name == "p")
        reshard.take_slices(pair[0], tmp_path / f"slice-{kind}", [("p", "15,10:5,20")])
        reshard.partition(pair[0], tmp_path / f"partition-{kind}", "p", 4, 1)
        reshard.reshard([pair[0]], tmp_path / f"joined-{kind}", 1, join_parts=True)
    for job in ("average", "cast", "slice", "partition", "joined"):
        suffixes = (".index", ".data-00000-of-00001")
        for suffix in suffixes:
            assert (tmp_path / f"{job}-p{suffix}").read_bytes() == (tmp_path / f"{job}-w{suffix}").read_bytes(), job
    assert equal(BundleReader(tmp_path / "partition-w").read("p"), arrays[0])
    assert equal(BundleReader(tmp_path / "slice-p").read("p"), arrays[0][15:25, 5:25].copy())
    assert {d.status for d in compare(readers["p0"], readers["w0"])} == {EQUAL}
    changed = next(d for d in compare(readers["p0"], readers["w1"]) if d.name == "p")
    assert changed.count == 1500 and changed.max_abs == np.abs(arrays[0].astype("f8") - arrays[1]).max()
    assert statistics(readers["p0"], readers["p0"].entry("p")) == statistics(readers["w0"], readers["w0"].entry("p"))


def test_a_damaged_part_is_noticed_before_its_bytes_are_given_out(tmp_path: Path) -> None:
    array = np.arange(40, dtype=np.float32).reshape(10, 4)
    write_parts(tmp_path / "c", array, grid((10, 4), [[5], []]))
    data = tmp_path / "c.data-00000-of-00001"
    raw = bytearray(data.read_bytes())
    raw[-1] ^= 1  # in the second part
    data.write_bytes(raw)
    with BundleReader(tmp_path / "c") as reader:
        got = bytearray()
        with pytest.raises(DataLossError, match=r"tensor 'p\[5,5:0,4\]'"):
            for piece in reader.chunks(reader.entry("p"), 16):
                got += piece
        assert array.tobytes().startswith(bytes(got)) and len(got) <= 80


def test_memory_of_partitioned_tensors(tmp_path: Path) -> None:
    """A tensor of 96 MB in 12 parts goes through in pieces, whichever way it is cut."""
    array = np.zeros((3072, 8192), np.float32)
    for axis in (0, 1):
        cuts: list[list[int]] = [[], []]
        cuts[axis] = list(range(0, array.shape[axis], array.shape[axis] // 12))
        write_parts(tmp_path / "c", array, grid(array.shape, cuts))
        with BundleReader(tmp_path / "c") as reader:
            tracemalloc.start()
            arithmetic.cast(reader, tmp_path / "half", dtypes.from_name("float16"), lambda name: name == "p")
            arithmetic.average([reader, reader], tmp_path / "averaged")
            reshard.partition(reader, tmp_path / "cut", "p", 5, 1 - axis)
            list(compare(reader, reader))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 16 * CHUNK
