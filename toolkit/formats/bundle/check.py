"""Checking that a checkpoint is whole: the index's structure, every CRC, every byte of the data files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from toolkit.errors import FormatError, GraphmillError, NotFoundError
from toolkit.formats.bundle import open_checkpoint, strings, table
from toolkit.formats.bundle.entry import Entry, index_path
from toolkit.formats.bundle.locate import is_arrays, open_tensors
from toolkit.formats.bundle.paths import ReadableFile, exists, is_file, names_in, open_file, split
from toolkit.formats.bundle.reader import BundleReader
from toolkit.formats.bundle.regions import first_overlap
from toolkit.formats.bundle.remote import RemoteFile
from toolkit.formats.bundle.slices import encode_key
from toolkit.formats.bundle.source import CHUNK
from toolkit.formats.bundle.state import is_pattern, is_v1
from toolkit.formats.bundle.storage import TEMPORARY
from toolkit.formats.records import crc

#: data files without tensors that are looked at one by one: a device without variables writes such a file
_EMPTY_FILES = 1000
#: called with the bytes checked so far and all bytes
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class CheckpointFinding:
    """Something that is wrong.

    Attributes:
        kind: a short name: index, entry, missing-shard, truncated, crc, overlap, gap, parts, and those of
            `checkpoint_graph`: missing, shape, dtype, unused.
        message: what it is.
        tensor: the tensor it is about, or "".
        file: the file it is in, or "".
        offset: the first byte concerned, or -1.
    """

    kind: str
    message: str
    tensor: str = ""
    file: str = ""
    offset: int = -1


@dataclass(frozen=True, slots=True)
class CheckpointReport:
    """The result of checking a checkpoint.

    Attributes:
        findings: what is wrong; empty for a whole checkpoint.
        notes: what is odd and harmless, such as files of writers that were killed.
        tensors: how many tensors there are.
        bytes: how many bytes of data were checked.
    """

    findings: list[CheckpointFinding]
    notes: list[str]
    tensors: int
    bytes: int


def check(prefix: str, progress: Progress | None = None) -> CheckpointReport:
    """Check everything about a checkpoint: one pass over its files, in pieces, whatever their size.

    Raises:
        NotFoundError: there is no checkpoint of that name at all.
    """
    try:
        reader = BundleReader(prefix)
    except NotFoundError:
        if not exists(index_path(prefix)):
            folder, stem = split(prefix)
            if not any(name.startswith(f"{stem}.data-") for name in names_in(folder)):
                raise
            message = "the index is missing; without it the data files cannot be read"
            return CheckpointReport([CheckpointFinding("index", message, file=index_path(prefix))], [], 0, 0)
        raise
    except GraphmillError as error:
        return CheckpointReport(
            [CheckpointFinding("index", error.message, file=error.file or index_path(prefix))], [], 0, 0
        )
    with reader:
        findings = list(_check_table(reader.table, reader.index))
        findings += _check_entries(reader)
        done = 0
        total = sum(entry.bytes for entry in reader.stored())
        shards: dict[int, list[Entry]] = {}
        for entry in reader.stored():
            shards.setdefault(entry.shard, []).append(entry)
        unused = [shard for shard in range(reader.num_shards) if shard not in shards]
        if len(unused) > _EMPTY_FILES:
            message = f"the header says there are {reader.num_shards} data files; {len(unused)} of them hold nothing"
            findings.append(CheckpointFinding("index", message, file=reader.index))
            unused = []
        for shard in sorted([*(shard for shard in shards if 0 <= shard < reader.num_shards), *unused]):
            entries = sorted(shards.get(shard, []), key=lambda e: (e.offset, e.bytes))
            for finding, step in _check_shard(reader, shard, entries):
                if finding is not None:
                    findings.append(finding)
                done += step
                if progress is not None and step:
                    progress(done, total)
        return CheckpointReport(findings, list(_notes(reader)), len(reader), done)


def _check_table(view: table.TableReader, file: str) -> Iterator[CheckpointFinding]:
    """The parts of the table that reading it does not look at."""
    if view.footer != table.encode_footer(view.meta_index, view.index):
        yield CheckpointFinding("index", "the footer is not as it was written", file=file)
    at = 0
    for _, (offset, size) in [*view.blocks, ("", view.meta_index), ("", view.index)]:
        if offset != at:
            yield CheckpointFinding(
                "index", f"a block starts at offset {offset}, the one before ends at {at}", file=file
            )
        at = offset + size + table.TRAILER_SIZE
    end = view.size - table.FOOTER_SIZE
    if at != end:
        yield CheckpointFinding("index", f"the blocks end at offset {at}, the footer starts at {end}", file=file)
    try:
        if view.block_entries(view.meta_index):
            yield CheckpointFinding("index", "the meta-index block is not empty", file=file)
    except GraphmillError as error:
        yield CheckpointFinding("index", f"the meta-index: {error.message}", file=file)
    last: bytes | None = None
    for separator, handle in view.blocks:
        for key, _ in view.block_entries(handle):
            if last is not None and key <= last:
                yield CheckpointFinding("index", f"key {key!r} is out of order", file=file)
            last = key
        if last is not None and separator < last:
            yield CheckpointFinding(
                "index", f"the index has {separator!r} for a block that ends with {last!r}", file=file
            )


def _check_entries(reader: BundleReader) -> Iterator[CheckpointFinding]:
    listed: set[bytes] = set()
    for entry in reader.entries.values():
        for part in entry.slices:
            listed.add(encode_key(entry.name, part))
        if entry.slices:
            yield from _check_parts(reader, entry)
    for key, own in reader.part_entries.items():
        if key not in listed:
            yield CheckpointFinding("parts", f"'{own.name}' is a part that no tensor lists", own.name, reader.index)
    for entry in reader.stored():
        expected = entry.count * entry.dtype.size
        if entry.dtype.kind not in "srv" and entry.bytes != expected:
            message = f"{entry.dtype}{entry.shape} takes {expected} bytes, the entry says {entry.bytes}"
            yield CheckpointFinding("entry", message, entry.name, reader.index)
        if not 0 <= entry.shard < reader.num_shards:
            message = f"it is in data file {entry.shard} of {reader.num_shards}"
            yield CheckpointFinding("entry", message, entry.name, reader.index)


def _check_parts(reader: BundleReader, entry: Entry) -> Iterator[CheckpointFinding]:
    try:
        parts = reader.parts(entry.name)
    except GraphmillError as error:
        yield CheckpointFinding("parts", error.message, entry.name, reader.index)
        return
    pair = first_overlap([part.bounds(entry.dims) for part, _ in parts])
    if pair is not None:
        message = f"parts '{parts[pair[0]][0]}' and '{parts[pair[1]][0]}' share elements"
        yield CheckpointFinding("overlap", message, entry.name, reader.index)
        return
    volume = sum(own.count for _, own in parts)
    if volume != entry.count:
        message = f"its parts have {volume} of {entry.count} elements"
        yield CheckpointFinding("parts", message, entry.name, reader.index)


def _check_shard(
    reader: BundleReader, shard: int, entries: list[Entry]
) -> Iterator[tuple[CheckpointFinding | None, int]]:
    """Findings in one data file, and how many bytes were checked since the last one."""
    path = reader.shard_path(shard)
    try:
        file = open_file(path)
    except OSError as error:
        names = ", ".join(f"'{entry.name}'" for entry in entries[:3])
        more = f" and {len(entries) - 3} more" if len(entries) > 3 else ""
        reason = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        message = f"the data file {reason}; it holds {names or 'nothing'}{more}"
        yield CheckpointFinding("missing-shard", message, entries[0].name if entries else "", path), 0
        return
    end = 0
    previous: Entry | None = None
    for entry in entries:
        if previous is not None and entry.bytes and entry.offset < end:
            message = f"it starts inside of '{previous.name}', which ends at offset {end}"
            yield CheckpointFinding("overlap", message, entry.name, path, entry.offset), 0
        elif entry.offset > end:
            yield from _check_gap(file, end, min(entry.offset, file.size))
        if entry.offset + entry.bytes > file.size:
            message = f"it ends at offset {entry.offset + entry.bytes}, the file has {file.size} bytes"
            yield CheckpointFinding("truncated", message, entry.name, path, entry.offset), 0
        else:
            yield from _check_tensor(file, entry)
        if entry.offset + entry.bytes >= end:
            end, previous = entry.offset + entry.bytes, entry
    if file.size > end:
        yield from _check_gap(file, end, file.size, at_end=True)
    file.close()


def _check_gap(
    file: ReadableFile | RemoteFile, start: int, end: int, at_end: bool = False
) -> Iterator[tuple[CheckpointFinding | None, int]]:
    """Bytes between tensors: padding is zero and followed by a tensor."""
    for offset in range(start, end, CHUNK):
        piece = file.read_at(offset, min(CHUNK, end - offset))
        if at_end or piece.strip(b"\0"):
            message = f"{end - start} bytes at offset {start} belong to no tensor"
            yield CheckpointFinding("gap", message, file=file.path, offset=start), 0
            return


def _check_tensor(file: ReadableFile | RemoteFile, entry: Entry) -> Iterator[tuple[CheckpointFinding | None, int]]:
    try:
        if entry.dtype.kind in "sv":
            decode = strings.decode_strings if entry.dtype.kind == "s" else strings.decode_variants
            _, actual = decode(file.read_at(entry.offset, entry.bytes), entry.count)
            yield None, entry.bytes
        else:
            sum_ = 0
            for start in range(0, entry.bytes, CHUNK):
                piece = file.read_at(entry.offset + start, min(CHUNK, entry.bytes - start))
                sum_ = crc.extend(sum_, piece)
                yield None, len(piece)
            actual = crc.mask(sum_)
    except FormatError as error:
        yield CheckpointFinding("crc", error.message, entry.name, file.path, entry.offset), entry.bytes
        return
    except OSError as error:
        message = f"it cannot be read: {error.strerror}"
        yield CheckpointFinding("truncated", message, entry.name, file.path, entry.offset), 0
        return
    if actual != entry.crc:
        message = f"the CRC of its {entry.bytes} bytes is {actual:08x}, the index says {entry.crc:08x}"
        yield CheckpointFinding("crc", message, entry.name, file.path, entry.offset), 0


def _notes(reader: BundleReader) -> Iterator[str]:
    folder, stem = split(reader.prefix)
    beside = sorted(name for name in names_in(folder) if name.startswith((f"{stem}.data-", f"{stem}.index")))
    mine = {split(reader.shard_path(shard))[1] for shard in range(reader.num_shards)} | {f"{stem}.index"}
    for name in beside:
        if name not in mine:
            if TEMPORARY in name:
                yield f"{name} was left by a writer that did not finish"
            else:
                yield f"{name} does not belong to this checkpoint"


def check_file(path: str, progress: Progress | None = None) -> CheckpointReport:
    """Check anything with named tensors: a checkpoint of any format by its prefix, an .npz or a .safetensors file.

    Raises:
        NotFoundError: there is nothing of that name.
        FormatError: it is a file of another kind.
    """
    if is_arrays(path):
        return _check_arrays(path, progress)
    if is_v1(path):
        return check_v1(path)
    if is_file(path) and not exists(index_path(path)):
        open_checkpoint(path).close()  # says what it is instead
    return check(path, progress)


def _check_arrays(path: str, progress: Progress | None) -> CheckpointReport:
    """The structure and every tensor, as far as the format has checksums: an .npz archive has, .safetensors has not."""
    from toolkit.formats.bundle.safetensors import SafetensorsReader

    try:
        reader = open_tensors(path)
    except NotFoundError:
        raise
    except GraphmillError as error:
        return CheckpointReport([CheckpointFinding("index", error.message, file=path)], [], 0, 0)
    findings: list[CheckpointFinding] = []
    done, total = 0, sum(entry.bytes for entry in reader.entries.values())
    with reader:
        for name, entry in reader.entries.items():
            try:
                reader.read(name)
            except GraphmillError as error:
                findings.append(CheckpointFinding("crc", error.message, name, path))
            done += entry.bytes
            if progress is not None:
                progress(done, total)
        if isinstance(reader, SafetensorsReader):
            for offset, size in reader.gaps():
                message = f"{size} bytes at offset {offset} belong to no tensor"
                findings.append(CheckpointFinding("gap", message, file=path, offset=offset))
        return CheckpointReport(findings, [], len(reader), done)


def check_v1(path: str) -> CheckpointReport:
    """Check a V1 checkpoint: the tables' structure, every block's CRC and every tensor's values."""
    from toolkit.formats.bundle.v1 import V1Reader

    try:
        reader = V1Reader(path)
    except NotFoundError:
        raise
    except GraphmillError as error:
        return CheckpointReport([CheckpointFinding("index", error.message, file=error.file or path)], [], 0, 0)
    findings: list[CheckpointFinding] = []
    size = 0
    with reader:
        expected = int(path[-5:]) if is_pattern(path) else 1
        if len(reader.tables) != expected:
            message = f"there are {len(reader.tables)} files of {expected}"
            findings.append(CheckpointFinding("missing-shard", message, file=path))
        for file, view in reader.tables.items():
            try:
                findings += _check_table(view, file)
            except GraphmillError as error:
                findings.append(CheckpointFinding("index", error.message, file=file))
        for name, entry in reader.entries.items():
            try:
                reader.read(name)
                size += entry.bytes
            except GraphmillError as error:
                findings.append(CheckpointFinding("crc", error.message, name, error.file or path))
        return CheckpointReport(findings, [], len(reader), size)
