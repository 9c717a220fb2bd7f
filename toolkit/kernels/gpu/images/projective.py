"""ImageProjectiveTransformV2 and V3. A thread has a number of the result; places are float32, as the CPU's."""

from __future__ import annotations

import functools

import numpy as np

from toolkit.kernels.cpu.images.transform import check_transform, transform_methods
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, SimtKernel, Value
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array

_F = "float"


def _nearest_edge(k: KernelBuilder, at: Lanes, size: Lanes) -> Lanes:
    zero, last = k.number(0.0, _F), k.sub(size, k.number(1.0, _F))
    at = k.select(k.compare("olt", at, zero), zero, at)
    return k.select(k.compare("ogt", at, last), last, at)


def _whole_times(k: KernelBuilder, at: Lanes, period: Lanes) -> Lanes:
    """How often a period goes into a number, without the rest."""
    return k.intrinsic("trunc", k.div(at, period))


def _reflected(k: KernelBuilder, at: Lanes, size: Lanes) -> Lanes:
    """... 1 0 | 0 1 2 | 2 1 ..."""
    zero, one = k.number(0.0, _F), k.number(1.0, _F)
    period = k.add(size, size)
    folded = k.add(k.mul(period, _whole_times(k, k.neg(at), period)), at)
    low = k.select(k.compare("olt", at, k.neg(period)), folded, at)
    low = k.select(k.compare("olt", low, k.neg(size)), k.add(low, period), k.sub(k.neg(low), one))
    high = k.sub(at, k.mul(period, _whole_times(k, at, period)))
    high = k.select(k.compare("oge", high, size), k.sub(k.sub(period, high), one), high)
    inside = k.select(k.compare("ogt", at, k.sub(size, one)), high, at)
    found = _nearest_edge(k, k.select(k.compare("olt", at, zero), low, inside), size)
    return k.select(k.compare("ole", size, one), zero, found)


def _wrapped(k: KernelBuilder, at: Lanes, size: Lanes) -> Lanes:
    """... 1 2 | 0 1 2 | 0 1 ..."""
    zero, one = k.number(0.0, _F), k.number(1.0, _F)
    extent = k.sub(size, one)
    low = k.add(at, k.mul(size, k.add(_whole_times(k, k.neg(at), extent), one)))
    high = k.sub(at, k.mul(size, _whole_times(k, at, extent)))
    inside = k.select(k.compare("ogt", at, extent), high, at)
    found = _nearest_edge(k, k.select(k.compare("olt", at, zero), low, inside), size)
    return k.select(k.compare("ole", size, one), zero, found)


def _as_it_is(k: KernelBuilder, at: Lanes, size: Lanes) -> Lanes:
    return at


_MODES = {"CONSTANT": _as_it_is, "NEAREST": _nearest_edge, "REFLECT": _reflected, "WRAP": _wrapped}


@functools.cache
def _transform(type: str, is_unsigned: bool, mode: str, is_nearest: bool, index: str) -> SimtKernel:
    k = KernelBuilder(f"projective_{mode.lower()}_{'nearest' if is_nearest else 'bilinear'}_{type}", BLOCK)
    x, y, transforms = k.buffer("x", type), k.buffer("y", type, written=True), k.buffer("transforms", _F)
    n, height, width = k.scalar("n", index), k.scalar("height", "i32"), k.scalar("width", "i32")
    step = k.scalar("step", index)  # from one transform to the next, 0 if there is one
    outside = k.scalar("outside", _F if type in ("half", "bfloat") else type)
    sizes = [Divisor.argument(k, name, index) for name in ("rows", "columns", "channels")]
    one, half = k.number(1.0, _F), k.number(0.5, _F)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        image, row, column, c = coordinates(k, i, sizes)
        beyond = k.convert(outside, type)
        first = k.mul(image, step)
        t = [k.load(transforms, k.add(first, k.number(number, index))) for number in range(8)]
        down, along = (k.convert(k.convert(each, "i32"), _F) for each in (row, column))

        def plane(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
            return k.add(k.add(k.mul(a, along), k.mul(b, down)), c)

        scale = plane(t[6], t[7], one)
        vanishes = k.compare("oeq", scale, k.number(0.0, _F))
        scale = k.select(vanishes, one, scale)
        rows, columns = k.convert(height, _F), k.convert(width, _F)
        at_x = _MODES[mode](k, k.div(plane(t[0], t[1], t[2]), scale), columns)
        at_y = _MODES[mode](k, k.div(plane(t[3], t[4], t[5]), scale), rows)

        def pixel(at_row: Lanes, at_column: Lanes) -> Value:
            zero = k.number(0.0, _F)
            inside = k.both(
                k.both(k.compare("oge", at_row, zero), k.compare("olt", at_row, rows)),
                k.both(k.compare("oge", at_column, zero), k.compare("olt", at_column, columns)),
            )
            found = k.variable(beyond)
            with k.when(inside):
                place = k.add(k.mul(image, k.convert(height, index)), k.convert(at_row, index))
                place = k.add(k.mul(place, k.convert(width, index)), k.convert(at_column, index))
                found.set(k.load(x, k.add(k.mul(place, sizes[2].size), c)))
            return found.get()

        if is_nearest:
            # halves go away from zero
            chosen = [k.intrinsic("trunc", k.add(at, k.intrinsic("copysign", half, at))) for at in (at_y, at_x)]
            value: Lanes = pixel(chosen[0], chosen[1])
        else:
            low_x, low_y = k.intrinsic("floor", at_x), k.intrinsic("floor", at_y)
            right, below = k.sub(at_x, low_x), k.sub(at_y, low_y)
            left, above = k.sub(k.add(low_x, one), at_x), k.sub(k.add(low_y, one), at_y)

            def line(at_row: Lanes) -> Value:
                near = k.convert(pixel(at_row, low_x), _F, unsigned=is_unsigned)
                far = k.convert(pixel(at_row, k.add(low_x, one)), _F, unsigned=is_unsigned)
                return k.add(k.mul(left, near), k.mul(right, far))

            mixed = k.add(k.mul(above, line(low_y)), k.mul(below, line(k.add(low_y, one))))
            value = k.convert(mixed, type, unsigned=is_unsigned)
        k.store(y, i, k.select(vanishes, beyond, value))
    return k.finish()


@gpu_kernel("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def image_projective_transform(op: KernelNode) -> Compute:
    """images (N, H, W, C); transforms (N or 1, 8); V3 is given the value outside, V2 takes 0."""
    device = device_of(op.node)
    mode, interpolation = transform_methods(op)

    def compute(images: GpuArray, transforms: GpuArray, size: Array, fill: Array | None = None) -> GpuArray:
        height, width = check_transform(images, transforms, size, fill)
        y = device.empty((images.shape[0], height, width, images.shape[3]), images.dtype)
        if not y.size:
            return y
        type, index = TYPES[images.dtype.name], index_type(y.size, images.size)
        kind = images.dtype.kind
        beyond = np.float32(0 if fill is None else fill).astype(images.dtype)
        if kind == "u":
            beyond = beyond.view(np.dtype(f"i{images.dtype.itemsize}"))
        outside = int(beyond) if kind in "iu" else float(beyond)
        step = 8 if transforms.shape[0] > 1 else 0
        kernel = _transform(type, kind == "u", mode, interpolation == "NEAREST", index)
        sizes = divisors([height, width, images.shape[3]], index)
        rows, columns = images.shape[1:3]
        device.launch(kernel, blocks_for(y.size), images, y, transforms, y.size, rows, columns, step, outside, *sizes)
        return y

    return compute
