"""Tile and TileGrad."""

from __future__ import annotations

from toolkit.kernels.cpu.arrays.pad import tile_counts, tile_parts
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.primitives.copying import copy_part
from toolkit.kernels.gpu.primitives.layout import ElementLayout
from toolkit.kernels.gpu.primitives.number_types import real_of
from toolkit.kernels.gpu.reductions.axes import reduction_of
from toolkit.kernels.gpu.reductions.launch import collapse, reduce_array
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.tensors import row_major
from toolkit.kernels.types import Array


@gpu_kernel("Tile")
def tile(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(x: GpuArray, multiples: Array) -> GpuArray:
        counts = tile_counts(x, multiples)
        if all(count == 1 for count in counts):
            return x
        shape: list[int] = []
        strides: list[int] = []
        for size, step, count in zip(x.shape, row_major(x.shape), counts, strict=True):
            shape += [count, size]
            strides += [0, step]
        y = device.empty([size * count for size, count in zip(x.shape, counts, strict=True)], x.dtype)
        copy_part(device, x, ElementLayout(tuple(shape), tuple(strides)), y, ElementLayout.dense(shape))
        return y

    return compute


@gpu_kernel("TileGrad")
def tile_gradient(op: KernelNode) -> Compute:
    """The sum of the copies."""
    device = device_of(op.node)

    def compute(dy: GpuArray, multiples: Array) -> GpuArray:
        split = tile_parts(dy, multiples)
        axes, shape = range(0, len(split), 2), split[1::2]
        real = real_of(dy.dtype)
        pair = (2,) if dy.dtype.kind == "c" else ()
        runs = collapse((*split, *pair), axes)
        made = reduce_array(device, reduction_of("Sum", real.name), dy, runs, (*shape, *pair), real)
        return made.viewed(dy.dtype, tuple(shape)) if pair else made

    return compute
