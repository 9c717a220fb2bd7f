"""Short-time Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.signals.fourier import irfft, rfft
from toolkit.client.signals.framing import frame, overlap_and_add
from toolkit.client.signals.windows import hann_window, scalar
from toolkit.graph import dtypes


def _power_of_two(value: Tensor) -> Tensor:
    """The smallest power of two that is not less."""
    known = static_value(value)
    if known is not None:
        return constant(int(2 ** np.ceil(np.log(known) / np.log(2.0))), value.dtype.base)
    exponent = ops.ceil(ops.log(math_ops.cast(value, dtypes.float32)) / ops.log(2.0))
    with name_scope(None, "Pow", [exponent]) as scope:
        power = ops.pow(2.0, exponent, name=scope)
    return math_ops.cast(power, value.dtype.base)


def stft(
    signals: TensorLike, frame_length: TensorLike, frame_step: TensorLike, fft_length: TensorLike = None,
    window_fn: Any = hann_window, pad_end: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Spectra of frames: [..., samples] becomes complex [..., frames, fft_length / 2 + 1].

    Args:
        fft_length: where it is None, the smallest power of two that frames fit into.
        window_fn: a function of a length and a type, None for no window.
        pad_end: zeros behind the signal, so that all of it is in frames.
    """
    with name_scope(name, "stft", [signals, frame_length, frame_step]):
        signals = convert_to_tensor(signals, name="signals")
        length, step = scalar(frame_length, "frame_length"), scalar(frame_step, "frame_step")
        size = _power_of_two(length) if fft_length is None else convert_to_tensor(fft_length, name="fft_length")
        frames = frame(signals, length, step, pad_end=pad_end)
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=frames.dtype.base)
        return rfft(frames, [size])


def inverse_stft_window_fn(
    frame_step: TensorLike, forward_window_fn: Any = hann_window, name: str | None = None
) -> Callable[..., Tensor]:
    """The window for `inverse_stft` with which it undoes an `stft` with another window, step for step."""

    def window(frame_length: TensorLike, dtype: Any) -> Tensor:
        with name_scope(name, "inverse_stft_window_fn", [forward_window_fn]):
            step, length = scalar(frame_step, "frame_step"), scalar(frame_length, "frame_length")
            forward = forward_window_fn(length, dtype=dtype)
            squares = ops.square(forward)
            overlaps = -(-length // step)
            squares = array_ops.pad(squares, [(0, overlaps * step - length)])
            squares = array_ops.reshape(squares, [overlaps, step])
            sums = array_ops.tile(math_ops.reduce_sum(squares, 0, keepdims=True), [overlaps, 1])
            sums = array_ops.reshape(sums, [overlaps * step])[:length]
            return array_ops.where(ops.equal(sums, 0.0), array_ops.zeros_like(forward), forward / sums)

    return window


def inverse_stft(
    stfts: TensorLike, frame_length: TensorLike, frame_step: TensorLike, fft_length: TensorLike = None,
    window_fn: Any = hann_window, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Signals of spectra, [..., frames, fft_length / 2 + 1]; see `inverse_stft_window_fn` for the window."""
    with name_scope(name, "inverse_stft", [stfts]):
        stfts = convert_to_tensor(stfts, name="stfts")
        if stfts.static_shape.rank in (0, 1):
            raise ValueError(f"stfts: expected [..., frames, bins], got shape {stfts.static_shape}")
        length, step = scalar(frame_length, "frame_length"), scalar(frame_step, "frame_step")
        size = _power_of_two(length) if fft_length is None else scalar(fft_length, "fft_length")
        frames = _of_length(irfft(stfts, [size]), length)
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=math_ops.real_type(stfts.dtype))
        return overlap_and_add(frames, step)


def _of_length(frames: Tensor, length: Tensor) -> Tensor:
    """Frames cut or filled up with zeros."""
    found, known = static_value(length), frames.static_shape
    wanted = None if found is None else int(found)
    own = known[-1] if known.rank else None
    if wanted is None or own is None:
        frames = frames[..., :length]
        rank, shape = array_ops.rank(frames), array_ops.shape(frames)
        before = array_ops.zeros([rank - 1, 2], length.dtype.base)
        paddings = array_ops.concat([before, [[0, ops.maximum(0, length - shape[-1])]]], 0)
        frames = array_ops.pad(frames, paddings)
    elif own > wanted:
        frames = frames[..., :wanted]
    elif own < wanted:
        frames = array_ops.pad(frames, [[0, 0]] * (len(known) - 1) + [[0, wanted - own]])
    if wanted is not None and frames.static_shape.rank is not None:
        frames.set_shape([None] * (len(frames.static_shape) - 1) + [wanted])
    return frames
