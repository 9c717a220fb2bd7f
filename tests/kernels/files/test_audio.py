"""WAV files, spectrograms and cepstral coefficients against TensorFlow."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.kernels.op_suite import SAME, Case, check, run_ours, sample, suite
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.encodings import wav

pytestmark = pytest.mark.tensorflow


def text(data: bytes) -> Any:
    return np.array(data, object)


def file(channels: int = 2, frames: int = 9, rate: int = 16000) -> bytes:
    return wav.encode(sample("float32", (frames, channels), -1.2, 1.2), rate)


def changed(at: int, form: str, value: int) -> bytes:
    data = bytearray(file())
    struct.pack_into(form, data, at, value)
    return bytes(data)


def files() -> Iterator[Case]:
    for channels, frames in product((1, 2, 5), (0, 1, 9)):
        audio = sample("float32", (frames, channels), -1.2, 1.2)
        yield Case("EncodeWav", [audio, np.int32(16000)])
        for wanted, count in product((-1, 1, 2, 3, 7), (-1, 0, 5, 20)):
            attrs = {"desired_channels": wanted, "desired_samples": count}
            yield Case("DecodeWav", [text(wav.encode(audio, 44100))], attrs, id=f"{channels}-{frames}-{wanted}-{count}")
    halves = (np.arange(-9, 9, dtype=np.float32) / 65536).reshape(-1, 1)
    yield Case("EncodeWav", [halves, np.int32(8000)], id="halves")
    data = file()
    head, body = data[:12], data[12:]
    fmt, rest = data[12:36], data[36:]
    longer = b"fmt " + struct.pack("<I", 18) + fmt[8:] + b"\0\0"
    extra = b"bext" + struct.pack("<I", 5) + b"12345"
    for what, contents in (
        ("broadcast", head + extra + body), ("eighteen", head + longer + rest),
        ("chunk-after", data + b"LIST" + struct.pack("<I", 3) + b"abc"), ("chunk-past", data + b"LIST\xff\0\0\0"),
        ("chunk-between", head + fmt + b"fact" + struct.pack("<I", 4) + b"abcd" + rest),
    ):  # fmt: skip
        yield Case("DecodeWav", [text(contents)], id=what)
    for what, contents in (
        ("empty", b""), ("no-riff", b"RIFX" + data[4:]), ("no-wave", data[:8] + b"WAVX" + data[12:]),
        ("field", head + b"what" + data[12:]), ("format-size", changed(16, "<I", 20)), ("float", changed(20, "<H", 3)),
        ("no-channel", changed(22, "<H", 0)), ("8-bit", changed(34, "<H", 8)), ("per-frame", changed(32, "<H", 5)),
        ("per-second", changed(28, "<I", 5)), ("large", changed(40, "<I", 1 << 31)), ("short", data[:-3]),
        ("no-data", data[:36]), ("two", data + rest), ("cut", data[:30]), ("long-data", changed(40, "<I", 400)),
        ("odd-size", changed(40, "<I", 35)),
    ):  # fmt: skip
        yield Case("DecodeWav", [text(contents)], error="INVALID_ARGUMENT", id=what)
    yield Case("DecodeWav", [text(data)], {"desired_channels": -2}, error="INVALID_ARGUMENT")
    yield Case("DecodeWav", [text(data)], {"desired_samples": -2}, error="INVALID_ARGUMENT")
    yield Case("DecodeWav", [np.array([data], object)], error="INVALID_ARGUMENT", id="vector")
    for audio, rate in ((np.zeros(3), 1), (np.zeros((3, 1)), [1]), (np.zeros((3, 1)), 0), (np.zeros((3, 0)), 5)):
        yield Case("EncodeWav", [audio.astype(np.float32), np.int32(rate)], error="INVALID_ARGUMENT")
    yield Case("EncodeWav", [np.zeros((3, 1), np.float32), np.int32(-5)], error=SAME)


def spectra() -> Iterator[Case]:
    for samples, channels, size, stride in product((1, 40, 700), (1, 3), (2, 32, 33, 256), (1, 16, 300)):
        for squared in (False, True):
            attrs = {"window_size": size, "stride": stride, "magnitude_squared": squared}
            yield Case("AudioSpectrogram", [sample("float32", (samples, channels), -1, 1)], attrs)
    sound = sample("float32", (40, 1))
    yield Case("AudioSpectrogram", [sound[:, :0]], {"window_size": 8, "stride": 4})
    for size, stride in ((1, 1), (0, 1), (8, 0), (8, -1)):  # of a negative size TensorFlow 2.21 may die
        yield Case("AudioSpectrogram", [sound], {"window_size": size, "stride": stride}, error="INVALID_ARGUMENT")
    yield Case("AudioSpectrogram", [sound[:, 0]], {"window_size": 8, "stride": 4}, error="INVALID_ARGUMENT")


def coefficients() -> Iterator[Case]:
    for bins, rate, channels, count in product((65, 257), (8000, 16000, 4000), (20, 40), (1, 13)):
        attrs = {"filterbank_channel_count": channels, "dct_coefficient_count": count}
        spectrogram = sample("float32", (2, 3, bins), 0, 9)
        yield Case("Mfcc", [spectrogram, np.int32(rate)], attrs)
    low = {"lower_frequency_limit": 0.0, "upper_frequency_limit": 3000.5}
    yield Case("Mfcc", [spectrogram, np.int32(16000)], low)
    yield Case("Mfcc", [np.zeros((1, 2, 65), np.float32), np.int32(16000)])
    yield Case("Mfcc", [-spectrogram, np.int32(16000)])
    for shape in ((0, 2, 65), (1, 0, 65)):
        yield Case("Mfcc", [np.zeros(shape, np.float32), np.int32(16000)])
    bad = {"error": "INVALID_ARGUMENT"}
    for attrs in (
        {"filterbank_channel_count": 1}, {"dct_coefficient_count": 41}, {"dct_coefficient_count": 0},
        {"filterbank_channel_count": 0, "dct_coefficient_count": 0}, {"upper_frequency_limit": 10.0},
        {"lower_frequency_limit": -1.0}, {"filterbank_channel_count": -3},
    ):  # fmt: skip
        yield Case("Mfcc", [spectrogram, np.int32(16000)], attrs, **bad)
    yield Case("Mfcc", [spectrogram, np.int32(0)], **bad)
    yield Case("Mfcc", [spectrogram, np.int32([16000])], **bad)
    yield Case("Mfcc", [spectrogram[0], np.int32(16000)], **bad)
    yield Case("Mfcc", [spectrogram[..., :1], np.int32(16000)], **bad)


CASES = [*files(), *spectra(), *coefficients()]


@suite(CASES)
def test_audio(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


def test_negative_window() -> None:
    with pytest.raises(InvalidArgumentError):
        run_ours(Case("AudioSpectrogram", [np.zeros((9, 1), np.float32)], {"window_size": -4, "stride": 1}))


@settings(max_examples=25, deadline=None, print_blob=True)
@given(
    pixels=arrays.arrays(np.int16, arrays.array_shapes(min_dims=2, max_dims=2, max_side=6)),
    rate=st.integers(1, 2**31 - 1),
)
def test_what_is_written_is_read(pixels: Any, rate: int) -> None:
    """Samples of 16 bits survive, through the ops."""
    audio = pixels.astype(np.float32) / 32768
    (data,) = run_ours(Case("EncodeWav", [audio, np.int32(rate)]))
    again, found = run_ours(Case("DecodeWav", [data]))
    np.testing.assert_array_equal(again, audio)
    assert found == rate


@settings(max_examples=25, deadline=None, print_blob=True)
@given(at=st.integers(0, 60), byte=st.integers(0, 127), cut=st.integers(44, 70))
def test_damaged_files(at: int, byte: int, cut: int) -> None:
    """Silence, and ASCII in its place: TensorFlow's messages quote the file and have to be text."""
    data = bytearray(wav.encode(np.zeros((9, 2), np.float32), 16000))
    data[at] = byte
    check(Case("DecodeWav", [text(bytes(data[:cut]))], error=SAME))


@settings(max_examples=15, deadline=None, print_blob=True)
@given(samples=st.integers(0, 200), size=st.integers(2, 70), stride=st.integers(1, 80))
def test_any_windows(samples: int, size: int, stride: int) -> None:
    sound = sample("float32", (samples, 2), -1, 1)
    check(Case("AudioSpectrogram", [sound], {"window_size": size, "stride": stride}))
