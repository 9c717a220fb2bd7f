"""Moving tensors from file to file, whatever the formats: the base of converting and of all surgery."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from toolkit.errors import AlreadyExistsError, InvalidArgumentError, UsageError
from toolkit.formats.bundle.entry import Entry
from toolkit.formats.bundle.locate import NPZ, SAFETENSORS, check_target, open_tensors
from toolkit.formats.bundle.progress import Counter
from toolkit.formats.bundle.slices import TensorSlice
from toolkit.formats.bundle.source import Array, TensorSink, TensorSource
from toolkit.formats.bundle.writer import BundleWriter
from toolkit.graph.dtypes import DType

#: data files that are written at the same time at most; each takes a piece of a tensor in memory
MAX_WRITERS = min(8, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Item:
    """One tensor to be written.

    Attributes:
        name: what it will be called.
        dtype, dims: what it will be.
        source, entry: the tensor it is a copy of, or None.
        make: computes it, where it is not a copy.
        pieces: computes its little-endian bytes a piece at a time, for plain tensors of any size.
        shard: the data file it goes to.
        part: what is written is this part of a partitioned tensor of sizes `dims`; only checkpoints hold such.
    """

    name: str
    dtype: DType
    dims: tuple[int, ...]
    source: TensorSource | None = None
    entry: Entry | None = None
    make: Callable[[], Array] | None = None
    pieces: Callable[[], Iterable[bytes]] | None = None
    shard: int = 0
    part: TensorSlice | None = None


def copy_of(source: TensorSource, name: str, new_name: str | None = None, shard: int = 0) -> Item:
    """A tensor that is taken over as it is.

    Raises:
        NotFoundError: there is no such tensor.
    """
    entry = source.entry(name)
    return Item(new_name or name, entry.dtype, entry.dims, source, entry, shard=shard)


def _whence(a: Item, b: Item) -> str:
    """Where two tensors come from, when it is not one checkpoint."""
    if a.source is None or b.source is None or a.source is b.source:
        return ""
    if a.source.prefix == b.source.prefix:
        return f": '{a.source.prefix}' is given twice"
    return f": it is in '{a.source.prefix}' and in '{b.source.prefix}'"


def spread(sources: Sequence[TensorSource], target: str | Path, num_shards: int) -> tuple[list[Item], list[int]]:
    """Copies of all tensors, over data files of about the same size.

    Returns:
        The copies, and the bytes in each file.

    Raises:
        InvalidArgumentError: there are fewer tensors than files.
    """
    pairs = [(source, entry) for source in sources for entry in source.entries.values()]
    if num_shards > max(1, len(pairs)):
        raise InvalidArgumentError(f"{len(pairs)} tensors cannot fill {num_shards} data files", file=str(target))
    sizes = [0] * num_shards
    items: list[Item] = []
    # Largest first into the emptiest file.
    for source, entry in sorted(pairs, key=lambda pair: (-pair[1].bytes, pair[1].name)):
        shard = sizes.index(min(sizes))
        sizes[shard] += entry.bytes
        items.append(copy_of(source, entry.name, shard=shard))
    return items, sizes


def write_items(path: str | Path, items: Iterable[Item], num_shards: int = 1, keep_parts: bool = True) -> None:
    """Write tensors to a file whose suffix says what it is: .npz, .safetensors, or none for a checkpoint's prefix.

    Bytes are copied without being decoded where both files allow it, a piece at a time, and their CRCs are checked.
    The data files of a checkpoint are written side by side, each by a thread, in the order they have alone.

    Args:
        items: the tensors; they are written in name order.
        num_shards: data files of a checkpoint.
        keep_parts: partitioned tensors stay so in checkpoints.

    Raises:
        AlreadyExistsError: two tensors have one name.
        GraphmillError: reading or writing fails. Nothing is left behind.
    """
    ordered = sorted(items, key=lambda item: item.name.encode("utf-8", "surrogateescape"))
    for before, item in pairwise(ordered):
        if before.name == item.name and (before.part is None or item.part is None):
            raise AlreadyExistsError(
                f"two tensors would be called '{item.name}'{_whence(before, item)}", file=str(path)
            )
    for source in {id(item.source): item.source for item in ordered if item.source is not None}.values():
        source.check_amount()
    sink = _open_sink(path, ordered, num_shards)
    if isinstance(sink, BundleWriter):
        ordered = _in_file_order(ordered)
    else:
        # Formats with the header in front need what goes into the header first.
        ordered.sort(key=lambda item: item.dtype.kind not in "sv")
    count = Counter(sum(_size(item) for item in ordered))
    try:
        _write_all(sink, ordered, keep_parts, count)
        sink.finish()
    except BaseException:
        sink.abort()
        raise


def _size(item: Item) -> int:
    return item.entry.bytes if item.entry is not None else math.prod(item.dims) * item.dtype.size


def _in_file_order(items: list[Item]) -> list[Item]:
    """Copies of one checkpoint stay in the order they have in its files: a plain copy is the same bytes."""
    if any(item.entry is None or item.source is not items[0].source or item.entry.slices for item in items):
        return items
    entries = {item.name: item.entry for item in items if item.entry is not None}
    return sorted(items, key=lambda item: (entries[item.name].shard, entries[item.name].offset))


def _open_sink(path: str | Path, items: list[Item], num_shards: int) -> TensorSink:
    suffix = check_target(path)
    if suffix and num_shards != 1:
        raise UsageError(f"a {suffix} file has no shards", file=str(path))
    for item in items if suffix else ():
        try:
            item.name.encode()
        except UnicodeEncodeError:
            raise InvalidArgumentError(
                f"a {suffix} file has names in UTF-8, and {item.name!r} is not; rename it or write a checkpoint",
                file=str(path),
            ) from None
    if suffix and any(item.part is not None for item in items):
        raise UsageError(f"a {suffix} file has no partitioned tensors; write a checkpoint", file=str(path))
    if suffix == NPZ:
        from toolkit.formats.bundle.npz import NpzWriter

        return NpzWriter(path)
    if suffix == SAFETENSORS:
        from toolkit.formats.bundle.safetensors import SafetensorsWriter

        return SafetensorsWriter(path, [(item.name, item.dtype, item.dims) for item in items])
    return BundleWriter(path, num_shards)


def _write_all(sink: TensorSink, items: list[Item], keep_parts: bool, count: Counter) -> None:
    """Write tensors one after another; those of different data files at the same time."""
    shards: dict[int, list[Item]] = {}
    for item in items:
        shards.setdefault(item.shard, []).append(item)
    failures: list[BaseException] = []

    def write(mine: list[Item]) -> None:
        try:
            for item in mine:
                if failures:
                    return
                _write(sink, item, keep_parts, count)
        except BaseException as error:  # the others end because of it
            failures.append(error)

    if len(shards) <= 1 or not isinstance(sink, BundleWriter):
        write(items)
    else:
        with ThreadPoolExecutor(min(len(shards), MAX_WRITERS), "checkpoint-shard") as pool:
            try:
                list(pool.map(write, shards.values()))
            except BaseException as error:  # interrupted while waiting: closing the writer ends the threads
                failures.append(error)
                sink.failure = sink.failure or error
                sink.abort()
    if failures:
        raise (sink.failure if isinstance(sink, BundleWriter) else None) or failures[0]


def _write(sink: TensorSink, item: Item, keep_parts: bool, count: Counter) -> None:
    into_bundle = isinstance(sink, BundleWriter)
    options: dict[str, Any] = {"shard": item.shard} if into_bundle else {}
    if item.part is not None and isinstance(sink, BundleWriter):
        if item.pieces is not None:
            sink.add_raw(item.name, item.dtype, item.dims, count(item.pieces()), None, item.shard, item.part)
        elif item.make is not None:
            sink.add_slice(item.name, item.dims, item.part, item.make(), item.dtype, item.shard)
        return
    if item.pieces is not None:
        sink.add_raw(item.name, item.dtype, item.dims, count(item.pieces()), None, **options)
        return
    if item.make is not None:
        sink.add(item.name, item.make(), item.dtype, **options)
        count.add(_size(item))
        return
    source, entry = cast(TensorSource, item.source), cast(Entry, item.entry)
    if entry.slices and into_bundle and keep_parts and source.has_raw_parts:
        for part, own in source.parts(entry.name):
            sink.add_raw(item.name, entry.dtype, entry.dims, count(source.chunks(own)), own.crc, part=part, **options)
    elif entry.dtype.kind in "sv":
        sink.add(item.name, source.read(entry.name), entry.dtype, **options)
        count.add(entry.bytes)
    else:
        # The reader checks the CRC against the index, so it need not be computed again.
        known = entry.crc if source.has_crcs and not entry.slices else None
        sink.add_raw(item.name, entry.dtype, entry.dims, count(source.chunks(entry)), known, **options)


def convert(source: str | Path, target: str | Path, num_shards: int = 1, v1: bool = False) -> list[Entry]:
    """Copy all tensors from one file to another, of the same or another format.

    Args:
        v1: write a checkpoint in the V1 format.

    Returns:
        What was copied.

    Raises:
        GraphmillError: see `open_tensors` and `write_items`.
    """
    with open_tensors(source) as reader:
        if v1:
            from toolkit.formats.bundle.v1 import write_v1

            if check_target(target):
                raise UsageError("--v1 writes a checkpoint, not another format", file=str(target))
            if num_shards > 1:
                raise UsageError("a checkpoint of the V1 format is one file; leave --shards out", file=str(target))
            write_v1(target, {name: (reader.read(name), entry.dtype) for name, entry in reader.entries.items()})
        else:
            write_items(target, spread([reader], target, num_shards)[0], num_shards)
        return list(reader.entries.values())
