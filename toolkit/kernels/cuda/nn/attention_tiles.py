"""What attention's kernels read: queries in registers, tiles of keys and values in shared memory, as `mma` takes them.

Sums over an axis may be taken in any order, so that a thread's two numbers of a TF32 fragment are neighbours: what the
instruction calls depth t and t + 4 are places 2t and 2t + 1. Then the sums of one product are the left factor of the
next without being moved between threads (of 16-bit numbers, two of which are in a register, they are so anyway).

Rows in shared memory are padded so that the 32 threads of a warp read from 32 banks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TypeAlias

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.attention_memory import HIGH, LOW, RowSource, TileFormat, up
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import WARP, KernelBuffer, Value
from toolkit.kernels.cuda.simt.matrix import SUMS

#: where words go in shared memory, the words, and whether the thread has any (None: it has)
_Share: TypeAlias = tuple[Lanes, Sequence[Lanes], Value | None]


class Fragments:
    """Where a thread's numbers of fragments are.

    Attributes:
        group: the row of A and of sums, the column of B (`matrix.left_place` and its kin).
        inside: of the four threads of a group which one.
        warp: of the block.
    """

    def __init__(self, k: KernelBuilder, index: str):
        lane = k.convert(k.binary("and", k.thread, k.number(WARP - 1, "i32")), index)
        self.group: Value = k.binary("lshr", lane, k.number(2, index))
        self.inside: Value = k.binary("and", lane, k.number(3, index))
        self.warp: Value = k.convert(k.binary("lshr", k.thread, k.number(5, "i32")), index)


class LeftFactors:
    """Sixteen rows from `first` on as left factors: for each step along a row the four registers.

    Args:
        held: they stay in registers; else they are read anew, from a cache, each time somebody asks: of long rows of
            TF32 numbers, registers have no room.
    """

    def __init__(
        self, k: KernelBuilder, at: Fragments, source: RowSource, first: Lanes, format: TileFormat, size: int, *,
        held: bool,
    ):  # fmt: skip
        self._k, self._at, self._source, self._format = k, at, source, format
        self._rows = [k.add(k.add(first, at.group), k.number(add, first.type)) for add in (0, 8)]
        self.steps = up(size, format.kind.depth) // format.kind.depth
        self._held = [self._read(step) for step in range(self.steps)] if held else []

    def step(self, step: int) -> list[Value]:
        """The registers of a step."""
        return self._held[step] if self._held else self._read(step)

    def _read(self, step: int) -> list[Value]:
        k, at, format, source = self._k, self._at, self._format, self._source
        index = at.inside.type
        if format.number == "float":
            count = 2 if format.joined else 1
            groups = [k.add(k.mul(at.inside, k.number(2 // count, index)), k.number(step * 8 // count + i, index))
                      for i in range(2 // count)]  # fmt: skip
            each = [[word for group in groups for word in source.words(row, group, count)] for row in self._rows]
        else:
            groups = [k.add(at.inside, k.number(8 * step + 4 * half, index)) for half in range(2)]
            each = [[source.words(row, group, 1)[0] for group in groups] for row in self._rows]
        return [each[0][0], each[1][0], each[0][1], each[1][1]]


def products(
    k: KernelBuilder, at: Fragments, kind: str, lefts: Sequence[LeftFactors], tile: KeyTile | BothTile, columns: int
) -> list[list[list[Value]]]:
    """Left factors by a tile: of each for each eight of its rows the four sums of a thread."""
    zero = k.number(0.0, "float")
    sums: list[list[Sequence[Lanes]]] = [[[zero] * SUMS for _ in range(columns)] for _ in lefts]
    for step in range(lefts[0].steps):
        own = [left.step(step) for left in lefts]
        for column in range(columns):
            right = tile.fragment(at, column, step)
            for number, each in enumerate(own):
                sums[number][column] = k.multiply_matrices(kind, each, right, sums[number][column])
    return [[[value for value in each if isinstance(value, Value)] for each in found] for found in sums]


class KeyTile:
    """A tile of rows in shared memory as right factors that sum along the rows: B's column is a row here."""

    def __init__(self, k: KernelBuilder, name: str, format: TileFormat, rows: int, size: int):
        self._k, self._format, self._rows = k, format, rows
        self.steps = up(size, format.kind.depth) // format.kind.depth
        self._words = up(size, format.kind.depth) // format.kind.packed
        if format.kind.packed == 1:  # pairs: 8 or 24 banks from row to row
            self._lead = self._words if self._words % 16 == 8 else self._words + 8
        else:  # an odd multiple of 4 banks
            self._lead = self._words + 4
        self._buffer = k.shared(name, format.kind.register, rows * self._lead)

    def read(self, source: RowSource, first: Lanes) -> list[_Share]:
        """What this thread takes of the rows from `first` on."""
        k, words = self._k, self._format.words
        found: list[_Share] = []
        for row, group, inside in _shares(k, self._rows, self._words // words, first.type):
            found.append((self.place(row, group), source.words(k.add(first, row), group, words), inside))
        return found

    def place(self, row: Lanes, group: Lanes) -> Value:
        """Where words of a row are that were loaded at once."""
        return self._k.add(_times(self._k, row, self._lead), _times(self._k, group, self._format.words))

    def put(self, shares: Sequence[_Share]) -> None:
        """Into shared memory."""
        _put(self._k, self._buffer, shares)

    def fill(self, source: RowSource, first: Lanes) -> None:
        """Read and put."""
        self.put(self.read(source, first))

    def fragment(self, at: Fragments, column: int, step: int) -> tuple[Value, Value]:
        """The right factor whose columns are rows from `8 * column` on."""
        k, index = self._k, at.group.type
        row = k.mul(k.add(at.group, k.number(8 * column, index)), k.number(self._lead, index))
        if self._format.kind.packed == 1:
            pair = k.add(row, k.add(k.mul(at.inside, k.number(2, index)), k.number(8 * step, index)))
            return k.load(self._buffer, pair), k.load(self._buffer, k.add(pair, k.number(1, index)))
        word = k.add(row, k.add(at.inside, k.number(8 * step, index)))
        return k.load(self._buffer, word), k.load(self._buffer, k.add(word, k.number(4, index)))


class ValueTile:
    """A tile of rows in shared memory as right factors that sum over the rows: B's depth is a row here.

    Words of 16-bit numbers have the numbers of two rows that follow each other.
    """

    def __init__(self, k: KernelBuilder, name: str, format: TileFormat, rows: int, size: int):
        self._k, self._format, self._size = k, format, up(size, 8)
        self._rows = rows // format.kind.packed  # of words
        self.columns = self._size // 8
        self._loaded = up(size, format.kind.depth)  # as much as `RowSource` has with zeros
        wide = up(self._loaded, 8)
        if format.kind.packed == 1:  # two rows are 8 or 24 banks
            self._lead = wide + 4
        else:
            self._lead = wide if wide % 16 == 8 else wide + 8
        self._buffer = k.shared(name, format.kind.register, self._rows * self._lead)

    def read(self, source: RowSource, first: Lanes) -> list[_Share]:
        """What this thread takes of the rows from `first` on."""
        k, words, packed = self._k, self._format.words, self._format.kind.packed
        found: list[_Share] = []
        for row, group, inside in self.shares(first.type):
            pair = k.add(first, _times(k, row, packed))
            rows = [source.words(k.add(pair, k.number(i, row.type)), group, words) for i in range(packed)]
            found.append((self.place(row, group), self.words(rows), inside))
        return found

    def shares(self, index: str) -> Iterator[tuple[Value, Value, Value | None]]:
        """Which words a thread takes: the one or two rows that are in them, a group, and whether it has any."""
        format = self._format
        return _shares(self._k, self._rows, self._loaded // format.kind.packed // format.words, index)

    def place(self, row: Lanes, group: Lanes) -> Value:
        """Where words of a share are."""
        each = self._format.words * self._format.kind.packed
        return self._k.add(_times(self._k, row, self._lead), _times(self._k, group, each))

    def words(self, rows: Sequence[Sequence[Lanes]]) -> Sequence[Lanes]:
        """A share's words out of those of its rows."""
        return rows[0] if len(rows) == 1 else _turned(self._k, *rows)

    def put(self, shares: Sequence[_Share]) -> None:
        """Into shared memory."""
        _put(self._k, self._buffer, shares)

    def fill(self, source: RowSource, first: Lanes) -> None:
        """Read and put."""
        self.put(self.read(source, first))

    def fragment(self, at: Fragments, step: int, column: int) -> tuple[Value, Value]:
        """The right factor of the columns from `8 * column` on, whose depth is the rows of a step."""
        k, index = self._k, at.group.type
        place = k.add(at.group, k.number(8 * column, index))
        if self._format.kind.packed == 1:
            row = k.add(k.mul(at.inside, k.number(2, index)), k.number(8 * step, index))
            below = 1
        else:
            row = k.add(at.inside, k.number(8 * step, index))
            below = 4
        first = k.add(k.mul(row, k.number(self._lead, index)), place)
        return k.load(self._buffer, first), k.load(self._buffer, k.add(first, k.number(below * self._lead, index)))


class BothTile:
    """A tile of rows as both kinds of right factors; they are read once.

    Attributes:
        turned: as factors that sum over the rows.
    """

    def __init__(self, k: KernelBuilder, name: str, format: TileFormat, rows: int, size: int):
        self._k, self._format, self._name = k, format, name
        self._along = KeyTile(k, name, format, rows, size)
        self.turned = ValueTile(k, f"{name}_turned", format, rows, size)
        self.fragment = self._along.fragment

    def fill(self, source: RowSource, first: Lanes) -> None:
        """Read the rows from `first` on into shared memory."""
        k, format = self._k, self._format
        packed = format.kind.packed
        along: list[_Share] = []
        turned: list[_Share] = []
        for row, group, inside in self.turned.shares(first.type):
            numbers = [k.add(_times(k, row, packed), k.number(i, row.type)) for i in range(packed)]
            rows = [source.words(k.add(first, number), group, format.words) for number in numbers]
            turned.append((self.turned.place(row, group), self.turned.words(rows), inside))
            along += [
                (self._along.place(number, group), words, inside) for number, words in zip(numbers, rows, strict=True)
            ]
        self._along.put(along)
        self.turned.put(turned)


def _times(k: KernelBuilder, value: Lanes, factor: int) -> Value:
    return k.mul(value, k.number(factor, value.type))


def _turned(k: KernelBuilder, above: Sequence[Lanes], below: Sequence[Lanes]) -> list[Lanes]:
    """Words of a row and of the next one as words of both rows' first numbers, of their second ones, and so on."""
    low, high, shift = k.number(LOW, "i32"), k.number(HIGH, "i32"), k.number(16, "i32")
    values: list[Lanes] = []
    for one, two in zip(above, below, strict=True):
        values.append(k.either(k.both(one, low), k.binary("shl", two, shift)))
        values.append(k.either(k.binary("lshr", one, shift), k.both(two, high)))
    return values


def _shares(k: KernelBuilder, rows: int, groups: int, index: str) -> Iterator[tuple[Value, Value, Value | None]]:
    """Which rows and groups of a tile a thread of the block takes, and whether it does (None: all do)."""
    count, thread = rows * groups, k.convert(k.thread, index)
    for start in range(0, count, k.block):
        number = k.add(thread, k.number(start, index))
        inside = None
        if start + k.block > count:
            inside = k.compare("slt", number, k.number(count, index))
            number = k.select(inside, number, k.number(count - 1, index))
        row = k.binary("udiv", number, k.number(groups, index))
        yield row, k.sub(number, _times(k, row, groups)), inside


def _put(k: KernelBuilder, buffer: KernelBuffer, shares: Sequence[_Share]) -> None:
    for place, values, inside in shares:
        with nullcontext() if inside is None else k.when(inside):
            for i, value in enumerate(values):
                k.store(buffer, k.add(place, k.number(i, place.type)), value)
