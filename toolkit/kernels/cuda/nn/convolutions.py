"""Convolutions and their gradients as products of implicit matrices: no matrix of windows is made in memory.

Filters are as TensorFlow has them: (kernel..., channels / groups, filters).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.common import (
    Geometry,
    WindowScalars,
    index_type,
    llvm_type,
    place,
    split,
    sum_type,
)
from toolkit.kernels.cuda.nn.tiles import BLOCK, tiles_of, write_tiles
from toolkit.kernels.cuda.simt.builder import KernelBuilder, RegisterVariable
from toolkit.kernels.cuda.simt.ir import KernelBuffer, SimtKernel


@functools.cache
def convolution_kernel(kind: str, type: str, index: str, axes: int, made: str = "") -> SimtKernel:
    """
    Args:
        kind: "forward" (x, w to y), "input" (w, dy to dx), "filter" (x, dy to dw).
        type: of numbers in memory.
        axes: 2 or 3.
        made: of the result's numbers in memory; "" for the same.
    """
    k = KernelBuilder(f"convolution_{kind}_{type}", BLOCK)
    made = made or type
    writer = _Writer(k, type, index, made)
    first = k.buffer({"forward": "x", "input": "w", "filter": "x"}[kind], type)
    second = k.buffer({"forward": "w", "input": "dy", "filter": "dy"}[kind], type)
    out = k.buffer("out", made, written=True)
    writer.declare(axes)
    {"forward": writer.forward, "input": writer.input, "filter": writer.filter}[kind](first, second, out)
    return k.finish()


class _Writer:
    """Writes one kernel. Channels and filters in the names below are those of a group."""

    def __init__(self, k: KernelBuilder, type: str, index: str, made: str):
        self.k = k
        self.made = made
        self.wide = sum_type(type)
        self.index = index
        self.group: Lanes = k.number(0, index)

    def declare(self, axes: int) -> None:
        k = self.k
        self.w = WindowScalars(k, self.index, axes)
        self.filters = k.scalar("filters", self.index)
        self.all_filters = k.scalar("all_filters", self.index)
        self.taps = self._count(self.w.kernel)
        self.window = k.mul(self.taps, self.w.channels)  # elements of a window
        self.outputs = k.mul(self.w.batch, self._count(self.w.out))
        self.inputs = k.mul(self.w.batch, self._count(self.w.sizes))

    def _count(self, sizes: Sequence[Lanes]) -> Lanes:
        k = self.k
        total = sizes[0]
        for size in sizes[1:]:
            total = k.mul(total, size)
        return total

    def _prepare(self, group: Lanes) -> None:
        self.group = group

    def _channel(self, channel: Lanes, per_group: Lanes) -> Lanes:
        """Of all channels, given one of the group's."""
        return self.k.add(self.k.mul(self.group, per_group), channel)

    def _guarded(self, holds: Lanes, buffer: KernelBuffer, where: Lanes) -> Lanes:
        """An element, or 0 where it is padding."""
        k = self.k
        value = self._zero()
        with k.when(holds):
            value.set(k.convert(k.load(buffer, where), self.wide))
        return value.get()

    def _zero(self) -> RegisterVariable:
        return self.k.variable(self.k.number(0, self.wide))

    def _seen(self, x: KernelBuffer, output: Lanes, element: Lanes) -> Lanes:
        """What an output's window has at an element (tap and channel)."""
        k, w = self.k, self.w
        n, *p = split(k, output, *w.out)
        *tap, channel = split(k, element, *w.kernel[1:], w.channels)
        where, holds = w.seen(p, tap)
        return self._guarded(holds, x, place(k, [n, *where, self._channel(channel, w.channels)], w.x))

    def _gradient(self, dy: KernelBuffer, output: Lanes, number: Lanes) -> Lanes:
        k, w = self.k, self.w
        n, *p = split(k, output, *w.out)
        return k.convert(k.load(dy, place(k, [n, *p, self._channel(number, self.filters)], w.y)), self.wide)

    def _weight_place(self, element: Lanes, number: Lanes) -> Lanes:
        """Where a filter has the element of a window."""
        return self.k.add(self.k.mul(element, self.all_filters), self._channel(number, self.filters))

    def forward(self, x: KernelBuffer, weights: KernelBuffer, out: KernelBuffer) -> None:
        k, w = self.k, self.w

        def store(output: Lanes, number: Lanes, values: Sequence[Lanes]) -> None:
            n, *p = split(k, output, *w.out)
            where = place(k, [n, *p, self._channel(number, self.filters)], w.y)
            k.store(out, where, k.convert(values[0], self.made))

        write_tiles(
            k, (self.outputs, self.filters, self.window), self._prepare,
            lambda output, element: [self._seen(x, output, element)],
            lambda element, number: [k.convert(k.load(weights, self._weight_place(element, number)), self.wide)],
            store, self.wide,
        )  # fmt: skip

    def filter(self, x: KernelBuffer, dy: KernelBuffer, out: KernelBuffer) -> None:
        k = self.k

        def store(element: Lanes, number: Lanes, values: Sequence[Lanes]) -> None:
            k.store(out, self._weight_place(element, number), k.convert(values[0], self.made))

        write_tiles(
            k, (self.window, self.filters, self.outputs), self._prepare,
            lambda element, output: [self._seen(x, output, element)],
            lambda output, number: [self._gradient(dy, output, number)],
            store, self.wide,
        )  # fmt: skip

    def input(self, weights: KernelBuffer, dy: KernelBuffer, out: KernelBuffer) -> None:
        """Each position adds up what the outputs give back that saw it: a product over taps and filters."""
        k, w = self.k, self.w

        def load_gradient(position: Lanes, element: Lanes) -> Sequence[Lanes]:
            n, *h = split(k, position, *w.sizes)
            *tap, number = split(k, element, *w.kernel[1:], self.filters)
            where, holds = w.seeing(h, tap)
            return [self._guarded(holds, dy, place(k, [n, *where, self._channel(number, self.filters)], w.y))]

        def load_weight(element: Lanes, channel: Lanes) -> Sequence[Lanes]:
            tap = k.div(element, self.filters)
            number = k.sub(element, k.mul(tap, self.filters))
            of_window = k.add(k.mul(tap, w.channels), channel)
            return [k.convert(k.load(weights, self._weight_place(of_window, number)), self.wide)]

        def store(position: Lanes, channel: Lanes, values: Sequence[Lanes]) -> None:
            n, *h = split(k, position, *w.sizes)
            where = place(k, [n, *h, self._channel(channel, w.channels)], w.x)
            k.store(out, where, k.convert(values[0], self.made))

        depth = k.mul(self.taps, self.filters)
        write_tiles(
            k, (self.inputs, w.channels, depth), self._prepare, load_gradient, load_weight, store, self.wide
        )  # fmt: skip


def launch_convolution(device: Any, kind: str, g: Geometry, groups: int, filters: int, arrays: Sequence[Any]) -> None:
    """A convolution or a gradient, on the device's compute stream.

    Args:
        g: with the channels of a group.
        groups, filters: of all.
        arrays: the two operands, of one type, and the result.
    """
    out = arrays[-1]
    rows, columns = {
        "forward": (g.outputs, filters // groups),
        "filter": (g.taps * g.channels, filters // groups),
        "input": (g.inputs, g.channels),
    }[kind]
    kernel = convolution_kernel(kind, llvm_type(arrays[0].dtype), index_type(*arrays), g.axes, llvm_type(out.dtype))
    device.launch(
        kernel, groups * tiles_of(rows, columns), *arrays, *g.numbers, filters // groups, filters
    )  # fmt: skip
