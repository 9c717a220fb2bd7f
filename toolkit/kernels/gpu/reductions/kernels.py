"""Reductions as kernels: of rows by groups of lanes or by blocks, of columns by tiles, in one launch or two.

What is reduced is seen as [outer, reduced, inner]. Where `inner` is 1 the numbers of a row lie together, and
neighbouring threads take neighbouring numbers; else neighbouring threads take neighbouring columns. Few long rows are
cut into chunks: a first launch leaves a state for each chunk, a second puts these together. No float is added
atomically, so a result depends on nothing but the input.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import WARP, KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.primitives.number_types import GpuNumber, load_vector
from toolkit.kernels.gpu.primitives.reduce_code import (
    BlockReduction,
    Running,
    State,
    first_thread,
    group_reduce,
    halves,
    strided,
)

BLOCK = 256


@dataclass(frozen=True, slots=True)
class ReducedPlace:
    """Where a number that is reduced stands.

    Attributes:
        position: along the reduced dimension.
        flat: in the input.
        output: of the result that it belongs to, in the stage that reads the input.
        extra: what the reduction's `arguments` made.
    """

    position: Lanes
    flat: Lanes
    output: Lanes
    extra: Any


def _no_arguments(k: KernelBuilder) -> Any:
    return ()


@dataclass(frozen=True, eq=False)
class GpuReduction:
    """What is computed of many numbers.

    Attributes:
        name: of its kernels.
        element, result: the types of input and output.
        state: types of the values of a state.
        start: the state of no numbers.
        lift: the state of one number.
        combine: the state of two states' numbers.
        finish: the result, given how many numbers there were (i64).
        arguments: further arguments of the kernels that read the input.
    """

    name: str
    element: GpuNumber
    result: GpuNumber
    state: tuple[str, ...]
    start: Callable[[KernelBuilder], State]
    lift: Callable[[KernelBuilder, Value, ReducedPlace], State]
    combine: Callable[[KernelBuilder, State, State], State]
    finish: Callable[[KernelBuilder, State, Lanes], Lanes]
    arguments: Callable[[KernelBuilder], Any] = _no_arguments


@dataclass(frozen=True, slots=True)
class Stage:
    """What a launch reads and leaves.

    Attributes:
        vector: numbers that are loaded at once.
        index: the type of indices.
        partial: it reads states, else the input.
        last: it leaves results, else states.
    """

    vector: int
    index: str
    partial: bool
    last: bool


class _Ends:
    """The arguments of a kernel for what it reads and leaves, and the accesses."""

    def __init__(self, k: KernelBuilder, reduction: GpuReduction, stage: Stage):
        self._k, self._reduction, self._stage = k, reduction, stage
        if stage.partial:
            self._inputs = [k.buffer(f"state{i}", type) for i, type in enumerate(reduction.state)]
            self._extra: Any = ()
        else:
            self._inputs = [k.buffer("x", reduction.element.memory)]
            self._extra = reduction.arguments(k)
        if stage.last:
            self._outputs = [k.buffer("y", reduction.result.memory, written=True)]
        else:
            self._outputs = [k.buffer(f"left{i}", type, written=True) for i, type in enumerate(reduction.state)]
        self.running = Running(k, reduction.start(k))

    def combine(self, a: State, b: State) -> State:
        return self._reduction.combine(self._k, a, b)

    def read(self, position: Lanes, flat: Lanes) -> State:
        """Numbers, or a state; before them where they stand."""
        if self._stage.partial:
            return (position, flat, *(self._k.load(buffer, flat) for buffer in self._inputs))
        vector = self._stage.vector
        return (position, flat, *load_vector(self._k, self._reduction.element, self._inputs[0], flat, vector))

    def use(self, output: Lanes) -> Callable[[State], None]:
        """Takes what was read into the running state."""
        k, vector = self._k, self._stage.vector

        def take(found: State) -> None:
            position, flat, *values = found
            if self._stage.partial:
                self.running.set(self.combine(self.running.get(), tuple(values)))
                return
            for i, value in enumerate(values):
                places = [
                    each if vector == 1
                    else k.add(k.mul(each, k.number(vector, each.type)), k.number(i, each.type))
                    for each in (position, flat)
                ]  # fmt: skip
                place = ReducedPlace(places[0], places[1], output, self._extra)
                assert isinstance(value, Value)
                self.running.set(self.combine(self.running.get(), self._reduction.lift(k, value, place)))

        return take

    def write(self, place: Lanes, state: State, count: Lanes) -> None:
        k = self._k
        if self._stage.last:
            self._reduction.result.store(k, self._outputs[0], place, self._reduction.finish(k, state, count))
            return
        for buffer, value in zip(self._outputs, state, strict=True):
            k.store(buffer, place, value)


def _name(reduction: GpuReduction, shape: str, stage: Stage) -> str:
    return f"{reduction.name}_{shape}{'_partial' if stage.partial else ''}{'' if stage.last else '_first'}"


@functools.cache
def rows_by_lanes(reduction: GpuReduction, lanes: int, stage: Stage) -> SimtKernel:
    """A row for each group of 1, 2, 4, ..., 32 lanes. Scalars: rows, columns (in vectors), count."""
    k = KernelBuilder(_name(reduction, f"rows{lanes}", stage), BLOCK)
    ends = _Ends(k, reduction, stage)
    rows, columns = k.scalar("rows", stage.index), k.scalar("columns", stage.index)
    count = k.scalar("count", "i64")
    lane = k.convert(k.binary("and", k.thread, k.number(lanes - 1, "i32")), stage.index)
    row = k.binary("lshr", k.global_thread(stage.index), k.number(lanes.bit_length() - 1, stage.index))
    inside = k.compare("slt", row, rows)
    with k.when(inside):
        first = k.mul(row, columns)
        strided(k, lane, columns, k.number(lanes, stage.index),
                lambda j: ends.read(j, k.add(first, j)), ends.use(row))  # fmt: skip
    total = group_reduce(k, ends.running.get(), ends.combine, lanes)
    with k.when(k.both(inside, k.compare("eq", lane, k.number(0, stage.index)))):
        ends.write(row, total, count)
    return k.finish()


def _chunk(k: KernelBuilder, chunk: Lanes, size: Lanes, whole: Lanes) -> tuple[Value, Value]:
    """Where a chunk begins and ends."""
    begin = k.mul(chunk, size)
    end = k.add(begin, size)
    return begin, k.select(k.compare("slt", end, whole), end, whole)


@functools.cache
def rows_by_blocks(reduction: GpuReduction, stage: Stage) -> SimtKernel:
    """A chunk of a row for each block. Scalars: columns, size of chunks (both in vectors), chunks, count."""
    k = KernelBuilder(_name(reduction, "blocks", stage), BLOCK)
    ends = _Ends(k, reduction, stage)
    columns, size = k.scalar("columns", stage.index), k.scalar("size", stage.index)
    chunks, count = k.scalar("chunks", "i32"), k.scalar("count", "i64")
    block = k.block_index
    row = k.convert(k.div(block, chunks), stage.index)
    begin, end = _chunk(k, k.convert(k.rem(block, chunks), stage.index), size, columns)
    first = k.mul(row, columns)
    strided(k, k.add(begin, k.convert(k.thread, stage.index)), end, k.number(BLOCK, stage.index),
            lambda j: ends.read(j, k.add(first, j)), ends.use(row))  # fmt: skip
    total = BlockReduction(k, reduction.state).reduce(ends.running.get(), ends.combine)
    with k.when(first_thread(k)):
        ends.write(k.convert(block, stage.index), total, count)
    return k.finish()


@functools.cache
def columns_by_tiles(reduction: GpuReduction, tile: int, stage: Stage) -> SimtKernel:
    """A tile of columns for each block, whose threads share their rows.

    Scalars: rows (reduced), columns (inner), tiles, size of chunks, chunks, count.
    """
    k = KernelBuilder(_name(reduction, f"columns{tile}", stage), BLOCK)
    ends = _Ends(k, reduction, stage)
    rows, columns = k.scalar("rows", stage.index), k.scalar("columns", stage.index)
    tiles, size, chunks = k.scalar("tiles", "i32"), k.scalar("size", stage.index), k.scalar("chunks", "i32")
    count = k.scalar("count", "i64")
    index, groups = stage.index, BLOCK // tile
    thread = k.thread
    group = k.binary("lshr", thread, k.number(tile.bit_length() - 1, "i32"))
    rest = k.div(k.block_index, chunks)
    chunk = k.convert(k.rem(k.block_index, chunks), index)
    outer = k.convert(k.div(rest, tiles), index)
    in_tile = k.convert(k.binary("and", thread, k.number(tile - 1, "i32")), index)
    column = k.add(k.mul(k.convert(k.rem(rest, tiles), index), k.number(tile, index)), in_tile)
    output = k.add(k.mul(outer, columns), column)
    begin, end = _chunk(k, chunk, size, rows)
    inside = k.compare("slt", column, columns)
    first = k.add(k.mul(k.mul(outer, rows), columns), column)
    with k.when(inside):
        strided(k, k.add(begin, k.convert(group, index)), end, k.number(groups, index),
                lambda r: ends.read(r, k.add(first, k.mul(r, columns))), ends.use(output))  # fmt: skip
    total = _over_groups(k, ends, [k.shared(f"s{i}", t, BLOCK) for i, t in enumerate(reduction.state)], group, tile)
    with k.when(k.both(inside, k.compare("eq", group, k.number(0, "i32")))):
        place = k.add(k.mul(output, k.convert(chunks, index)), chunk)
        ends.write(place, total, count)
    return k.finish()


def _over_groups(k: KernelBuilder, ends: _Ends, shared: Sequence[KernelBuffer], group: Value, tile: int) -> State:
    """What the threads of one column have together; the first of them gets it."""
    groups = BLOCK // tile
    for step in halves(groups):
        for buffer, value in zip(shared, ends.running.get(), strict=True):
            k.store(buffer, k.thread, value)
        k.barrier()
        with k.when(k.compare("slt", group, k.number(step, "i32"))):
            other = k.add(k.thread, k.number(step * tile, "i32"))
            ends.running.set(ends.combine(ends.running.get(), tuple(k.load(buffer, other) for buffer in shared)))
        k.barrier()
    return ends.running.get()


__all__ = ["BLOCK", "WARP", "GpuReduction", "ReducedPlace", "Stage", "columns_by_tiles", "rows_by_blocks",
           "rows_by_lanes"]  # fmt: skip
