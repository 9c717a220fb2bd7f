"""What is wrong with a bijector is told; what was computed forwards is not computed again backwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf

tfd = tf.contrib.distributions
tfb = tfd.bijectors


def _line(shift_and_log_scale: Any) -> Any:
    return tfb.RealNVP(1, shift_and_log_scale)


class _Half(tfb.Bijector):
    def __init__(self) -> None:
        super().__init__(forward_min_event_ndims=0)  # pyright: ignore[reportUnknownMemberType]  # TensorFlow's names

    def _forward(self, x: Any) -> Any:
        return x / 2.0


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no number of dimensions": (lambda: tfb.Bijector(name="b"), ValueError, "needs forward_min_event_ndims or"),
    "negative": (lambda: tfb.Bijector(forward_min_event_ndims=-1), ValueError, "min_event_ndims: expected 0 or more"),
    "parents": (lambda: tfb.Bijector([3], forward_min_event_ndims=0), TypeError, "number 0 is 3"),
    "no inverse": (lambda: _Half().inverse(1.0), NotImplementedError, "_half has no inverse|half has no inverse"),
    "no determinant": (lambda: _Half().forward_log_det_jacobian(1.0, 0), NotImplementedError, "no forward_log_det"),
    "too few dimensions": (
        lambda: tfb.Permute([1, 0]).forward_log_det_jacobian([1.0, 2.0], 0), ValueError, "event_ndims: .* at least 1",
    ),
    "two preimages": (
        lambda: tfb.AbsoluteValue().forward_log_det_jacobian(1.0, 0), NotImplementedError, "several preimages",
    ),
    "inverted": (lambda: tfb.Invert(tfb.AbsoluteValue()), NotImplementedError, "so it has no inverse"),
    "inline": (lambda: tfb.Inline(forward_min_event_ndims=0).forward(1.0), NotImplementedError, "forward_fn is not"),
    "power": (lambda: tfb.PowerTransform(-1.0), ValueError, "power: expected a constant that is not negative"),
    "permutation": (lambda: tfb.Permute([0, 2]), ValueError, "each of 0 to 1 once"),
    "permutation of floats": (lambda: tfb.Permute([0.0, 1.0]), TypeError, "expected whole numbers"),
    "one probability": (lambda: tfb.SoftmaxCentered().inverse_event_shape([1]), ValueError, "two probabilities"),
    "no operator": (lambda: tfb.AffineLinearOperator(scale=2.0), TypeError, "expected a LinearOperator"),
    "types": (
        lambda: tfb.Affine([1.0], scale_diag=np.ones(1)), TypeError, "shift is float32, the scale float64",
    ),
    "update": (lambda: tfb.Affine(scale_perturb_diag=[1.0]), ValueError, "needs scale_perturb_factor"),
    "singular": (
        lambda: tfb.AffineLinearOperator(scale=tf.linalg.LinearOperatorFullMatrix(np.eye(2))), ValueError, "singular",
    ),
    "shape": (lambda: tfb.Reshape([2, -1, -1]), ValueError, "event_shape_out: expected sizes, one of them perhaps -1"),
    "event": (lambda: tfb.Reshape([2], [3]).forward(tf.zeros([2])), ValueError, r"an event of shape \[3\], got \[2\]"),
    "masked": (lambda: tfb.RealNVP(0, None), ValueError, "num_masked: expected a positive number"),
    "all masked": (lambda: _line(None).forward(tf.zeros([2, 1])), ValueError, "less than the 1 numbers"),
    "unknown size": (
        lambda: _line(None).forward(tf.placeholder(tf.float32, [2, None])), NotImplementedError, "has to be known",
    ),
    "layer": (lambda: tfb.BatchNormalization(3), ValueError, "expected a BatchNormalization layer"),
    "unknown batch": (
        lambda: tfb.BatchNormalization().forward(tf.placeholder(tf.float32, [None, 2])), ValueError, "has to be known",
    ),
    "batch": (
        lambda: tfd.TransformedDistribution(tfd.Normal([0.0], 1.0), tfb.Exp(), batch_shape=[2]), ValueError,
        r"batch_shape: the distribution has the shape \[1\] itself",
    ),
    "override": (
        lambda: tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Exp(), event_shape=[-2]), ValueError,
        "event_shape: expected a vector of positive sizes",
    ),
    "entropy": (
        lambda: tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Exp()).entropy(), NotImplementedError, "no entr",
    ),
    "order": (
        lambda: tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Exp(), event_shape=[2]).cdf([1.0, 2.0]),
        NotImplementedError, "has no cdf",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    make, kind, message = MISTAKES[name]
    with tf.Graph().as_default(), pytest.raises(kind, match=message):
        make()


def test_what_went_forwards_is_known_backwards() -> None:
    with tf.Graph().as_default():
        bijector, x = tfb.Chain([tfb.Exp(), tfb.AffineScalar(1.0)]), tf.placeholder(tf.float32, [2])
        y = bijector.forward(x)
        assert bijector.inverse(y) is x
        assert bijector.forward(x) is y
        assert bijector.inverse(tf.identity(y)) is not x


def test_chains_know_shapes_that_change() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        chain = tfb.Chain([tfb.SoftmaxCentered(), tfb.Affine(scale_diag=[1.0, 2.0, 0.5])])
        assert chain.forward_event_shape([3]).as_list() == [4]
        x = np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3)
        forwards, y = chain.forward_log_det_jacobian(x, 1), chain.forward(x)
        found = session.run([forwards, chain.inverse_log_det_jacobian(tf.identity(y), 1)])
        np.testing.assert_allclose(found[0], -found[1], rtol=1e-4)  # float32, sums of a few logarithms
