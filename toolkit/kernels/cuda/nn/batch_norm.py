"""Batch normalization: what its three kernels beside the sums do (S. Ioffe and C. Szegedy, 2015)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.common import BLOCK, blocks_of, channel_of, index_type, llvm_type, sum_type
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel


@functools.cache
def affine_kernel(type: str) -> SimtKernel:
    """The factor of each channel, scale / sqrt(variance + epsilon), and what is added, offset - mean * factor.

    Args:
        type: of what is given, in memory.
    """
    wide = sum_type(type)
    k = KernelBuilder(f"batch_norm_affine_{type}", BLOCK)
    variance, *others = (k.buffer(name, type) for name in ("variance", "scale", "offset", "mean"))
    factor, added = (k.buffer(name, wide, written=True) for name in ("factor", "added"))
    epsilon, channels = k.scalar("epsilon", wide), k.scalar("channels", "i32")
    c = k.global_thread()
    with k.when(k.compare("slt", c, channels)):
        deviation = k.intrinsic("sqrt", k.add(k.convert(k.load(variance, c), wide), epsilon))
        scale, offset, mean = (k.convert(k.load(each, c), wide) for each in others)
        value = k.div(scale, deviation)
        k.store(factor, c, value)
        k.store(added, c, k.sub(offset, k.mul(mean, value)))
    return k.finish()


def _wide(array: Any) -> str:
    return "float64" if array.dtype.itemsize == 8 else "float32"


def launch_affine(device: Any, scale: Any, offset: Any, mean: Any, variance: Any, epsilon: float) -> tuple[Any, Any]:
    """The factor and what is added, vectors in the type of the sums."""
    channels = scale.shape[0]
    factor, added = (device.empty((channels,), _wide(scale)) for _ in range(2))
    kernel = affine_kernel(llvm_type(scale.dtype))
    if channels:
        arrays = (variance, scale, offset, mean, factor, added)
        device.launch(kernel, blocks_of(channels), *arrays, epsilon, channels)
    return factor, added


@functools.cache
def average_kernel() -> SimtKernel:
    """(1 - factor) * old + factor * new, for each channel."""
    k = KernelBuilder("batch_norm_average", BLOCK)
    old, new, out = k.buffer("old", "float"), k.buffer("new", "float"), k.buffer("out", "float", written=True)
    rest, factor, channels = k.scalar("rest", "float"), k.scalar("factor", "float"), k.scalar("channels", "i32")
    c = k.global_thread()
    with k.when(k.compare("slt", c, channels)):
        k.store(out, c, k.add(k.mul(rest, k.load(old, c)), k.mul(factor, k.load(new, c))))
    return k.finish()


@functools.cache
def normalize_kernel(type: str, index: str, last: bool) -> SimtKernel:
    """(x - mean) * factor + offset, in this order: what is near the mean keeps its digits."""
    k = KernelBuilder(f"batch_norm_{type}", BLOCK)
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    mean, factor, offset = (k.buffer(name, "float") for name in ("mean", "factor", "offset"))
    channels, inner = k.scalar("channels", index), None if last else k.scalar("inner", index)
    count = k.scalar("count", index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, count)):
        c = channel_of(k, i, channels, inner)
        centered = k.sub(k.convert(k.load(x, i), "float"), k.load(mean, c))
        k.store(y, i, k.convert(k.add(k.mul(centered, k.load(factor, c)), k.load(offset, c)), type))
    return k.finish()


@functools.cache
def gradient_kernel(type: str, index: str, last: bool, is_training: bool) -> SimtKernel:
    """dx: (dy - sum(dy) / n - normal * sum(dy * normal) / n) * scale * inverse; without the sums out of training."""
    k = KernelBuilder(f"batch_norm_gradient_{type}{'' if is_training else '_fixed'}", BLOCK)
    dy = k.buffer("dy", type)
    x = k.buffer("x", type) if is_training else None
    scale, inverse = k.buffer("scale", "float"), k.buffer("inverse", "float")
    sums = [k.buffer(name, "float") for name in ("mean", "d_offset", "d_scale")] if is_training else []
    dx = k.buffer("dx", type, written=True)
    channels, inner = k.scalar("channels", index), None if last else k.scalar("inner", index)
    count = k.scalar("count", index)
    number = k.scalar("positions", "float") if is_training else None
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, count)):
        c = channel_of(k, i, channels, inner)
        value: Lanes = k.convert(k.load(dy, i), sum_type(type))
        if x is not None and number is not None:
            mean, d_offset, d_scale = (k.load(each, c) for each in sums)
            normal = k.mul(k.sub(k.convert(k.load(x, i), "float"), mean), k.load(inverse, c))
            value = k.sub(k.sub(value, k.div(d_offset, number)), k.mul(normal, k.div(d_scale, number)))
        k.store(dx, i, k.convert(k.mul(value, k.mul(k.load(scale, c), k.load(inverse, c))), type))
    return k.finish()


def _sides(channels: int, inner: int) -> tuple[int, ...]:
    """As the kernels take them."""
    return (channels,) if inner == 1 else (channels, inner)


def launch_normalize(
    device: Any, x: Any, y: Any, mean: Any, factor: Any, offset: Any, channels: int, inner: int
) -> None:
    count = x.nbytes // x.dtype.itemsize
    kernel = normalize_kernel(llvm_type(x.dtype), index_type(x), inner == 1)
    device.launch(kernel, blocks_of(count), x, y, mean, factor, offset, *_sides(channels, inner), count)


def averaged(device: Any, old: Any, new: Any, rest: float, factor: float) -> Any:
    """rest * old + factor * new."""
    out = device.empty(old.shape, old.dtype)
    if out.nbytes:
        channels = old.shape[0]
        device.launch(average_kernel(), blocks_of(channels), old, new, out, rest, factor, channels)
    return out


def launch_gradient(
    device: Any, dy: Any, x: Any, dx: Any, scale: Any, inverse: Any, sums: Sequence[Any], channels: int, inner: int
) -> None:
    """dx; `sums` are the mean, the gradients by offset and by scale, or none out of training."""
    count = dy.nbytes // dy.dtype.itemsize
    kernel = gradient_kernel(llvm_type(dy.dtype), index_type(dy), inner == 1, bool(sums))
    given = (dy, x, scale, inverse, *sums, dx) if sums else (dy, scale, inverse, dx)
    more = (float(count // channels),) if sums else ()
    device.launch(kernel, blocks_of(count), *given, *_sides(channels, inner), count, *more)
