"""Making Summary messages: histograms with TensorFlow's buckets, pictures, sounds, tensors."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from schemas import histogram_pb2, summary_pb2
from toolkit.errors import InvalidArgumentError
from toolkit.formats.arrays.tensor import from_array
from toolkit.graph.dtypes import DType
from toolkit.kernels.encodings import wav
from toolkit.kernels.encodings.png import encode_png
from toolkit.kernels.types import Array

Summary = summary_pb2.Summary
_LARGEST = float(np.finfo(np.float64).max)


@functools.cache
def bucket_limits() -> Array:
    """Upper ends of the default buckets: growing by a tenth from 1e-12 to 1e20, mirrored below zero."""
    positive: list[float] = []
    limit = 1e-12
    while limit < 1e20:
        positive.append(limit)
        limit *= 1.1
    positive.append(_LARGEST)
    return np.array([-v for v in reversed(positive)] + [0.0, *positive])


def histogram(values: Array, what: str) -> histogram_pb2.HistogramProto:
    """The histogram of all elements; runs of empty buckets are one.

    Raises:
        InvalidArgumentError: a value is not finite.
    """
    flat = values.reshape(-1).astype(np.float64)
    if np.isnan(flat).any():
        raise InvalidArgumentError(f"Nan in summary histogram for: {what}")
    if np.isinf(flat).any():
        raise InvalidArgumentError(f"Infinity in summary histogram for: {what}")
    limits = bucket_limits()
    out = histogram_pb2.HistogramProto(num=flat.size, sum=flat.sum(), sum_squares=np.square(flat).sum())
    # what an empty histogram starts from
    out.min = float(flat.min()) if flat.size else _LARGEST
    out.max = float(flat.max()) if flat.size else -_LARGEST
    counts: list[int] = np.bincount(np.searchsorted(limits, flat, side="right"), minlength=len(limits)).tolist()
    at = 0
    while at < len(limits):
        end, count = float(limits[at]), counts[at]
        at += 1
        if count == 0:
            while at < len(limits) and counts[at] == 0:
                end = float(limits[at])
                at += 1
        out.bucket_limit.append(end)
        out.bucket.append(count)
    if not out.bucket:
        out.bucket_limit.append(_LARGEST)
        out.bucket.append(0)
    return out


def _as_bytes(image: Array, bad_color: Array) -> Array:
    """uint8 of a float image [height, width, channels]: the largest value becomes 255, or when there are negative
    ones the largest magnitude becomes 127 around 128. Pixels that are not finite get `bad_color`."""
    wide = image.astype(np.float32)
    good = np.isfinite(wide).all(axis=-1)
    values = wide[good]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    if low < 0:
        largest = max(abs(low), abs(high))
        scale, offset = (0.0 if largest < 1e-6 else 127.0 / largest), 128.0
    else:
        scale, offset = (0.0 if high < 1e-6 else 255.0 / high), 0.0
    out = np.empty(image.shape, np.uint8)
    out[...] = bad_color
    out[good] = (values * np.float32(scale) + np.float32(offset)).astype(np.uint8)
    return out


def add_images(summary: Any, tag: str, images: Array, most: int, bad_color: Array) -> None:
    """Add the first `most` images of [batch, height, width, channels].

    Raises:
        InvalidArgumentError: another rank, or a number of channels other than 1, 3 or 4.
    """
    if images.ndim != 4 or images.shape[3] not in (1, 3, 4):
        raise InvalidArgumentError(f"Tensor must be 4-D with last dim 1, 3, or 4, not {list(images.shape)}")
    _, height, width, channels = images.shape
    if 0 in images.shape[1:]:
        raise InvalidArgumentError(f"images must not be empty: {list(images.shape)}")
    if bad_color.size < channels:
        raise InvalidArgumentError(f"expected bad_color of {channels} values, got {bad_color.size}")
    for number, image in enumerate(images[:most]):
        value = summary.value.add(tag=f"{tag}/image/{number}" if most > 1 else f"{tag}/image")
        pixels = image if image.dtype == np.uint8 else _as_bytes(image, bad_color[:channels])
        value.image.height, value.image.width, value.image.colorspace = height, width, channels
        value.image.encoded_image_string = encode_png(np.ascontiguousarray(pixels))


def add_audio(summary: Any, tag: str, sounds: Array, rate: float, most: int) -> None:
    """Add the first `most` sounds of [batch, frames] or [batch, frames, channels].

    Raises:
        InvalidArgumentError: another rank, or no positive sample rate.
    """
    if sounds.ndim not in (2, 3):
        raise InvalidArgumentError(f"Tensor must be 3-D or 2-D, got: {list(sounds.shape)}")
    if not rate > 0:
        raise InvalidArgumentError("sample_rate must be > 0")
    for number, sound in enumerate(sounds[:most]):
        value = summary.value.add(tag=f"{tag}/audio/{number}" if most > 1 else f"{tag}/audio")
        frames = sound.reshape(len(sound), -1)
        value.audio.sample_rate, value.audio.num_channels = rate, frames.shape[1]
        value.audio.length_frames, value.audio.content_type = frames.shape[0], "audio/wav"
        value.audio.encoded_audio_string = wav.encode(frames, int(rate))


def add_tensor(value: Any, tensor: Array, dtype: DType) -> None:
    """Put a tensor into a Summary.Value."""
    value.tensor.CopyFrom(from_array(tensor, dtype))
