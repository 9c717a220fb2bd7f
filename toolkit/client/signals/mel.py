"""The mel scale of pitch, and cepstra: what speech recognition is fed with."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.arrays.linspace import linspace
from toolkit.client.construction.convert import DTypeLike, as_dtype, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.signals.cosine import dct
from toolkit.client.signals.framing import frame
from toolkit.graph import dtypes

#: HTK's scale: 1127 ln(1 + f / 700)
_BREAK_HERTZ = 700.0
_HIGH_Q = 1127.0


def _to_mel(hertz: Tensor) -> Tensor:
    with name_scope(None, "hertz_to_mel", [hertz]):
        return _HIGH_Q * ops.log(1.0 + hertz / _BREAK_HERTZ)


def _check(bins: int, rate: Any, low: float, high: float) -> None:
    if bins <= 0:
        raise ValueError(f"num_mel_bins: expected 1 or more, got {bins}")
    if low < 0.0 or low >= high:
        raise ValueError(f"lower_edge_hertz, upper_edge_hertz: expected 0 <= lower < upper, got {low} and {high}")
    if isinstance(rate, Tensor):
        return
    if rate <= 0.0:
        raise ValueError(f"sample_rate: expected a number above 0, got {rate}")
    if high > rate / 2:
        raise ValueError(f"upper_edge_hertz: {high} is above half the sample rate, {rate / 2}")


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20, num_spectrogram_bins: int = 129, sample_rate: Any = 8000, lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0, dtype: DTypeLike = dtypes.float32, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Triangular filters [num_spectrogram_bins, num_mel_bins] from a linear to a mel spectrum.

    Raises:
        ValueError: frequencies that the sample rate does not have, no bins, a type without fractions.
    """
    with name_scope(name, "linear_to_mel_weight_matrix") as scope:
        kind = as_dtype(dtype).base
        known = static_value(sample_rate) if isinstance(sample_rate, Tensor) else None
        rate: Any = sample_rate if known is None else known
        _check(num_mel_bins, rate, lower_edge_hertz, upper_edge_hertz)
        if not kind.is_floating:
            raise ValueError(f"dtype: weights are floats, not {kind}")
        rate = math_ops.cast(rate, kind, name="sample_rate")
        low = convert_to_tensor(lower_edge_hertz, kind, name="lower_edge_hertz")
        high = convert_to_tensor(upper_edge_hertz, kind, name="upper_edge_hertz")
        zero = convert_to_tensor(0.0, kind)
        hertz = linspace(zero, rate / 2.0, num_spectrogram_bins)[1:]  # the constant part is in no band
        mels = array_ops.expand_dims(_to_mel(hertz), 1)
        edges = frame(linspace(_to_mel(low), _to_mel(high), num_mel_bins + 2), frame_length=3, frame_step=1)
        lower, center, upper = (array_ops.reshape(t, [1, num_mel_bins]) for t in array_ops.split(edges, 3, axis=1))
        rising = (mels - lower) / (center - lower)
        falling = (upper - mels) / (upper - center)
        weights = ops.maximum(zero, ops.minimum(rising, falling))
        return array_ops.pad(weights, [[1, 0], [0, 0]], name=scope)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: TensorLike, name: str | None = None) -> Tensor:
    """Mel-frequency cepstral coefficients, [..., num_mel_bins], as HTK scales them.

    Raises:
        ValueError: there are no bins.
    """
    with name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        spectra = convert_to_tensor(log_mel_spectrograms)
        bins: Any = spectra.static_shape[-1] if spectra.static_shape.rank else None
        if bins == 0:
            raise ValueError(
                f"log_mel_spectrograms: expected bins along the last axis, got shape {spectra.static_shape}"
            )
        if bins is None:
            bins = array_ops.shape(spectra)[-1]
        found = dct(spectra, type=2)
        return found * ops.rsqrt(math_ops.cast(bins, found.dtype.base) * 2.0)
