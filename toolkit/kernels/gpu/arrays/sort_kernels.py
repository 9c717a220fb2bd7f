"""Sorting of rows: tiles in shared memory (Batcher's bitonic sort), then runs merged by ranks.

A record is an integer in the order that is wanted and the place where its number stands. No two are equal, since places
differ: so equal numbers come in the order of their places, and each element of two runs finds its own place in their
union by binary search. Who wants the first k only keeps no more of any run.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.errors import UnimplementedError
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.primitives.number_types import GpuNumber, number_of
from toolkit.kernels.gpu.primitives.reduce_code import State, halves

#: elements of a tile: two for each thread of the largest block; 24 KiB of shared memory
TILE = 2048
_SMALLEST = 64
BLOCK = 256
#: numbers that a row has at most; places of records behind its end begin here
_PADDING = 1 << 30


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Records in order.

    Attributes:
        records: of 64 bits with key and place, or keys of 64 bits and places.
        stride: records of a row.
        wide: keys have 64 bits.
    """

    records: Sequence[GpuArray]
    stride: int
    wide: bool


def is_wide(number: GpuNumber) -> bool:
    """Whether a number's key needs 64 bits."""
    return number.compute in ("double", "i64")


def record_types(wide: bool) -> tuple[str, ...]:
    """Of buffers for records."""
    return ("i64", "i32") if wide else ("i64",)


def ordered(k: KernelBuilder, number: GpuNumber, value: Lanes) -> Value:
    """An integer with the order of a number: -0 and 0 are equal, NaN is behind infinity."""
    bits = "i64" if is_wide(number) else "i32"
    width = 63 if bits == "i64" else 31
    if not number.floating:
        top = k.number(-(1 << width), bits)
        return k.binary("xor", value, top) if number.unsigned and number.memory == bits else k.convert(value, bits)
    plain = k.cast("bitcast", k.add(value, k.number(0.0, value.type)), bits)
    sign = k.binary("ashr", plain, k.number(width, bits))
    key = k.binary("xor", plain, k.binary("and", sign, k.number((1 << width) - 1, bits)))
    return k.select(k.compare("uno", value, value), k.number((1 << width) - 1, bits), key)


def make_record(k: KernelBuilder, key: Lanes, place: Lanes, wide: bool) -> State:
    """Of a key and a place (i32)."""
    if wide:
        return key, place
    high = k.binary("shl", k.convert(key, "i64"), k.number(32, "i64"))
    return (k.binary("or", high, k.convert(place, "i64", unsigned=True)),)


def key_and_place(k: KernelBuilder, record: State, wide: bool) -> tuple[Lanes, Value]:
    """What a record is made of."""
    if wide:
        return record[0], k.convert(record[1], "i32")
    key = k.convert(k.binary("ashr", record[0], k.number(32, "i64")), "i32")
    return key, k.convert(record[0], "i32")


def precedes(k: KernelBuilder, a: State, b: State) -> Value:
    """Whether one record comes before another."""
    less = k.compare("slt", a[0], b[0])
    if len(a) == 1:
        return less
    return k.either(less, k.both(k.compare("eq", a[0], b[0]), k.compare("slt", a[1], b[1])))


def _load(k: KernelBuilder, buffers: Sequence[KernelBuffer], place: Lanes) -> State:
    return tuple(k.load(buffer, place) for buffer in buffers)


def _store(k: KernelBuilder, buffers: Sequence[KernelBuffer], place: Lanes, record: State) -> None:
    for buffer, value in zip(buffers, record, strict=True):
        k.store(buffer, place, value)


@functools.cache
def tile_sort(name: str, tile: int, descending: bool) -> SimtKernel:
    """A tile of a row for each block. Scalars: columns, tiles of a row, records that are kept of a tile."""
    number = number_of(name)
    wide = is_wide(number)
    k = KernelBuilder(f"sort_{name}_{tile}{'_down' if descending else ''}", tile // 2)
    x = k.buffer("x", number.memory)
    types = record_types(wide)
    left = [k.buffer(f"left{i}", type, written=True) for i, type in enumerate(types)]
    columns, tiles, keep = (k.scalar(each, "i32") for each in ("columns", "tiles", "keep"))
    shared = [k.shared(f"tile{i}", type, tile) for i, type in enumerate(types)]
    bits = "i64" if wide else "i32"
    last = k.number((1 << (63 if wide else 31)) - 1, bits)
    row, part = k.div(k.block_index, tiles), k.rem(k.block_index, tiles)
    begin = k.mul(k.convert(row, "i64"), k.convert(columns, "i64"))
    for half in range(2):
        at = k.add(k.thread, k.number(half * tile // 2, "i32"))
        place = k.add(k.mul(part, k.number(tile, "i32")), at)
        key = k.variable(last)
        with k.when(k.compare("slt", place, columns)):
            found = ordered(k, number, number.load(k, x, k.add(begin, k.convert(place, "i64"))))
            key.set(k.binary("xor", found, k.number(-1, bits)) if descending else found)
        _store(k, shared, at, make_record(k, key.get(), place, wide))
    _bitonic(k, shared, tile)
    out = k.mul(k.convert(k.block_index, "i64"), k.convert(keep, "i64"))
    for half in range(2):
        at = k.add(k.thread, k.number(half * tile // 2, "i32"))
        with k.when(k.compare("slt", at, keep)):
            _store(k, left, k.add(out, k.convert(at, "i64")), _load(k, shared, at))
    return k.finish()


def _bitonic(k: KernelBuilder, shared: Sequence[KernelBuffer], tile: int) -> None:
    """Sort a tile, two elements for each thread."""
    size = 2
    while size <= tile:
        for step in halves(size):
            k.barrier()
            thread = k.thread
            low = k.binary("and", thread, k.number(step - 1, "i32"))
            first = k.sub(k.mul(thread, k.number(2, "i32")), low)
            second = k.add(first, k.number(step, "i32"))
            a, b = _load(k, shared, first), _load(k, shared, second)
            rising = k.compare("eq", k.binary("and", first, k.number(size, "i32")), k.number(0, "i32"))
            swap = k.binary("xor", precedes(k, a, b), rising)
            with k.when(swap):
                _store(k, shared, first, b)
                _store(k, shared, second, a)
        size *= 2
    k.barrier()


@functools.cache
def merge_runs(wide: bool) -> SimtKernel:
    """Each two runs of a row become one. Scalars: runs of a row, their length, length of what is left, all elements."""
    k = KernelBuilder(f"merge_runs{'_wide' if wide else ''}", BLOCK)
    types = record_types(wide)
    runs_in = [k.buffer(f"x{i}", type) for i, type in enumerate(types)]
    left = [k.buffer(f"left{i}", type, written=True) for i, type in enumerate(types)]
    runs, length, keep = (k.scalar(each, "i64") for each in ("runs", "length", "keep"))
    count = k.scalar("count", "i64")
    one = k.number(1, "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        own = _load(k, runs_in, i)
        run, place = k.div(i, length), k.rem(i, length)
        row, in_row = k.div(run, runs), k.rem(run, runs)
        other = k.binary("xor", in_row, one)
        begin = k.mul(k.add(k.mul(row, runs), other), length)
        low = k.variable(k.number(0, "i64"))
        high = k.variable(k.select(k.compare("slt", other, runs), length, k.number(0, "i64")))
        with k.while_(lambda: k.compare("slt", low.get(), high.get())):
            middle = k.binary("lshr", k.add(low.get(), high.get()), one)
            before = precedes(k, _load(k, runs_in, k.add(begin, middle)), own)
            low.set(k.select(before, k.add(middle, one), low.get()))
            high.set(k.select(before, high.get(), middle))
        at = k.add(place, low.get())
        pairs = k.binary("lshr", k.add(runs, one), one)
        target = k.add(k.mul(row, pairs), k.binary("lshr", in_row, one))
        with k.when(k.compare("slt", at, keep)):
            _store(k, left, k.add(k.mul(target, keep), at), own)
        behind = k.add(place, length)
        with k.when(k.both(k.compare("sge", other, runs), k.compare("slt", behind, keep))):
            # a run without another is followed by records that are the last of all
            key = k.number((1 << (63 if wide else 31)) - 1, "i64" if wide else "i32")
            end = make_record(k, key, k.add(k.convert(behind, "i32"), k.number(_PADDING, "i32")), wide)
            _store(k, left, k.add(k.mul(target, keep), behind), end)
    return k.finish()


_DTYPES: dict[str, Any] = {"i64": np.int64, "i32": np.int32}


def sort_rows(
    device: CudaDevice, x: GpuArray, rows: int, columns: int, keep: int, *, descending: bool = False
) -> SortedRows:
    """Sort rows of numbers, of which there is at least one.

    Args:
        keep: how many of each row are wanted, the first ones.

    Raises:
        UnimplementedError: a row is too long.
    """
    if columns > _PADDING:
        raise UnimplementedError(f"rows of {columns} numbers are not sorted on GPUs; expected {_PADDING} at most")
    number = number_of(x.dtype)
    wide = is_wide(number)
    tile = min(TILE, max(_SMALLEST, 1 << (columns - 1).bit_length()))
    runs = -(-columns // tile)
    length = min(keep, tile)
    types = record_types(wide)

    def room() -> list[GpuArray]:
        return [device.empty((rows * runs * length,), _DTYPES[each]) for each in types]

    found = room()
    device.launch(tile_sort(number.name, tile, descending), rows * runs, x, *found, columns, runs, length)
    while runs > 1:
        before, count = found, rows * runs * length
        given = (runs, length)
        runs, length = -(-runs // 2), min(keep, 2 * length)
        found = room()
        device.launch(merge_runs(wide), -(-count // BLOCK), *before, *found, *given, length, count)
    return SortedRows(found, length, wide)
