"""Bincount, DenseBincount and HistogramFixedWidth.

Whole numbers are counted atomically, which gives the same whatever the order. Weights that are floats are added by
segments of sorted numbers, in the order in which they come. Numbers out of range are left out.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toolkit.kernels.cpu.common import require, require_scalar, shape_text
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.primitives.number_types import number_of
from toolkit.kernels.gpu.reductions.segment_kernels import SegmentForm, reduce_segments, segment_offsets, sorted_ids
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array

BLOCK = 256


@functools.cache
def _bins(name: str) -> SimtKernel:
    """The bin of each number: its row's first and itself, or -1. Scalars: numbers, numbers of a row, bins of a row."""
    number = number_of(name)
    k = KernelBuilder(f"bins_{name}", BLOCK)
    values, bins = k.buffer("values", number.memory), k.buffer("bins", "i64", written=True)
    count, columns, size = (k.scalar(each, "i64") for each in ("count", "columns", "size"))
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        value = k.convert(k.load(values, i), "i64")
        valid = k.both(k.compare("sge", value, k.number(0, "i64")), k.compare("slt", value, size))
        place = k.add(k.mul(k.div(i, columns), size), value)
        k.store(bins, i, k.select(valid, place, k.number(-1, "i64")))
    return k.finish()


@functools.cache
def _count(weighted: bool, binary: bool) -> SimtKernel:
    """Add 1, or an integer weight, in each number's bin; binary: say that there is one. Scalars: numbers."""
    k = KernelBuilder(f"count_bins{'_weighted' if weighted else ''}{'_binary' if binary else ''}", BLOCK)
    bins = k.buffer("bins", "i64")
    weights = k.buffer("weights", "i32") if weighted else None
    counts, count = k.buffer("counts", "i32", written=True), k.scalar("count", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        place = k.load(bins, i)
        with k.when(k.compare("sge", place, k.number(0, "i64"))):
            value = k.number(1, "i32") if weights is None else k.load(weights, i)
            k.atomic("or" if binary else "add", counts, place, value)
    return k.finish()


#: bins that fit into the shared memory of a block beside others' on every GPU: 16 KiB
_FEW = 4096
#: numbers that a thread counts at least, so that it pays to add up a block's bins at the end
_EACH = 32


@functools.cache
def _count_few() -> SimtKernel:
    """As `_count`, of few bins: each block counts in its own memory first. Scalars: numbers, bins."""
    k = KernelBuilder("count_few_bins", BLOCK)
    bins, counts = k.buffer("bins", "i64"), k.buffer("counts", "i32", written=True)
    count, size = k.scalar("count", "i64"), k.scalar("size", "i32")
    own = k.shared("own", "i32", _FEW)
    step = k.number(BLOCK, "i32")
    with k.loop(k.thread, size, step) as i:
        k.store(own, i, k.number(0, "i32"))
    k.barrier()
    with k.loop(k.global_thread("i64"), count, k.grid_threads("i64")) as i:
        place = k.load(bins, i)
        with k.when(k.compare("sge", place, k.number(0, "i64"))):
            k.atomic("add", own, place, k.number(1, "i32"))
    k.barrier()
    with k.loop(k.thread, size, step) as i:
        found = k.load(own, i)
        with k.when(k.compare("ne", found, k.number(0, "i32"))):
            k.atomic("add", counts, i, found)
    return k.finish()


def _add_ones(device: CudaDevice, bins: GpuArray, counts: GpuArray) -> None:
    """Count the numbers of each bin."""
    size = bins.size
    if counts.size <= _FEW and size >= BLOCK * _EACH:
        device.launch(_count_few(), -(-size // (BLOCK * _EACH)), bins, counts, size, counts.size)
    else:
        device.launch(_count(False, False), -(-size // BLOCK), bins, counts, size)


@functools.cache
def _as_float() -> SimtKernel:
    """Counts as floats. Scalars: how many."""
    k = KernelBuilder("counts_as_float", BLOCK)
    x, y, count = k.buffer("x", "i32"), k.buffer("y", "float", written=True), k.scalar("count", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        k.store(y, i, k.convert(k.load(x, i), "float"))
    return k.finish()


def _counted(
    device: CudaDevice, values: GpuArray, weights: GpuArray, shape: tuple[int, ...], dtype: Any, columns: int,
    *, binary: bool,
) -> GpuArray:  # fmt: skip
    """Counts by bins, [rows, bins] or [bins]."""
    made = device.zeros(shape, dtype)
    if not made.nbytes or not values.nbytes:
        return made
    size, count = values.size, made.size
    bins = device.empty((size,), np.int64)
    blocks = -(-size // BLOCK)
    device.launch(_bins(values.dtype.name), blocks, values, bins, size, columns, shape[-1])
    is_float = made.dtype.kind == "f"
    if weights.nbytes and is_float and not binary:
        keys, places = sorted_ids(device, bins)
        form = SegmentForm("sum", made.dtype.name, 0, 0, rows="i32")
        reduce_segments(device, form, weights, segment_offsets(device, keys, count), made, 1, places)
        return made
    counts = device.zeros(shape, np.int32) if is_float else made
    given = (weights,) if weights.nbytes and not binary else ()
    if given or binary:
        device.launch(_count(bool(given), binary), blocks, bins, *given, counts, size)
    else:
        _add_ones(device, bins, counts)
    if is_float:
        device.launch(_as_float(), -(-count // BLOCK), counts, made, count)
    return made


@gpu_kernel("Bincount")
def bincount(op: KernelNode) -> Compute:
    """How often each value below `size` occurs, or the sum of its weights."""
    device, dtype = device_of(op.node), op.output_types[0].numpy

    def compute(values: GpuArray, size_input: Array, weights: GpuArray) -> GpuArray:
        require_scalar(size_input, "size")
        size = int(size_input)
        require(size >= 0, f"size ({size}) must be non-negative")
        require(
            not weights.size or weights.size == values.size,
            f"weights has shape {shape_text(weights)}, arr {shape_text(values)}",
        )
        return _counted(device, values, weights, (size,), dtype, max(1, values.size), binary=False)

    return compute


@gpu_kernel("DenseBincount")
def dense_bincount(op: KernelNode) -> Compute:
    """Counts of a vector, or of each row of a matrix; binary_output says only whether a value occurs."""
    device, binary, dtype = device_of(op.node), bool(op.attr("binary_output")), op.output_types[0].numpy

    def compute(values: GpuArray, size_input: Array, weights: GpuArray) -> GpuArray:
        require(1 <= values.ndim <= 2, f"Shape must be rank 1 or 2 but is rank {values.ndim}")
        require(size_input.size == 1, f"Shape must be rank 0 but is rank {size_input.ndim}")
        size = int(size_input.reshape(()))
        require(size >= 0, f"size ({size}) must be non-negative")
        require(
            not weights.size or weights.shape == values.shape,
            f"`weights` must be the same shape as `arr` or a length-0 `Tensor`, got {shape_text(weights)}",
        )
        shape = (*values.shape[:-1], size)
        return _counted(device, values, weights, shape, dtype, max(1, values.shape[-1]), binary=binary)

    return compute


@functools.cache
def _histogram_bins(name: str) -> SimtKernel:
    """Scalars: numbers, the lowest value, the width of a bin, bins less one. NaN is in none."""
    number = number_of(name)
    k = KernelBuilder(f"histogram_bins_{name}", BLOCK)
    values, bins = k.buffer("values", number.memory), k.buffer("bins", "i64", written=True)
    count = k.scalar("count", "i64")
    low, step, last = (k.scalar(each, "double") for each in ("low", "step", "last"))
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        value = k.convert(number.load(k, values, i), "double")
        place = k.intrinsic("floor", k.div(k.sub(value, low), step))
        none = k.number(0.0, "double")
        place = k.select(k.compare("olt", place, none), none, place)
        place = k.select(k.compare("ogt", place, last), last, place)
        found = k.convert(place, "i64")
        k.store(bins, i, k.select(k.compare("uno", value, value), k.number(-1, "i64"), found))
    return k.finish()


@gpu_kernel("HistogramFixedWidth")
def histogram_fixed_width(op: KernelNode) -> Compute:
    """Counts in equal bins; what lies outside counts in the first or the last."""
    device = device_of(op.node)

    def compute(values: GpuArray, value_range: Array, nbins: Array) -> GpuArray:
        require(
            value_range.shape == (2,), f"value_range should be a vector of 2 elements, got {shape_text(value_range)}"
        )
        require_scalar(nbins, "nbins")
        count = int(nbins)
        low, high = float(value_range[0]), float(value_range[1])
        require(low < high, f"value_range should satisfy value_range[0] < value_range[1], but got [{low}, {high}]")
        require(count > 0, f"nbins should be a positive number, but got '{count}'")
        made = device.zeros((count,), np.int32)
        if values.nbytes:
            bins = device.empty((values.size,), np.int64)
            blocks = -(-values.size // BLOCK)
            step = (high - low) / count
            kernel = _histogram_bins(values.dtype.name)
            device.launch(kernel, blocks, values, bins, values.size, low, step, float(count - 1))
            _add_ones(device, bins, made)
        return made

    return compute
