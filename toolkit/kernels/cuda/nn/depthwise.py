"""Depthwise convolutions: each channel has filters of its own. A thread computes a number.

Filters are (kernel..., channels, multiplier); output channel c * multiplier + m is filter m of channel c. The gradient
by the filter is a sum over all positions for each tap and channel: blocks add up shares of the positions, and a second
kernel the shares, always in the same order.
"""

from __future__ import annotations

import functools
from typing import Any

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.channel_sums import SUM, launch_merge
from toolkit.kernels.cuda.nn.common import (
    BLOCK,
    Geometry,
    WindowScalars,
    blocks_of,
    index_type,
    llvm_type,
    place,
    split,
    sum_type,
)
from toolkit.kernels.cuda.nn.shares import shares_of
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel


@functools.cache
def forward_kernel(type: str, index: str, axes: int, made: str = "") -> SimtKernel:
    """y of x and w.

    Args:
        made: y's type, where it is not that of x and w.
    """
    wide, made = sum_type(type), made or type
    k = KernelBuilder(f"depthwise_forward_{_of_types(type, made)}", BLOCK)
    x, weights, y = k.buffer("x", type), k.buffer("w", type), k.buffer("y", made, written=True)
    w = WindowScalars(k, index, axes)
    multiplier = k.scalar("multiplier", index)
    all_filters, count = k.mul(w.channels, multiplier), k.scalar("count", index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, count)):
        n, *p, number = split(k, i, *w.out, all_filters)
        channel = k.div(number, multiplier)
        total = k.variable(k.number(0, wide))

        def visit(tap: list[Lanes], where: list[Lanes]) -> None:
            value = k.convert(k.load(x, place(k, [n, *where, channel], w.x)), wide)
            weight = k.convert(k.load(weights, k.add(k.mul(w.tap_number(tap), all_filters), number)), wide)
            total.set(k.fma(value, weight, total.get()))

        w.over_seen(p, visit)
        k.store(y, place(k, [n, *p, number], w.y), k.convert(total.get(), made))
    return k.finish()


@functools.cache
def input_kernel(type: str, index: str, axes: int, made: str = "") -> SimtKernel:
    """dx of w and dy.

    Args:
        made: dx's type, where it is not that of w and dy.
    """
    wide, made = sum_type(type), made or type
    k = KernelBuilder(f"depthwise_input_{_of_types(type, made)}", BLOCK)
    weights, dy, dx = k.buffer("w", type), k.buffer("dy", type), k.buffer("dx", made, written=True)
    w = WindowScalars(k, index, axes)
    multiplier = k.scalar("multiplier", index)
    all_filters, count = k.mul(w.channels, multiplier), k.scalar("count", index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, count)):
        n, *h, channel = split(k, i, *w.sizes, w.channels)
        first = k.mul(channel, multiplier)
        total = k.variable(k.number(0, wide))

        def visit(tap: list[Lanes], where: list[Lanes]) -> None:
            start = k.mul(w.tap_number(tap), all_filters)
            with k.loop(k.number(0, index), multiplier) as m:
                number = k.add(first, m)
                gradient = k.convert(k.load(dy, place(k, [n, *where, number], w.y)), wide)
                weight = k.convert(k.load(weights, k.add(start, number)), wide)
                total.set(k.fma(gradient, weight, total.get()))

        w.over_seeing(h, visit)
        k.store(dx, place(k, [n, *h, channel], w.x), k.convert(total.get(), made))
    return k.finish()


@functools.cache
def filter_kernel(type: str, index: str, axes: int) -> SimtKernel:
    """Shares of dw of x and dy: thread i computes share i / (taps * filters) of element i % (taps * filters)."""
    wide = sum_type(type)
    k = KernelBuilder(f"depthwise_filter_{type}", BLOCK)
    x, dy, out = k.buffer("x", type), k.buffer("dy", type), k.buffer("shares", wide, written=True)
    w = WindowScalars(k, index, axes)
    multiplier = k.scalar("multiplier", index)
    all_filters, count, length = k.mul(w.channels, multiplier), k.scalar("count", index), k.scalar("length", index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, count)):
        taps = k.mul(w.kernel[0], k.mul(w.kernel[1], w.kernel[2]))
        share, t, number = split(k, i, taps, all_filters)
        channel, tap = k.div(number, multiplier), split(k, t, *w.kernel[1:])
        positions = k.mul(w.batch, k.mul(w.out[0], k.mul(w.out[1], w.out[2])))
        first = k.mul(share, length)
        last = k.add(first, length)
        last = k.select(k.compare("slt", last, positions), last, positions)
        total = k.variable(k.number(0, wide))
        with k.loop(first, last) as position:
            n, *p = split(k, position, *w.out)
            where, holds = w.seen(p, tap)
            with k.when(holds):
                value = k.convert(k.load(x, place(k, [n, *where, channel], w.x)), wide)
                gradient = k.convert(k.load(dy, place(k, [n, *p, number], w.y)), wide)
                total.set(k.fma(value, gradient, total.get()))
        k.store(out, i, total.get())
    return k.finish()


def _of_types(type: str, made: str) -> str:
    """The types of a kernel in its name."""
    return type if made == type else f"{type}_to_{made}"


def launch_forward(device: Any, g: Geometry, multiplier: int, x: Any, w: Any, y: Any) -> None:
    count = g.outputs * g.channels * multiplier
    kernel = forward_kernel(llvm_type(x.dtype), index_type(x, w, y), g.axes, llvm_type(y.dtype))
    device.launch(kernel, blocks_of(count), x, w, y, *g.numbers, multiplier, count)


def launch_input(device: Any, g: Geometry, multiplier: int, w: Any, dy: Any, dx: Any) -> None:
    count = g.inputs * g.channels
    kernel = input_kernel(llvm_type(dy.dtype), index_type(w, dy, dx), g.axes, llvm_type(dx.dtype))
    device.launch(kernel, blocks_of(count), w, dy, dx, *g.numbers, multiplier, count)


def launch_filter(device: Any, g: Geometry, multiplier: int, x: Any, dy: Any, dw: Any) -> None:
    numbers = g.taps * g.channels * multiplier
    shares, length = shares_of(g.outputs, numbers)
    type = llvm_type(x.dtype)
    partial = device.empty((shares, numbers), "float64" if type == "double" else "float32")
    kernel = filter_kernel(type, index_type(x, dy, partial), g.axes)
    device.launch(kernel, blocks_of(shares * numbers), x, dy, partial, *g.numbers, multiplier, shares * numbers, length)
    launch_merge(device, SUM, type, partial, [dw])
