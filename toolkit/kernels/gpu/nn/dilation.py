"""Grey-scale dilation and its gradients.

First the tap that gives each output its maximum is found, the first of several. Gradients then go to where that is:
each number of the input, or of the filter, looks for its outputs, so that no two threads add to one.
"""

from __future__ import annotations

import functools

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cpu.nn.dilation import check_backprop, dilation_spec, dilation_windows
from toolkit.kernels.cpu.nn.window import Windows
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, SimtKernel, Value
from toolkit.kernels.gpu.primitives.block_sums import sum_of_block
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode

_NARROW = ("half", "bfloat")


def _wide(type: str) -> str:
    return "float" if type in _NARROW else type


def _rounded(k: KernelBuilder, value: Lanes, type: str) -> Value:
    """A number computed in float32 as one of a narrow type."""
    return k.convert(k.convert(value, type), value.type)


class _Geometry:
    """Of windows, as arguments: on each axis sizes of the input and the filter, strides, rates and padding."""

    def __init__(self, k: KernelBuilder, index: str):
        names = ("size", "taps", "stride", "rate", "pad")
        self.axes = [{name: k.scalar(f"{axis}_{name}", index) for name in names} for axis in ("row", "column")]
        self._k, self._index = k, index

    @staticmethod
    def numbers(windows: Windows) -> tuple[int, ...]:
        parts = zip(windows.sizes, windows.kernel, windows.strides, windows.dilations, windows.pads, strict=True)
        return tuple(number for *some, (before, _) in parts for number in (*some, before))

    def tapped(self, axis: int, out: Lanes, tap: Lanes) -> tuple[Value, Value]:
        """The input that an output sees through a tap, and whether it is there."""
        k, of = self._k, self.axes[axis]
        at = k.sub(k.add(k.mul(out, of["stride"]), k.mul(tap, of["rate"])), of["pad"])
        return at, k.compare("ult", at, of["size"])

    def seen(self, axis: int, at: Lanes, tap: Lanes, outs: Lanes) -> tuple[Value, Value]:
        """The output that sees an input through a tap, and whether it is there."""
        k, of = self._k, self.axes[axis]
        zero = k.number(0, self._index)
        shifted = k.sub(k.add(at, of["pad"]), k.mul(tap, of["rate"]))
        out = k.div(shifted, of["stride"])
        whole = k.compare("eq", k.mul(out, of["stride"]), shifted)
        return out, k.both(k.both(whole, k.compare("sge", shifted, zero)), k.compare("slt", out, outs))


@functools.cache
def _maxima(type: str, index: str, gives_taps: bool) -> SimtKernel:
    """The maxima, or the numbers of the taps that they are from."""
    k = KernelBuilder(f"dilation_{'taps' if gives_taps else 'maxima'}_{type}", BLOCK)
    x, w = k.buffer("x", type), k.buffer("w", type)
    y = k.buffer("y", "i32" if gives_taps else type, written=True)
    n, geometry = k.scalar("n", index), _Geometry(k, index)
    sizes = [Divisor.argument(k, name, index) for name in ("rows", "columns", "channels")]
    rows, columns = geometry.axes
    wide = _wide(type)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        image, row, column, c = coordinates(k, i, sizes)
        best, chosen = k.variable(k.number(0.0, wide)), k.variable(k.number(-1, "i32"))
        with k.loop(0, rows["taps"]) as a:
            at_row, inside = geometry.tapped(0, row, a)
            with k.when(inside), k.loop(0, columns["taps"]) as b:
                at_column, inside = geometry.tapped(1, column, b)
                with k.when(inside):
                    tap = k.add(k.mul(a, columns["taps"]), b)
                    place = k.add(k.mul(image, rows["size"]), at_row)
                    place = k.add(k.mul(place, columns["size"]), at_column)
                    given = k.convert(k.load(x, k.add(k.mul(place, sizes[2].size), c)), wide)
                    weight = k.convert(k.load(w, k.add(k.mul(tap, sizes[2].size), c)), wide)
                    value = _rounded(k, k.add(given, weight), type)
                    is_first = k.compare("slt", chosen.get(), k.number(0, "i32"))
                    with k.when(k.either(is_first, k.compare("ogt", value, best.get()))):
                        best.set(value)
                        chosen.set(k.convert(tap, "i32"))
        k.store(y, i, chosen.get() if gives_taps else k.convert(best.get(), type))
    return k.finish()


def _found(device: CudaDevice, windows: Windows, x: GpuArray, w: GpuArray, *, gives_taps: bool) -> GpuArray:
    """The maxima, or their taps."""
    shape = (x.shape[0], *windows.out, x.shape[3])
    y = device.empty(shape, "int32" if gives_taps else x.dtype)
    if y.size:
        index = index_type(y.size, x.size)
        kernel = _maxima(TYPES[x.dtype.name], index, gives_taps)
        numbers = _Geometry.numbers(windows)
        device.launch(kernel, blocks_for(y.size), x, w, y, y.size, *numbers, *divisors(shape[1:], index))
    return y


@gpu_kernel("Dilation2D")
def dilation(op: KernelNode) -> Compute:
    device, spec = device_of(op.node), dilation_spec(op)

    def compute(x: GpuArray, w: GpuArray) -> GpuArray:
        return _found(device, dilation_windows(spec, x, w), x, w, gives_taps=False)

    return compute


@functools.cache
def _input_gradient(type: str, index: str) -> SimtKernel:
    """A thread for each number of the input."""
    k = KernelBuilder(f"dilation_input_gradient_{type}", BLOCK)
    dy, taps, dx = k.buffer("dy", type), k.buffer("taps", "i32"), k.buffer("dx", type, written=True)
    n, geometry = k.scalar("n", index), _Geometry(k, index)
    out_rows, out_columns = k.scalar("out_rows", index), k.scalar("out_columns", index)
    sizes = [Divisor.argument(k, name, index) for name in ("rows", "columns", "channels")]
    rows, columns = geometry.axes
    wide = _wide(type)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        image, row, column, c = coordinates(k, i, sizes)
        total = k.variable(k.number(0.0, wide))
        with k.loop(0, rows["taps"]) as a:
            out_row, inside = geometry.seen(0, row, a, out_rows)
            with k.when(inside), k.loop(0, columns["taps"]) as b:
                out_column, inside = geometry.seen(1, column, b, out_columns)
                with k.when(inside):
                    place = k.add(k.mul(image, out_rows), out_row)
                    place = k.add(k.mul(place, out_columns), out_column)
                    place = k.add(k.mul(place, sizes[2].size), c)
                    tap = k.convert(k.add(k.mul(a, columns["taps"]), b), "i32")
                    with k.when(k.compare("eq", k.load(taps, place), tap)):
                        sum = k.add(total.get(), k.convert(k.load(dy, place), wide))
                        total.set(_rounded(k, sum, type))
        k.store(dx, i, k.convert(total.get(), type))
    return k.finish()


@gpu_kernel("Dilation2DBackpropInput")
def dilation_backprop_input(op: KernelNode) -> Compute:
    """Each output's gradient goes to the input that gave the maximum."""
    device, spec = device_of(op.node), dilation_spec(op)

    def compute(x: GpuArray, w: GpuArray, dy: GpuArray) -> GpuArray:
        windows = dilation_windows(spec, x, w)
        check_backprop(windows, x, dy)
        taps = _found(device, windows, x, w, gives_taps=True)
        dx = device.empty(x.shape, x.dtype)
        if dx.size:
            index = index_type(dx.size, dy.size)
            kernel = _input_gradient(TYPES[x.dtype.name], index)
            numbers = (*_Geometry.numbers(windows), *windows.out)
            device.launch(kernel, blocks_for(dx.size), dy, taps, dx, dx.size, *numbers, *divisors(x.shape[1:], index))
        return dx

    return compute


@functools.cache
def _filter_gradient(type: str, index: str) -> SimtKernel:
    """A block for each number of the filter."""
    k = KernelBuilder(f"dilation_filter_gradient_{type}", BLOCK)
    dy, taps, dw = k.buffer("dy", type), k.buffer("taps", "i32"), k.buffer("dw", type, written=True)
    pixels, channels = k.scalar("pixels", index), k.scalar("channels", "i32")
    wide = _wide(type)
    shared = k.shared("sums", wide, BLOCK)
    tap, c = k.div(k.block_index, channels), k.convert(k.rem(k.block_index, channels), index)
    total = k.variable(k.number(0.0, wide))
    with k.loop(k.convert(k.thread, index), pixels, BLOCK) as j:
        place = k.add(k.mul(j, k.convert(channels, index)), c)
        with k.when(k.compare("eq", k.load(taps, place), tap)):
            total.set(k.add(total.get(), k.convert(k.load(dy, place), wide)))
    whole = sum_of_block(k, shared, total.get())
    with k.when(k.compare("eq", k.thread, k.number(0, "i32"))):
        k.store(dw, k.block_index, k.convert(whole, type))
    return k.finish()


@gpu_kernel("Dilation2DBackpropFilter")
def dilation_backprop_filter(op: KernelNode) -> Compute:
    """Each output's gradient goes to the filter's tap that gave the maximum."""
    device, spec = device_of(op.node), dilation_spec(op)

    def compute(x: GpuArray, w: GpuArray, dy: GpuArray) -> GpuArray:
        windows = dilation_windows(spec, x, w)
        check_backprop(windows, x, dy)
        dw = device.empty(w.shape, w.dtype)
        if dw.size:
            taps = _found(device, windows, x, w, gives_taps=True)
            channels = w.shape[2]
            kernel = _filter_gradient(TYPES[w.dtype.name], index_type(dy.size))
            device.launch(kernel, dw.size, dy, taps, dw, dy.size // channels, channels)
        return dw

    return compute
