"""CropAndResize: boxes cut from images, (N, H, W, C), and resized, with the gradients.

A thread has a number of the crops, in float32 as the CPU's kernels. Boxes of images that there are not have crops of
the value outside, for the numbers of the images are in the memory of the GPU.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toolkit.kernels.cpu.images.crop import check_crop, check_crop_of_boxes, check_crop_of_image, crop_method
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, WARP, SimtKernel, Value
from toolkit.kernels.gpu.primitives.block_sums import sum_of_block
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array

_F = "float"


class _Sample:
    """Where a crop's pixel lies on one axis of its image.

    Attributes:
        inside: whether that is in the image.
        low, high: the pixels around it; far: how far from low to high.
        nearest: the nearest pixel.
    """

    def __init__(self, k: KernelBuilder, start: Lanes, end: Lanes, at: Lanes, size: Lanes, out: Lanes):
        one, half = k.number(1, "i32"), k.number(0.5, _F)
        extent = k.convert(k.sub(size, one), _F)
        several = k.compare("sgt", out, one)
        steps = k.convert(k.select(several, k.sub(out, one), one), _F)
        step = k.div(k.mul(k.sub(end, start), extent), steps)
        spread = k.add(k.mul(start, extent), k.mul(k.convert(at, _F), step))
        middle = k.mul(k.mul(half, k.add(start, end)), extent)
        place = k.select(several, spread, middle)
        self.inside = k.both(k.compare("oge", place, k.number(0.0, _F)), k.compare("ole", place, extent))
        place = k.select(self.inside, place, k.number(0.0, _F))
        floor = k.intrinsic("floor", place)
        self.low = k.convert(floor, "i32")
        self.high = k.convert(k.intrinsic("ceil", place), "i32")
        self.far = k.sub(place, floor)
        self.nearest = k.convert(k.intrinsic("floor", k.add(place, half)), "i32")


class _Crops:
    """What all kernels here are given, and where a thread's number lies."""

    def __init__(self, k: KernelBuilder, index: str):
        self.k = k
        self.index = index
        self.boxes, self.images = k.buffer("boxes", _F), k.buffer("box_images", "i32")
        self.n, self.batch = k.scalar("n", index), k.scalar("batch", "i32")
        self.height, self.width = k.scalar("height", "i32"), k.scalar("width", "i32")
        self.sizes = [Divisor.argument(k, name, index) for name in ("rows", "columns", "channels")]

    @staticmethod
    def numbers(crops: tuple[int, ...], image: tuple[int, ...], count: int, index: str) -> tuple[int, ...]:
        """The arguments behind the buffers."""
        return (count, image[0], image[1], image[2], *divisors(crops[1:], index))

    def corner(self, box: Lanes, which: int) -> Value:
        k = self.k
        return k.load(self.boxes, k.add(k.mul(box, k.number(4, self.index)), k.number(which, self.index)))

    def samples(self, box: Lanes, row: Lanes, column: Lanes) -> tuple[_Sample, _Sample]:
        k = self.k
        out = [k.convert(size.size, "i32") for size in self.sizes[:2]]
        y = _Sample(k, self.corner(box, 0), self.corner(box, 2), k.convert(row, "i32"), self.height, out[0])
        x = _Sample(k, self.corner(box, 1), self.corner(box, 3), k.convert(column, "i32"), self.width, out[1])
        return y, x

    def image(self, box: Lanes) -> tuple[Value, Value]:
        """The image of a box, and whether there is one."""
        k = self.k
        found = k.load(self.images, box)
        return k.convert(found, self.index), k.compare("ult", found, self.batch)

    def place(self, image: Lanes, row: Lanes, column: Lanes, c: Lanes) -> Value:
        """Where a number lies in the images."""
        k, index = self.k, self.index
        at = k.add(k.mul(image, k.convert(self.height, index)), k.convert(row, index))
        at = k.add(k.mul(at, k.convert(self.width, index)), k.convert(column, index))
        return k.add(k.mul(at, self.sizes[2].size), c)


@functools.cache
def _crop(type: str, is_nearest: bool, index: str) -> SimtKernel:
    k = KernelBuilder(f"crop_{'nearest' if is_nearest else 'bilinear'}_{type}", BLOCK)
    images, y = k.buffer("images", type), k.buffer("y", _F, written=True)
    crops, outside = _Crops(k, index), k.scalar("outside", _F)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, crops.n)):
        box, row, column, c = coordinates(k, i, crops.sizes)
        image, is_there = crops.image(box)
        down, along = crops.samples(box, row, column)
        with k.when(k.both(is_there, k.both(down.inside, along.inside))):

            def pixel(at_row: Lanes, at_column: Lanes) -> Value:
                return k.convert(k.load(images, crops.place(image, at_row, at_column, c)), _F)

            if is_nearest:
                k.store(y, i, pixel(down.nearest, along.nearest))
            else:
                lines: list[Value] = []
                for at in (down.low, down.high):
                    near = pixel(at, along.low)
                    lines.append(k.add(near, k.mul(k.sub(pixel(at, along.high), near), along.far)))
                k.store(y, i, k.add(lines[0], k.mul(k.sub(lines[1], lines[0]), down.far)))
        with k.otherwise():
            k.store(y, i, outside)
    return k.finish()


@gpu_kernel("CropAndResize")
def crop_and_resize(op: KernelNode) -> Compute:
    device, is_nearest = device_of(op.node), crop_method(op)
    outside = float(np.float32(op.attr("extrapolation_value")))

    def compute(images: GpuArray, boxes: GpuArray, index: GpuArray, crop: Array) -> GpuArray:
        height, width = check_crop(images, boxes, index, crop)
        y = device.empty((boxes.shape[0], height, width, images.shape[3]), np.float32)
        if not y.size:
            return y
        type = index_type(y.size, images.size)
        kernel = _crop(TYPES[images.dtype.name], is_nearest, type)
        numbers = _Crops.numbers(y.shape, images.shape, y.size, type)
        device.launch(kernel, blocks_for(y.size), images, y, boxes, index, *numbers, outside)
        return y

    return compute


def _shares(k: KernelBuilder, down: _Sample, along: _Sample, is_nearest: bool) -> list[tuple[Lanes, Lanes, Lanes]]:
    """The pixels of an image that a crop's pixel is made of, and their weights."""
    one = k.number(1.0, _F)
    if is_nearest:
        return [(down.nearest, along.nearest, one)]
    rows = ((down.low, k.sub(one, down.far)), (down.high, down.far))
    columns = ((along.low, k.sub(one, along.far)), (along.high, along.far))
    return [(row, column, k.mul(by_y, by_x)) for row, by_y in rows for column, by_x in columns]


@functools.cache
def _image_gradient(type: str, wide: str, is_nearest: bool, index: str) -> SimtKernel:
    """Each number of the crops is added to the pixels that it is made of."""
    k = KernelBuilder(f"crop_image_gradient_{type}", BLOCK)
    grads, dx = k.buffer("grads", type), k.buffer("dx", wide, written=True)
    crops = _Crops(k, index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, crops.n)):
        box, row, column, c = coordinates(k, i, crops.sizes)
        image, is_there = crops.image(box)
        down, along = crops.samples(box, row, column)
        with k.when(k.both(is_there, k.both(down.inside, along.inside))):
            given = k.convert(k.load(grads, i), wide)
            for at_row, at_column, share in _shares(k, down, along, is_nearest):
                place = crops.place(image, at_row, at_column, c)
                k.atomic("fadd", dx, place, k.mul(given, k.convert(share, wide)))
    return k.finish()


@functools.cache
def _image_gradient_in_order(type: str, wide: str, is_nearest: bool, index: str) -> SimtKernel:
    """The same sums in the order of the crops: a thread has a channel of an image, and goes through all of them."""
    k = KernelBuilder(f"crop_image_gradient_in_order_{type}", WARP)
    grads, dx = k.buffer("grads", type), k.buffer("dx", wide, written=True)
    crops, boxes = _Crops(k, index), k.scalar("count", index)
    rows, columns, channels = (size.size for size in crops.sizes)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, crops.n)):
        mine, c = coordinates(k, i, crops.sizes[2:])
        with k.loop(0, boxes) as box:
            image, _ = crops.image(box)
            with (
                k.when(k.compare("eq", image, mine)),
                k.loop(0, rows) as row,
                k.loop(0, columns) as column,
            ):
                down, along = crops.samples(box, row, column)
                with k.when(k.both(down.inside, along.inside)):
                    at = k.add(k.mul(k.add(k.mul(box, rows), row), columns), column)
                    given = k.convert(k.load(grads, k.add(k.mul(at, channels), c)), wide)
                    for at_row, at_column, share in _shares(k, down, along, is_nearest):
                        place = crops.place(image, at_row, at_column, c)
                        k.store(dx, place, k.add(k.load(dx, place), k.mul(given, k.convert(share, wide))))
    return k.finish()


@functools.cache
def _narrowed(type: str) -> SimtKernel:
    k = KernelBuilder(f"narrowed_{type}", BLOCK)
    x, y, n = k.buffer("x", _F), k.buffer("y", type, written=True), k.scalar("n", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, n)):
        k.store(y, i, k.convert(k.load(x, i), type))
    return k.finish()


def narrowed(device: CudaDevice, x: GpuArray, dtype: Any) -> GpuArray:
    """float32 numbers as ones of a narrower type."""
    y = device.empty(x.shape, dtype)
    device.launch(_narrowed(TYPES[y.dtype.name]), blocks_for(y.size), x, y, y.size)
    return y


@gpu_kernel("CropAndResizeGradImage")
def gradient_of_image(op: KernelNode) -> Compute:
    """Narrow floats are added in float32 and rounded once."""
    device, is_nearest = device_of(op.node), crop_method(op)
    dtype = op.attr("T").numpy

    def compute(grads: GpuArray, boxes: GpuArray, index: GpuArray, image_size: Array) -> GpuArray:
        shape = check_crop_of_image(grads, boxes, index, image_size)
        wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        dx = device.zeros(shape, wide)
        if grads.size and dx.size:
            type = index_type(grads.size, dx.size)
            names = TYPES[grads.dtype.name], TYPES[wide.name], is_nearest, type
            if device.deterministic:
                kernel, count = _image_gradient_in_order(*names), shape[0] * shape[3]
                more: tuple[int, ...] = (boxes.shape[0],)
            else:
                kernel, count, more = _image_gradient(*names), grads.size, ()
            numbers = _Crops.numbers(grads.shape, shape, count, type)
            device.launch(kernel, blocks_for(count, kernel.block), grads, dx, boxes, index, *numbers, *more)
        return dx if dtype == wide else narrowed(device, dx, dtype)

    return compute


@functools.cache
def _box_gradient(type: str, index: str) -> SimtKernel:
    """A block for each box: what a move of each corner changes."""
    k = KernelBuilder(f"crop_box_gradient_{type}", BLOCK)
    grads, images, dx = k.buffer("grads", _F), k.buffer("images", type), k.buffer("dx", _F, written=True)
    crops, shared = _Crops(k, index), k.shared("sums", _F, BLOCK)
    box = k.convert(k.block_index, index)
    image, is_there = crops.image(box)
    one, zero = k.number(1.0, _F), k.number(0.0, _F)
    sums = [k.variable(zero) for _ in range(4)]

    def ends(size: Lanes, out: Lanes, at: Lanes) -> tuple[Value, Value]:
        """How far a sample moves with the first corner, and with the second."""
        extent = k.convert(k.sub(size, k.number(1, "i32")), _F)
        several = k.compare("sgt", out, k.number(1, "i32"))
        steps = k.convert(k.select(several, k.sub(out, k.number(1, "i32")), k.number(1, "i32")), _F)
        spread = k.mul(k.convert(at, _F), k.div(extent, steps))
        end = k.select(several, spread, k.mul(k.number(0.5, _F), extent))
        return k.sub(extent, end), end

    with k.when(is_there), k.loop(k.convert(k.thread, index), crops.n, BLOCK) as j:
        row, column, c = coordinates(k, j, crops.sizes[1:])
        down, along = crops.samples(box, row, column)
        with k.when(k.both(down.inside, along.inside)):

            def pixel(at_row: Lanes, at_column: Lanes) -> Value:
                return k.convert(k.load(images, crops.place(image, at_row, at_column, c)), _F)

            top_left, top_right = pixel(down.low, along.low), pixel(down.low, along.high)
            bottom_left, bottom_right = pixel(down.high, along.low), pixel(down.high, along.high)
            by_y = k.add(
                k.mul(k.sub(one, along.far), k.sub(bottom_left, top_left)),
                k.mul(along.far, k.sub(bottom_right, top_right)),
            )
            by_x = k.add(
                k.mul(k.sub(one, down.far), k.sub(top_right, top_left)),
                k.mul(down.far, k.sub(bottom_right, bottom_left)),
            )
            given = k.load(grads, k.add(k.mul(box, crops.n), j))
            out = [k.convert(size.size, "i32") for size in crops.sizes[:2]]
            y1, y2 = ends(crops.height, out[0], k.convert(row, "i32"))
            x1, x2 = ends(crops.width, out[1], k.convert(column, "i32"))
            parts = ((by_y, y1), (by_x, x1), (by_y, y2), (by_x, x2))
            for total, (change, move) in zip(sums, parts, strict=True):
                total.set(k.add(total.get(), k.mul(k.mul(given, change), move)))
    for corner, total in enumerate(sums):
        whole = sum_of_block(k, shared, total.get())
        with k.when(k.compare("eq", k.thread, k.number(0, "i32"))):
            place = k.add(k.mul(box, k.number(4, index)), k.number(corner, index))
            k.store(dx, place, whole)
    return k.finish()


@gpu_kernel("CropAndResizeGradBoxes")
def gradient_of_boxes(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(grads: GpuArray, images: GpuArray, boxes: GpuArray, index: GpuArray) -> GpuArray:
        check_crop_of_boxes(grads, images, boxes, index)
        dx = device.zeros(boxes.shape, np.float32)
        if grads.size and dx.size:
            type = index_type(grads.size, images.size)
            count = grads.size // grads.shape[0]
            numbers = _Crops.numbers(grads.shape, images.shape, count, type)
            kernel = _box_gradient(TYPES[images.dtype.name], type)
            device.launch(kernel, boxes.shape[0], grads, images, dx, boxes, index, *numbers)
        return dx

    return compute
