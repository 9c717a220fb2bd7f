"""Pools over windows of up to three axes: a thread for each output, or for each input of a gradient.

Padding takes no part. Which element of a window is its maximum is kept as the number of its tap, so that gradients are
gathered: each input adds up, in a fixed order, the outputs that it was the maximum of.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from toolkit.kernels.cpu.native.code import Lanes
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
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel

_LOWEST = -math.inf
#: the 3-D gradient goes to every element so near to its window's maximum, as TensorFlow has it
_NEAR = 1e-5


class _Pool:
    """What the kernels of this module have in common: a thread for each output or input, and loops over taps."""

    def __init__(self, name: str, type: str, index: str, axes: int):
        self.k = KernelBuilder(f"{name}_{type}", BLOCK)
        self.type, self.wide, self.index, self.axes = type, sum_type(type), index, axes

    def declare(self) -> None:
        self.w = WindowScalars(self.k, self.index, self.axes)
        self.count = self.k.scalar("count", self.index)
        self.thread = self.k.global_thread(self.index)

    def load(self, buffer: Any, where: Lanes) -> Lanes:
        return self.k.convert(self.k.load(buffer, where), self.wide)

    def output(self) -> list[Lanes]:
        """Batch, axes and channel of the thread's output."""
        return split(self.k, self.thread, *self.w.out, self.w.channels)

    def over_taps(self, n: Lanes, p: list[Lanes], channel: Lanes, visit: Callable[[Lanes, Lanes], None]) -> None:
        """Call with the tap and the place in x, for each element of a window that is inside."""
        w = self.w
        w.over_seen(p, lambda tap, where: visit(w.tap_number(tap), place(self.k, [n, *where, channel], w.x)))

    def over_windows(self, n: Lanes, h: list[Lanes], channel: Lanes, visit: Callable[..., None]) -> None:
        """Call with the tap, the place in y, and the output's axes, for each window that sees a position."""
        w = self.w
        w.over_seeing(h, lambda tap, where: visit(w.tap_number(tap), place(self.k, [n, *where, channel], w.y), where))


@functools.cache
def max_kernel(type: str, index: str, axes: int) -> SimtKernel:
    """Maxima; NaN wins."""
    pool = _Pool("max_pool", type, index, axes)
    k = pool.k
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    pool.declare()
    with k.when(k.compare("slt", pool.thread, pool.count)):
        n, *p, channel = pool.output()
        best = k.variable(k.number(_LOWEST, pool.wide))

        def visit(tap: Lanes, where: Lanes) -> None:
            value, now = pool.load(x, where), best.get()
            wins = k.either(k.compare("ogt", value, now), k.compare("uno", value, value))
            best.set(k.select(wins, value, now))

        pool.over_taps(n, p, channel, visit)
        k.store(y, place(k, [n, *p, channel], pool.w.y), k.convert(best.get(), type))
    return k.finish()


@functools.cache
def tap_kernel(type: str, index: str, axes: int, positions: str) -> SimtKernel:
    """Maxima and the first tap that has each; or where that is in the input.

    Args:
        positions: "" for taps (i32), "example" or "batch" for places in channels-last inputs (i64).
    """
    pool = _Pool(f"max_pool_{positions or 'tap'}", type, index, axes)
    k = pool.k
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    taps = k.buffer("taps", "i64" if positions else "i32", written=True)
    pool.declare()
    with k.when(k.compare("slt", pool.thread, pool.count)):
        n, *p, channel = pool.output()
        best = k.variable(k.number(_LOWEST, pool.wide))
        tap_of, place_of = k.variable(k.number(-1, index)), k.variable(k.number(0, index))

        def visit(tap: Lanes, where: Lanes) -> None:
            value = pool.load(x, where)
            better = k.compare("ogt", value, best.get())
            better = k.either(better, k.compare("slt", tap_of.get(), k.number(0, index)))
            with k.when(better):
                best.set(value)
                tap_of.set(tap)
                place_of.set(where)

        pool.over_taps(n, p, channel, visit)
        at = place(k, [n, *p, channel], pool.w.y)
        k.store(y, at, k.convert(best.get(), type))
        found: Lanes = place_of.get() if positions else tap_of.get()
        if positions == "example":
            found = k.sub(found, k.mul(n, pool.w.x[0]))
        k.store(taps, at, k.convert(found, taps.type))
    return k.finish()


@functools.cache
def max_gradient_kernel(type: str, index: str, axes: int) -> SimtKernel:
    """dx of dy and of the taps that had the maxima."""
    pool = _Pool("max_pool_gradient", type, index, axes)
    k = pool.k
    dy, taps, dx = k.buffer("dy", type), k.buffer("taps", "i32"), k.buffer("dx", type, written=True)
    pool.declare()
    with k.when(k.compare("slt", pool.thread, pool.count)):
        n, *h, channel = split(k, pool.thread, *pool.w.sizes, pool.w.channels)
        total = k.variable(k.number(0.0, pool.wide))

        def visit(tap: Lanes, where: Lanes, _: Any) -> None:
            with k.when(k.compare("eq", k.convert(k.load(taps, where), index), tap)):
                total.set(k.add(total.get(), pool.load(dy, where)))

        pool.over_windows(n, h, channel, visit)
        k.store(dx, place(k, [n, *h, channel], pool.w.x), k.convert(total.get(), type))
    return k.finish()


@functools.cache
def near_gradient_kernel(type: str, index: str, axes: int) -> SimtKernel:
    """dx where each element near its window's maximum has the output's gradient."""
    pool = _Pool("max_pool_gradient_of_near", type, index, axes)
    k = pool.k
    x, y, dy, dx = k.buffer("x", type), k.buffer("y", type), k.buffer("dy", type), k.buffer("dx", type, written=True)
    pool.declare()
    with k.when(k.compare("slt", pool.thread, pool.count)):
        n, *h, channel = split(k, pool.thread, *pool.w.sizes, pool.w.channels)
        here = place(k, [n, *h, channel], pool.w.x)
        value = pool.load(x, here)
        total = k.variable(k.number(0.0, pool.wide))

        def visit(tap: Lanes, where: Lanes, _: Any) -> None:
            distance = k.intrinsic("fabs", k.sub(value, pool.load(y, where)))
            with k.when(k.compare("olt", distance, k.number(_NEAR, pool.wide))):
                total.set(k.add(total.get(), pool.load(dy, where)))

        pool.over_windows(n, h, channel, visit)
        k.store(dx, here, k.convert(total.get(), type))
    return k.finish()


@functools.cache
def pick_kernel(type: str, index: str, axes: int) -> SimtKernel:
    """ddy of ddx: for each output what the input's gradient has at the tap of its maximum."""
    pool = _Pool("max_pool_second_gradient", type, index, axes)
    k = pool.k
    ddx, taps, ddy = k.buffer("ddx", type), k.buffer("taps", "i32"), k.buffer("ddy", type, written=True)
    pool.declare()
    with k.when(k.compare("slt", pool.thread, pool.count)):
        n, *p, channel = pool.output()
        at = place(k, [n, *p, channel], pool.w.y)
        tap = k.convert(k.load(taps, at), index)
        where, _ = pool.w.seen(p, split(k, tap, *pool.w.kernel[1:]))
        k.store(ddy, at, k.load(ddx, place(k, [n, *where, channel], pool.w.x)))
    return k.finish()


@functools.cache
def average_kernel(type: str, index: str, axes: int) -> SimtKernel:
    """Sums of what is inside, over how many that are."""
    pool = _Pool("average_pool", type, index, axes)
    k = pool.k
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    pool.declare()
    with k.when(k.compare("slt", pool.thread, pool.count)):
        n, *p, channel = pool.output()
        total = k.variable(k.number(0.0, pool.wide))
        number = k.variable(k.number(0.0, pool.wide))

        def visit(tap: Lanes, where: Lanes) -> None:
            total.set(k.add(total.get(), pool.load(x, where)))
            number.set(k.add(number.get(), k.number(1.0, pool.wide)))

        pool.over_taps(n, p, channel, visit)
        mean = k.div(total.get(), number.get())
        k.store(y, place(k, [n, *p, channel], pool.w.y), k.convert(mean, type))
    return k.finish()


@functools.cache
def average_gradient_kernel(type: str, index: str, axes: int) -> SimtKernel:
    """Each input has its share of the windows that see it."""
    pool = _Pool("average_pool_gradient", type, index, axes)
    k = pool.k
    dy, dx = k.buffer("dy", type), k.buffer("dx", type, written=True)
    pool.declare()
    w = pool.w
    with k.when(k.compare("slt", pool.thread, pool.count)):
        n, *h, channel = split(k, pool.thread, *w.sizes, w.channels)
        total = k.variable(k.number(0.0, pool.wide))
        zero = k.number(0, index)

        def visit(tap: Lanes, where: Lanes, output: list[Lanes]) -> None:
            number: Lanes = k.number(1, index)
            for p, stride, pad, size, length in zip(output, w.strides, w.pads, w.sizes, w.kernel, strict=True):
                first = k.sub(k.mul(p, stride), pad)
                last = k.add(first, length)
                last = k.select(k.compare("slt", last, size), last, size)
                first = k.select(k.compare("slt", first, zero), zero, first)
                number = k.mul(number, k.sub(last, first))
            total.set(k.add(total.get(), k.div(pool.load(dy, where), k.convert(number, pool.wide))))

        pool.over_windows(n, h, channel, visit)
        k.store(dx, place(k, [n, *h, channel], w.x), k.convert(total.get(), type))
    return k.finish()


def over_outputs(device: Any, make: Callable[..., SimtKernel], g: Geometry, *arrays: Any, more: Any = ()) -> None:
    """Launch a kernel with a thread for each output; nothing where there are none."""
    _launch(device, make, g, g.outputs * g.channels, arrays, more)


def over_inputs(device: Any, make: Callable[..., SimtKernel], g: Geometry, *arrays: Any) -> None:
    """Launch a kernel with a thread for each input."""
    _launch(device, make, g, g.inputs * g.channels, arrays, ())


def _launch(
    device: Any, make: Callable[..., SimtKernel], g: Geometry, count: int, arrays: tuple[Any, ...], more: Any
) -> None:
    if count:
        kernel = make(llvm_type(arrays[0].dtype), index_type(*arrays), g.axes, *more)
        device.launch(kernel, blocks_of(count), *arrays, *g.numbers, count)
