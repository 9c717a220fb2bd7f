"""The links of a large model as columns of numbers."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.node_tables.columns import chunks, ints
from toolkit.render.elements import Link, LinkKind, Links, Model

_KINDS = tuple(LinkKind)


class LinkTable:
    """Links by their numbers; see `Link`.

    Attributes:
        src, dst, src_output, dst_input: int32.
        kind: int8, by number of a `LinkKind`.
        ops: those of the elements, once somebody has asked for them (`columns`).
    """

    def __init__(
        self,
        src: NDArray[np.int32],
        dst: NDArray[np.int32],
        kind: NDArray[np.int8],
        src_output: NDArray[np.int32],
        dst_input: NDArray[np.int32],
    ):
        self.src, self.dst, self.kind, self.src_output, self.dst_input = src, dst, kind, src_output, dst_input
        self.ops: OpColumn | None = None

    @classmethod
    def of(cls, links: Iterable[Link]) -> LinkTable:
        """The columns of links."""
        rows = np.array(list(links), np.int32).reshape(-1, 5)
        src, dst, kind, src_output, dst_input = (np.ascontiguousarray(column) for column in rows.T)
        return cls(src, dst, kind.astype(np.int8), src_output, dst_input)

    @classmethod
    def joined(cls, parts: Iterable[LinkTable]) -> LinkTable:
        """All links of several tables, one after the other."""
        columns = [(each.src, each.dst, each.kind, each.src_output, each.dst_input) for each in parts]
        src, dst, kind, src_output, dst_input = (np.concatenate(each) for each in zip(*columns, strict=True))
        return cls(src, dst, kind, src_output, dst_input)

    def __len__(self) -> int:
        return len(self.src)

    def __getitem__(self, number: SupportsIndex) -> Link:
        at = number.__index__()
        kind = _KINDS[int(self.kind[at])]
        return Link(int(self.src[at]), int(self.dst[at]), kind, int(self.src_output[at]), int(self.dst_input[at]))

    def __iter__(self) -> Iterator[Link]:
        for chunk in chunks(len(self)):
            kinds = map(_KINDS.__getitem__, ints(self.kind[chunk]))
            outputs, inputs = ints(self.src_output[chunk]), ints(self.dst_input[chunk])
            yield from map(Link, ints(self.src[chunk]), ints(self.dst[chunk]), kinds, outputs, inputs)

    def is_control(self) -> NDArray[np.bool_]:
        """Which links carry nothing."""
        return self.kind == LinkKind.CONTROL


class Beside:
    """For each element others that are beside it, in the order of the links; like a list of lists.

    Args:
        of: the elements that these are beside, by link.
        others: int32, these.
        count: how many elements there are.
    """

    def __init__(self, of: NDArray[np.int32], others: NDArray[np.int32], count: int):
        order = np.argsort(of, kind="stable")
        self.counts = np.bincount(of, minlength=count)
        self.begin = np.concatenate((np.zeros(1, np.int64), np.cumsum(self.counts)))
        self.others = others[order]

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, number: SupportsIndex) -> list[int]:
        at = number.__index__()
        return ints(self.others[self.begin[at] : self.begin[at + 1]])

    def of_all(self, elements: NDArray[np.int64]) -> NDArray[np.int32]:
        """Those beside any of some elements, one behind the other."""
        counts = self.counts[elements]
        ends = np.cumsum(counts)
        inside = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
        return self.others[np.repeat(self.begin[elements], counts) + inside]


class OpColumn:
    """The ops of elements.

    Attributes:
        all: each once.
        of: int32, by element, by number among these.
    """

    def __init__(self, ops: list[str]):
        self.all = sorted(set(ops))
        numbers = {op: number for number, op in enumerate(self.all)}
        self.of = np.fromiter(map(numbers.__getitem__, ops), np.int32, len(ops))

    def are(self, wanted: Container[str]) -> NDArray[np.bool_]:
        """Which elements are of one of these ops."""
        return np.array([op in wanted for op in self.all], np.bool_)[self.of]


def columns(model: Model) -> tuple[LinkTable, OpColumn]:
    """The links and the ops of a large model."""
    links = model.links
    assert isinstance(links, LinkTable)
    if links.ops is None:
        links.ops = OpColumn(model.ops)
    return links, links.ops


def links_from(links: Links, elements: Collection[int]) -> list[Link]:
    """The links from some elements, in order."""
    assert isinstance(links, LinkTable)
    numbers = np.flatnonzero(np.isin(links.src, list(elements)))
    return [links[number] for number in ints(numbers)]
