"""Rows by segments: where segments begin in sorted ids, and what the rows of each come to.

Nothing is added atomically: ids that are not sorted are sorted first (stably), so that each segment's rows are taken
in their order by the same lanes each time.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import WARP, SimtKernel, Value
from toolkit.kernels.gpu.arrays.sort_kernels import BLOCK, key_and_place, record_types, sort_rows
from toolkit.kernels.gpu.primitives.number_types import number_of
from toolkit.kernels.gpu.primitives.reduce_code import Running, State, lane_reduce, largest, smallest, strided

#: rows of a segment, in the mean, from which on a block takes it: the lanes of a warp would add 16 each
_LONG = 512


@dataclass(frozen=True, slots=True)
class SegmentForm:
    """How segments are reduced.

    Attributes:
        how: "sum", "prod", "max" or "min".
        name: NumPy's, of the type.
        start: of a segment's state.
        empty: what a segment without rows holds.
        divided: by "" (nothing), the "count" of rows, or its "root".
        rows: the type of what says which row a place has: "" (its own), "i32" or "i64".
        weighted: rows are multiplied with a weight of the segment that they are read from.
    """

    how: str
    name: str
    start: float
    empty: float
    divided: str = ""
    rows: str = ""
    weighted: bool = False


def combined(k: KernelBuilder, how: str, a: Lanes, b: Lanes) -> Lanes:
    """Two numbers put together."""
    match how:
        case "sum":
            return k.add(a, b)
        case "prod":
            return k.mul(a, b)
        case "max":
            return largest(k, a, b)
        case _:
            return smallest(k, a, b)


@functools.cache
def _offsets(name: str) -> SimtKernel:
    """The first place of each segment, and the end of the last. Scalars: ids, segments."""
    number = number_of(name)
    k = KernelBuilder(f"segment_offsets_{name}", BLOCK)
    ids, offsets = k.buffer("ids", number.memory), k.buffer("offsets", "i64", written=True)
    count, segments = k.scalar("count", "i64"), k.scalar("segments", "i64")
    segment = k.global_thread("i64")
    with k.when(k.compare("sle", segment, segments)):
        low, high = k.variable(k.number(0, "i64")), k.variable(count)
        with k.while_(lambda: k.compare("slt", low.get(), high.get())):
            middle = k.binary("lshr", k.add(low.get(), high.get()), k.number(1, "i64"))
            before = k.compare("slt", k.convert(k.load(ids, middle), "i64"), segment)
            low.set(k.select(before, k.add(middle, k.number(1, "i64")), low.get()))
            high.set(k.select(before, high.get(), middle))
        k.store(offsets, segment, low.get())
    return k.finish()


def segment_offsets(device: CudaDevice, ids: GpuArray, segments: int) -> GpuArray:
    """Where each segment begins in ids that never fall, [segments + 1], int64."""
    made = device.empty((segments + 1,), np.int64)
    count = ids.size
    device.launch(_offsets(ids.dtype.name), -(-(segments + 1) // BLOCK), ids, made, count, segments)
    return made


@functools.cache
def _segments(form: SegmentForm, tile: int, team: int) -> SimtKernel:
    """A segment and a tile of columns for each warp, or for each block.

    Scalars: segments, columns, tiles, rows of the data.
    """
    number = number_of(form.name)
    k = KernelBuilder(f"segment_{form.how}_{form.divided}_{form.name}_{tile}x{team}", BLOCK)
    data, offsets = k.buffer("data", number.memory), k.buffer("offsets", "i64")
    places = k.buffer("row_of", form.rows) if form.rows else None
    weights = k.buffer("weights", number.compute) if form.weighted else None
    made = k.buffer("made", number.memory, written=True)
    segments, columns, tiles, rows = (k.scalar(each, "i64") for each in ("segments", "columns", "tiles", "rows"))
    turn = k.binary("lshr", k.global_thread("i64"), k.number(team.bit_length() - 1, "i64"))
    lane = k.convert(k.binary("and", k.thread, k.number(team - 1, "i32")), "i64")
    segment = k.div(turn, tiles)
    column = k.add(k.mul(k.rem(turn, tiles), k.number(tile, "i64")), k.binary("and", lane, k.number(tile - 1, "i64")))
    inside = k.both(k.compare("slt", segment, segments), k.compare("slt", column, columns))
    group = k.binary("lshr", lane, k.number(tile.bit_length() - 1, "i64"))
    none = k.number(0, "i64")
    begin, end = k.variable(none), k.variable(none)
    with k.when(inside):
        begin.set(k.load(offsets, segment))
        end.set(k.load(offsets, k.add(segment, k.number(1, "i64"))))
    running = Running(k, (k.number(form.start, number.compute),))

    def read(at: Lanes) -> State:
        row = at if places is None else k.convert(k.load(places, at), "i64")
        if places is None:
            return (number.load(k, data, k.add(k.mul(row, columns), column)),)
        found = k.variable(k.number(form.start, number.compute))
        known = k.both(k.compare("sge", row, none), k.compare("slt", row, rows))
        with k.when(known):  # rows that there are not are left out
            value: Lanes = number.load(k, data, k.add(k.mul(row, columns), column))
            found.set(value if weights is None else k.mul(value, k.load(weights, row)))
        return (found.get(),)

    def use(found: State) -> None:
        running.set((combined(k, form.how, running.get()[0], found[0]),))

    strided(k, k.add(begin.get(), group), end.get(), k.number(team // tile, "i64"), read, use)
    steps = [step for step in (16, 8, 4, 2, 1) if step >= tile]
    total = lane_reduce(k, running.get(), lambda a, b: (combined(k, form.how, a[0], b[0]),), steps)[0]
    if team > WARP:
        total = _of_warps(k, form.how, total)
    with k.when(k.both(inside, k.compare("eq", group, none))):
        count = k.sub(end.get(), begin.get())
        result = _divided(k, form, total, count)
        empty = k.compare("eq", count, none)
        result = k.select(empty, k.number(form.empty, number.compute), result)
        number.store(k, made, k.add(k.mul(segment, columns), column), result)
    return k.finish()


def _of_warps(k: KernelBuilder, how: str, value: Lanes) -> Lanes:
    """What the same lanes of all warps have together."""
    shared = k.shared("warps", value.type, BLOCK)
    lane = k.binary("and", k.thread, k.number(WARP - 1, "i32"))
    k.store(shared, k.thread, value)
    k.barrier()
    total: Lanes = k.load(shared, lane)
    for warp in range(1, BLOCK // WARP):
        total = combined(k, how, total, k.load(shared, k.add(lane, k.number(warp * WARP, "i32"))))
    return total


def _divided(k: KernelBuilder, form: SegmentForm, total: Lanes, count: Value) -> Lanes:
    if not form.divided:
        return total
    by: Lanes = k.convert(count, total.type)
    return k.div(total, by if form.divided == "count" else k.intrinsic("sqrt", by))


def reduce_segments(
    device: CudaDevice, form: SegmentForm, data: GpuArray, offsets: GpuArray, made: GpuArray, columns: int,
    rows: GpuArray | None = None, weights: GpuArray | None = None,
) -> None:  # fmt: skip
    """What the rows of each segment come to.

    Args:
        data: rows of `columns` numbers.
        offsets: where segments begin.
        made: [segments, columns].
        rows: which row each place has.
        weights: of rows, in the type of computation.
    """
    segments = offsets.size - 1
    if not segments * columns:
        return
    tile = min(WARP, 1 << (columns - 1).bit_length())
    tiles = -(-columns // tile)
    extra = [each for each in (rows, weights) if each is not None]
    count = data.nbytes // np.dtype(form.name).itemsize // columns
    places = count if rows is None else rows.size
    team = BLOCK if places >= _LONG * segments else WARP
    blocks = -(-segments * tiles * team // BLOCK)
    device.launch(_segments(form, tile, team), blocks, data, offsets, *extra, made, segments, columns, tiles, count)


@functools.cache
def _unpack(name: str, wide: bool) -> SimtKernel:
    """Keys and places of sorted records. Scalars: how many."""
    number = number_of(name)
    k = KernelBuilder(f"unpack_{name}", BLOCK)
    records = [k.buffer(f"record{i}", type) for i, type in enumerate(record_types(wide))]
    keys, places = k.buffer("keys", number.memory, written=True), k.buffer("places", "i32", written=True)
    count, i = k.scalar("count", "i64"), k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        key, place = key_and_place(k, tuple(k.load(each, i) for each in records), wide)
        number.store(k, keys, i, key)
        k.store(places, i, place)
    return k.finish()


def sorted_ids(device: CudaDevice, ids: GpuArray) -> tuple[GpuArray, GpuArray]:
    """Ids (int32 or int64) in rising order, and where each came from, int32; equal ones as they came."""
    count = ids.size
    keys, places = device.empty((count,), ids.dtype), device.empty((count,), np.int32)
    if count:
        found = sort_rows(device, ids, 1, count, count)
        device.launch(_unpack(ids.dtype.name, found.wide), -(-count // BLOCK), *found.records, keys, places, count)
    return keys, places


@functools.cache
def _looked_up(name: str) -> SimtKernel:
    """values[places]. Scalars: how many."""
    memory = number_of(name).memory
    k = KernelBuilder(f"looked_up_{name}", BLOCK)
    values, places = k.buffer("values", memory), k.buffer("places", "i32")
    made, count = k.buffer("made", memory, written=True), k.scalar("count", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        k.store(made, i, k.load(values, k.load(places, i)))
    return k.finish()


def looked_up(device: CudaDevice, values: GpuArray, places: GpuArray) -> GpuArray:
    """values[places], of vectors."""
    made = device.empty(places.shape, values.dtype)
    count = places.size
    device.launch(_looked_up(values.dtype.name), -(-count // BLOCK), values, places, made, count)
    return made


def last_of(device: CudaDevice, values: GpuArray) -> int:
    """The last number of a vector, on the host: waits for the GPU."""
    size: int = values.dtype.itemsize
    return int(device.to_host(values.viewed(values.dtype, (1,), values.nbytes - size))[0])


__all__: Sequence[str] = ["SegmentForm", "combined", "last_of", "looked_up", "reduce_segments", "segment_offsets",
                          "sorted_ids"]  # fmt: skip
