"""What attention's kernels read and write in global memory: rows of tensors that lie anyhow, and masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TypeAlias

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.common import place
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import KernelBuffer, Value
from toolkit.kernels.cuda.simt.matrix import MATRIX_KINDS, MatrixKind

#: `MATRIX_KINDS` of types in memory: of float numbers TF32
KIND_OF = {"float": "tf32", "half": "half", "bfloat": "bfloat"}
LOW, HIGH = 0xFFFF, -0x10000  # the first and the second number of a word
#: 32-bit words that are loaded at once: 16 bytes
_WORDS = 4
#: the number of a mask at a row and a key
Mask: TypeAlias = Callable[[Lanes, Lanes], Value]


def up(size: int, step: int) -> int:
    """The next multiple."""
    return -(-size // step) * step


@dataclass(frozen=True, slots=True)
class TileFormat:
    """How numbers of a type are read.

    Attributes:
        number: the type in memory, "float", "half" or "bfloat".
        joined: several numbers are loaded at once: rows begin at multiples of 16 bytes, and the numbers of a row lie
            one behind the other. Strides of rows are then counted in these 16 bytes.
    """

    number: str
    joined: bool

    @property
    def kind(self) -> MatrixKind:
        return MATRIX_KINDS[KIND_OF[self.number]]

    @property
    def memory(self) -> str:
        """The type of the buffer."""
        return self.kind.register if self.joined else self.number

    @property
    def words(self) -> int:
        """Of a row that are loaded at once."""
        return _WORDS if self.joined else 1

    @property
    def vector(self) -> int:
        """Numbers that strides count in."""
        return self.words * self.kind.packed if self.joined else 1


class RowSource:
    """Rows of numbers in global memory.

    Args:
        start: of row 0, in units of `TileFormat.vector`.
        row: stride of rows, likewise.
        column: stride of a row's numbers; looked at only where they are loaded one by one.
        count: rows that there are; what lies beyond is 0.
        size: numbers of a row; likewise.
    """

    def __init__(
        self, k: KernelBuilder, format: TileFormat, buffer: KernelBuffer, start: Lanes, row: Lanes,
        column: Lanes | None, count: Lanes, size: int,
    ):  # fmt: skip
        self._k, self._format, self._buffer = k, format, buffer
        self._start, self._row, self._column, self._count, self._size = start, row, column, count, size

    def words(self, row: Lanes, group: Lanes, count: int) -> list[Value]:
        """Registers of a row, from the `count * group`-th on: `packed` numbers each, those of floats rounded to TF32.

        Args:
            count: at most as many as are loaded at once.
        """
        k, format = self._k, self._format
        index, packed = row.type, format.kind.packed
        inside: Lanes = k.compare("slt", row, self._count)
        last = k.sub(self._count, k.number(1, index))
        start = k.add(self._start, k.mul(k.select(inside, row, last), self._row))
        if not format.joined:
            return [self._single(start, inside, k.add(k.mul(group, k.number(count, index)), k.number(i, index)))
                    for i in range(count)]  # fmt: skip
        if self._size % format.kind.depth:
            fits = k.compare("slt", group, k.number(self._size // (count * packed), index))
            inside, group = k.both(inside, fits), k.select(fits, group, k.number(0, index))
        base = k.add(k.mul(start, k.number(_WORDS, index)), k.mul(group, k.number(count, index)))
        found = [k.load(self._buffer, k.add(base, k.number(i, index))) for i in range(count)]
        return [self._kept(inside, each) for each in found]

    def floats(self, row: Lanes, group: Lanes) -> list[Value]:
        """The numbers of a row that are loaded at once, as they are, in float; the row and the group are there."""
        k, format = self._k, self._format
        start = k.add(self._start, k.mul(row, self._row))
        if not format.joined:
            assert self._column is not None
            return [k.convert(k.load(self._buffer, k.add(start, k.mul(group, self._column))), "float")]
        base = k.mul(k.add(start, group), k.number(_WORDS, start.type))
        words = [k.load(self._buffer, k.add(base, k.number(i, start.type))) for i in range(_WORDS)]
        return [number for word in words for number in unpack(k, word, format.number)]

    def _single(self, start: Lanes, inside: Lanes, word: Lanes) -> Value:
        """One register, number by number."""
        k, index, packed = self._k, word.type, self._format.kind.packed
        parts: list[Value] = []
        for element in range(packed):
            place: Lanes = k.add(k.mul(word, k.number(packed, index)), k.number(element, index))
            here: Lanes = inside
            if self._size % self._format.kind.depth:
                fits = k.compare("slt", place, k.number(self._size, index))
                here, place = k.both(inside, fits), k.select(fits, place, k.number(0, index))
            assert self._column is not None
            value = k.load(self._buffer, k.add(start, k.mul(place, self._column)))
            parts.append(k.select(here, value, k.number(0.0, value.type)))
        if packed == 1:
            return k.round_tf32(parts[0])
        return pack(k, parts[0], parts[1])

    def _kept(self, inside: Lanes, word: Value) -> Value:
        k = self._k
        if word.type == "float":
            return k.round_tf32(k.select(inside, word, k.number(0.0, "float")))
        return k.select(inside, word, k.number(0, word.type))


def pack(k: KernelBuilder, low: Lanes, high: Lanes) -> Value:
    """Two 16-bit floats in a word."""
    first, second = (k.convert(k.cast("bitcast", each, "i16"), "i32", unsigned=True) for each in (low, high))
    return k.either(first, k.binary("shl", second, k.number(16, "i32")))


def unpack(k: KernelBuilder, word: Value, number: str) -> list[Value]:
    """The numbers of a word in float."""
    if word.type == "float":
        return [word]
    halves = (word, k.binary("lshr", word, k.number(16, "i32")))
    return [k.convert(k.cast("bitcast", k.convert(half, "i16"), number), "float") for half in halves]


class RowTarget:
    """Rows of results in global memory, of which a thread has two numbers that follow each other for each eight.

    Args:
        start, row, column: of row 0, and strides: of `pairs` in two numbers, else in one.
        count: rows that there are; what lies beyond is not written.
        size: numbers of a row; likewise.
        pairs: strides are even and the numbers of a row lie one behind the other.
    """

    def __init__(
        self, k: KernelBuilder, buffer: KernelBuffer, start: Lanes, row: Lanes, column: Lanes, count: Lanes, size: int,
        *, pairs: bool,
    ):  # fmt: skip
        self._k, self._buffer, self._start, self._row, self._column = k, buffer, start, row, column
        self._count, self._size, self._pairs = count, size, pairs

    def store(self, rows: Sequence[Lanes], inside: Lanes, sums: Sequence[Sequence[Lanes]]) -> None:
        """Write what a thread has of two rows.

        Args:
            inside: of the four threads of a row which one.
            sums: for each eight columns two numbers of the first row and two of the second.
        """
        k = self._k
        for which, row in enumerate(rows):
            with k.when(k.compare("slt", row, self._count)):
                base = k.add(self._start, k.mul(row, self._row))
                for column, each in enumerate(sums):
                    values = [k.convert(value, self._buffer.type) for value in each[2 * which : 2 * which + 2]]
                    self._store_pair(base, k.add(inside, k.number(4 * column, base.type)), column, values)

    def _store_pair(self, base: Lanes, pair: Lanes, column: int, values: Sequence[Value]) -> None:
        """Two numbers of a row, if it has so many."""
        k, two = self._k, self._k.number(2, base.type)
        if self._pairs:
            inside = None if 8 * (column + 1) <= self._size else k.compare(
                "slt", pair, k.number(self._size // 2, base.type)
            )  # fmt: skip
            with nullcontext() if inside is None else k.when(inside):
                where = k.mul(k.add(base, pair), two)
                for i, value in enumerate(values):
                    k.store(self._buffer, k.add(where, k.number(i, base.type)), value)
            return
        for i, value in enumerate(values):
            number = k.add(k.mul(pair, two), k.number(i, base.type))
            with k.when(k.compare("slt", number, k.number(self._size, base.type))):
                k.store(self._buffer, k.add(base, k.mul(number, self._column)), value)


@dataclass(frozen=True, slots=True)
class MaskShape:
    """What lies under the scores, as kernels are made for it.

    Attributes:
        mask, bias: types in memory of what is added to scores; "" for none.
        keep: of what shares are multiplied with behind the softmax, "i8" of conditions.
        rows: of the three, whether they differ from row to row.
        chosen: the mask is in the place of scores where it is not 0, instead of being added.
        grouped: heads have keys and values of their group.
    """

    mask: str = ""
    bias: str = ""
    keep: str = ""
    rows: tuple[bool, bool, bool] = (False, False, False)
    chosen: bool = False
    grouped: bool = False

    @property
    def names(self) -> list[str]:
        """Of those that there are."""
        return [name for name in _UNDER if getattr(self, name)]

    def code(self) -> list[str]:
        """What a kernel's name says of it."""
        found = [name for name, there in (("chosen", self.chosen), ("dropped", self.keep)) if there]
        return [*found, *(["grouped"] if self.grouped else [])]


_UNDER = ("mask", "bias", "keep")


class UnderScores:
    """Masks and dropouts in memory, read where scores are.

    Args:
        where: the image and the head.
        steps: by name, of image, head, row and key.
        counts: of rows and keys.
    """

    def __init__(
        self, k: KernelBuilder, shape: MaskShape, buffers: Mapping[str, KernelBuffer], where: Sequence[Lanes],
        steps: Mapping[str, Sequence[Lanes]], counts: Sequence[Lanes],
    ):  # fmt: skip
        self._k, self._shape = k, shape
        self._read = {
            name: mask_of(k, buffers[name], place(k, where, steps[name][:2]), steps[name][2:], counts, rows=rows)
            for name, rows in zip(_UNDER, shape.rows, strict=True)
            if name in buffers
        }

    def score(self, score: Value, row: Lanes, key: Lanes) -> Value:
        """A score with what is added to it, or what is there instead."""
        k, shape = self._k, self._shape
        names = [name for name in ("mask", "bias") if name in self._read and not (shape.chosen and name == "mask")]
        for name in names:
            score = k.add(score, self._read[name](row, key))
        if shape.chosen:
            return k.select(self.stays(row, key), score, self._read["mask"](row, key))
        return score

    def stays(self, row: Lanes, key: Lanes) -> Value:
        """Whether a score counts, where there is a choice."""
        return self._k.compare("oeq", self._read["mask"](row, key), self._k.number(0.0, "float"))

    def kept(self, share: Value, row: Lanes, key: Lanes) -> Value:
        """What is left of a share, or of a gradient by one."""
        return self._k.mul(share, self._read["keep"](row, key)) if self._shape.keep else share


def mask_of(
    k: KernelBuilder, buffer: KernelBuffer, start: Lanes, steps: Sequence[Lanes], counts: Sequence[Lanes], *, rows: bool
) -> Mask:
    """A mask's numbers; beyond the last row or key that of the last one, which nobody looks at.

    Args:
        start: of the image's and the head's.
        steps, counts: of rows and keys.
        rows: whether it differs from row to row.
    """
    known: dict[str, Value] = {}

    def clamped(number: Lanes, count: Lanes) -> Lanes:
        return k.select(k.compare("slt", number, count), number, k.sub(count, k.number(1, count.type)))

    def read(row: Lanes, key: Lanes) -> Value:
        name = key.name + (row.name if rows else "")
        if name not in known:
            where = k.add(start, k.mul(clamped(key, counts[1]), steps[1]))
            if rows:
                where = k.add(where, k.mul(clamped(row, counts[0]), steps[0]))
            if buffer.type == "i8":
                there = k.load_bool(buffer, where)
                known[name] = k.select(there, k.number(1.0, "float"), k.number(0.0, "float"))
            else:
                known[name] = k.convert(k.load(buffer, where), "float")
        return known[name]

    return read
