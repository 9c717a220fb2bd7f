"""Losses and metrics that take predictions first: what mistakes say."""

from __future__ import annotations

import inspect

import pytest

from toolkit import tensorflow as tf

MISTAKES = [
    ("tf.contrib.metrics.aggregate_metrics()", ValueError, "at least one pair of a value and its update"),
    ("tf.contrib.metrics.accuracy(x, x)", ValueError, "labels: expected whole numbers, flags or texts, got float32"),
    ("tf.contrib.metrics.accuracy(x, tf.constant([1]))", ValueError, "predictions have type float32, labels int32"),
    ("tf.contrib.losses.cosine_distance(x, x)", ValueError, "axis: expected the axis of the vectors, got None"),
    ("tf.contrib.metrics.streaming_precision(x)", TypeError, "missing a required argument: 'labels'"),
]


@pytest.mark.parametrize(("call", "kind", "says"), MISTAKES, ids=[call for call, _, _ in MISTAKES])
def test_mistakes(call: str, kind: type[Exception], says: str) -> None:
    with tf.Graph().as_default(), pytest.raises(kind, match=says):
        eval(call, {"tf": tf, "x": tf.constant([1.0])})


def test_predictions_are_first() -> None:
    assert list(inspect.signature(tf.contrib.metrics.streaming_auc).parameters)[:2] == ["predictions", "labels"]
    assert tf.contrib.metrics.streaming_auc.__name__ == "streaming_auc"
    assert tf.contrib.slim.losses.log_loss is tf.contrib.losses.log_loss
