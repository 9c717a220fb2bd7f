# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Evaluation in the middle of a training, with the training's variables and without a checkpoint."""

from __future__ import annotations

from typing import Any

from toolkit.client.arrays.array_ops import placeholder
from toolkit.client.construction import context
from toolkit.client.construction.grouping import group
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.families.framework.graph import Graph
from toolkit.tensorflow.families.train.scaffold import Scaffold
from toolkit.tensorflow.families.train.session_hooks import SecondOrStepTimer, SessionRunContext, SessionRunHook


class InMemoryEvaluatorHook(SessionRunHook):
    """Evaluates the model at the start, every so many steps and at the end of a training.

    Args:
        estimator: the one that is trained.
        steps, hooks, name: as of its `evaluate`.
        every_n_iter: how many steps are between evaluations.

    Raises:
        ValueError: no such number of steps; several machines take part; the model has a saver or an `init_fn` of its
            own, which nothing here could run.
    """

    def __init__(
        self, estimator: Any, input_fn: Any, steps: Any = None, hooks: Any = None, name: Any = None,
        every_n_iter: Any = 100,
    ):  # fmt: skip
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError(f"every_n_iter: expected a number above 0, got {every_n_iter}")
        if estimator.config.num_ps_replicas > 0 or estimator.config.num_worker_replicas > 1:
            raise ValueError("InMemoryEvaluatorHook evaluates where it trains; here several machines do")
        self._estimator, self._input_fn = estimator, input_fn
        self._steps, self._hooks, self._name = steps, hooks, name
        self._timer = SecondOrStepTimer(every_steps=every_n_iter)

    def begin(self) -> None:
        self._timer.reset()
        self._done = 0
        self._graph = Graph()
        with self._graph.as_default():
            self._evaluation = self._estimator.evaluation(self._input_fn, self._steps, self._hooks)
            scaffold = self._evaluation.scaffold
            if scaffold.saver is not None or scaffold.init_fn is not None:
                raise ValueError("InMemoryEvaluatorHook runs no saver and no init_fn of a scaffold; the model has one")
            self._places = {v.name: (v, placeholder(v.dtype.base)) for v in self._variables()}

    def after_create_session(self, session: Any, coord: Any) -> None:
        if context.get_default_graph().get_collection("saveable_objects"):
            raise ValueError("InMemoryEvaluatorHook only hands variables on; the model saves more than these")
        self._trained = {v.name: v for v in self._variables() if v.name in self._places}
        with self._graph.as_default():
            self._feed = group([v.assign(given) for name, (v, given) in self._places.items() if name in self._trained])
        self._evaluate(session)

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        self._done += 1
        if self._timer.should_trigger_for_step(self._done):
            self._evaluate(run_context.session)

    def end(self, session: Any) -> None:
        self._evaluate(session)

    @staticmethod
    def _variables() -> list[Any]:
        return context.get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)

    def _evaluate(self, session: Any) -> None:
        values = session.run(self._trained)
        feeds = {self._places[name][1]: value for name, value in values.items()}

        def start(scaffold: Any, session: Any) -> None:
            session.run(self._feed, feed_dict=feeds)

        with self._graph.as_default():
            scaffold = Scaffold(init_fn=start, copy_from_scaffold=self._evaluation.scaffold)
            self._estimator.run_evaluation(self._evaluation._replace(scaffold=scaffold), None, self._name)
        self._timer.update_last_triggered_step(self._done)
