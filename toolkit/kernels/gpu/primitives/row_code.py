"""Rows that a team of threads holds in registers, or walks along: what softmax and its kin are made of.

A team is a group of 1, 2, 4, ..., 32 lanes, or a whole block. It holds a row in registers if these are at most
`REGISTERS` words for each thread, and then memory is read once; longer rows are walked along twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import WARP, KernelBuffer, Value
from toolkit.kernels.gpu.primitives.number_types import GpuNumber, load_vector, store_vector
from toolkit.kernels.gpu.primitives.reduce_code import (
    BlockReduction,
    Combine,
    Running,
    State,
    group_reduce,
    largest,
    strided,
)

#: words of a row that a thread holds: half of the registers that leave room for 1024 threads
REGISTERS = 32
#: threads of a block that takes a row
_TEAMS = (128, 256, 512)
#: threads of a block that walks along a row
WALKERS = 512
_BLOCK = 256


@dataclass(frozen=True, slots=True)
class TeamShape:
    """How rows are given to threads.

    Attributes:
        threads: of a team.
        slots: vectors of numbers that each holds; 0: the row is walked along.
        vector: numbers that are loaded at once.
        index: the type of indices.
    """

    threads: int
    slots: int
    vector: int
    index: str

    @property
    def block(self) -> int:
        """Threads of a block."""
        return self.threads if self.threads > WARP else _BLOCK

    def blocks(self, rows: int) -> int:
        """How many blocks take so many rows."""
        return -(-rows * self.threads // self.block)


def _power(value: int) -> int:
    """The least power of two that is not below."""
    return 1 << max(0, value - 1).bit_length()


def team_for(columns: int, vector: int, index: str, words: int) -> TeamShape:
    """The team for rows of so many numbers, of which each takes so many words in registers."""
    vectors = -(-columns // vector)
    if vectors <= WARP and vector * words <= REGISTERS:
        return TeamShape(_power(vectors), 1, vector, index)
    for threads in (WARP, *_TEAMS):
        slots = _power(-(-vectors // threads))
        if slots * vector * words <= REGISTERS:
            return TeamShape(threads, slots, vector, index)
    return TeamShape(WALKERS, 0, vector, index)


class RowTeam:
    """The code of one thread of a team.

    Args:
        shape: of the team.
        rows, columns: how many there are; columns in vectors.

    Attributes:
        row: of the team, of the type of indices.
        first: whether the thread is the first of a team that has a row.
    """

    def __init__(self, k: KernelBuilder, shape: TeamShape, rows: Lanes, columns: Lanes):
        self._k, self.shape, self.columns = k, shape, columns
        index, threads = shape.index, shape.threads
        if threads > WARP:
            self.row: Value = k.convert(k.block_index, index)
            self.thread: Value = k.convert(k.thread, index)
            self.active: Value | None = None  # every team has a row
            self.first = k.compare("eq", self.thread, k.number(0, index))
        else:
            self.row = k.binary("lshr", k.global_thread(index), k.number(threads.bit_length() - 1, index))
            self.thread = k.convert(k.binary("and", k.thread, k.number(threads - 1, "i32")), index)
            self.active = k.compare("slt", self.row, rows)
            self.first = k.both(self.active, k.compare("eq", self.thread, k.number(0, index)))
        self.begin = k.mul(self.row, columns)
        self._blocks: dict[tuple[str, ...], BlockReduction] = {}

    def reduce(self, state: State, combine: Combine) -> State:
        """What the team has together."""
        if self.shape.threads <= WARP:
            return group_reduce(self._k, state, combine, self.shape.threads)
        types = tuple(value.type for value in state)
        if types not in self._blocks:
            self._blocks[types] = BlockReduction(self._k, types, f"team{len(self._blocks)}_")
        return self._blocks[types].reduce(state, combine)

    def total(self, values: Sequence[Lanes], combine: Callable[[Lanes, Lanes], Lanes]) -> Lanes:
        """What all numbers of the row come to."""
        rest = list(values)
        while len(rest) > 1:
            pairs = [combine(a, b) for a, b in zip(rest[::2], rest[1::2], strict=False)]
            rest = pairs + rest[2 * len(pairs) :]
        return self.reduce((rest[0],), lambda a, b: (combine(a[0], b[0]),))[0]

    # -- in registers

    def _place(self, slot: int) -> tuple[Value, Value]:
        """The number of a vector in its row, and whether there is one."""
        k = self._k
        place = k.add(self.thread, k.number(slot * self.shape.threads, self.shape.index))
        inside = k.compare("slt", place, self.columns)
        return place, inside if self.active is None else k.both(self.active, inside)

    def load(self, number: GpuNumber, buffer: KernelBuffer, outside: float) -> list[Lanes]:
        """The thread's numbers of the row; `outside` where the row has ended."""
        k, found = self._k, list[Lanes]()
        for slot in range(self.shape.slots):
            held = [k.variable(k.number(outside, number.compute)) for _ in range(self.shape.vector)]
            place, inside = self._place(slot)
            with k.when(inside):
                values = load_vector(k, number, buffer, k.add(self.begin, place), self.shape.vector)
                for one, value in zip(held, values, strict=True):
                    one.set(value)
            found += [one.get() for one in held]
        return found

    def store(self, number: GpuNumber, buffer: KernelBuffer, values: Sequence[Lanes]) -> None:
        """Write the thread's numbers of the row."""
        k, vector = self._k, self.shape.vector
        for slot in range(self.shape.slots):
            place, inside = self._place(slot)
            with k.when(inside):
                store_vector(k, number, buffer, k.add(self.begin, place), list(values[slot * vector :][:vector]))

    # -- walking along

    def walk(self, read: Callable[[Lanes], State], use: Callable[[State], None]) -> None:
        """Read and use every vector of the row that is the thread's; `read` is given its number in the row."""
        strided(self._k, self.thread, self.columns, self._k.number(self.shape.threads, self.shape.index), read, use)


# -- sums of exponentials ------------------------------------------------------------------------------------------


def _scale(k: KernelBuilder, old: Lanes, new: Lanes) -> Value:
    """What a sum of exp(x - old) is multiplied with to be one of exp(x - new); 0 for an empty sum."""
    empty = k.compare("oeq", old, k.number(-float("inf"), old.type))
    return k.select(empty, k.number(0.0, old.type), functions.exp(k, k.sub(old, new)))


def joined_exponentials(k: KernelBuilder, a: State, b: State) -> State:
    """Of (m, sum of exp(x - m)) of two sets of numbers that of both, m being the larger one."""
    top = largest(k, a[0], b[0])
    return top, k.add(k.mul(a[1], _scale(k, a[0], top)), k.mul(b[1], _scale(k, b[0], top)))


class ExponentialSum:
    """The largest number of those that come by, and the sum of exp(x - it), in one pass (Milakov, Gimelshein 2018)."""

    def __init__(self, k: KernelBuilder, type: str):
        self._k, self._type = k, type
        self._running = Running(k, (k.number(-float("inf"), type), k.number(0.0, type)))

    def take(self, values: Sequence[Lanes]) -> None:
        """Some numbers more: an exponential for each, and one for the sum so far."""
        k = self._k
        top, total = self._running.get()
        new = top
        for value in values:
            new = largest(k, new, value)
        total = k.mul(total, _scale(k, top, new))
        for value in values:
            total = k.add(total, _scale(k, value, new))
        self._running.set((new, total))

    def finish(self, team: RowTeam) -> State:
        """Of the whole row."""
        return team.reduce(self._running.get(), lambda a, b: joined_exponentials(self._k, a, b))


def exponentials(k: KernelBuilder, team: RowTeam, values: list[Lanes]) -> tuple[Lanes, list[Lanes], list[Lanes], Lanes]:
    """Of a row in registers: its largest number, x - that, exp of that, and the sum of these."""
    top = team.total(values, lambda a, b: largest(k, a, b))
    shifted: list[Lanes] = [k.sub(value, top) for value in values]
    exponents: list[Lanes] = [functions.exp(k, value) for value in shifted]
    return top, shifted, exponents, team.total(exponents, k.add)


def softmax_of(k: KernelBuilder, team: RowTeam, values: list[Lanes], *, logarithm: bool) -> list[Lanes]:
    """Softmax of a row in registers, or its logarithm; -inf where the row has ended."""
    _, shifted, exponents, total = exponentials(k, team, values)
    if logarithm:
        rest = functions.log(k, total)
        return [k.sub(value, rest) for value in shifted]
    factor = k.div(k.number(1.0, total.type), total)
    return [k.mul(value, factor) for value in exponents]
