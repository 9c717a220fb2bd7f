"""Whole saves and restores, as the SaveV2, RestoreV2 and MergeV2Checkpoints ops do them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from toolkit.errors import InvalidArgumentError, NotFoundError, OpError
from toolkit.formats.bundle import paths, remote, storage, wire
from toolkit.formats.bundle.entry import index_path
from toolkit.formats.bundle.reader import BundleReader
from toolkit.formats.bundle.remote import is_remote
from toolkit.formats.bundle.replace import replace_checkpoint
from toolkit.formats.bundle.slices import encode_key, parse_spec
from toolkit.formats.bundle.storage import TemporaryFile
from toolkit.formats.bundle.writer import BundleWriter, data_path, write_index
from toolkit.graph.dtypes import DType

Array = Any


def save(
    prefix: str | Path,
    tensors: Mapping[str, Array] | Iterable[tuple[str, Array]],
    dtypes: Mapping[str, DType] | Sequence[DType | None] | None = None,
    slices: Mapping[str, str] | Sequence[str] | None = None,
) -> None:
    """Write a checkpoint, as SaveV2 does: in the order given, into one data file.

    Args:
        prefix: its name.
        tensors: name to array; pairs where a name occurs more than once, with different slices.
        dtypes: types that numpy's do not say (quantized ones), by name or in the same order.
        slices: SaveV2's `shape_and_slices`, by name or in the same order: "" or "8 4 4,4:0,4" (full sizes, then the
            part that the array is).

    Raises:
        InvalidArgumentError, AlreadyExistsError: the arguments do not fit together.
        OpError: writing failed. Nothing is left behind in either case.
    """
    pairs: list[tuple[str, Array]] = []
    if isinstance(tensors, Mapping):
        pairs += cast(Mapping[str, Array], tensors).items()
    else:
        pairs += tensors

    def lookup(table: Mapping[str, Any] | Sequence[Any] | None, at: int, what: str) -> Any:
        if table is None:
            return None
        if isinstance(table, Mapping):
            return table.get(pairs[at][0])
        if len(table) != len(pairs):
            raise InvalidArgumentError(f"there are {len(table)} {what} for {len(pairs)} tensors")
        return table[at]

    with BundleWriter(prefix) as writer:
        for at, (name, array) in enumerate(pairs):
            dtype: DType | None = lookup(dtypes, at, "data types")
            spec = parse_spec(lookup(slices, at, "slices") or "")
            if spec is None:
                writer.add(name, array, dtype)
            else:
                writer.add_slice(name, spec[0], spec[1], array, dtype)


def restore(
    prefix: str | Path,
    names: Sequence[str],
    slice_specs: Sequence[str] | None = None,
    dtypes: Sequence[DType | None] | None = None,
    verify: bool = True,
) -> list[Array]:
    """Read tensors of a checkpoint (V2 or V1), as RestoreV2 does.

    Args:
        prefix: its name.
        names: the tensors' names.
        slice_specs: for each, "" or a shape and slice as in `save`.
        dtypes: for each, the type it must have, or None.

    Returns:
        The arrays; most are read-only views of the file.

    Raises:
        NotFoundError: there is no such checkpoint or tensor.
        InvalidArgumentError: a type or shape is another.
        DataLossError: the checkpoint is damaged.
    """
    from toolkit.formats.bundle import open_checkpoint

    for given, what in ((slice_specs, "slices"), (dtypes, "data types")):
        if given is not None and len(given) != len(names):
            raise InvalidArgumentError(f"there are {len(given)} {what} for {len(names)} tensors")
    found: list[Array] = []
    with open_checkpoint(prefix) as reader:
        for at, name in enumerate(names):
            entry = reader.entry(name)
            wanted = dtypes[at] if dtypes else None
            if wanted is not None and wanted.base is not entry.dtype:
                raise InvalidArgumentError(
                    f"tensor '{name}' is {entry.dtype} in the checkpoint and {wanted.base} in the graph",
                    file=str(prefix),
                )
            spec = parse_spec(slice_specs[at]) if slice_specs else None
            if spec is None:
                found.append(reader.read(name, verify))
                continue
            dims, part = spec
            if dims != entry.dims:
                raise InvalidArgumentError(
                    f"tensor '{name}' has shape {entry.shape} in the checkpoint and {list(dims)} in the graph",
                    file=str(prefix),
                )
            starts, lengths = zip(*part.extents, strict=True) if part.extents else ((), ())
            found.append(reader.read_slice(name, starts, lengths, verify))
    return found


def merge(
    prefixes: Sequence[str | Path], target: str | Path, delete_old: bool = True, allow_missing: bool = False
) -> None:
    """Join checkpoints, each holding a share of the tensors, into one (MergeV2Checkpoints).

    The data files are renamed, not copied, and become the shards in the order of `prefixes`; the index is merged.

    Args:
        prefixes: the shares.
        target: the name of the whole.
        delete_old: remove the old indices, and the folders they leave empty.
        allow_missing: skip shares that do not exist.

    Raises:
        NotFoundError: a share does not exist, or none does.
        InvalidArgumentError: two shares hold the same tensor, or disagree on a partitioned one.
        OpError: a file cannot be written or renamed.
    """
    readers: list[BundleReader] = []
    for prefix in dict.fromkeys(str(p) for p in prefixes):
        try:
            readers.append(BundleReader(prefix))
        except NotFoundError:
            if not allow_missing:
                raise
    if not readers:
        raise NotFoundError("there is no checkpoint to merge", file=str(target))
    num_shards = sum(reader.num_shards for reader in readers)
    entries: dict[bytes, wire.RawEntry] = {}
    moves: list[tuple[str, str]] = []
    first = 0
    for reader in readers:
        for entry in reader.entries.values():
            _merge_entry(entries, reader, entry.name, first)
        for shard in range(reader.num_shards):
            moves.append((reader.shard_path(shard), data_path(str(target), first + shard, num_shards)))
        first += reader.num_shards
    index = storage.create(index_path(str(target)))
    try:
        write_index(index, entries, num_shards)
        index.sync()
        replace_checkpoint(str(target), [_Move(*move) for move in moves], index)
    except BaseException:
        index.discard()
        raise
    if delete_old:
        for reader in readers:
            if paths.resolved(reader.prefix) != paths.resolved(str(target)):
                storage.remove(reader.index)
                if not is_remote(reader.prefix):  # a store has no folders to remove
                    with contextlib.suppress(OSError):
                        Path(reader.prefix).parent.rmdir()


class _Move(TemporaryFile):
    """A finished data file that takes another name."""

    def __init__(self, temporary: str, path: str):  # nothing is created
        self.temporary = temporary
        self.path = path
        self.is_committed = False
        self._fd = -1

    def commit(self) -> None:
        if is_remote(self.temporary) and is_remote(self.path):
            remote.move(self.temporary, self.path)
        elif is_remote(self.temporary) or is_remote(self.path):
            raise InvalidArgumentError("shares cannot be merged from one store into another; copy them", file=self.path)
        else:
            storage.rename(self.temporary, self.path)
        self.is_committed = True

    def undo(self) -> None:
        if not self.is_committed:
            return
        with contextlib.suppress(OSError, OpError):
            if is_remote(self.path):
                remote.move(self.path, self.temporary)
            else:
                storage.sys_replace(self.path, self.temporary)


def _merge_entry(entries: dict[bytes, wire.RawEntry], reader: BundleReader, name: str, first_shard: int) -> None:
    entry = reader.entry(name)
    key = name.encode("utf-8", "surrogateescape")
    # A partitioned tensor carries the number of the first share that has a part of it.
    raw = wire.RawEntry(entry.dtype.enum, entry.dims, first_shard + entry.shard, 0, 0, 0, entry.slices)
    known = entries.get(key)
    if known is not None:
        if not known.slices or not entry.slices:
            raise InvalidArgumentError(f"tensor '{name}' is in more than one of the checkpoints", file=reader.prefix)
        if known.dims != raw.dims or known.dtype != raw.dtype:
            raise InvalidArgumentError(
                f"the checkpoints disagree on the shape or type of tensor '{name}'", file=reader.prefix
            )
        known.slices += entry.slices
    else:
        entries[key] = raw
    if not entry.slices:
        raw.offset, raw.size, raw.crc = entry.offset, entry.bytes, entry.crc
    for part, own in reader.parts(name):
        part_key = encode_key(name, part)
        if part_key in entries:
            raise InvalidArgumentError(f"part '{part}' of tensor '{name}' is in more than one of the checkpoints")
        entries[part_key] = wire.RawEntry(
            own.dtype.enum, own.dims, first_shard + own.shard, own.offset, own.bytes, own.crc
        )
