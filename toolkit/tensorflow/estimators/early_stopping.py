# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Hooks that end a training early: when a metric of evaluations says so, or a function of the program."""

from __future__ import annotations

import glob
import operator
import os
import time
from collections.abc import Callable
from typing import Any

from toolkit.client.train.global_step import get_global_step, global_step_read
from toolkit.client.variables.initializers import Constant
from toolkit.client.variables.store import AUTO_REUSE, get_variable, variable_scope
from toolkit.errors import UsageError
from toolkit.formats.records.events import read_events
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.estimators.estimator import Estimator
from toolkit.tensorflow.families.train.session_hooks import (
    SecondOrStepTimer,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    StopAtStepHook,
)


def make_early_stopping_hook(
    estimator: Any, should_stop_fn: Any, run_every_secs: Any = 60, run_every_steps: Any = None
) -> SessionRunHook:
    """A hook that asks `should_stop_fn` every so many seconds or steps; tasks that are not the chief look whether the
    chief has stopped.

    Raises:
        TypeError: `estimator` is none. ValueError: both seconds and steps are given.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(f"estimator: expected a tf.estimator.Estimator, got {estimator!r}")
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("give run_every_secs or run_every_steps, not both; None leaves one out")
    if not estimator.config.is_chief:
        return _StopWithChief()
    return _StopWhen(should_stop_fn, SecondOrStepTimer(run_every_secs, run_every_steps))


def stop_if_higher_hook(
    estimator: Any, metric_name: str, threshold: Any, eval_dir: Any = None, min_steps: int = 0,
    run_every_secs: Any = 60, run_every_steps: Any = None,
) -> SessionRunHook:  # fmt: skip
    """Stops once a metric was above a threshold in an evaluation of `min_steps` or more."""
    return _at_threshold(
        operator.gt, estimator, metric_name, threshold, eval_dir, min_steps, run_every_secs, run_every_steps
    )


def stop_if_lower_hook(
    estimator: Any, metric_name: str, threshold: Any, eval_dir: Any = None, min_steps: int = 0,
    run_every_secs: Any = 60, run_every_steps: Any = None,
) -> SessionRunHook:  # fmt: skip
    """Stops once a metric was below a threshold in an evaluation of `min_steps` or more."""
    return _at_threshold(
        operator.lt, estimator, metric_name, threshold, eval_dir, min_steps, run_every_secs, run_every_steps
    )


def stop_if_no_increase_hook(
    estimator: Any, metric_name: str, max_steps_without_increase: int, eval_dir: Any = None, min_steps: int = 0,
    run_every_secs: Any = 60, run_every_steps: Any = None,
) -> SessionRunHook:  # fmt: skip
    """Stops once a metric has not risen for so many steps."""
    return _without_gain(
        operator.gt, estimator, metric_name, max_steps_without_increase, eval_dir, min_steps, run_every_secs,
        run_every_steps,
    )  # fmt: skip


def stop_if_no_decrease_hook(
    estimator: Any, metric_name: str, max_steps_without_decrease: int, eval_dir: Any = None, min_steps: int = 0,
    run_every_secs: Any = 60, run_every_steps: Any = None,
) -> SessionRunHook:  # fmt: skip
    """Stops once a metric has not fallen for so many steps."""
    return _without_gain(
        operator.lt, estimator, metric_name, max_steps_without_decrease, eval_dir, min_steps, run_every_secs,
        run_every_steps,
    )  # fmt: skip


def make_stop_at_checkpoint_step_hook(
    estimator: Any, last_step: Any, wait_after_file_check_secs: Any = 30
) -> SessionRunHook:
    """The chief stops at `last_step`, other tasks once a checkpoint of that step is there."""
    if estimator.config.is_chief:
        return StopAtStepHook(last_step=last_step)
    return _StopAtCheckpoint(estimator, last_step, wait_after_file_check_secs)


Better = Callable[[Any, Any], bool]


def _evaluations(eval_dir: Any, min_steps: int, metric: str) -> list[tuple[int, float]]:
    """Steps and what a metric was, of the evaluations in a folder, by step.

    Raises:
        UsageError: an evaluation has no such metric.
    """
    found: dict[int, dict[str, float]] = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(os.fspath(eval_dir)), "events.out.tfevents.*"))):
        for event in read_events(path):
            numbers = {v.tag: v.simple_value for v in event.summary.value if v.HasField("simple_value")}
            if numbers:
                found.setdefault(event.step, {}).update(numbers)
    for step, metrics in found.items():
        if step >= min_steps and metric not in metrics:
            raise UsageError(
                f"{eval_dir}: the evaluation of step {step} has no metric '{metric}'; "
                f"it has: {', '.join(sorted(metrics))}"
            )
    return [(step, found[step][metric]) for step in sorted(found) if step >= min_steps]


def _at_threshold(
    better: Better, estimator: Any, metric: str, threshold: Any, eval_dir: Any, min_steps: int, secs: Any, steps: Any
) -> SessionRunHook:
    folder = estimator.eval_dir() if eval_dir is None else eval_dir

    def should_stop() -> bool:
        for step, value in _evaluations(folder, min_steps, metric):
            if better(value, threshold):
                log().info("%s was %s at step %d, beyond %s: training stops", metric, value, step, threshold)
                return True
        return False

    return make_early_stopping_hook(estimator, should_stop, secs, steps)


def _without_gain(
    better: Better, estimator: Any, metric: str, patience: int, eval_dir: Any, min_steps: int, secs: Any, steps: Any
) -> SessionRunHook:
    folder = estimator.eval_dir() if eval_dir is None else eval_dir

    def should_stop() -> bool:
        best: tuple[int, float] | None = None
        for step, value in _evaluations(folder, min_steps, metric):
            if best is None or better(value, best[1]):
                best = step, value
            if step - best[0] >= patience:
                log().info("%s was best at step %d, %d steps ago: training stops", metric, best[0], step - best[0])
                return True
        return False

    return make_early_stopping_hook(estimator, should_stop, secs, steps)


def _stop_variable() -> Any:
    """What says to the other tasks that the chief has stopped."""
    with variable_scope("signal_early_stopping", reuse=AUTO_REUSE):
        return get_variable(
            "STOP", [], dtypes.bool_, Constant(False), trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES]
        )


class _StopWhen(SessionRunHook):
    """Asks a function now and then."""

    def __init__(self, should_stop: Any, timer: SecondOrStepTimer):
        if not callable(should_stop):
            raise TypeError(f"should_stop_fn: expected a function, got {should_stop!r}")
        self._should_stop, self._timer = should_stop, timer

    def begin(self) -> None:
        self._step = get_global_step()
        self._stop = _stop_variable().assign(True)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        if self._timer.should_trigger_for_step(run_values.results):
            self._timer.update_last_triggered_step(run_values.results)
            if self._should_stop():
                run_context.session.run(self._stop)
                run_context.request_stop()


class _StopWithChief(SessionRunHook):
    """Looks at what the chief says in each step."""

    def begin(self) -> None:
        self._stop = _stop_variable()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        return SessionRunArgs(self._stop)

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        if run_values.results:
            run_context.request_stop()


class _StopAtCheckpoint(SessionRunHook):
    """Waits for a checkpoint of the last step."""

    def __init__(self, estimator: Any, last_step: Any, wait: float):
        if last_step is None:
            raise ValueError("last_step is missing")
        self._estimator, self._last, self._wait = estimator, last_step, wait

    def begin(self) -> None:
        self._step = global_step_read()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
        if run_values.results + 1 >= self._last:
            if self._estimator.trained_steps() >= self._last:
                run_context.request_stop()
            else:
                time.sleep(self._wait)
