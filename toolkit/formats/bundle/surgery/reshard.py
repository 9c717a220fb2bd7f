"""The same tensors in other pieces: more or fewer data files, parts joined or cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from toolkit.errors import InvalidArgumentError
from toolkit.formats.bundle.slices import TensorSlice, parse_slice
from toolkit.formats.bundle.source import Array, TensorSource
from toolkit.formats.bundle.transfer import Item, copy_of, write_items
from toolkit.formats.bundle.writer import BundleWriter


def reshard(
    sources: Sequence[TensorSource], target: str | Path, num_shards: int, join_parts: bool = False
) -> list[int]:
    """Copy one or several checkpoints with different tensors into `num_shards` data files of about the same size.

    Args:
        join_parts: partitioned tensors become whole ones.

    Returns:
        The bytes in each file.

    Raises:
        InvalidArgumentError: there are fewer tensors than files.
        AlreadyExistsError: a tensor is in two of the checkpoints.
        GraphmillError: reading or writing failed.
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
    write_items(target, items, num_shards, keep_parts=not join_parts)
    return sizes


def take_slices(source: TensorSource, target: str | Path, wanted: Sequence[tuple[str, str]]) -> None:
    """Write parts of tensors as tensors of their own, under the same names.

    Args:
        wanted: (name, slice as "0,4:-").

    Raises:
        NotFoundError: there is no such tensor.
        InvalidArgumentError: a slice is malformed or reaches outside.
    """
    items: list[Item] = []
    for name, text in wanted:
        entry = source.entry(name)
        part = parse_slice(text)
        try:
            dims = part.shape(entry.dims)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"tensor '{name}': {error.message}", file=source.prefix) from None
        items.append(Item(name, entry.dtype, dims, make=_taker(source, name, part)))
    write_items(target, items)


def _taker(source: TensorSource, name: str, part: TensorSlice) -> Callable[[], Array]:
    starts = [start for start, _ in part.extents]
    lengths = [length for _, length in part.extents]
    return lambda: source.read_slice(name, starts, lengths)


def partition(source: TensorSource, target: str | Path, name: str, parts: int, axis: int = 0) -> None:
    """Copy a checkpoint with one tensor cut into parts along an axis, as a partitioned variable is stored.

    The parts are as even as possible, larger ones first (tf.compat.v1.fixed_size_partitioner).

    Raises:
        NotFoundError: there is no such tensor.
        InvalidArgumentError: it has no such axis, or fewer elements along it than parts.
    """
    entry = source.entry(name)
    if not 0 <= axis < len(entry.dims):
        raise InvalidArgumentError(f"tensor '{name}' has shape {entry.shape} and no axis {axis}", file=source.prefix)
    length = entry.dims[axis]
    if not 1 <= parts <= length:
        raise InvalidArgumentError(
            f"tensor '{name}' cannot be cut into {parts} along {length} elements", file=source.prefix
        )
    with BundleWriter(target) as writer:
        array = source.read(name)
        start = 0
        for at in range(parts):
            size = length // parts + (at < length % parts)
            extents = [(0, dim) for dim in entry.dims]
            extents[axis] = (start, size)
            index = tuple(slice(first, first + count) for first, count in extents)
            writer.add_slice(name, entry.dims, TensorSlice(tuple(extents)), array[index], entry.dtype)
            start += size
        for other in source:
            if other != name:
                writer.add(other, source.read(other), source.entry(other).dtype)
