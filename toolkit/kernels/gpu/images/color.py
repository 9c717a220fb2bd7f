"""Colour: contrast, hue, saturation, RGB to HSV and back.

A thread has a pixel; narrow floats are computed in float32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from toolkit.kernels.cpu.images.color import check_adjusted, check_colors
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, SimtKernel, Value
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for, index_type
from toolkit.kernels.gpu.primitives.reduce_code import largest, smallest
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode

_Pixel: TypeAlias = tuple[Lanes, Lanes, Lanes]
_NAMES = {"RGBToHSV": "rgb_to_hsv", "HSVToRGB": "hsv_to_rgb", "AdjustHue": "hue", "AdjustSaturation": "saturation"}


def _number(k: KernelBuilder, like: Lanes, value: float) -> Value:
    return k.number(value, like.type)


def _unit(k: KernelBuilder, x: Lanes) -> Lanes:
    """Between 0 and 1; NaN stays."""
    zero, one = _number(k, x, 0.0), _number(k, x, 1.0)
    x = k.select(k.compare("olt", x, zero), zero, x)
    return k.select(k.compare("ogt", x, one), one, x)


def _hue(k: KernelBuilder, rgb: _Pixel, top: Lanes, span: Lanes) -> Lanes:
    """In [0, 1), 0 for greys; `top` is the largest channel, `span` that minus the least."""
    red, green, blue = rgb
    zero, one = _number(k, top, 0.0), _number(k, top, 1.0)
    is_color = k.compare("ogt", span, zero)
    norm = k.div(one, k.mul(_number(k, top, 6.0), k.select(is_color, span, one)))
    third = 2 / 6 if top.type == "double" else float(np.float32(2 / 6))
    two_thirds = 4 / 6 if top.type == "double" else float(np.float32(4 / 6))
    of_red = k.mul(norm, k.sub(green, blue))
    of_green = k.add(k.mul(norm, k.sub(blue, red)), _number(k, top, third))
    of_blue = k.add(k.mul(norm, k.sub(red, green)), _number(k, top, two_thirds))
    hue = k.select(k.compare("oeq", green, top), of_green, of_blue)
    hue = k.select(k.compare("oeq", red, top), of_red, hue)
    hue = k.select(is_color, hue, zero)
    return k.select(k.compare("olt", hue, zero), k.add(hue, one), hue)


def _fractions(k: KernelBuilder, hue: Lanes) -> _Pixel:
    """How near each channel of a hue is to the largest, in [0, 1]."""
    one, two = _number(k, hue, 1.0), _number(k, hue, 2.0)
    six = k.mul(hue, _number(k, hue, 6.0))

    def apart(value: float) -> Lanes:
        return k.intrinsic("fabs", k.sub(six, _number(k, hue, value)))

    return (
        _unit(k, k.sub(apart(3.0), one)),
        _unit(k, k.sub(two, apart(2.0))),
        _unit(k, k.sub(two, apart(4.0))),
    )


def _extremes(k: KernelBuilder, rgb: _Pixel) -> tuple[Lanes, Lanes]:
    red, green, blue = rgb
    return largest(k, largest(k, red, green), blue), smallest(k, smallest(k, red, green), blue)


def _to_hsv(k: KernelBuilder, rgb: _Pixel) -> _Pixel:
    top, low = _extremes(k, rgb)
    span = k.sub(top, low)
    zero = _number(k, top, 0.0)
    is_lit = k.compare("ogt", top, zero)
    saturation = k.select(is_lit, k.div(span, k.select(is_lit, top, _number(k, top, 1.0))), zero)
    return _hue(k, rgb, top, span), saturation, top


def _to_rgb(k: KernelBuilder, hsv: _Pixel) -> _Pixel:
    hue, saturation, value = hsv
    pale = k.sub(_number(k, hue, 1.0), saturation)
    red, green, blue = (k.mul(k.add(pale, k.mul(saturation, fraction)), value) for fraction in _fractions(k, hue))
    return red, green, blue


def _turned(k: KernelBuilder, rgb: _Pixel, delta: Lanes) -> _Pixel:
    """The hue turned; the largest and the least channel stay."""
    top, low = _extremes(k, rgb)
    span = k.sub(top, low)
    hue = k.add(_hue(k, rgb, top, span), delta)
    hue = k.sub(hue, k.intrinsic("floor", hue))  # modulo 1
    red, green, blue = (k.add(low, k.mul(span, fraction)) for fraction in _fractions(k, hue))
    return red, green, blue


def _saturated(k: KernelBuilder, rgb: _Pixel, scale: Lanes) -> _Pixel:
    hue, saturation, value = _to_hsv(k, rgb)
    return _to_rgb(k, (hue, _unit(k, k.mul(saturation, scale)), value))


_WRITERS: dict[str, Callable[..., _Pixel]] = {
    "RGBToHSV": _to_hsv, "HSVToRGB": _to_rgb, "AdjustHue": _turned, "AdjustSaturation": _saturated,
}  # fmt: skip


@functools.cache
def _pixels(op: str, type: str, index: str) -> SimtKernel:
    """A thread for each pixel; what adjusts is given an amount, in memory."""
    k = KernelBuilder(_NAMES[op], BLOCK)
    wide = "float" if type in ("half", "bfloat") else type
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    amount = k.buffer("amount", "float") if op.startswith("Adjust") else None
    n = k.scalar("n", index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        first = k.mul(i, k.number(3, index))
        places = [first, k.add(first, k.number(1, index)), k.add(first, k.number(2, index))]
        pixel = tuple(k.convert(k.load(x, place), wide) for place in places)
        more = () if amount is None else (k.load(amount, k.number(0, "i32")),)
        for place, value in zip(places, _WRITERS[op](k, pixel, *more), strict=True):
            k.store(y, place, k.convert(value, type))
    return k.finish()


@gpu_kernel("RGBToHSV", "HSVToRGB", "AdjustHue", "AdjustSaturation")
def colors(op: KernelNode) -> Compute:
    device = device_of(op.node)
    name = {"AdjustHue": "delta", "AdjustSaturation": "scale"}.get(op.op)

    def compute(images: GpuArray, *amount: GpuArray) -> GpuArray:
        if name is None:
            check_colors(images)
        else:
            check_adjusted(images, amount[0], name)
        y = device.empty(images.shape, images.dtype)
        count = images.size // 3
        kernel = _pixels(op.op, TYPES[images.dtype.name], index_type(images.size))
        device.launch(kernel, blocks_for(count), images, y, *amount, count)
        return y

    return compute
