"""Random training steps: compiled, by tokens and in TensorFlow, the variables end up alike."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests import perturbation
from tests.compiler.random.random_training import Training, add_control_edges, training
from toolkit import client as gm
from toolkit.formats.models.metagraph import to_proto
from toolkit.runtime.session import Session


def _work(made: Training, running: Any) -> list[Any]:
    running.run("init")
    for feeds in made.feeds:
        running.run("train", feeds)
    return list(running.run(made.fetches))


def _ours(made: Training, *, force_tokens: bool) -> list[Any]:
    with Session(made.graph, force_tokens=force_tokens) as session:
        return _work(made, session)


def _theirs(tf: ModuleType, made: Training) -> list[Any]:
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default(), made.graph.as_default():
        meta = gm.to_meta_graph()
    with graph.as_default():
        v1.train.import_meta_graph(v1.MetaGraphDef.FromString(to_proto(meta).SerializeToString()))
    config = v1.ConfigProto()
    # its simplification of Switch(p, p) lets what waits for the node wait for one of its sides
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with v1.Session(graph=graph, config=config) as session:
        return _work(made, session)


def _check(seed: int, tf: ModuleType | None = None, *, with_edges: bool = False) -> None:
    made = training(seed, ordered=tf is not None)
    if with_edges:
        add_control_edges(made, seed)
    results = [_ours(made, force_tokens=False), _ours(made, force_tokens=True)]
    if tf is not None:
        results.append(_theirs(tf, made))
    far = lambda: perturbation.of_work(made.graph, lambda running: _work(made, running))  # noqa: E731
    perturbation.assert_agree(results, far, made.fetches)


@pytest.mark.parametrize("seed", range(60))
def test_random_training(seed: int) -> None:
    _check(seed)


@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_random_training_beside_tensorflow(tf: ModuleType, seed: int) -> None:
    _check(seed, tf)


@pytest.mark.parametrize("seed", range(60))
def test_random_control_edges(seed: int) -> None:
    _check(seed, with_edges=True)


@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_random_control_edges_beside_tensorflow(tf: ModuleType, seed: int) -> None:
    _check(seed, tf, with_edges=True)


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.parametrize("first", range(2000, 4000, 100))
def test_much_random_training(tf: ModuleType, first: int) -> None:
    for seed in range(first, first + 100):
        _check(seed, tf)
        _check(seed, tf, with_edges=True)
