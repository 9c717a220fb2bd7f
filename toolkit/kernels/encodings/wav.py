"""WAV files of 16-bit samples: RIFF chunks to float audio and back."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import struct

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.types import Array

_SCALE = 1 << 15
_PCM = 1
_BITS = 16
_MOST_CHUNK = (1 << 31) - 1
#: chunks that may stand between the head and the format: padding and what broadcasters add
_SKIPPED = {b"JUNK", b"bext", b"iXML", b"qlty", b"mext", b"levl", b"link", b"axml"}


def encode(samples: Array, rate: int) -> bytes:
    """The file of float audio [frames, channels] in [-1, 1]; what is outside is clipped."""
    _, channels = samples.shape
    scaled = samples.astype(np.float64) * _SCALE
    whole = np.trunc(scaled + np.copysign(0.5, scaled))  # halves away from zero
    data = np.clip(whole, -_SCALE, _SCALE - 1).astype("<i2").tobytes()
    block = channels * 2
    header = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, _PCM, channels, rate,
                         rate * block & 0xFFFFFFFF, block & 0xFFFF, _BITS, b"data", len(data))  # fmt: skip
    return header + data


class _Reader:
    def __init__(self, data: bytes):
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        part = self.data[self.at : self.at + count]
        if len(part) < count:
            raise InvalidArgumentError("Data too short when trying to read string")
        self.at += count
        return part

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def expect(self, text: bytes) -> None:
        found = self.take(len(text))
        if found != text:
            raise InvalidArgumentError(f"Header mismatch: Expected {text.decode()} but found {found!r}")


def decode(data: bytes) -> tuple[Array, int]:
    """float32 audio [frames, channels] in [-1, 1) and the sample rate.

    Raises:
        InvalidArgumentError: the file is damaged, compressed or not of 16-bit samples.
    """
    reader = _Reader(data)
    reader.expect(b"RIFF")
    reader.number(4)
    reader.expect(b"WAVE")
    chunk = reader.take(4)
    while chunk != b"fmt ":
        if chunk not in _SKIPPED:
            raise InvalidArgumentError(f"Unexpected field {chunk!r}")
        reader.take(reader.number(4))
        chunk = reader.take(4)
    channels, rate = _format(reader)
    found: Array | None = None
    while reader.at < len(data):
        chunk, size = reader.take(4), reader.number(4)
        if size > _MOST_CHUNK:
            raise InvalidArgumentError(f"WAV data chunk {chunk!r} is too large: {size} bytes of {_MOST_CHUNK}")
        if chunk != b"data":
            reader.at += size
            continue
        if found is not None:
            raise InvalidArgumentError("More than one data chunk found in WAV")
        frames = size // (2 * channels)
        samples = np.frombuffer(reader.take(2 * channels * frames), "<i2")
        found = samples.astype(np.float32).reshape(frames, channels) * np.float32(1 / _SCALE)
    if found is None:
        raise InvalidArgumentError("No data chunk found in WAV")
    return found, rate


def _format(reader: _Reader) -> tuple[int, int]:
    """Channels and sample rate from the format chunk."""
    size = reader.number(4)
    if size not in (16, 18):
        raise InvalidArgumentError(f"Bad format chunk size for WAV: Expected 16 or 18, but got {size}")
    kind, channels, rate, per_second, per_frame, bits = (reader.number(n) for n in (2, 2, 4, 4, 2, 2))
    if kind != _PCM:
        raise InvalidArgumentError(f"Bad audio format for WAV: Expected 1 (PCM), but got {kind}")
    if channels < 1:
        raise InvalidArgumentError(f"Bad number of channels for WAV: Expected at least 1, but got {channels}")
    if bits != _BITS:
        raise InvalidArgumentError(f"Can only read 16-bit WAV files, but received {bits}")
    if per_frame != 2 * channels:
        raise InvalidArgumentError(f"Bad bytes per sample in WAV header: Expected {2 * channels} but got {per_frame}")
    if per_second != per_frame * rate & 0xFFFFFFFF:
        raise InvalidArgumentError(
            f"Bad bytes per second in WAV header: Expected {per_frame * rate} but got {per_second}"
        )
    reader.at += size - 16  # unused
    return channels, rate
