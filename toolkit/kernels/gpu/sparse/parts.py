"""Parts of sparse tensors: SparseSlice, SparseSliceGrad, SparseSplit.

How many numbers a part has, the host has to see: it waits for the GPU.
"""

from __future__ import annotations

import functools

import numpy as np

from toolkit.kernels.cpu.sparse.forms import check_slice_grad, slice_lengths, split_starts
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel, Value
from toolkit.kernels.gpu.arrays.gather import gather_rows
from toolkit.kernels.gpu.arrays.where import counted
from toolkit.kernels.gpu.primitives.copying import WORDS, part
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for
from toolkit.kernels.gpu.primitives.layout import ElementLayout
from toolkit.kernels.gpu.primitives.number_types import number_of
from toolkit.kernels.gpu.reductions.segment_kernels import last_of, segment_offsets, sorted_ids
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.gpu.sparse.order import shifted
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.tensors import row_major
from toolkit.kernels.types import Array


@functools.cache
def inside_kernel(rank: int) -> SimtKernel:
    """Which rows of indices are within a box, as bytes: count, then each axis's first place and length."""
    k = KernelBuilder(f"inside_box_{rank}", BLOCK)
    indices, y = k.buffer("indices", "i64"), k.buffer("y", "i8", written=True)
    count = k.scalar("count", "i64")
    box = [(k.scalar(f"start{d}", "i64"), k.scalar(f"length{d}", "i64")) for d in range(rank)]
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        inside: Value = k.number(1, "i1")
        for d, (start, length) in enumerate(box):
            index = k.load(indices, k.add(k.mul(i, k.number(rank, "i64")), k.number(d, "i64")))
            inside = k.both(inside, k.compare("ult", k.sub(index, start), length))
        k.store_bool(y, i, inside)
    return k.finish()


@functools.cache
def chosen_kernel(counts: str) -> SimtKernel:
    """The places of bytes that are not 0, given how many there are up to each: count."""
    k = KernelBuilder(f"chosen_places_{counts}", BLOCK)
    flags, numbers = k.buffer("flags", "i8"), k.buffer("numbers", number_of(counts).memory)
    y, count = k.buffer("y", "i64", written=True), k.scalar("count", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)), k.when(k.load_bool(flags, i)):
        k.store(y, k.sub(k.convert(k.load(numbers, i), "i64"), k.number(1, "i64")), i)
    return k.finish()


def chosen(device: CudaDevice, flags: GpuArray) -> GpuArray:
    """The places of a vector of bool, of one or more, that are true, int64. Waits for the GPU."""
    numbers = counted(device, flags)
    made = device.empty((last_of(device, numbers),), np.int64)
    if made.nbytes:
        count = flags.size
        device.launch(chosen_kernel(numbers.dtype.name), blocks_for(count), flags, numbers, made, count)
    return made


@functools.cache
def moved_kernel(rank: int) -> SimtKernel:
    """Rows of indices less the start of a box: count of rows, then the box's first places."""
    k = KernelBuilder(f"moved_indices_{rank}", BLOCK)
    x, y, count = k.buffer("x", "i64"), k.buffer("y", "i64", written=True), k.scalar("count", "i64")
    starts = [k.scalar(f"start{d}", "i64") for d in range(rank)]
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        for d, start in enumerate(starts):
            at = k.add(k.mul(i, k.number(rank, "i64")), k.number(d, "i64"))
            k.store(y, at, k.sub(k.load(x, at), start))
    return k.finish()


@gpu_kernel("SparseSlice")
def sparse_slice(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(
        indices: GpuArray, values: GpuArray, shape: Array, start: Array, size: Array
    ) -> tuple[GpuArray, GpuArray, Array]:
        lengths = slice_lengths(indices, values, shape, start, size)
        count, rank = indices.shape
        if not indices.nbytes:
            return indices, values, lengths
        flags = device.empty((count,), bool)
        box = [number for pair in zip(start.tolist(), lengths.tolist(), strict=True) for number in pair]
        device.launch(inside_kernel(rank), blocks_for(count), indices, flags, count, *box)
        places = chosen(device, flags)
        found = gather_rows(device, indices, places)
        made = device.empty(found.shape, found.dtype)
        device.launch(moved_kernel(rank), blocks_for(places.size), found, made, places.size, *start.tolist())
        return made, gather_rows(device, values, places), lengths

    return compute


@functools.cache
def part_numbers_kernel(rank: int) -> SimtKernel:
    """Which part of an axis rows of indices belong to; what is beyond the last is in the part behind it.

    Scalars: count of rows, axis, the axis's size, parts, their length, how many are one longer.
    """
    k = KernelBuilder(f"part_numbers_{rank}", BLOCK)
    indices, y = k.buffer("indices", "i64"), k.buffer("y", "i64", written=True)
    count, axis, size, parts, length, longer = (
        k.scalar(name, "i64") for name in ("count", "axis", "size", "parts", "length", "longer")
    )
    i, one = k.global_thread("i64"), k.number(1, "i64")
    with k.when(k.compare("slt", i, count)):
        at = k.load(indices, k.add(k.mul(i, k.number(rank, "i64")), axis))
        long = k.add(length, one)
        border = k.mul(longer, long)
        later = k.add(longer, k.div(k.sub(at, border), length))
        number = k.select(k.compare("slt", at, border), k.div(at, long), later)
        k.store(y, i, k.select(k.compare("ult", at, size), number, parts))
    return k.finish()


@gpu_kernel("SparseSplit")
def sparse_split(op: KernelNode) -> Compute:
    """All rows are put in order of their parts at once; what is returned are parts of that."""
    device, parts = device_of(op.node), op.attr("num_split")

    def compute(axis_input: Array, indices: GpuArray, values: GpuArray, shape: Array) -> list[GpuArray | Array]:
        axis, starts = split_starts(axis_input, indices, values, shape, parts)
        count, rank = indices.shape
        ends = [0] * (parts + 1)
        if count:
            size = int(shape[axis])
            numbers = device.empty((count,), np.int64)
            device.launch(part_numbers_kernel(rank), blocks_for(count), indices, numbers, count, axis, size, parts,
                          size // parts, size % parts)  # fmt: skip
            keys, order = sorted_ids(device, numbers)
            indices, values = gather_rows(device, indices, order), gather_rows(device, values, order)
            ends = device.to_host(segment_offsets(device, keys, parts)).tolist()
        all_indices: list[GpuArray | Array] = []
        all_values: list[GpuArray | Array] = []
        shapes: list[GpuArray | Array] = []
        for i in range(parts):
            length = ends[i + 1] - ends[i]
            rows = part(device, indices, ElementLayout((length, rank), row_major((length, rank)), ends[i] * rank))
            all_indices.append(shifted(device, rows, axis, -int(starts[i])))
            all_values.append(part(device, values, ElementLayout((length,), (1,), ends[i])))
            own = shape.copy()
            own[axis] = starts[i + 1] - starts[i]
            shapes.append(own)
        return [*all_indices, *all_values, *shapes]

    return compute


@functools.cache
def slice_grad_kernel(rank: int, word: str, words: int) -> SimtKernel:
    """Each number at the row of the input that its row of the output was; both are in row-major order.

    Scalars: rows of the input, rows of the output.
    """
    k = KernelBuilder(f"sparse_slice_grad_{rank}_{word}", BLOCK)
    grad, rows, start = k.buffer("grad", word), k.buffer("rows", "i64"), k.buffer("start", "i64")
    wanted, y = k.buffer("wanted", "i64"), k.buffer("y", word, written=True)
    inputs, outputs = k.scalar("inputs", "i64"), k.scalar("outputs", "i64")
    i, zero, one = k.global_thread("i64"), k.number(0, "i64"), k.number(1, "i64")
    width = k.number(rank, "i64")

    def precedes(a: list[Value], b: list[Value]) -> Value:
        less, same = k.number(0, "i1"), k.number(1, "i1")
        for first, second in zip(a, b, strict=True):
            less = k.either(less, k.both(same, k.compare("slt", first, second)))
            same = k.both(same, k.compare("eq", first, second))
        return less

    def row(at: Value) -> list[Value]:
        return [k.load(rows, k.add(k.mul(at, width), k.number(d, "i64"))) for d in range(rank)]

    with k.when(k.compare("slt", i, outputs)):
        axes = [k.number(d, "i64") for d in range(rank)]
        own = [k.add(k.load(wanted, k.add(k.mul(i, width), axis)), k.load(start, axis)) for axis in axes]
        low, high = k.variable(zero), k.variable(inputs)
        with k.while_(lambda: k.compare("slt", low.get(), high.get())):
            middle = k.binary("lshr", k.add(low.get(), high.get()), one)
            before = precedes(row(middle), own)
            low.set(k.select(before, k.add(middle, one), low.get()))
            high.set(k.select(before, high.get(), middle))
        place = low.get()
        with k.when(k.compare("slt", place, inputs)), k.when(k.inverse(precedes(own, row(place)))):
            for each in range(words):
                number, by = k.number(each, "i64"), k.number(words, "i64")
                k.store(y, k.add(k.mul(place, by), number), k.load(grad, k.add(k.mul(i, by), number)))
    return k.finish()


@gpu_kernel("SparseSliceGrad")
def sparse_slice_grad(op: KernelNode) -> Compute:
    """The gradient of each value of the slice at its place in the input, 0 at the others."""
    device = device_of(op.node)

    def compute(grad: GpuArray, input_indices: GpuArray, start: GpuArray, output_indices: GpuArray) -> GpuArray:
        check_slice_grad(grad, input_indices, start, output_indices)
        made = device.zeros((input_indices.shape[0],), grad.dtype)
        if grad.nbytes:
            width = min(grad.dtype.itemsize, 8)
            words = grad.dtype.itemsize // width
            kernel = slice_grad_kernel(input_indices.shape[1], WORDS[width], words)
            device.launch(kernel, blocks_for(grad.size), grad, input_indices, start, output_indices, made,
                          input_indices.shape[0], grad.size)  # fmt: skip
        return made

    return compute
