# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Training with an evaluation, and exports, after each checkpoint (train_and_evaluate)."""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.estimators import cluster_tasks
from toolkit.tensorflow.estimators.exporters import Exporter
from toolkit.tensorflow.families.train.saving_hooks import CheckpointSaverListener
from toolkit.tensorflow.families.train.session_hooks import SessionRunHook

#: seconds between two looks for a checkpoint, where EvalSpec.throttle_secs is less
_LEAST_SECS = 0.1


class _Train(NamedTuple):
    input_fn: Any
    max_steps: Any
    hooks: Any


class TrainSpec(_Train):
    """What is trained on, and up to which global step.

    Raises:
        ValueError: a number of steps below 1; TypeError: something is of another kind.
    """

    def __new__(cls, input_fn: Any, max_steps: Any = None, hooks: Any = None) -> TrainSpec:
        _check_input(input_fn)
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"max_steps must be above 0; got {max_steps}")
        return super().__new__(cls, input_fn, max_steps, _checked(hooks, SessionRunHook, "hooks"))


class _Eval(NamedTuple):
    input_fn: Any
    steps: Any
    name: Any
    hooks: Any
    exporters: Any
    start_delay_secs: Any
    throttle_secs: Any


class EvalSpec(_Eval):
    """What is evaluated, and what is exported then.

    Raises:
        ValueError: a number that cannot be, two exporters of one name; TypeError: something is of another kind.
    """

    def __new__(
        cls, input_fn: Any, steps: Any = 100, name: Any = None, hooks: Any = None, exporters: Any = None,
        start_delay_secs: Any = 120, throttle_secs: Any = 600,
    ) -> EvalSpec:  # fmt: skip
        _check_input(input_fn)
        if steps is not None and steps <= 0:
            raise ValueError(f"steps must be above 0; got {steps}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a text; got {name!r}")
        for key, value in (("start_delay_secs", start_delay_secs), ("throttle_secs", throttle_secs)):
            if value < 0:
                raise ValueError(f"{key} must be at least 0; got {value}")
        if isinstance(exporters, Exporter):
            exporters = [exporters]
        found = _checked(exporters, Exporter, "exporters")
        names = [each.name for each in found]
        if len(set(names)) < len(names):
            raise ValueError(f"two exporters have one name: {', '.join(names)}")
        kept = _checked(hooks, SessionRunHook, "hooks")
        return super().__new__(cls, input_fn, steps, name, kept, found, start_delay_secs, throttle_secs)


def _check_input(input_fn: Any) -> None:
    if not callable(input_fn):
        raise TypeError(f"input_fn must be a function; got {input_fn!r}")


def _checked(items: Any, kind: type, what: str) -> tuple[Any, ...]:
    found = tuple(items or ())
    for item in found:
        if not isinstance(item, kind):
            raise TypeError(f"{what} must be of {kind.__name__}; got {item!r}")
    return found


def train_and_evaluate(estimator: Any, train_spec: Any, eval_spec: Any) -> Any:
    """Train, and evaluate and export after checkpoints and at the end: in this process or, where TF_CONFIG says that it
    is a task of a cluster, this task's part of it (`cluster_tasks`). A parameter server's part never ends.

    Returns:
        In one process, the values of the last evaluation, and what the exporters wrote then; None and [] where there
        was none. For a task of a cluster, None.

    Raises:
        TypeError, ValueError: something is of another kind; the training could never write a checkpoint.
    """
    from toolkit.tensorflow.estimators.estimator import Estimator

    for value, kind in ((estimator, Estimator), (train_spec, TrainSpec), (eval_spec, EvalSpec)):
        if not isinstance(value, kind):
            raise TypeError(f"train_and_evaluate takes a {kind.__name__}; got {value!r}")
    config = estimator.config
    evaluator = _Evaluator(estimator, eval_spec, train_spec.max_steps)
    if config.task_type == cluster_tasks.EVALUATOR:
        return evaluator.follow(eval_spec.start_delay_secs, eval_spec.throttle_secs)
    if config.cluster_spec:
        return _run_task(estimator, train_spec, eval_spec, evaluator)
    if not (config.save_checkpoints_steps or config.save_checkpoints_secs):
        raise ValueError(
            "train_and_evaluate evaluates checkpoints; set save_checkpoints_steps or save_checkpoints_secs"
        )
    listener = _EvaluatesCheckpoints(evaluator, eval_spec.throttle_secs)
    estimator.train(
        train_spec.input_fn, hooks=train_spec.hooks, max_steps=train_spec.max_steps, saving_listeners=[listener]
    )
    return evaluator.result


def _run_task(estimator: Any, train_spec: Any, eval_spec: Any, evaluator: _Evaluator) -> None:
    """What a task of a cluster does."""
    config = estimator.config
    server = cluster_tasks.start_server(config)
    if config.task_type == cluster_tasks.PS:
        server.join()
        return
    seconds = cluster_tasks.delay(config)
    if seconds:
        log().info("this worker begins in %d seconds", seconds)
        time.sleep(seconds)
    listeners = []
    if config.task_type == cluster_tasks.MASTER:
        listeners.append(_EvaluatesCheckpoints(evaluator, eval_spec.throttle_secs))
    estimator.train(
        train_spec.input_fn, hooks=train_spec.hooks, max_steps=train_spec.max_steps, saving_listeners=listeners
    )


class _Evaluator:
    """Evaluates the latest checkpoint, each once.

    Attributes:
        result: of the last evaluation.
    """

    def __init__(self, estimator: Any, spec: EvalSpec, max_steps: Any):
        self._estimator, self._spec, self._max_steps = estimator, spec, max_steps
        self._seen: Any = None
        self._has_said = False
        self.result: tuple[Any, list[Any]] = (None, [])

    def follow(self, delay_secs: float, throttle_secs: float) -> None:
        """Evaluate checkpoints as others write them, until one is of the last step."""
        if delay_secs:
            log().info("evaluations begin in %g seconds", delay_secs)
            time.sleep(delay_secs)
        while True:
            began = time.monotonic()
            self.evaluate()
            step = (self.result[0] or {}).get("global_step", 0)
            if self._max_steps and step >= self._max_steps:
                log().info("the last step, %d, has been evaluated", step)
                return
            time.sleep(max(throttle_secs - (time.monotonic() - began), _LEAST_SECS))

    def evaluate(self) -> None:
        """The latest checkpoint, if it is a new one."""
        estimator, spec = self._estimator, self._spec
        checkpoint = estimator.latest_checkpoint()
        if not checkpoint or checkpoint == self._seen:
            if not self._has_said:
                log().info("there is no new checkpoint to evaluate")
            self._has_said = True
            return
        self._has_said = False
        self._seen = checkpoint
        values = estimator.evaluate(
            spec.input_fn, steps=spec.steps, name=spec.name, checkpoint_path=checkpoint, hooks=spec.hooks
        )
        is_final = not self._max_steps or values["global_step"] >= self._max_steps
        self.result = values, self._export(checkpoint, values, is_final)

    def _export(self, checkpoint: str, values: Any, is_final: bool) -> list[Any]:
        base = os.path.join(self._estimator.model_dir, "export")
        os.makedirs(base, exist_ok=True)
        return [
            each.export(
                estimator=self._estimator, export_path=os.path.join(base, each.name), checkpoint_path=checkpoint,
                eval_result=values, is_the_final_export=is_final,
            )
            for each in self._spec.exporters
        ]  # fmt: skip


class _EvaluatesCheckpoints(CheckpointSaverListener):
    """Evaluates after checkpoints, not more often than every so many seconds, and after the last one."""

    def __init__(self, evaluator: _Evaluator, throttle_secs: float):
        self._evaluator, self._throttle = evaluator, throttle_secs
        self._last: float | None = None
        self._is_first = True

    def after_save(self, session: Any, global_step_value: Any) -> None:
        if self._is_first:  # the one of the initial values
            self._is_first = False
        elif self._last is None or time.time() >= self._last + self._throttle:
            self._last = time.time()
            self._evaluator.evaluate()

    def end(self, session: Any, global_step_value: Any) -> None:
        self._evaluator.evaluate()
