"""Signals: transforms undone give what they were made of, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import tolerance
from toolkit import tensorflow as tf
from toolkit.errors import GraphmillError

_WRONG: dict[str, tuple[str, str]] = {
    "window type": ("tf.signal.hann_window(8, dtype=tf.int32)", "windows are floats"),
    "window length": ("tf.signal.vorbis_window([8])", "expected one number"),
    "frames of a number": ("tf.signal.frame(1.0, 2, 1)", "expected one axis or more"),
    "no frames": ("tf.signal.overlap_and_add(tf.zeros([4]), 1)", "frames, frame_length"),
    "step": ("tf.signal.overlap_and_add(tf.zeros([2, 4]), 1.5)", "expected an integer"),
    "real": ("tf.signal.rfft(tf.zeros([4], tf.complex64))", "expected float32 or float64"),
    "rank": ("tf.signal.rfft2d(tf.zeros([4]))", "expected 2 axes or more"),
    "norm": ("tf.signal.fftnd(tf.zeros([4], tf.complex64), norm='sideways')", "norm: expected None"),
    "dct norm": ("tf.signal.dct(tf.zeros([4]), norm='other')", "norm: expected None or 'ortho'"),
    "dct type": ("tf.signal.dct(tf.zeros([4]), 5)", "type: expected 1, 2, 3 or 4"),
    "dct length": ("tf.signal.dct(tf.zeros([4]), n=0)", "a length of 1 or more"),
    "dct 1": ("tf.signal.dct(tf.zeros([1]), 1)", "two values or more"),
    "mdct": ("tf.signal.mdct(tf.zeros([16]), 6)", "a multiple of 4"),
    "inverse mdct": ("tf.signal.inverse_mdct(tf.placeholder(tf.float32, [2, None]))", "set_shape says it"),
    "bins": ("tf.signal.linear_to_mel_weight_matrix(0)", "num_mel_bins: expected 1 or more"),
    "nyquist": ("tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=5000.0)", "above half the sample rate"),
    "edges": ("tf.signal.linear_to_mel_weight_matrix(lower_edge_hertz=3900.0)", "0 <= lower < upper"),
    "no bins": ("tf.signal.mfccs_from_log_mel_spectrograms(tf.zeros([2, 0]))", "expected bins"),
}


@pytest.mark.parametrize("case", _WRONG)
def test_what_is_refused(case: str) -> None:
    code, message = _WRONG[case]
    with tf.Graph().as_default(), pytest.raises((ValueError, GraphmillError), match=message):
        eval(code, {"tf": tf})


def test_cosine_transforms_are_along_the_last_axis() -> None:
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="along the last axis"):
        tf.signal.dct(tf.zeros([4, 4]), axis=0)


def _undone(step: int, signal: Any) -> dict[str, Any]:
    """Transforms and back, by name."""
    spectral = tf.signal
    window = spectral.inverse_stft_window_fn(step)
    frames = spectral.stft(signal, 32, step, pad_end=True)
    return {
        "stft": spectral.inverse_stft(frames, 32, step, window_fn=window)[..., 32:96],
        "mdct": spectral.inverse_mdct(spectral.mdct(signal, 32))[..., 32:96],
        "dct": spectral.idct(spectral.dct(signal, norm="ortho"), norm="ortho")[..., 32:96],
        "rfft": spectral.irfft(spectral.rfft(signal))[..., 32:96],
        "shift": spectral.ifftshift(spectral.fftshift(signal))[..., 32:96],
        "rfftnd": spectral.irfftnd(spectral.rfftnd(signal, norm="ortho"), [2, 128], [0, 1], "ortho")[..., 32:96],
    }


def test_transforms_undone_give_the_signal() -> None:
    drawn = np.random.RandomState(5).randn(2, 128)
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(_undone(8, tf.constant(drawn)))
    # transforms of n numbers have log2(n) steps, each of at most four roundings; two of them, and norms below sqrt(n)
    bound = 2 * tolerance.gamma(4 * np.log2(128), np.float64) * np.abs(drawn).max() * np.sqrt(128)
    for name, values in found.items():
        wanted = drawn[:, 32:96]
        np.testing.assert_allclose(values, wanted, rtol=0, atol=bound, err_msg=name)


@pytest.mark.parametrize("arguments", [(0.0, 1.0, 5), (2.0, -1.0, 1), ([1.0, 2.0], [3.0, 4.0], 3, None, -1), (1, 4, 7)])
def test_numbers_at_even_distances(arguments: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.linspace(*arguments))
    evenly: Any = np.linspace
    wanted = evenly(*arguments[:3], axis=(*arguments, 0)[4] if len(arguments) > 3 else 0)
    # a quotient, a product and a sum of numbers up to 4, on either side
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2 * 4 * tolerance.gamma(3, found.dtype))
