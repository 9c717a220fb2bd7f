"""Resizing images, (N, H, W, C): nearest and bilinear, and their gradients.

Where an output lies in the input is computed in float32 in the order of the CPU's kernels. A gradient is a sum over
outputs: each input pixel goes through those that it is in, whose numbers and weights the host makes as tables, one for
each axis, so that no two threads add to one number and results are the same each time.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toolkit.kernels.cpu.common import require_rank
from toolkit.kernels.cpu.images.resize import Grid, check_gradient, check_images, output_size
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, SimtKernel, Value
from toolkit.kernels.gpu.primitives.copying import WORDS
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array

_F = "float"
#: tables of so many sizes are kept for a node
_MOST_TABLES = 64


def floating(k: KernelBuilder, value: Lanes) -> Value:
    """An integer as float32."""
    return k.convert(value, _F)


def clipped(k: KernelBuilder, value: Lanes, low: Lanes, high: Lanes) -> Value:
    """An integer between two others."""
    value = k.select(k.compare("slt", value, low), low, value)
    return k.select(k.compare("sgt", value, high), high, value)


def _position(k: KernelBuilder, at: Lanes, scale: Lanes, half_pixel: bool) -> Lanes:
    """Where an output lies in the input."""
    if not half_pixel:
        return k.mul(floating(k, at), scale)
    half = k.number(0.5, _F)
    return k.sub(k.mul(k.add(floating(k, at), half), scale), half)


def _nearest_input(k: KernelBuilder, at: Lanes, scale: Lanes, size: Lanes, grid: Grid) -> Lanes:
    """The nearest input of an output."""
    half = k.number(0.5, _F)
    place = floating(k, at)
    if grid.half_pixel:
        found: Lanes = k.mul(k.add(place, half), scale)
    elif grid.align_corners:
        found = k.add(k.mul(place, scale), half)
    else:
        found = k.mul(place, scale)
    whole = k.convert(k.intrinsic("floor", found), "i32")
    return clipped(k, whole, k.number(0, "i32"), k.sub(size, k.number(1, "i32")))


def _around(k: KernelBuilder, at: Lanes, scale: Lanes, size: Lanes, half_pixel: bool) -> tuple[Lanes, Lanes, Lanes]:
    """The inputs below and above an output, and how far it is between them."""
    position = _position(k, at, scale, half_pixel)
    floor = k.intrinsic("floor", position)
    last, zero = k.sub(size, k.number(1, "i32")), k.number(0, "i32")
    upper = k.convert(k.intrinsic("ceil", position), "i32")
    upper = k.select(k.compare("sgt", upper, last), last, upper)
    lower: Lanes = k.convert(floor, "i32")
    lower = k.select(k.compare("slt", lower, zero), zero, lower)
    lower = k.select(k.compare("sgt", lower, upper), upper, lower)
    return lower, upper, k.sub(position, floor)


def _pixel(k: KernelBuilder, n: Lanes, row: Lanes, column: Lanes, c: Lanes, sizes: tuple[Lanes, ...]) -> Value:
    """Where a number lies in images of (height, width, channels)."""
    height, width, channels = sizes
    index = n.type
    at = k.add(k.mul(n, height), k.convert(row, index))
    at = k.add(k.mul(at, width), k.convert(column, index))
    return k.add(k.mul(at, channels), c)


@functools.cache
def _forward(type: str, method: str, grid: Grid, index: str) -> SimtKernel:
    """A thread for each number of the result: of float32, or of the images' type when it is `nearest`."""
    k = KernelBuilder(f"resize_{method}_{type}", BLOCK)
    x = k.buffer("x", type)
    y = k.buffer("y", type if method == "nearest" else _F, written=True)
    n, height, width = k.scalar("n", index), k.scalar("height", "i32"), k.scalar("width", "i32")
    row_scale, column_scale = k.scalar("row_scale", _F), k.scalar("column_scale", _F)
    out_height, out_width, channels = (Divisor.argument(k, name, index) for name in ("rows", "columns", "channels"))
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        image, row, column, c = coordinates(k, i, [out_height, out_width, channels])
        row, column = k.convert(row, "i32"), k.convert(column, "i32")
        sizes = k.convert(height, index), k.convert(width, index), channels.size
        if method == "nearest":
            at_row = _nearest_input(k, row, row_scale, height, grid)
            at_column = _nearest_input(k, column, column_scale, width, grid)
            k.store(y, i, k.load(x, _pixel(k, image, at_row, at_column, c, sizes)))
            return k.finish()
        top, bottom, down = _around(k, row, row_scale, height, grid.half_pixel)
        left, right, along = _around(k, column, column_scale, width, grid.half_pixel)

        def line(at: Lanes) -> Value:
            near, far = (k.convert(k.load(x, _pixel(k, image, at, where, c, sizes)), _F) for where in (left, right))
            return k.add(near, k.mul(k.sub(far, near), along))

        upper, lower = line(top), line(bottom)
        k.store(y, i, k.add(upper, k.mul(k.sub(lower, upper), down)))
    return k.finish()


@gpu_kernel("ResizeNearestNeighbor", "ResizeBilinear")
def resize(op: KernelNode) -> Compute:
    device, grid = device_of(op.node), Grid.of(op)
    method = "nearest" if op.op == "ResizeNearestNeighbor" else "bilinear"

    def compute(images: GpuArray, size: Array) -> GpuArray:
        require_rank(images, 4, "images")
        height, width = output_size(size)
        check_images(images)
        n, rows, columns, channels = images.shape
        y = device.empty((n, height, width, channels), images.dtype if method == "nearest" else np.float32)
        if not y.size:
            return y
        index = index_type(y.size, images.size)
        name = images.dtype.name
        kernel = _forward(WORDS[images.dtype.itemsize] if method == "nearest" else TYPES[name], method, grid, index)
        scales = float(grid.scale(rows, height)), float(grid.scale(columns, width))
        sizes = divisors([height, width, channels], index)
        device.launch(kernel, blocks_for(y.size), images, y, y.size, rows, columns, *scales, *sizes)
        return y

    return compute


# -- gradients -------------------------------------------------------------------------------------------------------


@functools.cache
def _backward(type: str, result: str, wide: str, index: str) -> SimtKernel:
    """A thread for each number of an image: the sum over its rows' outputs, of the sums over its columns'."""
    k = KernelBuilder(f"resize_gradient_{type}", BLOCK)
    dy, dx = k.buffer("dy", type), k.buffer("dx", result, written=True)
    tables = [
        (k.buffer(f"{axis}_starts", "i32"), k.buffer(f"{axis}_outputs", "i32"), k.buffer(f"{axis}_weights", _F))
        for axis in ("row", "column")
    ]
    n, height, width = k.scalar("n", index), k.scalar("height", index), k.scalar("width", index)
    sizes = [Divisor.argument(k, name, index) for name in ("rows", "columns", "channels")]
    one = k.number(1, "i32")
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        image, row, column, c = coordinates(k, i, sizes)
        (row_starts, row_outputs, row_weights), (starts, outputs, weights) = tables
        row, column = k.convert(row, "i32"), k.convert(column, "i32")
        total = k.variable(k.number(0.0, wide))
        first, last = k.load(starts, column), k.load(starts, k.add(column, one))
        with k.loop(k.load(row_starts, row), k.load(row_starts, k.add(row, one))) as a:
            y, down = k.load(row_outputs, a), k.load(row_weights, a)
            line = k.variable(k.number(0.0, wide))
            with k.loop(first, last) as b:
                place = _pixel(k, image, y, k.load(outputs, b), c, (height, width, sizes[2].size))
                value = k.convert(k.load(dy, place), wide)
                line.set(k.add(line.get(), k.mul(value, k.convert(k.load(weights, b), wide))))
            total.set(k.add(total.get(), k.mul(line.get(), k.convert(down, wide))))
        k.store(dx, i, k.convert(total.get(), result))
    return k.finish()


def _table(size: int, taps: list[tuple[Array, Array]]) -> tuple[Array, Array, Array]:
    """For each of `size` inputs, where its outputs begin, which those are, and with which weights.

    Args:
        taps: for each output an input and its weight, several times.
    """
    inputs = np.concatenate([index for index, _ in taps])
    outputs = np.concatenate([np.arange(len(index)) for index, _ in taps])
    weights = np.concatenate([weight for _, weight in taps]).astype(np.float32)
    order = np.lexsort((outputs, inputs))
    starts = np.searchsorted(inputs[order], np.arange(size + 1))
    return starts.astype(np.int32), outputs[order].astype(np.int32), weights[order]


class TapTables:
    """Tables of gradients in a GPU's memory, by sizes of input and output, made once."""

    def __init__(self, device: CudaDevice, grid: Grid, method: str):
        self._device = device
        self._grid = grid
        self._method = method
        self._known: dict[tuple[int, int], tuple[GpuArray, ...]] = {}

    def of(self, size: int, out: int) -> tuple[GpuArray, ...]:
        """Starts [size + 1], outputs and weights of an axis."""
        found = self._known.get((size, out))
        if found is None:
            if len(self._known) >= _MOST_TABLES:
                self._known.clear()
            found = tuple(self._device.to_device(each) for each in self._made(size, out))
            self._known[size, out] = found
        return found

    def _made(self, size: int, out: int) -> tuple[Array, Array, Array]:
        if self._method == "nearest":
            return _table(size, [(self._grid.nearest(size, out), np.ones(out, np.float32))])
        lower, upper, far = self._grid.linear(size, out)
        return _table(size, [(lower, np.float32(1) - far), (upper, far)])


def _gradient(device: CudaDevice, tables: TapTables, dy: GpuArray, shape: tuple[int, ...], dtype: Any) -> GpuArray:
    dx = device.empty(shape, dtype)
    if not dx.size:
        return dx
    _, height, width, channels = shape
    index = index_type(dx.size, dy.size)
    wide = "double" if "float64" in (dy.dtype.name, dx.dtype.name) else _F
    kernel = _backward(TYPES[dy.dtype.name], TYPES[dx.dtype.name], wide, index)
    axes = tables.of(height, dy.shape[1]), tables.of(width, dy.shape[2])
    sizes = divisors([height, width, channels], index)
    device.launch(kernel, blocks_for(dx.size), dy, dx, *axes[0], *axes[1], dx.size, dy.shape[1], dy.shape[2], *sizes)
    return dx


@gpu_kernel("ResizeNearestNeighborGrad")
def nearest_gradient(op: KernelNode) -> Compute:
    device = device_of(op.node)
    tables = TapTables(device, Grid.of(op), "nearest")

    def compute(grads: GpuArray, size: Array) -> GpuArray:
        require_rank(grads, 4, "grads")
        height, width = output_size(size)
        check_images(grads)
        return _gradient(device, tables, grads, (grads.shape[0], height, width, grads.shape[3]), grads.dtype)

    return compute


@gpu_kernel("ResizeBilinearGrad")
def bilinear_gradient(op: KernelNode) -> Compute:
    """grads are float32, whatever the images' type."""
    device = device_of(op.node)
    tables = TapTables(device, Grid.of(op), "bilinear")

    def compute(grads: GpuArray, image: GpuArray) -> GpuArray:
        check_gradient(grads, image)
        return _gradient(device, tables, grads, image.shape, image.dtype)

    return compute
