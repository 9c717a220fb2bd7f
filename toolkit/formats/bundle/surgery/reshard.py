"""The same tensors in other pieces: more or fewer data files, parts joined or cut."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolkit.errors import InvalidArgumentError
from toolkit.formats.bundle.slices import TensorSlice, parse_slice
from toolkit.formats.bundle.source import TensorSource
from toolkit.formats.bundle.transfer import Item, copy_of, spread, write_items


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
    items, sizes = spread(sources, target, num_shards)
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
        items.append(_region(source, name, part, dims))
    write_items(target, items)


def _region(source: TensorSource, name: str, part: TensorSlice, dims: tuple[int, ...], is_part: bool = False) -> Item:
    """A part of a tensor, read a piece at a time, to be one of its own or (`is_part`) to stay one."""
    entry = source.entry(name)
    kept = part if is_part else None
    bounds = part.bounds(entry.dims)
    if entry.dtype.kind in "sv":
        starts, stops = zip(*bounds, strict=True) if bounds else ((), ())
        lengths = [stop - start for start, stop in zip(starts, stops, strict=True)]
        return Item(name, entry.dtype, dims, make=lambda: source.read_slice(name, starts, lengths), part=kept)
    return Item(name, entry.dtype, dims, pieces=lambda: source.region_chunks(entry, bounds), part=kept)


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
    items = [copy_of(source, other) for other in source if other != name]
    start = 0
    for at in range(parts):
        size = length // parts + (at < length % parts)
        extents = [(0, dim) for dim in entry.dims]
        extents[axis] = (start, size)
        part = TensorSlice(tuple(extents))
        items.append(_region(source, name, part, entry.dims, is_part=True))
        start += size
    write_items(target, items)
