"""Discrete Fourier transforms over the last axes."""

from __future__ import annotations

from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require, require_vector, shape_text, to_ints, wrap_axis
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_DIMENSIONS = {"": 1, "2D": 2, "3D": 3}


@kernel("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D", "BatchFFT", "BatchFFT2D", "BatchFFT3D",
        "BatchIFFT", "BatchIFFT2D", "BatchIFFT3D")  # fmt: skip
def fft(op: KernelNode) -> Compute:
    inverse = "IFFT" in op.op
    rank = _DIMENSIONS[op.op.rpartition("FFT")[2]]
    function = np.fft.ifftn if inverse else np.fft.fftn

    def compute(x: Array) -> Array:
        require(x.ndim >= rank, f"Input must have rank of at least {rank} but got: {shape_text(x)}")
        if x.size == 0:
            return x
        return function(x, axes=range(-rank, 0)).astype(x.dtype)

    return compute


def _crop_or_pad(x: Array, sizes: list[int], axes: list[int]) -> Array:
    """Bring axes to given sizes: cut at the end, or fill up with zeros."""
    for axis, size in zip(axes, sizes, strict=True):
        have = x.shape[axis]
        if size < have:
            x = np.take(x, np.arange(size), axis=axis)
        elif size > have:
            x = np.concatenate(
                [x, np.zeros([size - have if i == axis % x.ndim else s for i, s in enumerate(x.shape)], x.dtype)], axis
            )
    return x


def _real_transform(x: Array, lengths: list[int], axes: list[int], inverse: bool, dtype: Array) -> Array:
    """RFFT keeps size // 2 + 1 of the last axis's frequencies; IRFFT completes them by symmetry."""
    if any(size == 0 for size in lengths):
        return np.zeros([0 if i in axes else s for i, s in enumerate(x.shape)], dtype)
    if inverse:
        kept = [*lengths[:-1], lengths[-1] // 2 + 1]
        x = _crop_or_pad(x, kept, axes)
        return np.fft.irfftn(x, s=lengths, axes=axes).astype(dtype)
    return np.fft.rfftn(_crop_or_pad(x, lengths, axes), axes=axes).astype(dtype)


def checked_lengths(x: Any, fft_length: Array, rank: int, *, inverse: bool) -> list[int]:
    """The lengths of a real transform's axes.

    Args:
        x: an array of any memory.

    Raises:
        InvalidArgumentError: there are fewer axes, or one is shorter than its length asks for.
    """
    require(x.ndim >= rank, f"Input must have rank of at least {rank} but got: {shape_text(x)}")
    require(fft_length.shape == (rank,), f"fft_length must have shape [{rank}], got {shape_text(fft_length)}")
    lengths = to_ints(fft_length)
    require(min(lengths) >= 0, f"fft_length must be >= 0, but got {lengths}")
    have = list(x.shape[-rank:])
    for i, size in enumerate(lengths):
        least = size // 2 + 1 if inverse and i == rank - 1 else size
        require(
            have[i] == 0 or have[i] >= least,
            f"Input dimension {x.ndim - rank + i} must have length of at least {least} but got: {have[i]}",
        )
    return lengths


def checked_axes(x: Any, fft_length: Array, axes_input: Array) -> tuple[list[int], list[int]]:
    """The axes of a transform, from the front, and their lengths.

    Args:
        x: an array of any memory.

    Raises:
        InvalidArgumentError: an axis is not there, or there twice, or has no length.
    """
    require_vector(fft_length, "fft_length")
    require_vector(axes_input, "axes")
    require(len(fft_length) == len(axes_input), "axes and fft_length must have the same length")
    axes = [wrap_axis(a, x.ndim) for a in to_ints(axes_input)]
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError(f"axes {axes} holds an axis twice")
    return axes, to_ints(fft_length)


@kernel("RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D")
def rfft(op: KernelNode) -> Compute:
    inverse = op.op.startswith("I")
    rank = _DIMENSIONS[op.op.rpartition("FFT")[2]]
    dtype = op.output_types[0].numpy
    real, wide = op.attr("Treal"), op.attr("Tcomplex")
    require(
        real.numpy.itemsize * 2 == wide.numpy.itemsize,
        f"Wrong types for {'backward' if inverse else 'forward'} real FFT: {real} and {wide}",
    )

    def compute(x: Array, fft_length: Array) -> Array:
        lengths = checked_lengths(x, fft_length, rank, inverse=inverse)
        axes = list(range(x.ndim - rank, x.ndim))
        if x.size == 0:
            shape = [*x.shape[:-rank], *lengths]
            shape[-1] = lengths[-1] if inverse else lengths[-1] // 2 + 1
            return np.zeros(shape, dtype)
        return _real_transform(x, lengths, axes, inverse, dtype)

    return compute


@kernel("FFTND", "IFFTND", "RFFTND", "IRFFTND")
def fft_nd(op: KernelNode) -> Compute:
    """Transforms over the axes given, each cut or zero-padded to its length."""
    real, inverse = "RFFT" in op.op, op.op.startswith("I")
    dtype = op.output_types[0].numpy

    def compute(x: Array, fft_length: Array, axes_input: Array) -> Array:
        axes, lengths = checked_axes(x, fft_length, axes_input)
        if real:
            return _real_transform(x, lengths, axes, inverse, dtype)
        x = _crop_or_pad(x, lengths, axes)
        if x.size == 0:
            return x.astype(dtype)
        return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=axes).astype(dtype)

    return compute
