"""What a checkpoint's index says of one tensor, and the names of its files."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.formats.bundle.slices import TensorSlice
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor of a checkpoint.

    Attributes:
        name: the key; of a part of a partitioned tensor, "name[slice]".
        dtype: type of the elements.
        shape: of the whole tensor; fully defined.
        bytes: bytes it takes in the data files; of a partitioned tensor, all its parts.
        shard: number of its data file (of the first part, for a partitioned tensor).
        offset: of its first byte there.
        crc: masked CRC-32C of its bytes (0 for a partitioned tensor; its parts have their own).
        slices: the parts of a partitioned tensor; empty for others.
    """

    name: str
    dtype: DType
    shape: Shape
    bytes: int
    shard: int
    offset: int
    crc: int
    slices: tuple[TensorSlice, ...] = ()

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes as plain numbers."""
        return tuple(self.shape.as_list())

    @property
    def count(self) -> int:
        """The number of elements."""
        return self.shape.num_elements or 0


def data_path(prefix: str, shard: int, num_shards: int) -> str:
    """The name of a data file."""
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


def index_path(prefix: str) -> str:
    """The name of the index."""
    return f"{prefix}.index"
