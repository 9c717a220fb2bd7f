"""Layers as classes: what they share, what they keep, one line for what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.client import layers
from toolkit.errors import UsageError
from toolkit.graph.metagraph import GraphKeys
from toolkit.runtime.session import Session


def test_a_layer_shares_its_variables_between_calls() -> None:
    with gm.Graph().as_default() as graph:
        layer = layers.Dense(3)
        first, second = layer(gm.ones([2, 4])), layer(gm.ones([2, 4]))
        with Session(graph) as session:
            session.run(gm.global_variables_initializer())
            one, other = session.run([first, second])
    assert np.array_equal(one, other)
    assert [v.name for v in layer.weights] == ["dense/kernel:0", "dense/bias:0"]
    assert layer.count_params() == 15
    assert graph.get_collection(GraphKeys.TRAINABLE_VARIABLES) == layer.trainable_weights


def test_what_is_not_trainable_and_what_updates() -> None:
    with gm.Graph().as_default() as graph:
        layer = layers.BatchNormalization(momentum=0.5)
        layer(gm.ones([4, 3]), training=True)
        assert graph.get_collection(GraphKeys.UPDATE_OPS) == layer.updates and len(layer.updates) == 2
        with Session(graph) as session:
            session.run(gm.global_variables_initializer())
            session.run(layer.updates)
            mean, variance = session.run([layer.moving_mean, layer.moving_variance])
    assert [v.name.rsplit("/")[-1] for v in layer.trainable_weights] == ["gamma:0", "beta:0"]
    assert [v.name.rsplit("/")[-1] for v in layer.non_trainable_weights] == ["moving_mean:0", "moving_variance:0"]
    assert mean.tolist() == [0.5] * 3 and variance.tolist() == [0.5] * 3


def test_a_regularizer_is_counted_once() -> None:
    with gm.Graph().as_default() as graph:
        for reuse in (None, True):
            made = layers.Dense(2, kernel_regularizer=layers.l2_regularizer(0.1), name="a", _reuse=reuse, _scope="a")
            made(gm.ones([1, 2]))
        assert len(graph.get_collection(GraphKeys.REGULARIZATION_LOSSES)) == 1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: layers.Dense(2)(gm.placeholder(gm.float32, [2, None])), ValueError, "last size .* is not known"),
        (lambda: layers.Conv2D(2, 3)(gm.ones([2, 3])), ValueError, "takes inputs of 4 dimensions, not of shape"),
        (lambda: layers.Conv2D(2, (3, 3, 3)), ValueError, "kernel_size: expected 2 whole numbers"),
        (lambda: layers.Conv2D(2, 3, padding="most"), ValueError, "padding: expected valid, same or causal"),
        (lambda: layers.Conv2D(2, 3, data_format="NHWC"), ValueError, "data_format: expected channels_first"),
        (lambda: layers.Dense(2, size=3), TypeError, "size"),
        (lambda: layers.Dense(2).scope_name, ValueError, "no scope before it is first called"),
        (lambda: layers.Dense(2).count_params(), ValueError, "no weights to count"),
        (lambda: layers.Dense(2, activation="relo"), UsageError, "no activation 'relo'"),
        (lambda: layers.BatchNormalization(renorm=True), NotImplementedError, "renorm"),
        (lambda: layers.BatchNormalization(axis=4)(gm.ones([2, 3])), ValueError, "axis: 4 is none of the 2 axes"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with gm.Graph().as_default(), pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
