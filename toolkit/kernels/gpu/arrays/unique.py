"""Unique and UniqueWithCounts: distinct numbers in the order in which they appear.

Sorted with their places, equal numbers are runs that begin with the first place each. Cumulative sums number the runs,
in the order of numbers and in that of first places. The host asks how many there are, and waits for the GPU.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toolkit.kernels.cpu.common import require_vector
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.arrays.sort_kernels import BLOCK, SortedRows, is_wide, key_and_place, record_types, sort_rows
from toolkit.kernels.gpu.arrays.where import counted
from toolkit.kernels.gpu.primitives.number_types import number_of
from toolkit.kernels.gpu.reductions.segment_kernels import last_of
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode


@functools.cache
def _heads(wide: bool, with_nan: bool) -> SimtKernel:
    """Which sorted records begin a run, in their order and in that of their places; NaN is equal to nothing.

    Scalars: how many.
    """
    k = KernelBuilder(f"run_heads{'_wide' if wide else ''}{'_nan' if with_nan else ''}", BLOCK)
    records = [k.buffer(f"record{i}", type) for i, type in enumerate(record_types(wide))]
    heads, firsts = (k.buffer(each, "i8", written=True) for each in ("heads", "firsts"))
    count, i = k.scalar("count", "i64"), k.global_thread("i64")
    bits = "i64" if wide else "i32"
    with k.when(k.compare("slt", i, count)):
        key, place = key_and_place(k, tuple(k.load(each, i) for each in records), wide)
        begins = k.variable(k.number(1, "i1"))
        with k.when(k.compare("sgt", i, k.number(0, "i64"))):
            before = k.sub(i, k.number(1, "i64"))
            other, _ = key_and_place(k, tuple(k.load(each, before) for each in records), wide)
            begins.set(k.compare("ne", key, other))
        begin = begins.get()
        if with_nan:
            begin = k.either(begin, k.compare("eq", key, k.number((1 << (63 if wide else 31)) - 1, bits)))
        k.store_bool(heads, i, begin)
        k.store_bool(firsts, k.convert(place, "i64"), begin)
    return k.finish()


@functools.cache
def _runs(wide: bool) -> SimtKernel:
    """For each run where it begins and the place of its first number. Scalars: how many."""
    k = KernelBuilder(f"runs{'_wide' if wide else ''}", BLOCK)
    records = [k.buffer(f"record{i}", type) for i, type in enumerate(record_types(wide))]
    heads, numbers = k.buffer("heads", "i8"), k.buffer("numbers", "i32")
    begins, places = (k.buffer(each, "i32", written=True) for each in ("begins", "places"))
    count, i = k.scalar("count", "i64"), k.global_thread("i64")
    with k.when(k.compare("slt", i, count)), k.when(k.load_bool(heads, i)):
        _, place = key_and_place(k, tuple(k.load(each, i) for each in records), wide)
        run = k.sub(k.load(numbers, i), k.number(1, "i32"))
        k.store(begins, run, k.convert(i, "i32"))
        k.store(places, run, place)
    return k.finish()


@functools.cache
def _assign(name: str, index: str) -> SimtKernel:
    """Results by the order of appearance. Scalars: numbers, runs."""
    number, index_number = number_of(name), number_of(index)
    wide = is_wide(number)
    k = KernelBuilder(f"unique_{name}_{index}", BLOCK)
    records = [k.buffer(f"record{i}", type) for i, type in enumerate(record_types(wide))]
    x, heads = k.buffer("x", number.memory), k.buffer("heads", "i8")
    numbers, ranks, begins, places = (k.buffer(each, "i32") for each in ("numbers", "ranks", "begins", "places"))
    y = k.buffer("y", number.memory, written=True)
    which, counts = (k.buffer(each, index_number.memory, written=True) for each in ("which", "counts"))
    count, runs = k.scalar("count", "i64"), k.scalar("runs", "i32")
    i, one = k.global_thread("i64"), k.number(1, "i32")
    with k.when(k.compare("slt", i, count)):
        _, place = key_and_place(k, tuple(k.load(each, i) for each in records), wide)
        after = k.load(numbers, i)  # of the run that comes next
        rank = k.sub(k.load(ranks, k.load(places, k.sub(after, one))), one)
        k.store(which, place, k.convert(rank, index_number.memory))
        with k.when(k.load_bool(heads, i)):
            k.store(y, rank, k.load(x, place))
            end = k.variable(k.convert(count, "i32"))
            with k.when(k.compare("slt", after, runs)):
                end.set(k.load(begins, after))
            k.store(counts, rank, k.convert(k.sub(end.get(), k.convert(i, "i32")), index_number.memory))
    return k.finish()


def _numbered(device: CudaDevice, found: SortedRows, count: int, *, with_nan: bool) -> Any:
    """Heads of runs, their numbers from 1 at each record, and at each place how many first ones there are up to it."""
    heads, firsts = (device.empty((count,), bool) for _ in range(2))
    blocks = -(-count // BLOCK)
    device.launch(_heads(found.wide, with_nan), blocks, *found.records, heads, firsts, count)
    return heads, counted(device, heads), counted(device, firsts)


@gpu_kernel("Unique", "UniqueWithCounts")
def unique(op: KernelNode) -> Compute:
    """Distinct values in order of appearance, for each element which one it is, and how many of each there are."""
    device, index_type = device_of(op.node), op.output_types[1].numpy
    with_counts = op.op == "UniqueWithCounts"

    def compute(x: GpuArray) -> list[GpuArray]:
        require_vector(x, "the input of unique")
        count, dtype = x.size, x.dtype
        if not count:
            results = [device.empty((0,), dtype), *(device.empty((0,), index_type) for _ in range(2))]
            return results if with_counts else results[:2]
        found = sort_rows(device, x, 1, count, count)
        heads, numbers, ranks = _numbered(device, found, count, with_nan=number_of(dtype).floating)
        runs = last_of(device, numbers)
        begins, places = (device.empty((runs,), np.int32) for _ in range(2))
        blocks = -(-count // BLOCK)
        device.launch(_runs(found.wide), blocks, *found.records, heads, numbers, begins, places, count)
        results = [device.empty((runs,), dtype), device.empty((count,), index_type), device.empty((runs,), index_type)]
        device.launch(_assign(dtype.name, np.dtype(index_type).name), blocks, *found.records, x, heads, numbers, ranks,
                      begins, places, *results, count, runs)  # fmt: skip
        return results if with_counts else results[:2]

    return compute


@functools.cache
def _starts(name: str) -> SimtKernel:
    """Distinct numbers of a sorted vector, and where their runs begin. Scalars: numbers, runs."""
    memory = number_of(name).memory
    k = KernelBuilder(f"run_starts_{name}", BLOCK)
    keys, numbers = k.buffer("keys", memory), k.buffer("numbers", "i32")
    used, offsets = k.buffer("used", memory, written=True), k.buffer("offsets", "i64", written=True)
    count, runs = k.scalar("count", "i64"), k.scalar("runs", "i32")
    i, none = k.global_thread("i64"), k.number(0, "i64")
    with k.when(k.compare("slt", i, count)):
        run = k.load(numbers, i)
        before = k.variable(k.number(0, "i32"))
        with k.when(k.compare("sgt", i, none)):
            before.set(k.load(numbers, k.sub(i, k.number(1, "i64"))))
        with k.when(k.compare("ne", run, before.get())):
            k.store(used, before.get(), k.load(keys, i))
            k.store(offsets, before.get(), i)
        with k.when(k.compare("eq", i, none)):
            k.store(offsets, runs, count)
    return k.finish()


@functools.cache
def _changes(name: str) -> SimtKernel:
    """Where a sorted vector changes, its first number included, as bytes. Scalars: how many."""
    k = KernelBuilder(f"changes_{name}", BLOCK)
    keys, made = k.buffer("keys", number_of(name).memory), k.buffer("made", "i8", written=True)
    count, i = k.scalar("count", "i64"), k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        changed = k.variable(k.number(1, "i1"))
        with k.when(k.compare("sgt", i, k.number(0, "i64"))):
            changed.set(k.compare("ne", k.load(keys, i), k.load(keys, k.sub(i, k.number(1, "i64")))))
        k.store_bool(made, i, changed.get())
    return k.finish()


def run_starts(device: CudaDevice, keys: GpuArray) -> tuple[GpuArray, GpuArray]:
    """Distinct numbers of a vector in order, which has some, and where their runs begin with the end of the last.

    Args:
        keys: int32 or int64.
    """
    count = keys.size
    blocks = -(-count // BLOCK)
    changes = device.empty((count,), bool)
    device.launch(_changes(keys.dtype.name), blocks, keys, changes, count)
    numbers = counted(device, changes)
    runs = last_of(device, numbers)
    used, offsets = device.empty((runs,), keys.dtype), device.empty((runs + 1,), np.int64)
    device.launch(_starts(keys.dtype.name), blocks, keys, numbers, used, offsets, count, runs)
    return used, offsets
