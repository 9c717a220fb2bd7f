"""Models of sound and of time: spectra, speech with CTC, forecasts, filters, sequences."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.runtime.networks.gallery import example

RANDOM = np.random.default_rng(53)
TIME = np.arange(640) / 640
SOUND = np.stack([np.sin(40 * np.pi * TIME**2 * 4), np.sign(np.sin(22 * np.pi * TIME))]).astype(np.float32)
SOUND += 0.05 * RANDOM.standard_normal(SOUND.shape).astype(np.float32)


def _normal(*shape: int, scale: float = 1.0) -> Any:
    return (scale * RANDOM.standard_normal(shape)).astype(np.float32)


@example({"sound": SOUND}, {"kernel": _normal(13, 3)})
def keyword_features(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Log mel spectrum and cepstral coefficients of frames, and the sound put together again."""
    frames = tf.signal.stft(x.sound, 128, 64, fft_length=128, pad_end=False)
    power = tf.abs(frames) ** 2
    mel = tf.tensordot(power, tf.signal.linear_to_mel_weight_matrix(20, 65, 8000, 80.0, 3800.0), 1)
    logarithm = tf.math.log(mel + 1e-3)
    coefficients = tf.signal.mfccs_from_log_mel_spectrograms(logarithm)[..., :13]
    window = tf.signal.inverse_stft_window_fn(64)
    again = tf.signal.inverse_stft(frames, 128, 64, fft_length=128, window_fn=window)
    return {
        "mel": logarithm,
        "cepstrum": coefficients,
        "scores": tf.reduce_mean(coefficients, 1) @ w.kernel,
        "again": again,
    }


@example({"sound": SOUND[:, :256]}, {"low": np.exp(-np.arange(129) / 20).astype(np.float32)})
def filters(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Filtering in the frequency domain, the envelope by Hilbert's transform, convolution, cosine transforms."""
    spectrum = tf.signal.rfft(x.sound)
    smooth = tf.signal.irfft(spectrum * tf.cast(w.low, tf.complex64))
    whole = tf.signal.fft(tf.cast(x.sound, tf.complex64))
    half = tf.concat([tf.ones([1]), 2 * tf.ones([127]), tf.ones([1]), tf.zeros([127])], 0)
    envelope = tf.abs(tf.signal.ifft(whole * tf.cast(half, tf.complex64)))
    square = tf.signal.fft2d(tf.cast(tf.reshape(x.sound, [-1, 16, 16]), tf.complex64))
    return {
        "smooth": smooth,
        "envelope": envelope,
        "phase": tf.cos(tf.math.angle(spectrum)),
        "square": tf.abs(tf.signal.fftshift(square, axes=[1, 2])),
        "dct": tf.signal.dct(x.sound, norm="ortho"),
        "back": tf.signal.idct(tf.signal.dct(x.sound, 2), 2) / 512.0,
        "frames": tf.reduce_mean(tf.signal.frame(x.sound, 60, 35, pad_end=True) * tf.signal.hann_window(60), -1),
        "overlap": tf.signal.overlap_and_add(tf.signal.frame(x.sound, 32, 16), 16),
    }


@example(
    {"features": _normal(2, 9, 5), "length": np.int32([9, 6]), "labels": np.int32([[1, 2, 2], [3, 1, 0]])},
    {"kernel": _normal(3, 5, 12, scale=0.6), "cell": _normal(12, 12, scale=0.4), "head": _normal(12, 5)},
)
def speech(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Convolution, a recurrence both ways, CTC: greedy and beam decoding, loss, edit distance to the truth."""
    y = tf.nn.relu(tf.nn.conv1d(x.features, w.kernel, 1, "SAME"))
    by_time = tf.transpose(y, [1, 0, 2])
    both = tf.concat([by_time, by_time[::-1]], 1)
    onward, backward = tf.split(
        tf.scan(lambda state, value: tf.tanh(value + state @ w.cell), both, both[0] * 0.0), 2, 1
    )
    y = onward + backward[::-1]
    logits = y @ w.head
    (greedy,), _ = tf.nn.ctc_greedy_decoder(logits, x.length)
    (beam,), likelihood = tf.nn.ctc_beam_search_decoder(logits, x.length, beam_width=6, top_paths=1)
    truth = tf.sparse.from_dense(tf.cast(x.labels, tf.int64))
    # of TensorFlow's two losses the one that it can freeze
    loss = tf.compat.v1.nn.ctc_loss(tf.cast(truth, tf.int32), logits, x.length)
    return {
        "greedy": tf.sparse.to_dense(greedy, -1),
        "beam": tf.sparse.to_dense(beam, -1),
        "likelihood": likelihood,
        "loss": loss,
        "distance": tf.edit_distance(greedy, truth, normalize=True),
    }


@example(
    {"past": np.cumsum(_normal(2, 12, 3, scale=0.3), 1), "hours": np.int64([17, 400]), "count": np.int32(5)},
    {"input": _normal(5, 24, scale=0.5), "state": _normal(6, 24, scale=0.5), "head": _normal(6, 3, scale=0.5)},
)
def forecast(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """A long short-term memory that reads the past, then feeds on its own predictions; with time of day."""
    mean, variance = tf.nn.moments(x.past, [1], keepdims=True)
    scaled = (x.past - mean) / tf.sqrt(variance + 1e-6)

    def clock(hour: Any) -> Any:
        angle = 2 * np.pi * tf.cast(hour % 24, tf.float32) / 24
        return tf.stack([tf.sin(angle), tf.cos(angle)], -1)

    def cell(value: Any, hour: Any, h: Any, c: Any) -> tuple[Any, Any]:
        gates = tf.concat([value, clock(hour)], -1) @ w.input + h @ w.state
        i, j, f, o = tf.split(gates, 4, axis=1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
        return tf.sigmoid(o) * tf.tanh(c), c

    def read(t: Any, h: Any, c: Any) -> list[Any]:
        return [t + 1, *cell(scaled[:, t], x.hours + tf.cast(t, tf.int64), h, c)]

    def write(t: Any, value: Any, h: Any, c: Any, out: Any) -> list[Any]:
        h, c = cell(value, x.hours + 12 + tf.cast(t, tf.int64), h, c)
        value = value + h @ w.head
        return [t + 1, value, h, c, out.write(t, value)]

    zero = tf.zeros([tf.shape(x.past)[0], 6])
    _, h, c = tf.while_loop(lambda t, *_: t < tf.shape(x.past)[1], read, [0, zero, zero])
    out = tf.TensorArray(tf.float32, x.count, element_shape=[None, 3])
    out = tf.while_loop(lambda t, *_: t < x.count, write, [0, scaled[:, -1], h, c, out])[-1]
    future = tf.transpose(out.stack(), [1, 0, 2]) * tf.sqrt(variance) + mean
    return {"future": future, "trend": tf.math.cumsum(future[:, :, 0], 1, exclusive=True)}


@example(
    {"readings": _normal(3, 10), "score": np.float32(0.2)},
    {"encode": _normal(10, 4, scale=0.5), "decode": _normal(4, 10, scale=0.5), "shape": _normal(10, 10, scale=0.3)},
)
def anomalies(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """An autoencoder; Mahalanobis distances of its errors by a Cholesky factor, quantiles, alarms in words."""
    code = tf.nn.elu(x.readings @ w.encode)
    error = x.readings - code @ w.decode
    factor = tf.linalg.cholesky(tf.matmul(w.shape, w.shape, transpose_b=True) + tf.eye(10))
    whitened = tf.linalg.triangular_solve(factor, tf.transpose(error))
    distance = tf.norm(whitened, axis=0)
    ordered = tf.sort(distance)
    middle = ordered[tf.shape(ordered)[0] // 2]
    alarm = tf.where(distance > middle + x.score, "high", tf.where(distance < middle, "low", "normal"))
    logdet = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))
    return {
        "distance": distance,
        "likelihood": -0.5 * (distance**2 + logdet),
        "alarm": alarm,
        "worst": tf.argmax(tf.abs(error), 1),
    }


@example({"seen": np.cumsum(_normal(6, 2), 0)}, {"noise": np.float32([0.1, 0.2]), "drift": np.float32(0.05)})
def kalman(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Tracking by a Kalman filter: scan over matrices, inverses, determinants."""
    move = tf.constant([[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]], tf.float32)
    look = tf.eye(2, 4)

    def follow(state: Any, seen: Any) -> Any:
        mean, spread, _ = state
        mean = tf.linalg.matvec(move, mean)
        spread = move @ spread @ tf.transpose(move) + w.drift * tf.eye(4)
        residual = look @ spread @ tf.transpose(look) + tf.linalg.diag(w.noise)
        gain = spread @ tf.transpose(look) @ tf.linalg.inv(residual)
        surprise = seen - tf.linalg.matvec(look, mean)
        mean += tf.linalg.matvec(gain, surprise)
        spread = (tf.eye(4) - gain @ look) @ spread
        fit = -0.5 * (
            tf.tensordot(surprise, tf.linalg.matvec(tf.linalg.inv(residual), surprise), 1) + tf.linalg.logdet(residual)
        )
        return mean, spread, fit

    mean, spread, fit = tf.scan(follow, x.seen, (tf.zeros([4]), tf.eye(4), tf.constant(0.0)))
    return {"path": mean, "spread": tf.linalg.trace(spread), "fit": tf.math.cumulative_logsumexp(fit)}


@example(
    {"levels": RANDOM.integers(0, 16, (2, 20)).astype(np.int32)},
    {"embedding": _normal(16, 6), "gate": _normal(3, 2, 6, 12, scale=0.4), "skip": _normal(3, 6, 8, scale=0.4)},
)
def wavenet(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Dilated causal convolutions with gates, residuals and skips; mu-law levels back to a signal."""
    y, skips = tf.gather(w.embedding, x.levels), 0.0
    for layer in range(3):
        reach = 2**layer
        padded = tf.pad(y, [[0, 0], [reach, 0], [0, 0]])
        left, right = tf.split(tf.nn.conv1d(padded, w.gate[layer], 1, "VALID", dilations=reach), 2, axis=-1)
        gated = tf.tanh(left) * tf.sigmoid(right)
        skips += tf.einsum("btd,de->bte", gated, w.skip[layer])
        y += gated
    level = 2.0 * tf.cast(x.levels, tf.float32) / 15.0 - 1.0
    signal = tf.sign(level) * (tf.pow(256.0, tf.abs(level)) - 1) / 255.0
    return {"logits": tf.nn.log_softmax(tf.nn.softplus(skips)), "signal": signal, "hidden": y}
