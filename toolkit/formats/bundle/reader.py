"""Reading checkpoints: the index at once, tensors when they are asked for."""

from __future__ import annotations

import errno
import math
import threading
from collections.abc import Iterator
from pathlib import Path

from toolkit.errors import DataLossError, FormatError, GraphmillError, InvalidArgumentError, NotFoundError, did_you_mean
from toolkit.formats.bounds import DATA_FILES, elements
from toolkit.formats.bundle import strings, wire
from toolkit.formats.bundle.entry import Entry, data_path, index_path
from toolkit.formats.bundle.paths import ReadableFile, join, names_in, open_file, split
from toolkit.formats.bundle.regions import (
    Bounds,
    blocks,
    covers,
    overlap,
    read_box,
    rechunk,
    shifted,
    whole,
    within,
)
from toolkit.formats.bundle.remote import RemoteFile
from toolkit.formats.bundle.slices import TensorSlice, decode_key, encode_key, full
from toolkit.formats.bundle.source import CHUNK, Array, TensorSource
from toolkit.formats.bundle.storage import failure
from toolkit.formats.bundle.table import TableReader
from toolkit.formats.records import crc
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


class BundleReader(TensorSource):
    """A checkpoint in TensorFlow's V2 format (TensorBundle).

    Opening reads the index only. Tensors are views of the memory-mapped data files where the format allows it, so
    they are read-only and cost nothing until they are looked at.

    Args:
        prefix: the checkpoint's name, without ".index".

    Attributes:
        entries: every tensor by name, in key order.
        num_shards: how many data files there are.
        part_entries: the entries of the parts of partitioned tensors, by key.

    Raises:
        NotFoundError: there is no such checkpoint.
        DataLossError: the index is damaged.
        FormatError: it is of a version or byte order that is not supported.
    """

    has_raw_parts = True
    has_crcs = True

    def __init__(self, prefix: str | Path):
        super().__init__(str(prefix))
        self.index = index_path(self.prefix)
        try:
            file = open_file(self.index)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(
                f"there is no checkpoint here: '{self.index}' does not exist{_neighbours(self.prefix)}",
                file=self.prefix,
            ) from None
        except OSError as error:
            raise failure(error, self.index, "opening it") from None
        self._index_file = file
        try:
            self.table = TableReader(file.read_at, file.size, self.index)
            items = list(self.table.entries())
        except OSError as error:
            raise failure(error, self.index, "reading it") from None
        if not items or items[0][0]:
            raise DataLossError("the index has no header entry: not a checkpoint's index, or damaged", file=self.index)
        self.header = self._check_header(items[0][1])
        self.num_shards = self.header.num_shards
        self.part_entries: dict[bytes, Entry] = {}
        self._shards: dict[int, ReadableFile | RemoteFile] = {}
        self._opening = threading.Lock()
        self._decode(items)

    def _check_header(self, data: bytes) -> wire.BundleHeader:
        try:
            header = wire.decode_header(data)
        except FormatError as error:
            raise DataLossError(f"the header is damaged: {error.message}", file=self.index) from None
        if header.endianness == wire.BIG_ENDIAN:
            raise FormatError(
                "the checkpoint was written on a big-endian machine, which is not supported; save it again on a "
                "little-endian one",
                file=self.index,
            )
        if header.min_consumer > wire.BUNDLE_VERSION or wire.BUNDLE_VERSION in header.bad_consumers:
            raise FormatError(
                f"the checkpoint asks for readers of version {header.min_consumer} or later; this is version "
                f"{wire.BUNDLE_VERSION}",
                file=self.index,
            )
        if not 1 <= header.num_shards <= DATA_FILES:
            raise DataLossError(
                f"the header says there are {header.num_shards} data files; there can be 1 to {DATA_FILES:,}",
                file=self.index,
            )
        return header

    def _decode(self, items: list[tuple[bytes, bytes]]) -> None:
        partitioned: list[str] = []
        for key, value in items[1:]:
            try:
                raw = wire.decode_entry(value)
                dtype = dtypes.from_enum(raw.dtype).base
                if dtype.kind == "r":
                    raise FormatError("its type is resource, of which a checkpoint holds nothing")
                if not key:
                    raise FormatError("it has no name")
                if key[0] == 0:
                    name, part = decode_key(key)
                    name = f"{name}[{part}]"
                else:
                    name = key.decode("utf-8", "surrogateescape")
            except GraphmillError as error:
                shown = key.decode("utf-8", "replace")
                raise DataLossError(
                    f"the entry of tensor '{shown}' is malformed: {error.message}", file=self.index
                ) from None
            if raw.dims is None or min(raw.size, raw.offset) < 0:
                raise DataLossError(f"the entry of tensor '{name}' has an impossible shape or size", file=self.index)
            try:
                elements(raw.dims, dtype.size)
            except FormatError as error:
                raise DataLossError(
                    f"the entry of tensor '{name}' has an impossible shape: {error.message}", file=self.index
                ) from None
            entry = Entry(name, dtype, Shape(raw.dims), raw.size, raw.shard, raw.offset, raw.crc, raw.slices)
            if key[0] == 0:
                self.part_entries[key] = entry
            else:
                self.entries[name] = entry
                if raw.slices:
                    partitioned.append(name)
        for name in partitioned:
            entry = self.entries[name]
            size = sum(part.bytes for _, part in self._iterate_parts(entry) if part is not None)
            self.entries[name] = Entry(
                name, entry.dtype, entry.shape, size, entry.shard, entry.offset, entry.crc, entry.slices
            )

    # -- looking -----------------------------------------------------------------------------------------

    def parts(self, name: str) -> list[tuple[TensorSlice, Entry]]:
        """The parts of a partitioned tensor with their own entries; nothing for other tensors.

        Raises:
            NotFoundError: there is no such tensor.
            DataLossError: a part that the tensor lists has no entry, or one that does not fit.
        """
        entry = self.entry(name)
        found: list[tuple[TensorSlice, Entry]] = []
        for part, own in self._iterate_parts(entry):
            if own is None:
                raise DataLossError(f"part '{part}' of tensor '{name}' has no entry of its own", file=self.index)
            try:
                expected = part.shape(entry.dims)
            except InvalidArgumentError as error:
                raise DataLossError(f"tensor '{name}': {error.message}", file=self.index) from None
            if own.dtype is not entry.dtype or own.dims != expected:
                raise DataLossError(
                    f"part '{part}' of tensor '{name}' is {own.dtype}{own.shape}; {entry.dtype}{Shape(expected)} fits",
                    file=self.index,
                )
            self._check_size(own)
            found.append((part, own))
        if len(found) != len({part for part, _ in found}):
            raise DataLossError(f"tensor '{name}' lists a part twice", file=self.index)
        return found

    def _check_size(self, entry: Entry) -> None:
        """Refuse an entry whose shape does not fit its bytes; a string takes one at least."""
        expected = entry.count * entry.dtype.size
        if entry.bytes != expected if entry.dtype.kind not in "srv" else entry.bytes < entry.count:
            raise DataLossError(
                f"tensor '{entry.name}' is {entry.dtype}{entry.shape} and has {entry.bytes} bytes"
                + (f", not {expected}" if expected else ""),
                file=self.index,
            )

    def _iterate_parts(self, entry: Entry) -> Iterator[tuple[TensorSlice, Entry | None]]:
        for part in entry.slices:
            yield part, self.part_entries.get(encode_key(entry.name, part))

    def stored(self) -> Iterator[Entry]:
        """Every piece of data in the files: tensors, and the parts of partitioned ones ("name[0,2:-]")."""
        yield from self.part_entries.values()
        for entry in self.entries.values():
            if not entry.slices:
                yield entry

    def shard_path(self, shard: int) -> str:
        """The name of a data file."""
        return data_path(self.prefix, shard, self.num_shards)

    def missing_files(self) -> list[str]:
        folder, stem = split(self.prefix)
        there = set(names_in(folder))
        expected = (data_path(stem, shard, self.num_shards) for shard in range(self.num_shards))  # DATA_FILES at most
        return [join(folder, name) for name in expected if name not in there]

    def check_files(self) -> None:
        last: dict[int, Entry] = {}  # of each file
        for entry in self.stored():
            before = last.get(entry.shard)
            if before is None or entry.offset + entry.bytes > before.offset + before.bytes:
                last[entry.shard] = entry
        for entry in last.values():
            self._shard(entry)

    def check_amount(self) -> None:
        amounts: dict[int, int] = {}
        for entry in self.stored():
            amounts[entry.shard] = amounts.get(entry.shard, 0) + entry.bytes
        for entry in self.stored():
            amount = amounts.pop(entry.shard, 0)
            if amount > (file := self._shard(entry)).size:
                raise DataLossError(
                    f"the index has {amount:,} bytes of tensors in a file of {file.size:,}: some share their bytes; "
                    "see which with: graphmill checkpoint verify",
                    file=file.path,
                )

    # -- reading -----------------------------------------------------------------------------------------

    def read(self, name: str, verify: bool = True) -> Array:
        entry = self.entry(name)
        if not entry.slices:
            return self._read_whole(entry, verify)
        return self._assemble(entry, whole(entry.dims), verify)

    def _read_bounds(self, entry: Entry, bounds: Bounds, verify: bool) -> Array:
        if entry.slices:
            return self._assemble(entry, bounds, verify)
        return self._read_whole(entry, verify)[tuple(slice(start, stop) for start, stop in bounds)]

    def chunks(self, entry: Entry, size: int = CHUNK, verify: bool = True) -> Iterator[bytes]:
        """The stored bytes of an entry, a piece at a time; of a partitioned one, those it would have as a whole.

        The CRC is checked after the last piece; for strings and variants (whose CRC is not that of the bytes) the
        caller decodes them to check.

        Raises:
            NotFoundError: the data file is missing.
            DataLossError: the data file is too short, or the CRC is wrong.
        """
        if entry.slices:
            yield from self.region_chunks(entry, whole(entry.dims), size, verify)
            return
        self._check_size(entry)
        file = self._shard(entry)
        sum_ = 0
        plain = entry.dtype.kind not in "sv"
        for start in range(0, entry.bytes, size):
            length = min(size, entry.bytes - start)
            piece = file.read_at(entry.offset + start, length)
            if len(piece) != length:
                raise DataLossError(f"the data file ended while tensor '{entry.name}' was read", file=file.path)
            if verify and plain:
                sum_ = crc.extend(sum_, piece)
            yield piece
        if verify and plain:
            self._check(entry, crc.mask(sum_))

    def _shard(self, entry: Entry) -> ReadableFile | RemoteFile:
        """The data file of an entry, checked to reach far enough."""
        with self._opening:
            file = self._open_shard(entry)
        if entry.offset + entry.bytes > file.size:
            raise DataLossError(
                f"tensor '{entry.name}' is at offset {entry.offset} with {entry.bytes} bytes, but the file has "
                f"{file.size}: truncated",
                file=file.path,
            )
        return file

    def _open_shard(self, entry: Entry) -> ReadableFile | RemoteFile:
        file = self._shards.get(entry.shard)
        if file is None:
            path = self.shard_path(entry.shard)
            if not 0 <= entry.shard < self.num_shards:
                raise DataLossError(
                    f"tensor '{entry.name}' is in data file {entry.shard} of {self.num_shards}", file=self.index
                )
            try:
                file = open_file(path)
            except OSError as error:
                if error.errno == errno.ENOENT:
                    raise NotFoundError(
                        f"the data file with tensor '{entry.name}' is missing; the checkpoint has {self.num_shards}",
                        file=path,
                    ) from None
                raise failure(error, path, "opening it") from None
            self._shards[entry.shard] = file
        return file

    def _check(self, entry: Entry, actual: int) -> None:
        if actual != entry.crc:
            raise DataLossError(
                f"tensor '{entry.name}' at offset {entry.offset} ({entry.bytes} bytes) has CRC {actual:08x}, the index "
                f"says {entry.crc:08x}: damaged",
                file=self.shard_path(entry.shard),
            )

    def _read_whole(self, entry: Entry, verify: bool) -> Array:
        import numpy as np

        if entry.dtype.kind in "srv":
            return self._read_objects(entry, verify)
        dtype = entry.dtype.numpy
        self._check_size(entry)
        file = self._shard(entry)
        if entry.bytes == 0:
            if verify:
                self._check(entry, crc.masked(b""))
            return np.empty(entry.dims, dtype)
        raw = np.frombuffer(file.view(entry.offset, entry.bytes), np.uint8)
        if verify:
            self._check(entry, crc.masked(raw))
        if entry.offset % dtype.alignment:
            raw = raw.copy()
            raw.flags.writeable = False
        return raw.view(dtype).reshape(entry.dims)

    def _read_objects(self, entry: Entry, verify: bool) -> Array:
        import numpy as np

        if entry.dtype.kind == "r":
            raise InvalidArgumentError(f"tensor '{entry.name}' holds resources, which cannot be read", file=self.prefix)
        data = b"".join(self.chunks(entry))
        decode = strings.decode_strings if entry.dtype.kind == "s" else strings.decode_variants
        try:
            elements, actual = decode(data, math.prod(entry.dims))
        except FormatError as error:
            raise DataLossError(
                f"tensor '{entry.name}' at offset {entry.offset}: {error.message}: damaged",
                file=self.shard_path(entry.shard),
            ) from None
        if verify:
            self._check(entry, actual)
        out = np.empty(len(elements), object)
        out[:] = elements
        return out.reshape(entry.dims)

    def _assemble(self, entry: Entry, bounds: Bounds, verify: bool) -> Array:
        """The region `bounds` of a partitioned tensor."""
        import numpy as np

        touched = self._touched(entry, bounds)
        out = np.empty([stop - start for start, stop in bounds], entry.dtype.numpy)
        for region, place, own in touched:
            out[within(region, bounds)] = self._read_whole(own, verify)[within(region, place)]
        return out

    def _touched(self, entry: Entry, bounds: Bounds) -> list[tuple[Bounds, Bounds, Entry]]:
        """The parts that a region lies in: what of it, where the part is, the part's entry.

        Raises:
            DataLossError: they do not cover the region.
        """
        found: list[tuple[Bounds, Bounds, Entry]] = []
        parts = self.parts(entry.name) if entry.slices else [(full(len(entry.dims)), entry)]
        for part, own in parts:
            place = part.bounds(entry.dims)
            region = overlap(bounds, place)
            if region is not None:
                found.append((region, place, own))
        for _, _, own in found:
            self._shard(own)  # all of it is there: memory of the region's size may be taken
        if not covers(bounds, [region for region, _, _ in found]):
            raise DataLossError(f"the parts of tensor '{entry.name}' do not cover it", file=self.index)
        return found

    def region_chunks(self, entry: Entry, bounds: Bounds, size: int = CHUNK, verify: bool = True) -> Iterator[bytes]:
        """As `TensorSource.region_chunks`, with no more than a piece of every part in memory.

        The CRC of a part is checked before its first bytes are given out.
        """
        return rechunk(self._region(entry, bounds, size, verify), size)

    def _region(self, entry: Entry, bounds: Bounds, size: int, verify: bool) -> Iterator[bytes]:
        import numpy as np

        dtype = entry.dtype.numpy
        touched = self._touched(entry, bounds)
        checked: set[str] = set()
        for block in blocks(bounds, entry.dims, dtype.itemsize, size):
            out: Array = np.empty([stop - start for start, stop in block], dtype)
            for region, place, own in touched:
                shared = overlap(block, region)
                if shared is None:
                    continue
                if verify and own.name not in checked:
                    checked.add(own.name)
                    for _ in self.chunks(own):
                        pass
                file, base = self._shard(own), own.offset
                out[within(shared, block)] = read_box(
                    lambda at, count, file=file, base=base: file.read_at(base + at, count),
                    own.dims, dtype, shifted(shared, place),
                )  # fmt: skip
            yield out.tobytes()

    def close(self) -> None:
        self._index_file.close()
        for file in self._shards.values():
            file.close()
        self._shards.clear()


def _neighbours(prefix: str) -> str:
    """A hint at checkpoints with similar names in the same folder."""
    folder, name = split(prefix)
    return did_you_mean(name, [n.removesuffix(".index") for n in names_in(folder) if n.endswith(".index")])
