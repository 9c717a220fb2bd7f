"""Cumulative sums and their kin as kernels: along rows by blocks, along other lines by a thread each.

What is scanned is seen as [outer, length, inner]. Long lines are cut into chunks: a first launch leaves the total of
each, these are scanned themselves, and the last launch begins each chunk where the one before it has ended. The order
of additions depends on sizes only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import WARP, KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.primitives.number_types import GpuNumber, index_type, number_of
from toolkit.kernels.gpu.primitives.reduce_code import State, first_thread, lane_and_warp, strided

BLOCK = 256
#: numbers that a thread of a block takes at a time: 16 bytes of float
_ITEMS = 4
#: lengths up to which a thread takes a row by itself; from there on a block's lanes are mostly busy
_SHORT = 64
#: numbers of a chunk at least: of a block 16 rounds, of a thread enough to hide its start
_BLOCK_CHUNK, _LINE_CHUNK = 16 * BLOCK * _ITEMS, 512
_RESIDENT = 8  # blocks of 256 threads on a multiprocessor


@dataclass(frozen=True, eq=False)
class GpuScan:
    """What is scanned how.

    Attributes:
        name: of its kernels.
        element, result: types of input and output.
        state: type of what is put together.
        identity: what changes nothing.
        lift: the state of one number.
        combine: the state of two runs, the left one first.
        totals: the same of states, for the totals of chunks; None: it is that itself.
    """

    name: str
    element: GpuNumber
    result: GpuNumber
    state: str
    identity: float
    lift: Callable[[KernelBuilder, Value], Lanes]
    combine: Callable[[KernelBuilder, Lanes, Lanes], Lanes]
    totals: GpuScan | None = None


_NAMES = {"float": "float32", "double": "float64", "i32": "int32", "i64": "int64"}


def scan_with_totals(scan: GpuScan) -> GpuScan:
    """The scan with the one of its chunks' totals."""
    number = number_of(_NAMES[scan.state])
    inner = replace(scan, name=f"{scan.name}_totals", element=number, result=number, lift=lambda k, value: value)
    return replace(scan, totals=inner)


@dataclass(frozen=True, slots=True)
class ScanForm:
    """Attributes:
    exclusive: a number is not in its own result.
    backwards: from the end.
    starts: chunks begin with what is given for each.
    leaves: "results", or the "totals" of chunks.
    index: the type of indices.
    """

    exclusive: bool
    backwards: bool
    starts: bool
    leaves: str
    index: str


def scan_array(
    device: CudaDevice, scan: GpuScan, x: GpuArray, sizes: tuple[int, int, int], into: GpuArray,
    *, exclusive: bool = False, backwards: bool = False,
) -> None:  # fmt: skip
    """Scan [outer, length, inner] along the length."""
    outer, length, inner = sizes
    if not outer * length * inner:
        return
    by_block = inner == 1 and length > _SHORT
    lines = outer * inner
    blocks = outer if by_block else -(-lines // BLOCK)
    least = _BLOCK_CHUNK if by_block else _LINE_CHUNK
    wanted = device.properties.multiprocessors * _RESIDENT // blocks
    chunks = max(1, min(length // least, wanted))
    size = -(-length // chunks)
    chunks = -(-length // size)
    index = index_type(outer * length * inner)
    kernel = block_scan if by_block else line_scan
    count = outer * chunks if by_block else -(-lines * chunks // BLOCK)
    numbers = (outer, length, inner, size, chunks)
    starts: Sequence[GpuArray] = ()
    if chunks > 1:
        inner_scan = scan.totals or scan
        dtype = inner_scan.result.name
        totals, begun = (device.empty((outer, chunks, inner), dtype) for _ in range(2))
        form = ScanForm(exclusive, backwards, False, "totals", index)
        device.launch(kernel(scan, form), count, x, totals, *numbers)
        scan_array(device, inner_scan, totals, (outer, chunks, inner), begun, exclusive=True)
        starts = (begun,)
    form = ScanForm(exclusive, backwards, bool(starts), "results", index)
    device.launch(kernel(scan, form), count, x, *starts, into, *numbers)


class _Lines:
    """The arguments of a kernel, and where things are."""

    def __init__(self, k: KernelBuilder, scan: GpuScan, form: ScanForm):
        self.k, self.scan, self.form = k, scan, form
        self._x = k.buffer("x", scan.element.memory)
        self._starts = k.buffer("starts", scan.state) if form.starts else None
        results = form.leaves == "results"
        self._y = k.buffer("y", scan.result.memory if results else scan.state, written=True)
        index = form.index
        self.outer, self.length, self.inner = (k.scalar(each, index) for each in ("outer", "length", "inner"))
        self.size, self.chunks = k.scalar("size", index), k.scalar("chunks", index)

    def place(self, outer: Lanes, at: Lanes, inner: Lanes, length: Lanes) -> Value:
        k = self.k
        return k.add(k.mul(k.add(k.mul(outer, length), at), self.inner), inner)

    def flat(self, outer: Lanes, at: Lanes, inner: Lanes) -> Value:
        """Where the number is that comes `at`-th in its line."""
        k = self.k
        if self.form.backwards:
            at = k.sub(k.sub(self.length, k.number(1, at.type)), at)
        return self.place(outer, at, inner, self.length)

    def chunk(self, chunk: Lanes) -> tuple[Value, Value]:
        k = self.k
        begin = k.mul(chunk, self.size)
        end = k.add(begin, self.size)
        return begin, k.select(k.compare("slt", end, self.length), end, self.length)

    def start(self, outer: Lanes, chunk: Lanes, inner: Lanes) -> Value:
        """What the numbers before a chunk come to."""
        if self._starts is None:
            return self.identity()
        return self.k.load(self._starts, self.place(outer, chunk, inner, self.chunks))

    def identity(self) -> Value:
        return self.k.number(self.scan.identity, self.scan.state)

    def read(self, flat: Lanes) -> Lanes:
        return self.scan.lift(self.k, self.scan.element.load(self.k, self._x, flat))

    def write(self, flat: Lanes, value: Lanes) -> None:
        self.scan.result.store(self.k, self._y, flat, value)

    def leave(self, outer: Lanes, chunk: Lanes, inner: Lanes, total: Lanes) -> None:
        self.k.store(self._y, self.place(outer, chunk, inner, self.chunks), total)


def _name(scan: GpuScan, kind: str, form: ScanForm) -> str:
    turned = f"{'_exclusive' if form.exclusive else ''}{'_backwards' if form.backwards else ''}"
    return f"{scan.name}_{kind}{turned}_{form.leaves}{'_on' if form.starts else ''}"


@functools.cache
def line_scan(scan: GpuScan, form: ScanForm) -> SimtKernel:
    """A chunk of a line for each thread; neighbours have neighbouring lines."""
    k = KernelBuilder(_name(scan, "lines", form), BLOCK)
    lines = _Lines(k, scan, form)
    thread = k.global_thread(form.index)
    inner = k.rem(thread, lines.inner)
    rest = k.div(thread, lines.inner)
    chunk, outer = k.rem(rest, lines.chunks), k.div(rest, lines.chunks)
    with k.when(k.compare("slt", outer, lines.outer)):
        begin, end = lines.chunk(chunk)
        total = k.variable(lines.start(outer, chunk, inner))

        def read(at: Lanes) -> State:
            flat = lines.flat(outer, at, inner)
            return flat, lines.read(flat)

        def use(found: State) -> None:
            flat, value = found
            before = total.get()
            total.set(scan.combine(k, before, value))
            if form.leaves == "results":
                lines.write(flat, before if form.exclusive else total.get())

        strided(k, begin, end, k.number(1, form.index), read, use)
        if form.leaves == "totals":
            lines.leave(outer, chunk, inner, total.get())
    return k.finish()


@functools.cache
def block_scan(scan: GpuScan, form: ScanForm) -> SimtKernel:
    """A chunk of a row for each block, `_ITEMS` numbers for a thread at a time."""
    k = KernelBuilder(_name(scan, "blocks", form), BLOCK)
    lines = _Lines(k, scan, form)
    index = form.index
    warps = k.shared("warps", scan.state, BLOCK // WARP)
    block = k.convert(k.block_index, index)
    outer, chunk, none = k.div(block, lines.chunks), k.rem(block, lines.chunks), k.number(0, index)
    begin, end = lines.chunk(chunk)
    carried = k.variable(lines.start(outer, chunk, none))
    with k.loop(begin, end, k.number(BLOCK * _ITEMS, index)) as base:
        first = k.add(base, k.mul(k.convert(k.thread, index), k.number(_ITEMS, index)))
        values: list[Lanes] = []
        places = [k.add(first, k.number(i, index)) for i in range(_ITEMS)]
        for place in places:
            value = k.variable(lines.identity())
            with k.when(k.compare("slt", place, end)):
                value.set(lines.read(lines.flat(outer, place, none)))
            values.append(value.get())
        prefixes: list[Lanes] = [values[0]]
        for value in values[1:]:
            prefixes.append(scan.combine(k, prefixes[-1], value))
        before, total = block_prefix(k, scan, warps, prefixes[-1], lines.identity())
        before = scan.combine(k, carried.get(), before)
        if form.leaves == "results":
            for i, place in enumerate(places):
                if form.exclusive:
                    made = before if i == 0 else scan.combine(k, before, prefixes[i - 1])
                else:
                    made = scan.combine(k, before, prefixes[i])
                with k.when(k.compare("slt", place, end)):
                    lines.write(lines.flat(outer, place, none), made)
        carried.set(scan.combine(k, carried.get(), total))
        k.barrier()  # before the next round writes where this one reads
    if form.leaves == "totals":
        with k.when(first_thread(k)):
            lines.leave(outer, chunk, none, carried.get())
    return k.finish()


def block_prefix(
    k: KernelBuilder, scan: GpuScan, warps: KernelBuffer, value: Lanes, identity: Lanes
) -> tuple[Lanes, Lanes]:
    """What the threads before this one have together, and what all have."""
    lane, warp = lane_and_warp(k)
    own = value
    for step in (1, 2, 4, 8, 16):
        other = k.shuffle("up", own, step)
        own = k.select(k.compare("sge", lane, k.number(step, "i32")), scan.combine(k, other, own), own)
    with k.when(k.compare("eq", lane, k.number(WARP - 1, "i32"))):
        k.store(warps, warp, own)
    before = k.shuffle("up", own, 1)
    before = k.select(k.compare("eq", lane, k.number(0, "i32")), identity, before)
    k.barrier()
    total, earlier = identity, identity
    for i in range(k.block // WARP):
        earlier = k.select(k.compare("eq", warp, k.number(i, "i32")), total, earlier)
        total = scan.combine(k, total, k.load(warps, k.number(i, "i32")))
    return scan.combine(k, earlier, before), total
