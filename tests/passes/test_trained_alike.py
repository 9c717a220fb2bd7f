"""An optimized graph that learns does so as the graph that it was made of: in TensorFlow and here, step by step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from tests.passes.graphs import plain_config, to_tensorflow
from tests.passes.stages import EXACT
from tests.passes.trainings import TRAININGS, Training
from tests.perturbation import assert_agree, of_work
from toolkit.graph.graph import Graph
from toolkit.passes.optimize.arithmetic.recompute import Recompute
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.run import optimize
from toolkit.passes.optimize.table import TABLE, preset
from toolkit.runtime.session import Session

_STEPS = 20
#: passes together, by what they are called here
_LISTS: dict[str, Callable[[], list[Optimization]]] = {
    "training": lambda: preset("training"),
    "size, recomputing": lambda: [*preset("size"), Recompute(min_bytes=1)],
    "canonical": lambda: preset("canonical"),
}
_ALONE: dict[str, Callable[[], list[Optimization]]] = {
    name: functools.partial(lambda name: [TABLE[name].load()()], name) for name in EXACT
}


#: the trainings; that of LeNet takes its time
_NAMES = [pytest.param(name, marks=pytest.mark.long) if name == "lenet" else name for name in TRAININGS]


@functools.cache
def _untouched(name: str) -> tuple[Training, list[Any], Callable[[], Any]]:
    """A training, the losses of its graph as it is, and how far two computations of them may be apart."""
    training = TRAININGS[name]()
    return training, _losses(training, training.graph), functools.cache(lambda: _far(training))


def _losses(training: Training, graph: Graph) -> list[Any]:
    with Session(graph.copy()) as session:
        return training.losses(session.run, _STEPS)


def _far(training: Training) -> Any:
    return of_work(training.graph.copy(), lambda session: training.losses(session.run, _STEPS))


def _in_tensorflow(tf: Any, training: Training, graph: Graph) -> list[Any]:
    with tf.Graph().as_default() as loaded:
        tf.import_graph_def(to_tensorflow(tf, graph), name="")
        with tf.compat.v1.Session(graph=loaded, config=plain_config(tf)) as session:
            return training.losses(session.run, _STEPS)


def check(tf: Any, name: str, passes: list[Optimization]) -> None:
    """Losses of every step, of both graphs, in TensorFlow and here."""
    training, wanted, far = _untouched(name)
    graph = optimize(training.graph, passes, training.kept()).graph
    results = [_losses(training, graph), _in_tensorflow(tf, training, graph), wanted]
    assert_agree(results, far, [f"step {n}" for n in range(_STEPS)])


@pytest.mark.parametrize("name", _NAMES)
def test_models_learn(name: str) -> None:
    """What is compared is a training: the loss of a batch falls when it comes again."""
    _, losses, _ = _untouched(name)
    assert min(losses[-4:]) < losses[0]


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", _NAMES)
def test_untouched_graphs_learn_as_in_tensorflow(tf: Any, name: str) -> None:
    training, wanted, far = _untouched(name)
    assert_agree([_in_tensorflow(tf, training, training.graph), wanted], far)


@pytest.mark.tensorflow
@pytest.mark.parametrize("passes", _LISTS)
@pytest.mark.parametrize("name", ["dense", "convolutional", "recurrent", "sparse"])
def test_optimized_graphs_learn_alike(tf: Any, name: str, passes: str) -> None:
    check(tf, name, _LISTS[passes]())


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.parametrize("passes", [*_LISTS, *_ALONE])
@pytest.mark.parametrize("name", TRAININGS)
def test_graphs_learn_alike_behind_each_pass(tf: Any, name: str, passes: str) -> None:
    check(tf, name, (_LISTS | _ALONE)[passes]())
