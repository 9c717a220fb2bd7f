"""Signals cut into frames, and frames added up to signals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import while_loop
from toolkit.client.math import math_ops
from toolkit.client.signals.windows import scalar
from toolkit.graph import dtypes


def _known(value: Any) -> Any:
    """A constant's value, or the tensor itself."""
    found = static_value(value)
    return value if found is None else found


def gcd(a: Tensor, b: Tensor) -> Tensor:
    """The greatest common divisor, by Euclid's algorithm."""
    with name_scope(None, "gcd", [a, b]):
        known = static_value(a), static_value(b)
        if known[0] is not None and known[1] is not None:
            return constant(math.gcd(int(known[0]), int(known[1])), dtypes.int32)
        found = while_loop(
            lambda _, y: ops.greater(y, array_ops.zeros_like(y)), lambda x, y: [y, x % y], [a, b], back_prop=False
        )
        return found[0]


def frame(
    signal: TensorLike,
    frame_length: TensorLike,
    frame_step: TensorLike,
    pad_end: bool = False,
    pad_value: TensorLike = 0,
    axis: TensorLike = -1,
    name: str | None = None,
) -> Tensor:
    """Frames of a signal: [..., samples, ...] becomes [..., frames, frame_length, ...].

    Args:
        frame_step: how many samples one frame begins after the other.
        pad_end: the last samples are kept, with `pad_value` after them.
    """
    with name_scope(name, "frame", [signal, frame_length, frame_step, pad_value]):
        signal = convert_to_tensor(signal, name="signal")
        length, step = scalar(frame_length, "frame_length"), scalar(frame_step, "frame_step")
        along = scalar(axis, "axis")
        if signal.static_shape.rank == 0:
            raise ValueError("signal: expected one axis or more, got one number")
        known_shape = _shape_of_frames(signal, length, step, pad_end, along)
        shape: Any = _known(array_ops.shape(signal))
        outer, samples, inner, at = _around(signal, shape, along)
        outer_rank, inner_rank = array_ops.size(outer), array_ops.size(inner)
        if pad_end:
            pad_value = convert_to_tensor(pad_value, signal.dtype.base)
            count = -(-samples // step)
            missing = ops.maximum(0, length + step * (count - 1) - samples)
            kind = missing.dtype.base
            before = array_ops.zeros([outer_rank, 2], kind)
            along_axis = convert_to_tensor([[0, missing]])
            paddings = array_ops.concat([before, along_axis, array_ops.zeros([inner_rank, 2], kind)], 0)
            signal = ops.pad_v2(signal, paddings, pad_value)
            shape = array_ops.shape(signal)
            samples = shape[at]
        else:
            kind = length.dtype.base
            count = ops.maximum(constant(0, kind), 1 + (samples - length) // step)
        return _gathered(signal, shape, (outer, samples, inner, at), (length, step, count), known_shape)


def _gathered(signal: Tensor, shape: Any, parts: Any, sizes: Any, known_shape: Any) -> Tensor:
    """Frames put together of the longest pieces that all of them are made of."""
    outer, samples, inner, axis = parts
    length, step, count = sizes
    piece = _known(gcd(length, step))
    per_frame, per_step = length // piece, step // piece
    pieces = samples // piece
    whole = array_ops.concat([outer, [pieces * piece], inner], 0)
    cut = array_ops.concat([outer, [pieces, piece], inner], 0)
    subframes = array_ops.reshape(array_ops.strided_slice(signal, array_ops.zeros_like(shape), whole), cut)
    kind = length.dtype.base
    firsts = array_ops.reshape(math_ops.range(count, dtype=kind) * per_step, [count, 1])
    chosen = firsts + array_ops.reshape(math_ops.range(per_frame, dtype=kind), [1, per_frame])
    outer = convert_to_tensor(outer)
    inner = convert_to_tensor(inner, outer.dtype.base)
    middle = convert_to_tensor([count, length], outer.dtype.base)
    frames = array_ops.gather(subframes, chosen, axis=axis)
    frames = array_ops.reshape(frames, array_ops.concat([outer, middle, inner], 0))
    if known_shape is not None:
        frames.set_shape(known_shape)
    return frames


def _around(signal: Tensor, shape: Any, axis: Tensor) -> tuple[Any, Any, Any, Any]:
    """The sizes before an axis, along it and behind it, and the axis from 0 on."""
    at = static_value(axis)
    if not isinstance(shape, Tensor) and at is not None:
        sizes: Any = shape
        chosen = range(len(sizes))[int(at)]
        return sizes[:chosen], int(sizes[chosen]), sizes[chosen + 1 :], chosen
    rank = array_ops.rank(signal)
    place = math_ops.range(rank)[axis if at is None else int(at)]
    outer, samples, inner = array_ops.split(shape, [place, 1, rank - 1 - place])
    return outer, array_ops.reshape(samples, []), inner, place


def _shape_of_frames(signal: Tensor, length: Tensor, step: Tensor, pad_end: bool, axis: Tensor) -> Any:
    rank = signal.static_shape.rank
    if rank is None:
        return None
    values = [static_value(length), static_value(step), static_value(axis)]
    size, hop, at = (None if value is None else int(value) for value in values)
    if at is None:
        return [None] * (rank + 1)
    sizes = list(signal.static_shape)
    samples, count = sizes[at], None
    if samples is not None and hop is not None:
        if pad_end:
            count = max(0, -(-samples // hop))
        elif size is not None:
            count = max(0, (samples - size + hop) // hop)
    return [*sizes[:at], count, size, *sizes[at:][1:]]


def overlap_and_add(signal: TensorLike, frame_step: TensorLike, name: str | None = None) -> Tensor:
    """`frame` undone: [..., frames, frame_length] becomes [..., samples], where frames overlap they add up.

    Raises:
        ValueError: the step is no integer, or there are no frames.
    """
    with name_scope(name, "overlap_and_add", [signal, frame_step]):
        signal = convert_to_tensor(signal, name="signal")
        if signal.static_shape.rank in (0, 1):
            raise ValueError(f"signal: expected [..., frames, frame_length], got shape {signal.static_shape}")
        hop = scalar(frame_step, "frame_step")
        if not hop.dtype.base.is_integer:
            raise ValueError(f"frame_step: expected an integer, got {hop.dtype.base}")
        known = static_value(hop)
        step: Any = hop if known is None else int(known)
        shape: Any = _known(array_ops.shape(signal))
        outer = shape[:-2]
        outer_rank: Any = _known(array_ops.size(outer))

        def whole(*sizes: Any) -> Tensor:
            return array_ops.concat([outer, list(sizes)], 0)

        length, frames = shape[-1], shape[-2]
        samples = length + step * (frames - 1)
        if known is not None and signal.static_shape.rank is not None and step == signal.static_shape[-1]:
            return array_ops.reshape(signal, whole(samples), name="fast_path")
        segments = -(-length // step)
        margins = [[0, segments], [0, segments * step - length]]
        paddings = array_ops.concat([array_ops.zeros([outer_rank, 2], dtypes.int32), margins], 0)
        signal = array_ops.pad(signal, paddings)
        signal = array_ops.reshape(signal, whole(frames + segments, segments, step))
        order: Any = array_ops.concat([math_ops.range(outer_rank), outer_rank + np.array([1, 0, 2])], 0)
        signal = array_ops.transpose(signal, _known(order))
        signal = array_ops.reshape(signal, whole((frames + segments) * segments, step))
        signal = signal[..., : (frames + segments - 1) * segments, :]
        signal = array_ops.reshape(signal, whole(segments, frames + segments - 1, step))
        signal = math_ops.reduce_sum(signal, -3)
        signal = array_ops.reshape(signal, whole((frames + segments - 1) * step))
        return signal[..., :samples]
