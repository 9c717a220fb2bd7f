"""FFT, RFFT and their inverses over one to three axes, or over those that are named.

A line whose length has no large prime factor is transformed in one launch, or in two where it does not fit into shared
memory (as a matrix: columns first, then rows). Others are convolved with a chirp (L. I. Bluestein, "A linear filtering
approach to the computation of discrete Fourier transform", 1970) by transforms of a power of two. What is longer than
two launches can do is the CPU's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toolkit.kernels import registry
from toolkit.kernels.boundary import through_copies
from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cpu.math.fft import checked_axes, checked_lengths
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.ir import TYPES
from toolkit.kernels.gpu.math import fourier_kernels
from toolkit.kernels.gpu.math.fourier_kernels import TransformForm
from toolkit.kernels.gpu.primitives.indexing import blocks_for
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array

_DIMENSIONS = {"": 1, "2D": 2, "3D": 3}


@dataclass(frozen=True, slots=True)
class Pass:
    """The transform of one axis.

    Attributes:
        axis: from the front.
        n: its length.
        inverse: the exponent is positive, and results are divided by n.
        source: what is read, as in `TransformForm`.
        is_real: of the results, the real part is kept.
        keep: results that are kept.
    """

    axis: int
    n: int
    inverse: bool
    source: str
    is_real: bool
    keep: int


def is_long(n: int, dtype: Any) -> bool:
    """Whether a line is longer than two launches can transform."""
    type = _type(dtype)
    if fourier_kernels.radices(n) is not None and _split(n, type) is not None:
        return False
    return _split(_padded(n), type) is None


def transformed(device: CudaDevice, x: GpuArray, each: Pass) -> GpuArray:
    """A tensor with one axis transformed; nothing of it is empty, and its length is not `is_long`."""
    shape = (*x.shape[: each.axis], each.keep, *x.shape[each.axis + 1 :])
    real = np.dtype(np.float32 if _type(x.dtype) == "float" else np.float64)
    y = device.empty(shape, real if each.is_real else np.result_type(real, np.complex64))
    outer, have, inner = math.prod(x.shape[: each.axis]), x.shape[each.axis], math.prod(x.shape[each.axis + 1 :])
    type = _type(x.dtype)
    scale = 1 / each.n if each.inverse else 1.0
    if fourier_kernels.radices(each.n) is None or _split(each.n, type) is None:
        _convolved(device, x, y, each, (outer, have, inner), scale)
    elif each.n <= fourier_kernels.most(type):
        form = TransformForm(each.n, 1, each.inverse, each.source, each.is_real)
        numbers = (have * inner, 0, inner), (each.keep * inner, 0, inner)
        _launch(device, form, x, y, (outer, 1, inner), (have, each.keep), *numbers, 0, scale)
    else:
        whole = _spread(device, x, each, (outer, have, inner))
        if each.keep == each.n and not each.is_real:
            _in_two(device, whole, y, each.n, (outer, inner), each.inverse, scale)
        else:
            made = device.empty(whole.shape, whole.dtype)
            _in_two(device, whole, made, each.n, (outer, inner), each.inverse, 1.0)
            _pointwise(device, made, y, replace(each, source="complex"), (outer, each.n, inner), scale)
    return y


def _type(dtype: Any) -> str:
    """The kernel's type of a part of a number."""
    return TYPES["float32" if np.dtype(dtype).name in ("float32", "complex64") else "float64"]


@functools.cache
def _split(n: int, type: str) -> tuple[int, int] | None:
    """Two factors of a length that fit into shared memory, the nearest ones; None where there are none."""
    most = fourier_kernels.most(type)
    if n <= most:
        return 1, n
    for first in range(math.isqrt(n), 0, -1):
        if n % first == 0:
            return (first, n // first) if n // first <= most else None
    return None


def _padded(n: int) -> int:
    """A power of two in which distances up to n on either side do not meet."""
    return 1 << (2 * n - 2).bit_length()


def _launch(
    device: CudaDevice, form: TransformForm, x: GpuArray, y: GpuArray, sizes: tuple[int, int, int],
    places: tuple[int, int], inner: Sequence[int], outer: Sequence[int], turn: int, scale: float,
) -> None:  # fmt: skip
    """See `fourier_kernels.transform`.

    Args:
        sizes: of (a, b, c).
        places: that there are, and that are kept.
        inner, outer: the steps of a, b and a place.
    """
    type = _type(x.dtype)
    count = math.prod(sizes)
    lines = fourier_kernels.lines_of_block(form.n, count, type)
    kernel = fourier_kernels.transform(type, replace(form, lines=lines, near=sizes[2] == 1))
    numbers = (count, *sizes[1:], *places, *inner, *outer, turn, scale)
    device.launch(kernel, blocks_for(count, lines), x, y, *numbers)


def _in_two(
    device: CudaDevice, x: GpuArray, y: GpuArray, n: int, around: tuple[int, int], inverse: bool, scale: float
) -> None:
    """Lines of complex numbers [outer, n, inner] by one launch where they fit into shared memory, else by two."""
    outer, inner = around
    found = _split(n, _type(x.dtype))
    assert found is not None
    rows, columns = found
    if rows == 1:
        steps = (n * inner, 0, inner)
        _launch(device, TransformForm(n, 1, inverse), x, y, (outer, 1, inner), (n, n), steps, steps, 0, scale)
        return
    between = device.empty(x.shape, x.dtype)
    steps = (n * inner, inner, columns * inner)
    form = TransformForm(rows, 1, inverse, twisted=True)
    _launch(device, form, x, between, (outer, columns, inner), (rows, rows), steps, steps, n, 1.0)
    form = TransformForm(columns, 1, inverse)
    taken, given = (n * inner, columns * inner, inner), (n * inner, inner, rows * inner)
    _launch(device, form, between, y, (outer, rows, inner), (columns, columns), taken, given, 0, scale)


def _pointwise(
    device: CudaDevice, x: GpuArray, y: GpuArray, each: Pass, sizes: tuple[int, int, int], scale: float,
    *, multiplied: bool = False,
) -> None:  # fmt: skip
    """Numbers of `x` in the places of `y`, complex or real, with or without the chirp."""
    outer, have, inner = sizes
    kernel = fourier_kernels.chirped(
        _type(x.dtype), each.inverse, each.source, is_real=each.is_real, multiplied=multiplied
    )
    places = y.size // (outer * inner)
    device.launch(kernel, blocks_for(y.size), x, y, y.size, have, places, inner, each.n, scale)


def _spread(device: CudaDevice, x: GpuArray, each: Pass, sizes: tuple[int, int, int]) -> GpuArray:
    """All n places of lines as complex numbers; the tensor itself where it is that."""
    outer, have, inner = sizes
    if each.source == "complex" and have == each.n:
        return x
    made = device.empty((outer, each.n, inner), np.result_type(x.dtype, np.complex64))
    _pointwise(device, x, made, replace(each, is_real=False), sizes, 1.0)
    return made


def _convolved(
    device: CudaDevice, x: GpuArray, y: GpuArray, each: Pass, sizes: tuple[int, int, int], scale: float
) -> None:
    """Lines of any length, as convolutions with a chirp."""
    outer, _, inner = sizes
    type, m = _type(x.dtype), _padded(each.n)
    complex_type = np.result_type(x.dtype, np.complex64)
    by = device.empty((m,), complex_type)
    device.launch(fourier_kernels.chirp_filter(type, each.inverse), blocks_for(m), by, each.n, m)
    spectrum = device.empty((m,), complex_type)
    _in_two(device, by, spectrum, m, (1, 1), False, 1.0)
    lines, moved = (device.empty((outer, m, inner), complex_type) for _ in range(2))
    _pointwise(device, x, lines, replace(each, is_real=False), sizes, 1.0, multiplied=True)
    _in_two(device, lines, moved, m, (outer, inner), False, 1.0)
    device.launch(fourier_kernels.filtered(type), blocks_for(moved.size), moved, spectrum, moved.size, m, inner)
    _in_two(device, moved, lines, m, (outer, inner), True, 1 / m)
    _pointwise(device, lines, y, replace(each, source="complex"), (outer, m, inner), scale, multiplied=True)


# -- ops ---------------------------------------------------------------------------------------------------------------


def _passes(axes: Sequence[int], lengths: Sequence[int], *, real: bool, inverse: bool) -> list[Pass]:
    """The transforms of some axes, in their order: the real side of a real one is the last axis."""
    found = [Pass(axis, n, inverse, "complex", is_real=False, keep=n) for axis, n in zip(axes, lengths, strict=True)]
    if real and inverse:
        found[-1] = replace(found[-1], source="half", is_real=True)
    elif real:
        found[-1] = replace(found[-1], source="real", keep=lengths[-1] // 2 + 1)
        found.reverse()
    return found


def _run(op: KernelNode) -> Callable[[GpuArray, list[Pass], tuple[Array, ...]], GpuArray]:
    """What transforms a tensor; one with too long an axis by the CPU, which takes the other arguments."""
    device = device_of(op.node)
    by_cpu = functools.cache(lambda: through_copies(registry.get(op.node, "CPU", defining=True))(op))
    dtype = op.output_types[0].numpy

    def run(x: GpuArray, passes: list[Pass], others: tuple[Array, ...]) -> GpuArray:
        shape = list(x.shape)
        for each in passes:
            shape[each.axis] = each.keep
        if any(each.n == 0 for each in passes):
            shape = [0 if any(each.axis == i for each in passes) else size for i, size in enumerate(shape)]
        if not x.size or 0 in shape:
            return device.zeros(shape, dtype)
        if any(is_long(each.n, x.dtype) for each in passes):
            return by_cpu()(x, *others)
        for each in passes:
            x = transformed(device, x, each)
        return x

    return run


@gpu_kernel("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D", "BatchFFT", "BatchFFT2D", "BatchFFT3D",
            "BatchIFFT", "BatchIFFT2D", "BatchIFFT3D")  # fmt: skip
def fft(op: KernelNode) -> Compute:
    inverse, rank = "IFFT" in op.op, _DIMENSIONS[op.op.rpartition("FFT")[2]]
    run = _run(op)

    def compute(x: GpuArray) -> GpuArray:
        require(x.ndim >= rank, f"Input must have rank of at least {rank} but got: {shape_text(x)}")
        if not x.size:
            return x
        axes = range(x.ndim - rank, x.ndim)
        return run(x, _passes(axes, x.shape[-rank:], real=False, inverse=inverse), ())

    return compute


@gpu_kernel("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D")
def rfft(op: KernelNode) -> Compute:
    inverse, rank = op.op.startswith("I"), _DIMENSIONS[op.op.rpartition("FFT")[2]]
    run = _run(op)
    real, wide = op.attr("Treal"), op.attr("Tcomplex")
    require(
        real.numpy.itemsize * 2 == wide.numpy.itemsize,
        f"Wrong types for {'backward' if inverse else 'forward'} real FFT: {real} and {wide}",
    )

    def compute(x: GpuArray, fft_length: Array) -> GpuArray:
        lengths = checked_lengths(x, fft_length, rank, inverse=inverse)
        axes = range(x.ndim - rank, x.ndim)
        if not x.size:
            kept = [*lengths[:-1], lengths[-1] if inverse else lengths[-1] // 2 + 1]
            return device_of(op.node).zeros((*x.shape[:-rank], *kept), op.output_types[0].numpy)
        return run(x, _passes(axes, lengths, real=True, inverse=inverse), (fft_length,))

    return compute


@gpu_kernel("FFTND", "IFFTND", "RFFTND", "IRFFTND")
def fft_nd(op: KernelNode) -> Compute:
    """Over the axes given, each cut or zero-padded to its length."""
    real, inverse = "RFFT" in op.op, op.op.startswith("I")
    run = _run(op)

    def compute(x: GpuArray, fft_length: Array, axes_input: Array) -> GpuArray:
        axes, lengths = checked_axes(x, fft_length, axes_input)
        return run(x, _passes(axes, lengths, real=real, inverse=inverse), (fft_length, axes_input))

    return compute
