"""Partitioned variables: one variable kept as several, cut along one axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.errors import GraphError
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

if TYPE_CHECKING:
    from toolkit.client.construction.graph import Graph
    from toolkit.client.variables.base import BaseVariable

#: from a shape and a type, into how many parts each axis is cut; at most one axis may have more than 1
Partitioner = Callable[[Shape, DType], Sequence[int]]


@dataclass(frozen=True)
class Partitioning:
    """How a shape is cut: `counts[axis]` parts along `axis`, 1 elsewhere."""

    shape: tuple[int, ...]
    counts: tuple[int, ...]
    axis: int

    def slices(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Offset and sizes of each part; the first parts are one larger when it does not divide."""
        parts = self.counts[self.axis] if self.counts else 1
        if not self.shape:
            yield (), ()
            return
        base, extra = divmod(self.shape[self.axis], parts)
        start = 0
        for index in range(parts):
            length = base + (index < extra)
            offset = [0] * len(self.shape)
            sizes = list(self.shape)
            offset[self.axis], sizes[self.axis] = start, length
            yield tuple(offset), tuple(sizes)
            start += length


def partitioning_of(shape: Shape, dtype: DType, partitioner: Partitioner, name: str) -> Partitioning:
    """Ask the partitioner and check its answer.

    Raises:
        GraphError: it cuts several axes, or an axis into no or more parts than it is long.
    """
    sizes = tuple(shape.as_list())
    counts = tuple(int(count) for count in partitioner(shape, dtype))
    if len(counts) != len(sizes):
        raise GraphError(f"the partitioner of '{name}' returned {list(counts)} for shape {shape}: one count per axis")
    if any(c < 1 or c > max(size, 1) for c, size in zip(counts, sizes, strict=True)):
        raise GraphError(f"the partitioner of '{name}' cuts {shape} into {list(counts)} parts, which is not possible")
    cut = [axis for axis, count in enumerate(counts) if count > 1]
    if len(cut) > 1:
        raise GraphError(f"the partitioner of '{name}' cuts {len(cut)} axes ({list(counts)}); only one can be cut")
    return Partitioning(sizes, counts, cut[0] if cut else 0)


class PartitionedVariable:
    """Parts that together are one variable; as a tensor, their concatenation.

    Attributes:
        parts: the variables, `name/part_0`, `name/part_1`, ...
    """

    __array_priority__ = 100

    def __init__(self, name: str, shape: Shape, dtype: DType, parts: list[BaseVariable], counts: tuple[int, ...]):
        self.name = name
        self.static_shape = shape
        self.dtype = dtype
        self.parts = parts
        self.counts = counts

    @property
    def graph(self) -> Graph:
        return self.parts[0].graph

    @property
    def shape(self) -> Any:
        """The shape of the whole as the graph's programs see it."""
        return self.graph.present_shape(self.static_shape)

    def get_shape(self) -> Any:
        return self.shape

    @property
    def axis(self) -> int:
        """The axis that is cut."""
        return next((axis for axis, count in enumerate(self.counts) if count > 1), 0)

    def to_tensor(self, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Tensor:
        if dtype is not None and dtype.base is not self.dtype:
            raise GraphError(f"variable '{self.name}' has type {self.dtype}, where {dtype} is wanted")
        if as_ref:
            raise GraphError(f"'{self.name}' is partitioned and has no single reference; use its parts")
        graph = self.parts[0].graph
        with graph.as_default(), graph.name_scope(None), graph.name_scope(self.name + "/ConcatPartitions/"):
            if len(self.parts) == 1:
                joined = array_ops.identity(self.parts[0])
            else:
                joined = array_ops.concat([part.to_tensor() for part in self.parts], self.axis)
        with graph.as_default(), graph.name_scope(None):
            return array_ops.identity(joined, name=self.name)

    def __iter__(self) -> Iterator[BaseVariable]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        return f"<PartitionedVariable '{self.name}' shape={self.static_shape} parts={len(self.parts)}>"


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """Always `num_shards` parts along `axis` (fewer when the axis is shorter)."""

    def partitioner(shape: Shape, dtype: DType) -> list[int]:
        counts = [1] * len(shape)
        counts[axis] = min(num_shards, shape.as_list()[axis])
        return counts

    return partitioner


def min_max_variable_partitioner(
    max_partitions: int = 1, axis: int = 0, min_slice_size: int = 256 << 10, bytes_per_string_element: int = 16
) -> Partitioner:
    """As many parts as keep each at `min_slice_size` bytes or more, at most `max_partitions`."""

    def partitioner(shape: Shape, dtype: DType) -> list[int]:
        sizes = shape.as_list()
        per_element = dtype.size or bytes_per_string_element
        whole = math.prod(sizes) * per_element
        counts = [1] * len(sizes)
        counts[axis] = max(1, min(sizes[axis], max_partitions, math.ceil(whole / min_slice_size)))
        return counts

    return partitioner


def variable_axis_size_partitioner(max_shard_bytes: int, axis: int = 0, max_shards: int | None = None) -> Partitioner:
    """As few parts as keep each at `max_shard_bytes` or less."""

    def partitioner(shape: Shape, dtype: DType) -> list[int]:
        sizes = shape.as_list()
        row = max(1, math.prod(sizes) // max(1, sizes[axis])) * (dtype.size or 16)
        rows_per_shard = max(1, max_shard_bytes // row)
        shards = math.ceil(sizes[axis] / rows_per_shard)
        counts = [1] * len(sizes)
        counts[axis] = max(1, min(shards, sizes[axis], max_shards or shards))
        return counts

    return partitioner
