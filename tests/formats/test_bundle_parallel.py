"""Data files written side by side: the bytes of one thread, bounded memory, and nothing left when one fails."""

from __future__ import annotations

import signal
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.formats.bundle_cases import small_checkpoint
from tests.patience import HUNG
from toolkit.errors import AlreadyExistsError, DataLossError, GraphmillError, InvalidArgumentError, OpError
from toolkit.formats.bundle import BundleReader, BundleWriter, save, storage, transfer
from toolkit.formats.bundle.check import check
from toolkit.formats.bundle.source import CHUNK
from toolkit.formats.bundle.surgery import reshard
from toolkit.formats.bundle.transfer import Item, copy_of, write_items
from toolkit.graph import dtypes


def files(folder: Path, stem: str) -> dict[str, bytes]:
    return {path.name.removeprefix(stem): path.read_bytes() for path in folder.glob(f"{stem}.*")}


def many(count: int = 40) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {f"w{i:03d}": rng.standard_normal(int(rng.integers(0, 60_000))).astype("f4") for i in range(count)}


@pytest.mark.parametrize("num_shards", [2, 3, 11])
def test_the_bytes_are_those_of_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_shards: int) -> None:
    tensors = many()
    save(tmp_path / "one", tensors)
    small_checkpoint(tmp_path / "small", 2)
    with BundleReader(tmp_path / "one") as a, BundleReader(tmp_path / "small") as b:
        reshard.reshard([a, b], tmp_path / "many", num_shards)
        monkeypatch.setattr(transfer, "MAX_WRITERS", 1)
        reshard.reshard([a, b], tmp_path / "serial", num_shards)
        with BundleWriter(tmp_path / "added", num_shards) as writer:
            for name in sorted([*a, *b]):
                source = a if name in a else b
                shard = BundleReader(tmp_path / "many").entry(name).shard
                entry = source.entry(name)
                if entry.slices:
                    for part, own in source.parts(name):
                        writer.add_raw(name, entry.dtype, entry.dims, source.chunks(own), own.crc, shard, part)
                else:
                    writer.add(name, source.read(name), entry.dtype, shard)
    assert files(tmp_path, "many") == files(tmp_path, "serial") == files(tmp_path, "added")
    assert len(files(tmp_path, "many")) == num_shards + 1
    assert check(str(tmp_path / "many")).findings == []


def test_they_are_written_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file's writer waits until the other has started: one after the other would never end."""
    monkeypatch.setattr(transfer, "MAX_WRITERS", 2)
    together = threading.Barrier(2)

    def pieces() -> Iterator[bytes]:
        together.wait(HUNG)
        yield bytes(8)

    write_items(tmp_path / "c", [Item(f"t{i}", dtypes.float64, (1,), pieces=pieces, shard=i) for i in range(2)], 2)
    assert check(str(tmp_path / "c")).findings == []


def test_threads_may_add_to_one_writer(tmp_path: Path) -> None:
    tensors = many()
    names = list(tensors)
    with BundleWriter(tmp_path / "threads", 4) as writer:

        def add(shard: int) -> None:
            for name in names[shard::4]:
                writer.add(name, tensors[name], shard=shard)

        threads = [threading.Thread(target=add, args=(shard,)) for shard in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with BundleWriter(tmp_path / "alone", 4) as writer:
        for shard in range(4):
            for name in names[shard::4]:
                writer.add(name, tensors[name], shard=shard)
    assert files(tmp_path, "threads") == files(tmp_path, "alone")


def test_one_name_from_two_threads(tmp_path: Path) -> None:
    refused: list[BaseException] = []
    with BundleWriter(tmp_path / "c", 8) as writer:

        def add(shard: int) -> None:
            try:
                writer.add("w", np.zeros(100_000), shard=shard)
            except AlreadyExistsError as error:
                refused.append(error)

        threads = [threading.Thread(target=add, args=(shard,)) for shard in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(refused) == 7
    assert check(str(tmp_path / "c")).findings == []


@pytest.mark.parametrize("failing", range(4))
def test_one_failing_thread_ends_all(tmp_path: Path, failing: int) -> None:
    def bad() -> Iterator[bytes]:
        yield bytes(CHUNK)
        raise DataLossError("this one is damaged")

    def good() -> Iterator[bytes]:
        for _ in range(4):
            yield bytes(CHUNK)

    items = [
        Item(f"t{shard}", dtypes.uint8, (4 * CHUNK,), pieces=bad if shard == failing else good, shard=shard)
        for shard in range(4)
    ]
    with pytest.raises(DataLossError, match="this one is damaged"):
        write_items(tmp_path / "c", items, 4)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_does_not_wait_for_the_tensors(tmp_path: Path) -> None:
    """Ctrl-C reaches the thread that waits; the others stop at their next piece."""
    given = 0
    many_pieces = 5000

    def pieces() -> Iterator[bytes]:
        nonlocal given
        for at in range(many_pieces):
            given += 1
            if at == 1:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.002)
            yield bytes(16)

    items = [Item(f"t{i}", dtypes.uint8, (16 * many_pieces,), pieces=pieces, shard=i) for i in range(2)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            write_items(tmp_path / "c", items, 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert given < 2 * many_pieces
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_source_is_not_copied(tmp_path: Path) -> None:
    save(tmp_path / "a", many(8))
    data = tmp_path / "a.data-00000-of-00001"
    raw = bytearray(data.read_bytes())
    raw[len(raw) // 2] ^= 1
    data.write_bytes(raw)
    before = sorted(tmp_path.iterdir())
    with BundleReader(tmp_path / "a") as reader, pytest.raises(DataLossError, match="CRC"):
        write_items(tmp_path / "b", [copy_of(reader, name, shard=at % 3) for at, name in enumerate(reader)], 3)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("call", ["sys_write", "sys_fsync"])
def test_every_failing_call_of_sharded_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    save(tmp_path / "a", many(12))
    before = sorted(tmp_path.iterdir())
    count = 0
    lock = threading.Lock()

    def run(fail_at: int) -> None:
        nonlocal count
        count = 0
        real = getattr(storage, call)

        def wrapped(*args: Any) -> Any:
            nonlocal count
            with lock:
                count += 1
                mine = count
            if mine == fail_at:
                raise OSError(28, "No space left on device")
            return real(*args)

        with monkeypatch.context() as patch, BundleReader(tmp_path / "a") as reader:
            patch.setattr(storage, call, wrapped)
            reshard.reshard([reader], tmp_path / "b", 4)

    run(10**9)
    for path in tmp_path.glob("b.*"):
        path.unlink()
    for at in range(1, count + 1):
        try:
            run(at)
        except OpError as error:
            assert "no space left on device" in str(error)
            assert sorted(tmp_path.iterdir()) == before, at
        else:  # only forcing the folder to disk may fail silently
            assert check(str(tmp_path / "b")).findings == []
            for path in tmp_path.glob("b.*"):
                path.unlink()


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """96 MB through four files at once takes a few pieces, not the tensors."""
    big = 6 * CHUNK

    def pieces() -> Iterator[bytes]:
        for _ in range(6):
            yield bytes(CHUNK)

    items = [Item(f"t{i}", dtypes.uint8, (big,), pieces=pieces, shard=i) for i in range(4)]
    tracemalloc.start()
    write_items(tmp_path / "c", items, 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (2 * transfer.MAX_WRITERS + 2) * CHUNK


def test_a_closed_writer(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "c", 2)
    writer.add("a", np.zeros(2), shard=1)
    with pytest.raises(InvalidArgumentError, match="no data file 2"):
        writer.add("b", np.zeros(2), shard=2)
    writer.abort()
    for job in (lambda: writer.add("c", np.zeros(2)), writer.finish):
        with pytest.raises(GraphmillError, match="writer is closed"):
            job()
    assert list(tmp_path.iterdir()) == []
