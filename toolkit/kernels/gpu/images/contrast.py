"""Contrast of images: every channel's distance from its mean over the image, multiplied."""

from __future__ import annotations

import functools
import math

import numpy as np

from toolkit.kernels.cpu.images.color import check_contrast
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import FLOATING, TYPES, SimtKernel
from toolkit.kernels.gpu.primitives.block_sums import sum_of_block
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode


@functools.cache
def _means(type: str, index: str, unsigned: bool) -> SimtKernel:
    """The mean of each channel of each image, a block for each; sums in double, as the CPU's."""
    k = KernelBuilder("channel_means", BLOCK)
    x, means = k.buffer("x", type), k.buffer("means", "float", written=True)
    pixels, channels = k.scalar("pixels", index), k.scalar("channels", index)
    shared = k.shared("sums", "double", BLOCK)
    block = k.convert(k.block_index, index)
    image = k.div(block, channels)
    first = k.add(k.mul(k.mul(image, pixels), channels), k.rem(block, channels))
    total = k.variable(k.number(0.0, "double"))
    with k.loop(k.convert(k.thread, index), pixels, BLOCK) as at:
        value = k.load(x, k.add(first, k.mul(at, channels)))
        wide = value if type in FLOATING - {"half", "bfloat"} else k.convert(value, "float", unsigned=unsigned)
        total.set(k.add(total.get(), k.convert(wide, "double")))
    whole = sum_of_block(k, shared, total.get())
    with k.when(k.compare("eq", k.thread, k.number(0, "i32"))):
        mean = k.div(whole, k.convert(pixels, "double"))
        k.store(means, k.block_index, k.convert(mean, "float"))
    return k.finish()


@functools.cache
def _contrast(type: str, index: str, unsigned: bool, bounded: bool) -> SimtKernel:
    """Every channel's distance from its mean, multiplied; with bounds, which are tensors too, the result is a float."""
    k = KernelBuilder("contrast", BLOCK)
    made = "float" if bounded else type
    x, y, means = k.buffer("x", type), k.buffer("y", made, written=True), k.buffer("means", "float")
    factor = k.buffer("factor", "float")
    bounds = [k.buffer(name, "float") for name in ("least", "most")] if bounded else []
    n = k.scalar("n", index)
    sizes = [Divisor.argument(k, name, index) for name in ("pixels", "channels")]
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        image, _, c = coordinates(k, i, sizes)
        mean = k.load(means, k.add(k.mul(image, sizes[1].size), c))
        apart = k.sub(k.convert(k.load(x, i), "float", unsigned=unsigned), mean)
        value = k.add(k.mul(apart, k.load(factor, k.number(0, "i32"))), mean)
        for bound, beyond in zip(bounds, ("olt", "ogt"), strict=False):
            limit = k.load(bound, k.number(0, "i32"))
            is_beyond = k.either(k.compare(beyond, value, limit), k.compare("uno", limit, limit))
            value = k.select(is_beyond, limit, value)  # NaN as a bound is the result
        k.store(y, i, k.convert(value, made))
    return k.finish()


def _adjusted(device: CudaDevice, images: GpuArray, factor: GpuArray, *bounds: GpuArray) -> GpuArray:
    """Images of more or less contrast; between bounds they are float32."""
    y = device.empty(images.shape, np.float32 if bounds else images.dtype)
    if not images.size:
        return y
    pixels, channels = math.prod(images.shape[-3:-1]), images.shape[-1]
    batch = images.size // (pixels * channels)
    means = device.empty((batch, channels), np.float32)
    type, index, unsigned = TYPES[images.dtype.name], index_type(images.size), images.dtype.kind == "u"
    device.launch(_means(type, index, unsigned), batch * channels, images, means, pixels, channels)
    kernel = _contrast(type, index, unsigned, bool(bounds))
    sizes = divisors([pixels, channels], index)
    device.launch(kernel, blocks_for(y.size), images, y, means, factor, *bounds, y.size, *sizes)
    return y


@gpu_kernel("AdjustContrastv2")
def adjust_contrast_v2(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(images: GpuArray, factor: GpuArray) -> GpuArray:
        check_contrast(images, (factor, "contrast_factor"))
        return _adjusted(device, images, factor)

    return compute


@gpu_kernel("AdjustContrast")
def adjust_contrast(op: KernelNode) -> Compute:
    """The old op: float32 out, between bounds."""
    device = device_of(op.node)

    def compute(images: GpuArray, factor: GpuArray, least: GpuArray, most: GpuArray) -> GpuArray:
        check_contrast(images, (factor, "contrast_factor"), (least, "min_value"), (most, "max_value"))
        return _adjusted(device, images, factor, least, most)

    return compute
