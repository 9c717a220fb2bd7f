"""Optimizers make the nodes that TensorFlow's make, dense and sparse; those of tf.contrib.opt compute what they say."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.client.client_programs import our_namespace, tf1_semantics, tf_namespace
from tests.client.node_descriptions import described
from toolkit import Session
from toolkit import client as gm
from toolkit.errors import UsageError

_NAMES = {
    "GradientDescentOptimizer": "GradientDescent", "MomentumOptimizer": "Momentum", "AdamOptimizer": "Adam",
    "AdagradOptimizer": "Adagrad", "AdadeltaOptimizer": "Adadelta", "RMSPropOptimizer": "RMSProp",
    "FtrlOptimizer": "Ftrl", "ProximalGradientDescentOptimizer": "ProximalGradientDescent",
    "ProximalAdagradOptimizer": "ProximalAdagrad", "AdagradDAOptimizer": "AdagradDA",
    "ExponentialMovingAverage": "ExponentialMovingAverage", "get_or_create_global_step": "get_or_create_global_step",
}  # fmt: skip

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda t: t.GradientDescentOptimizer(0.1),
    "momentum": lambda t: t.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda t: t.MomentumOptimizer(0.1, 0.9, use_nesterov=True, use_locking=True),
    "adam": lambda t: t.AdamOptimizer(0.1),
    "adagrad": lambda t: t.AdagradOptimizer(0.1),
    "adadelta": lambda t: t.AdadeltaOptimizer(0.1),
    "rmsprop": lambda t: t.RMSPropOptimizer(0.1, momentum=0.5),
    "centered rmsprop": lambda t: t.RMSPropOptimizer(0.1, centered=True),
    "ftrl": lambda t: t.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal sgd": lambda t: t.ProximalGradientDescentOptimizer(0.1, 0.01, 0.02),
    "proximal adagrad": lambda t: t.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
    "adagrad da": lambda t: t.AdagradDAOptimizer(0.1, t.get_or_create_global_step()),
}


def _spaces(tf: ModuleType) -> tuple[Any, Any]:
    train = tf.compat.v1.train
    theirs = SimpleNamespace(**{name: getattr(train, name) for name in _NAMES})
    return theirs, SimpleNamespace(**{name: getattr(gm.train, own) for name, own in _NAMES.items()})


def _program(t: Any, optimizer: Callable[[], Any], sparse: bool) -> None:
    table = t.get_variable("table", [5, 3], initializer=t.constant_initializer(0.5))
    rows = t.gather(table, t.constant([0, 2, 2])) if sparse else table * 2.0
    optimizer().minimize(t.reduce_sum(rows * rows), t.train.get_or_create_global_step())


@pytest.mark.tensorflow
@pytest.mark.parametrize("name, sparse", [(n, s) for n in OPTIMIZERS for s in (False, True)])
def test_same_nodes_as_tensorflow(tf: ModuleType, name: str, sparse: bool) -> None:
    theirs, ours = tf.Graph(), gm.Graph()
    their_names, our_names = _spaces(tf)
    with theirs.as_default(), tf1_semantics(tf):
        _program(tf_namespace(tf), lambda: OPTIMIZERS[name](their_names), sparse)
    with ours.as_default():
        _program(our_namespace(), lambda: OPTIMIZERS[name](our_names), sparse)
    expected, found = described(theirs.as_graph_def().node), described(ours.as_graph_def().node)
    assert [n[:2] for n in found] == [n[:2] for n in expected]
    for mine, wanted in zip(found, expected, strict=True):
        assert mine == wanted


def _trained(optimizer: Callable[[], Any], steps: int = 3, sparse: bool = False) -> np.ndarray:
    with gm.Graph().as_default() as graph:
        v = gm.get_variable("v", [4, 2], initializer=gm.initializers.Constant(1.0))
        rows = gm.gather(v, gm.constant([0, 2])) if sparse else v
        train = optimizer().minimize(gm.reduce_sum(rows * rows))
        start = gm.global_variables_initializer()
    session = Session(graph)
    session.run(start)
    for _ in range(steps):
        session.run(train)
    return session.run(v)


def test_decoupled_decay_comes_before_the_update() -> None:
    # gradient 2v is of the value before the decay: v <- v - 0.1 v - 0.05 * 2v
    found = _trained(lambda: gm.train.extend_with_decoupled_weight_decay(gm.train.GradientDescent)(
        weight_decay=0.1, learning_rate=0.05
    ))  # fmt: skip
    np.testing.assert_allclose(found, np.full([4, 2], 0.8**3), rtol=tolerance.gamma(12))  # four a step


def test_without_decay_adam_w_is_adam() -> None:
    np.testing.assert_array_equal(_trained(lambda: gm.train.AdamW(0.0, 0.1)), _trained(lambda: gm.train.Adam(0.1)))


def test_lazy_adam_moves_only_rows_with_a_gradient() -> None:
    found = _trained(lambda: gm.train.LazyAdam(0.1), sparse=True)
    assert (found[[1, 3]] == 1).all() and (found[[0, 2]] < 0.8).all()
    np.testing.assert_allclose(
        found[[0, 2]], _trained(lambda: gm.train.Adam(0.1))[:2], rtol=tolerance.gamma(60)
    )  # the same formula in other operations: ten roundings a step and side


@pytest.mark.parametrize("sparse", [False, True])
def test_nadam_looks_ahead(sparse: bool) -> None:
    found = _trained(lambda: gm.train.Nadam(0.1), 1, sparse)
    # first step: m = (1-b1) g, m_bar = (1-b1) g + b1 m, so 1 + b1 times Adam's step of 0.1
    np.testing.assert_allclose(found[0], 1 - 0.1 * 1.9, rtol=1e-6)  # epsilon 1e-8 beside a gradient of 2


def test_averages_are_what_a_swapping_saver_saves() -> None:
    with gm.Graph().as_default() as graph:
        v = gm.get_variable("v", [2], initializer=gm.initializers.Constant(1.0))
        optimizer = gm.train.MovingAverage(gm.train.GradientDescent(0.25), 0.5)
        with pytest.raises(UsageError, match="after apply_gradients"):
            optimizer.swapping_saver()
        train = optimizer.minimize(gm.reduce_sum(v * v))
        optimizer.swapping_saver()
        average = optimizer._ema.average(v)
        start = gm.global_variables_initializer()
    session = Session(graph)
    session.run(start)
    session.run(train)
    found, kept = session.run([v, average])
    np.testing.assert_array_equal(found, [0.5, 0.5])
    np.testing.assert_array_equal(kept, [0.75, 0.75])
