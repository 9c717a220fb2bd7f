"""Tile and TileGrad."""

from __future__ import annotations

from toolkit.kernels.cpu.array_pad import tile_counts
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.copying import copy_part
from toolkit.kernels.gpu.layout import ElementLayout, dense_strides
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
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
        for size, step, count in zip(x.shape, dense_strides(x.shape), counts, strict=True):
            shape += [count, size]
            strides += [0, step]
        y = device.empty([size * count for size, count in zip(x.shape, counts, strict=True)], x.dtype)
        copy_part(device, x, ElementLayout(tuple(shape), tuple(strides)), y, ElementLayout.dense(shape))
        return y

    return compute
