"""Sparse tensors in order and in other shapes: SparseReorder, SparseReshape, SparseConcat.

Rows of indices become positions of 64 bits in the dense tensor, which are sorted. Indices are in the memory of the GPU,
and whether they are within the shape is not looked at.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from toolkit.kernels.cpu.sparse.forms import check_sparse, concatenated, reshaped_sizes
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel, Value
from toolkit.kernels.gpu.arrays.gather import gather_rows
from toolkit.kernels.gpu.arrays.join import joined
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for
from toolkit.kernels.gpu.reductions.segment_kernels import sorted_ids
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.tensors import row_major
from toolkit.kernels.types import Array


@functools.cache
def positions_kernel(rank: int, made: int, *, is_tensor: bool) -> SimtKernel:
    """Row-major positions of rows of indices; or the indices of these positions in another shape.

    Args:
        rank: numbers of a row.
        made: of a row of the other shape; 0: positions are wanted.
        is_tensor: sizes are in a buffer, else among the numbers.
    """
    k = KernelBuilder(f"positions_{rank}_{made}", BLOCK)
    indices = k.buffer("indices", "i64")
    sizes = k.buffer("sizes", "i64") if is_tensor else None
    y, count = k.buffer("y", "i64", written=True), k.scalar("count", "i64")
    numbers = [] if sizes is not None else [k.scalar(f"size{d}", "i64") for d in range(rank)]
    steps = [k.scalar(f"step{d}", "i64") for d in range(made)]
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        first = k.mul(i, k.number(rank, "i64"))
        position: Value = k.number(0, "i64")
        for d in range(rank):
            size = numbers[d] if sizes is None else k.load(sizes, k.number(d, "i64"))
            index = k.load(indices, k.add(first, k.number(d, "i64")))
            position = k.add(k.mul(position, size), index)
        if not made:
            k.store(y, i, position)
        for d, step in enumerate(steps):
            k.store(y, k.add(k.mul(i, k.number(made, "i64")), k.number(d, "i64")), k.div(position, step))
            position = k.rem(position, step)
    return k.finish()


def positions(device: CudaDevice, indices: GpuArray, shape: GpuArray | Array) -> GpuArray:
    """Row-major positions in a shape, int64."""
    count, rank = indices.shape
    made = device.empty((count,), np.int64)
    is_tensor = isinstance(shape, GpuArray)
    sizes: Sequence[int] = [] if isinstance(shape, GpuArray) else shape.tolist()
    given = [shape] if is_tensor else []
    kernel = positions_kernel(rank, 0, is_tensor=is_tensor)
    device.launch(kernel, blocks_for(count), indices, *given, made, count, *sizes)
    return made


def _sorted(
    device: CudaDevice, indices: GpuArray, values: GpuArray, shape: GpuArray | Array
) -> tuple[GpuArray, GpuArray]:
    """Indices and values in row-major order; equal ones as they came."""
    if not indices.nbytes:
        return indices, values
    _, order = sorted_ids(device, positions(device, indices, shape))
    return gather_rows(device, indices, order), gather_rows(device, values, order)


@gpu_kernel("SparseReorder")
def sparse_reorder(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(indices: GpuArray, values: GpuArray, shape: GpuArray) -> tuple[GpuArray, GpuArray]:
        check_sparse(indices, values, shape)
        return _sorted(device, indices, values, shape)

    return compute


@gpu_kernel("SparseReshape")
def sparse_reshape(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(indices: GpuArray, shape: Array, wanted: Array) -> tuple[GpuArray, Array]:
        sizes = reshaped_sizes(indices, shape, wanted)
        count, rank = indices.shape
        made = device.empty((count, len(sizes)), np.int64)
        if made.nbytes:
            steps = row_major([max(size, 1) for size in sizes])
            kernel = positions_kernel(rank, len(sizes), is_tensor=False)
            device.launch(kernel, blocks_for(count), indices, made, count, *shape.tolist(), *steps)
        return made, np.array(sizes, np.int64)

    return compute


@functools.cache
def shifted_kernel(rank: int) -> SimtKernel:
    """Indices with a number added along one axis: count of numbers, axis, distance."""
    k = KernelBuilder(f"shifted_indices_{rank}", BLOCK)
    x, y = k.buffer("x", "i64"), k.buffer("y", "i64", written=True)
    count, axis, distance = (k.scalar(name, "i64") for name in ("count", "axis", "distance"))
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        is_axis = k.compare("eq", k.rem(i, k.number(rank, "i64")), axis)
        k.store(y, i, k.add(k.load(x, i), k.select(is_axis, distance, k.number(0, "i64"))))
    return k.finish()


def shifted(device: CudaDevice, indices: GpuArray, axis: int, distance: int) -> GpuArray:
    """Indices with a number added along an axis."""
    if not distance or not indices.nbytes:
        return indices
    made = device.empty(indices.shape, indices.dtype)
    kernel = shifted_kernel(indices.shape[1])
    device.launch(kernel, blocks_for(indices.size), indices, made, indices.size, axis, distance)
    return made


@gpu_kernel("SparseConcat")
def sparse_concat(op: KernelNode) -> Compute:
    device, count, dim = device_of(op.node), op.attr("N"), op.attr("concat_dim")

    def compute(*arguments: GpuArray) -> tuple[GpuArray, GpuArray, Array]:
        indices, values = arguments[:count], arguments[count : 2 * count]
        shapes: Sequence[Array] = arguments[2 * count :]  # in host memory
        axis, offsets, shape = concatenated(indices, values, shapes, dim)
        moved = [shifted(device, part, axis, offset) for part, offset in zip(indices, offsets, strict=True)]
        return *_sorted(device, joined(device, moved, 0), joined(device, values, 0), shape), shape

    return compute
