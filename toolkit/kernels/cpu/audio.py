"""Sound: WAV files, spectrograms, mel-frequency cepstral coefficients."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math

from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.encodings import wav
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array

_FLOOR = 1e-12  # of a band's energy, before its logarithm is taken


@kernel("DecodeWav")
def decode_wav(op: KernelNode) -> Compute:
    """Samples [frames, channels] and the rate; missing frames are silent, missing channels repeat the last."""
    channels, frames = op.attr("desired_channels"), op.attr("desired_samples")

    def compute(contents: Array) -> tuple[Array, Array]:
        require(np.ndim(contents) == 0, f"contents must be scalar, got shape {shape_text(contents)}")
        audio, rate = wav.decode(np.asarray(contents, object).item())
        require(channels >= -1, f"desired_channels must be >= -1, got {channels}")
        require(frames >= -1, f"desired_samples must be >= -1, got {frames}")
        has_frames, has_channels = audio.shape
        shape = (has_frames if frames == -1 else frames, has_channels if channels == -1 else channels)
        out = np.zeros(shape, np.float32)
        kept = min(shape[0], has_frames)
        out[:kept] = audio[:kept, np.minimum(np.arange(shape[1]), has_channels - 1)]
        return out, np.array(rate, np.uint32).view(np.int32)

    return compute


@simple("EncodeWav")
def encode_wav(audio: Array, rate: Array) -> Array:
    require(audio.ndim == 2, f"audio must be 2-dimensional{shape_text(audio)}")
    require(np.ndim(rate) == 0, f"Input sample_rate should be a scalar tensor, got {shape_text(rate)} instead.")
    require(int(rate) > 0, f"sample_rate must be in (0, 2^32), got: {int(rate)}")
    require(0 < audio.shape[1] < 1 << 16, f"num_channels must be in (0, 2^16), got: {audio.shape[1]}")
    return np.array(wav.encode(audio, int(rate)), object)


@kernel("AudioSpectrogram")
def audio_spectrogram(op: KernelNode) -> Compute:
    """[channels, windows, frequencies] of sound [samples, channels], under a periodic Hann window.

    Windows are filled up with zeros to the next power of two; magnitudes, or their squares.
    """
    size, stride, squared = op.attr("window_size"), op.attr("stride"), op.attr("magnitude_squared")
    require(size > 1, f"window_size must be > 1, got {size}")
    require(stride > 0, f"stride must be > 0, got {stride}")
    length = 1 << (size - 1).bit_length()
    window = 0.5 - 0.5 * np.cos(2 * math.pi * np.arange(size) / size)

    def compute(sound: Array) -> Array:
        require(sound.ndim == 2, f"input must be 2-dimensional{shape_text(sound)}")
        samples, channels = sound.shape
        count = 1 + (samples - size) // stride if samples >= size else 0
        if count * channels == 0:
            return np.zeros((channels, count, length // 2 + 1), np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(sound.T, size, axis=1)[:, ::stride]
        spectrum = np.fft.rfft(windows * window, length)
        power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
        return power if squared else np.sqrt(power)

    return compute


def _mel(frequency: Array) -> Array:
    return 1127.0 * np.log1p(frequency / 700.0)


def _filters(bins: int, rate: int, channels: int, lowest: float, highest: float) -> Array:
    """Triangles between centres at equal distances in mel, float64 [bins, channels]; None fits when bins end early."""
    spacing = (_mel(highest) - _mel(lowest)) / (channels + 1)
    centres = _mel(lowest) + spacing * np.arange(1, channels + 2)
    per_bin = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + lowest / per_bin), int(highest / per_bin)
    out = np.zeros((bins, channels))
    if last >= bins:  # the sound has no such frequencies: TensorFlow gives no energy at all
        return out
    at = np.arange(first, last + 1)
    mel = _mel(at * per_bin)
    # the triangle that falls at a bin, and the next one, which rises
    falling = np.minimum(np.searchsorted(centres[:channels], mel, side="left"), channels) - 1
    left = np.where(falling >= 0, centres[falling], _mel(lowest))
    weight = (centres[falling + 1] - mel) / (centres[falling + 1] - left)
    here = falling >= 0
    out[at[here], falling[here]] += weight[here]
    up = falling + 1 < channels
    out[at[up], falling[up] + 1] += 1 - weight[up]
    return out


@kernel("Mfcc")
def mfcc(op: KernelNode) -> Compute:
    """[channels, windows, coefficients] of squared magnitudes [channels, windows, frequencies]."""
    highest, lowest = op.attr("upper_frequency_limit"), op.attr("lower_frequency_limit")
    channels, coefficients = op.attr("filterbank_channel_count"), op.attr("dct_coefficient_count")
    turns = np.arange(max(coefficients, 0))[:, None] * math.pi / max(channels, 1) * (np.arange(max(channels, 0)) + 0.5)
    cosines = math.sqrt(2 / max(channels, 1)) * np.cos(turns)

    def compute(spectrogram: Array, sample_rate: Array) -> Array:
        require(spectrogram.ndim == 3, f"spectrogram must be 3-dimensional{shape_text(spectrogram)}")
        require(
            np.ndim(sample_rate) == 0,
            f"Input sample_rate should be a scalar tensor, got {shape_text(sample_rate)} instead.",
        )
        bins, rate = spectrogram.shape[-1], int(sample_rate)
        require(
            0 < coefficients <= channels and rate > 0 and bins > 1 and 0 <= lowest < highest,
            f"Mfcc initialization failed for channel count {bins}, sample rate {rate} and filterbank_channel_count "
            f"{channels}",
        )
        filters = _filters(bins, rate, channels, lowest, highest)
        if not filters.any():
            return np.zeros((*spectrogram.shape[:2], coefficients), np.float32)
        energy = np.sqrt(spectrogram.astype(np.float64)) @ filters
        return (np.log(np.where(energy < _FLOOR, _FLOOR, energy)) @ cosines.T).astype(np.float32)

    return compute
