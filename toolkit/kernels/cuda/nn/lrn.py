"""Local response normalization over near channels (A. Krizhevsky et al. 2012): a thread for each number.

Sums and powers are in double, and rounded once; the channels are last.
"""

from __future__ import annotations

import functools

from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.common import BLOCK, split
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import KernelBuffer, SimtKernel


class _Writer:
    def __init__(self, name: str, index: str):
        self.k = KernelBuilder(name, BLOCK)
        self.index = index

    def declare(self) -> None:
        k = self.k
        self.bias, self.alpha, self.beta = (k.scalar(name, "float") for name in ("bias", "alpha", "beta"))
        self.radius, self.channels, self.count = (
            k.scalar(name, self.index) for name in ("radius", "channels", "count")
        )

    def norm(self, x: KernelBuffer, row: Lanes, channel: Lanes) -> Lanes:
        """bias + alpha * the sum of squares of near channels, in float as the CPU rounds it."""
        k = self.k
        total = k.variable(k.number(0.0, "double"))
        with k.loop(*self.near(channel)) as c:
            value = k.load(x, k.add(row, c))
            total.set(k.add(total.get(), k.convert(k.mul(value, value), "double")))
        return k.add(self.bias, k.mul(self.alpha, k.convert(total.get(), "float")))

    def near(self, channel: Lanes) -> tuple[Lanes, Lanes]:
        """The first channel that is near, and the one behind the last."""
        k = self.k
        zero = k.number(0, self.index)
        first = k.sub(channel, self.radius)
        last = k.add(k.add(channel, self.radius), k.number(1, self.index))
        return (
            k.select(k.compare("slt", first, zero), zero, first),
            k.select(k.compare("slt", last, self.channels), last, self.channels),
        )

    def power(self, norm: Lanes) -> Lanes:
        """norm ** -beta."""
        k = self.k
        exponent = k.mul(functions.log(k, k.convert(norm, "double")), k.neg(k.convert(self.beta, "double")))
        return k.convert(functions.exp(k, exponent), "float")


@functools.cache
def forward_kernel(index: str) -> SimtKernel:
    w = _Writer("lrn", index)
    k = w.k
    x, y = k.buffer("x", "float"), k.buffer("y", "float", written=True)
    w.declare()
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, w.count)):
        _, channel = split(k, i, w.channels)
        k.store(y, i, k.mul(k.load(x, i), w.power(w.norm(x, k.sub(i, channel), channel))))
    return k.finish()


@functools.cache
def gradient_kernel(index: str) -> SimtKernel:
    """dx of dy, x and y; norms of near channels are computed again, for they are few."""
    w = _Writer("lrn_gradient", index)
    k = w.k
    dy, x, y = (k.buffer(name, "float") for name in ("dy", "x", "y"))
    dx = k.buffer("dx", "float", written=True)
    w.declare()
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, w.count)):
        _, channel = split(k, i, w.channels)
        row = k.sub(i, channel)
        through = k.variable(k.number(0.0, "double"))
        with k.loop(*w.near(channel)) as c:
            at = k.add(row, c)
            part = k.div(k.mul(k.load(dy, at), k.load(y, at)), w.norm(x, row, c))
            through.set(k.add(through.get(), k.convert(part, "double")))
        first = k.mul(k.load(dy, i), w.power(w.norm(x, row, channel)))
        twice = k.mul(k.mul(k.number(2.0, "float"), w.alpha), w.beta)
        k.store(dx, i, k.sub(first, k.mul(k.mul(twice, k.load(x, i)), k.convert(through.get(), "float"))))
    return k.finish()
