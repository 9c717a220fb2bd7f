"""Discrete cosine transforms of types I to IV, by Fourier transforms; the modified one of audio codecs."""

from __future__ import annotations

import math
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import cond
from toolkit.client.math import math_ops
from toolkit.client.signals.fourier import irfft, rfft
from toolkit.client.signals.framing import frame, overlap_and_add
from toolkit.client.signals.windows import scalar, vorbis_window
from toolkit.graph import dtypes

#: the transform that undoes one of another type, but for a factor
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def _check(x: Tensor, type: int, n: int | None, axis: int, norm: str | None) -> None:
    if axis != -1:
        raise NotImplementedError(f"axis: transforms are along the last axis, -1, not {axis}; transpose before")
    if n is not None and n < 1:
        raise ValueError(f"n: expected a length of 1 or more, got {n}")
    if type not in _INVERSE:
        raise ValueError(f"type: expected 1, 2, 3 or 4, got {type}")
    if norm not in (None, "ortho"):
        raise ValueError(f"norm: expected None or 'ortho', got {norm!r}")
    if type == 1 and norm == "ortho":
        raise ValueError("norm: the transform of type 1 has no orthonormal form")
    last = x.static_shape[-1] if x.static_shape.rank else None
    if type == 1 and last is not None and last < 2:
        raise ValueError(f"input: the transform of type 1 needs two values or more, got shape {x.static_shape}")


def dct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> Tensor:
    """The cosine transform along the last axis, as scipy.fftpack scales it.

    Args:
        n: the length of the transform: longer inputs are cut, shorter ones filled up with zeros.
        norm: 'ortho' for an orthonormal transform.

    Raises:
        ValueError: a type, length or norm that there is not.
        NotImplementedError: another axis.
    """
    _check(input, type, n, axis, norm)
    return _transform(input, type, n, norm, name)


def idct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, name: str | None = None
) -> Tensor:
    """The inverse of `dct` of the same type; without a norm, but for a factor."""
    _check(input, type, n, axis, norm)
    return _transform(input, _INVERSE[type], n, norm, name)


def _last_size(x: Tensor) -> Any:
    known = x.static_shape[-1] if x.static_shape.rank else None
    return known or array_ops.shape(x)[-1]


def _of_length(x: Tensor, n: Any, size: Any) -> Tensor:
    """Cut or filled up to a length."""

    def cut() -> Tensor:
        return x[..., 0:n]

    def padded() -> Tensor:
        margins: list[Any] = [[0, 0] for _ in x.static_shape]
        margins[-1][1] = n - size
        return array_ops.pad(x, convert_to_tensor(margins, dtypes.int32))

    fits = n <= size
    if not isinstance(fits, Tensor):
        return cut() if fits else padded()
    known = static_value(fits)
    if known is not None:
        return cut() if known else padded()
    return cond(fits, cut, padded)


def _turn(x: Tensor, scale: Tensor) -> Tensor:
    """Complex numbers of a real part and the imaginary one."""
    with name_scope(None, "Complex") as scope:
        wide = dtypes.complex128 if x.dtype.base is dtypes.float64 else dtypes.complex64
        return ops.complex(x, scale, Tout=wide, name=scope)


def _real_part(x: Tensor) -> Tensor:
    with name_scope(None, "Real", [x]) as scope:
        return ops.real(x, Tout=math_ops.real_type(x.dtype), name=scope) if x.dtype.base.is_complex else x


def _weights(first: Tensor, others: Tensor, size: Any) -> Tensor:
    """A weight for the first value, another one for the rest."""
    return array_ops.pad(array_ops.expand_dims(first, 0), [[0, size - 1]], constant_values=others)


def _transform(x: TensorLike, type: int, n: Any, norm: str | None, name: str | None) -> Tensor:
    with name_scope(name, "dct", [x]):
        x = convert_to_tensor(x)
        zero = convert_to_tensor(0.0, x.dtype.base)
        size = _last_size(x)
        if n is not None:
            x = _of_length(x, n, size)
        count = _last_size(x)
        floats = math_ops.cast(count, x.dtype.base)
        if type == 1:
            return _real_part(rfft(array_ops.concat([x, x[..., -2:0:-1]], -1)))
        if type == 4:
            doubled = _transform(x, 2, 2 * count, None, None)
            odd = doubled[..., 1::2]
            return odd * (math.sqrt(0.5) * ops.rsqrt(floats)) if norm == "ortho" else odd
        if type == 2:
            turns = -math_ops.range(floats) * math.pi * 0.5 / floats
            scale = 2.0 * ops.exp(_turn(zero, turns))
            found = _real_part(rfft(x, [2 * count])[..., :count] * scale)
            if norm != "ortho":
                return found
            first = 0.5 * ops.rsqrt(floats)
            return found * _weights(first, first * math.sqrt(2.0), count)
        if norm == "ortho":
            first = ops.sqrt(floats)
            x = x * _weights(first, first * math.sqrt(0.5), count)
        else:
            x = x * floats
        turns = math_ops.range(floats) * math.pi * 0.5 / floats
        scale = 2.0 * ops.exp(_turn(zero, turns))
        return _real_part(irfft(scale * _turn(x, zero), [2 * count]))[..., :count]


def mdct(
    signals: TensorLike, frame_length: TensorLike, window_fn: Any = vorbis_window, pad_end: bool = False,
    norm: str | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The modified cosine transform: [..., samples] becomes [..., frames, frame_length / 2].

    Args:
        frame_length: a multiple of 4; frames overlap by half of it.
        window_fn: a window function, None for none.

    Raises:
        ValueError: the length is no multiple of 4.
    """
    with name_scope(name, "mdct", [signals, frame_length]):
        signals = convert_to_tensor(signals, name="signals")
        length = scalar(frame_length, "frame_length")
        known = static_value(length)
        if known is None:
            step = length // 2
        elif int(known) % 4:
            raise ValueError(f"frame_length: expected a multiple of 4, got {int(known)}")
        else:
            step = constant(int(known) // 2, length.dtype.base)
        frames = frame(signals, length, step, pad_end=pad_end)
        frames = frames * (_SQRT_HALF if window_fn is None else window_fn(length, dtype=frames.dtype.base))
        quarters = array_ops.split(frames, 4, axis=-1)
        first = -array_ops.reverse(quarters[2], [-1]) - quarters[3]
        second = quarters[0] - array_ops.reverse(quarters[1], [-1])
        return dct(array_ops.concat([first, second], -1), type=4, norm=norm)


def inverse_mdct(
    mdcts: TensorLike, window_fn: Any = vorbis_window, norm: str | None = None, name: str | None = None
) -> Tensor:
    """`mdct` undone, for windows whose overlapping squares add up to 1."""
    with name_scope(name, "inverse_mdct", [mdcts]):
        mdcts = convert_to_tensor(mdcts, name="mdcts")
        if norm not in (None, "ortho"):
            raise ValueError(f"norm: expected None or 'ortho', got {norm!r}")
        last = mdcts.static_shape[-1] if mdcts.static_shape.rank else None
        if last is None:
            raise ValueError(f"mdcts: the last size of '{mdcts.name}' is not known; set_shape says it")
        half = math_ops.cast(last, dtypes.int32)
        if norm is None:
            floats = math_ops.cast(half, mdcts.dtype.base)
            found = 0.5 / floats * dct(mdcts, type=4)
        else:
            found = dct(mdcts, type=4, norm="ortho")
        low, high = array_ops.split(found, 2, axis=-1)
        mirrored = [high, -array_ops.reverse(high, [-1]), -array_ops.reverse(low, [-1]), -low]
        frames = array_ops.concat(mirrored, -1)
        frames = frames * (_SQRT_HALF if window_fn is None else window_fn(2 * half, dtype=mdcts.dtype.base))
        return overlap_and_add(frames, half)


_SQRT_HALF = 1.0 / math.sqrt(2)
