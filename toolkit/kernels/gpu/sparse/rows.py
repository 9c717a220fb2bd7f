"""Empty rows of sparse and ragged tensors get a number: SparseFillEmptyRows, RaggedFillEmptyRows, their gradients.

Numbers are sorted by their rows. Where each goes is its place in that order and how many empty rows there are before
its own. How many that are, and whether all rows are in range, the host has to see: it waits for the GPU.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import integer, require, require_vector
from toolkit.kernels.cpu.sparse.forms import check_filled, check_filled_ragged
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.arrays.gather import gather_rows
from toolkit.kernels.gpu.arrays.where import counted
from toolkit.kernels.gpu.primitives.copying import WORDS, part
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for
from toolkit.kernels.gpu.primitives.layout import ElementLayout
from toolkit.kernels.gpu.primitives.number_types import number_of
from toolkit.kernels.gpu.reductions.axes import reduced
from toolkit.kernels.gpu.reductions.segment_kernels import last_of, segment_offsets, sorted_ids
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


@functools.cache
def empty_kernel() -> SimtKernel:
    """Which rows begin where the next one does, as bytes: rows."""
    k = KernelBuilder("empty_rows", BLOCK)
    offsets, y, count = k.buffer("offsets", "i64"), k.buffer("y", "i8", written=True), k.scalar("count", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        next_one = k.load(offsets, k.add(i, k.number(1, "i64")))
        k.store_bool(y, i, k.compare("eq", k.load(offsets, i), next_one))
    return k.finish()


@functools.cache
def kept_kernel(rank: int, word: str, words: int, counts: str) -> SimtKernel:
    """The numbers that there are, at their new places: how many."""
    k = KernelBuilder(f"kept_rows_{rank}_{word}", BLOCK)
    keys, order = k.buffer("keys", "i64"), k.buffer("order", "i32")
    numbers = k.buffer("numbers", number_of(counts).memory)
    indices, values = k.buffer("indices", "i64"), k.buffer("values", word)
    out, out_values = k.buffer("out", "i64", written=True), k.buffer("out_values", word, written=True)
    reverse, count = k.buffer("reverse", "i64", written=True), k.scalar("count", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        empty_before = k.convert(k.load(numbers, k.load(keys, i)), "i64")
        place, source = k.add(i, empty_before), k.convert(k.load(order, i), "i64")
        k.store(reverse, source, place)
        for width, given, made in ((rank, indices, out), (words, values, out_values)):
            for each in range(width):
                number, by = k.number(each, "i64"), k.number(width, "i64")
                k.store(made, k.add(k.mul(place, by), number), k.load(given, k.add(k.mul(source, by), number)))
    return k.finish()


@functools.cache
def filled_kernel(rank: int, word: str, words: int, counts: str) -> SimtKernel:
    """A number for each empty row: rows."""
    k = KernelBuilder(f"filled_rows_{rank}_{word}", BLOCK)
    flags, offsets = k.buffer("flags", "i8"), k.buffer("offsets", "i64")
    numbers, default = k.buffer("numbers", number_of(counts).memory), k.buffer("default", word)
    out, out_values = k.buffer("out", "i64", written=True), k.buffer("out_values", word, written=True)
    count, i = k.scalar("count", "i64"), k.global_thread("i64")
    with k.when(k.compare("slt", i, count)), k.when(k.load_bool(flags, i)):
        before = k.sub(k.convert(k.load(numbers, i), "i64"), k.number(1, "i64"))
        place = k.add(k.load(offsets, i), before)
        for axis in range(rank):
            at = k.add(k.mul(place, k.number(rank, "i64")), k.number(axis, "i64"))
            k.store(out, at, k.number(0, "i64") if axis else i)
        for each in range(words):
            at = k.add(k.mul(place, k.number(words, "i64")), k.number(each, "i64"))
            k.store(out_values, at, k.load(default, k.number(each, "i64")))
    return k.finish()


def _filled(
    device: CudaDevice, indices: GpuArray, values: GpuArray, rows: int, default: GpuArray
) -> tuple[GpuArray, GpuArray, GpuArray, GpuArray]:
    """Indices, numbers, which rows were empty, and where each number went.

    Raises:
        InvalidArgumentError: a row lies outside of their count.
    """
    count, rank = indices.shape
    require(rows > 0 or not count, "Received SparseTensor with dense_shape[0] = 0 but indices that are not empty")
    if not rows:
        return indices, values, device.empty((0,), bool), device.empty((0,), np.int64)
    keys, order = sorted_ids(device, part(device, indices, ElementLayout((count,), (rank,))))
    if count:
        first, last = int(device.to_host(keys.viewed(np.int64, (1,)))[0]), last_of(device, keys)
        if first < 0 or last >= rows:
            raise InvalidArgumentError(f"row {first if first < 0 else last} is invalid: there are {rows}")
    offsets, empty = segment_offsets(device, keys, rows), device.empty((rows,), bool)
    device.launch(empty_kernel(), blocks_for(rows), offsets, empty, rows)
    numbers = counted(device, empty)
    total = count + last_of(device, numbers)
    out, out_values = device.empty((total, rank), np.int64), device.empty((total,), values.dtype)
    reverse = device.empty((count,), np.int64)
    width = min(values.dtype.itemsize, 8)
    form = (rank, WORDS[width], values.dtype.itemsize // width, numbers.dtype.name)
    device.launch(kept_kernel(*form), blocks_for(count), keys, order, numbers, indices, values, out, out_values,
                  reverse, count)  # fmt: skip
    device.launch(filled_kernel(*form), blocks_for(rows), empty, offsets, numbers, default, out, out_values, rows)
    return out, out_values, empty, reverse


@gpu_kernel("SparseFillEmptyRows")
def sparse_fill_empty_rows(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(indices: GpuArray, values: GpuArray, shape: Array, default: GpuArray) -> tuple[GpuArray, ...]:
        check_filled(indices, values, shape, default)
        return _filled(device, indices, values, int(shape[0]), default)

    return compute


@gpu_kernel("RaggedFillEmptyRows")
def ragged_fill_empty_rows(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(rows: GpuArray, values: GpuArray, count: Array, default: GpuArray) -> tuple[GpuArray, ...]:
        check_filled_ragged(rows, values, default)
        filled = _filled(device, rows.reshaped((rows.size, 1)), values, integer(count, "nrows"), default)
        return filled[0].reshaped((filled[0].size,)), *filled[1:]

    return compute


@functools.cache
def mark_kernel() -> SimtKernel:
    """Which places are named, as 32 bits, and in the last one whether any is out of range: names, places."""
    k = KernelBuilder("named_places", BLOCK)
    names, y = k.buffer("names", "i64"), k.buffer("y", "i32", written=True)
    count, places = k.scalar("count", "i64"), k.scalar("places", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        name = k.load(names, i)
        at = k.select(k.compare("ult", name, places), name, places)
        k.atomic("exchange", y, at, k.number(1, "i32"))
    return k.finish()


@functools.cache
def unnamed_kernel(name: str) -> SimtKernel:
    """The numbers of places that are not named, 0 at the others: places."""
    number = number_of(name)
    k = KernelBuilder(f"unnamed_{name}", BLOCK)
    x, named = k.buffer("x", number.memory), k.buffer("named", "i32")
    y, count = k.buffer("y", number.memory, written=True), k.scalar("count", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        is_named = k.convert(k.load(named, i), "i1")
        k.store(y, i, k.select(is_named, k.number(0, number.memory), k.load(x, i)))
    return k.finish()


@gpu_kernel("SparseFillEmptyRowsGrad", "RaggedFillEmptyRowsGrad")
def fill_empty_rows_grad(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(reverse: GpuArray, grad: GpuArray) -> tuple[GpuArray, GpuArray]:
        require_vector(reverse, "reverse_index_map")
        require_vector(grad, "grad_values")
        places = grad.size
        named = device.zeros((places + 1,), np.int32)
        device.launch(mark_kernel(), blocks_for(reverse.size), reverse, named, reverse.size, places)
        require(not last_of(device, named), f"Elements in reverse index must be in [0, {places})")
        rest = device.empty((places,), grad.dtype)
        device.launch(unnamed_kernel(grad.dtype.name), blocks_for(places), grad, named, rest, places)
        axes: Any = np.zeros(1, np.int32)
        return gather_rows(device, grad, reverse), reduced(device, "Sum", rest, axes, keep=False)

    return compute
