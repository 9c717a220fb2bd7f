"""BatchNormWithGlobalNormalization and its gradient, the batch normalization of the first TensorFlow releases.

Computed in float. Channels are last; sums over all others are those of `reduction`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.kernels.cpu.nn.norm import check_global, check_global_grad
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for
from toolkit.kernels.gpu.reductions.axes import reduced
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode


def _load(k: KernelBuilder, buffer: KernelBuffer, at: Value) -> Value:
    return k.convert(k.load(buffer, at), "float")


def _inverse(k: KernelBuilder, variance: KernelBuffer, channel: Value, epsilon: Value) -> Value:
    """1 / sqrt(variance + epsilon)."""
    return k.div(k.number(1.0, "float"), k.intrinsic("sqrt", k.add(_load(k, variance, channel), epsilon)))


def _vectors(k: KernelBuilder, type: str, names: Sequence[str], *, written: bool = False) -> list[KernelBuffer]:
    return [k.buffer(name, type, written=written) for name in names]


@functools.cache
def forward_kernel(type: str, scaled: bool) -> SimtKernel:
    """A number a thread; scalars: numbers, channels, epsilon."""
    k = KernelBuilder(f"batch_norm_global_{type}", BLOCK)
    x, mean, variance, beta, gamma = _vectors(k, type, ("x", "mean", "variance", "beta", "gamma"))
    y, n, depth = k.buffer("y", type, written=True), k.scalar("n", "i64"), k.scalar("depth", "i64")
    epsilon, i = k.scalar("epsilon", "float"), k.global_thread("i64")
    with k.when(k.compare("slt", i, n)):
        channel = k.rem(i, depth)
        factor = _inverse(k, variance, channel, epsilon)
        factor = k.mul(factor, _load(k, gamma, channel)) if scaled else factor
        apart = k.sub(_load(k, x, i), _load(k, mean, channel))
        k.store(y, i, k.convert(k.add(k.mul(apart, factor), _load(k, beta, channel)), type))
    return k.finish()


@functools.cache
def numbers_kernel(type: str, scaled: bool) -> SimtKernel:
    """dx, and what is added up for channels: dy and dy (x - mean). Scalars: numbers, channels, epsilon."""
    k = KernelBuilder(f"batch_norm_global_grad_{type}", BLOCK)
    x, mean, variance, gamma, dy = _vectors(k, type, ("x", "mean", "variance", "gamma", "dy"))
    dx, sums = k.buffer("dx", type, written=True), k.buffer("sums", "float", written=True)
    n, depth, epsilon = k.scalar("n", "i64"), k.scalar("depth", "i64"), k.scalar("epsilon", "float")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, n)):
        channel, grad = k.rem(i, depth), _load(k, dy, i)
        factor = _inverse(k, variance, channel, epsilon)
        factor = k.mul(factor, _load(k, gamma, channel)) if scaled else factor
        k.store(dx, i, k.convert(k.mul(grad, factor), type))
        place = k.add(i, k.mul(k.div(i, depth), depth))  # [rows, 2, channels]
        k.store(sums, place, grad)
        k.store(sums, k.add(place, depth), k.mul(grad, k.sub(_load(k, x, i), _load(k, mean, channel))))
    return k.finish()


@functools.cache
def channels_kernel(type: str, scaled: bool) -> SimtKernel:
    """Gradients of mean, variance, beta and gamma of the two sums of each channel. Scalars: channels, epsilon."""
    k = KernelBuilder(f"batch_norm_global_channels_{type}", BLOCK)
    sums, (variance, gamma) = k.buffer("sums", "float"), _vectors(k, type, ("variance", "gamma"))
    made = _vectors(k, type, ("d_mean", "d_variance", "d_beta", "d_gamma"), written=True)
    depth, epsilon, i = k.scalar("depth", "i64"), k.scalar("epsilon", "float"), k.global_thread("i64")
    with k.when(k.compare("slt", i, depth)):
        total, by_centered = k.load(sums, i), k.load(sums, k.add(i, depth))
        inverse, weight = _inverse(k, variance, i, epsilon), _load(k, gamma, i)
        factor = k.mul(inverse, weight) if scaled else inverse
        cube = k.mul(k.mul(inverse, inverse), inverse)
        weighted = k.mul(by_centered, weight) if scaled else by_centered
        results = (
            k.neg(k.mul(total, factor)),
            k.mul(k.mul(weighted, k.number(-0.5, "float")), cube),
            total,
            k.mul(by_centered, inverse) if scaled else k.number(0.0, "float"),
        )
        for buffer, value in zip(made, results, strict=True):
            k.store(buffer, i, k.convert(value, type))
    return k.finish()


@gpu_kernel("BatchNormWithGlobalNormalization")
def batch_norm_global(op: KernelNode) -> Compute:
    device, epsilon = device_of(op.node), float(np.float32(op.attr("variance_epsilon")))
    scaled = bool(op.attr("scale_after_normalization"))

    def compute(x: GpuArray, mean: GpuArray, variance: GpuArray, beta: GpuArray, gamma: GpuArray) -> GpuArray:
        check_global(op, x, mean, variance, beta, gamma)
        made = device.empty(x.shape, x.dtype)
        kernel = forward_kernel(TYPES[x.dtype.name], scaled)
        device.launch(kernel, blocks_for(x.size), x, mean, variance, beta, gamma, made, x.size, x.shape[-1], epsilon)
        return made

    return compute


@gpu_kernel("BatchNormWithGlobalNormalizationGrad")
def batch_norm_global_grad(op: KernelNode) -> Compute:
    device, epsilon = device_of(op.node), float(np.float32(op.attr("variance_epsilon")))
    scaled = bool(op.attr("scale_after_normalization"))

    def compute(x: GpuArray, mean: GpuArray, variance: GpuArray, gamma: GpuArray, dy: GpuArray) -> tuple[GpuArray, ...]:
        check_global_grad(op, x, dy, mean, variance, gamma)
        type, depth = TYPES[x.dtype.name], x.shape[-1]
        dx, rows = device.empty(x.shape, x.dtype), x.size // max(depth, 1)
        sums = device.empty((rows, 2, depth), np.float32)
        device.launch(numbers_kernel(type, scaled), blocks_for(x.size), x, mean, variance, gamma, dy, dx, sums, x.size,
                      depth, epsilon)  # fmt: skip
        axes: Any = np.zeros(1, np.int32)
        totals = reduced(device, "Sum", sums, axes, keep=False)
        made = [device.empty((depth,), x.dtype) for _ in range(4)]
        kernel = channels_kernel(type, scaled)
        device.launch(kernel, blocks_for(depth), totals, variance, gamma, *made, depth, epsilon)
        return (dx, *made)

    return compute
