# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""An experiment: an estimator with its inputs, trained, evaluated and exported by schedules."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any

from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.estimators import estimator as core
from toolkit.tensorflow.estimators.model_functions import arguments_of
from toolkit.tensorflow.families.train import saver as savers
from toolkit.tensorflow.families.train.saving_hooks import CheckpointSaverHook, CheckpointSaverListener
from toolkit.tensorflow.families.train.session_hooks import GlobalStepWaiterHook
from toolkit.tensorflow.learn.base_estimator import Evaluable, Trainable
from toolkit.tensorflow.learn.exporting import ExportStrategy
from toolkit.tensorflow.learn.keys import Environment
from toolkit.tensorflow.learn.monitor_kinds import ValidationMonitor
from toolkit.tensorflow.learn.monitors import replace_monitors_with_hooks
from toolkit.tensorflow.learn.run_config import LearnRunConfig

#: workers of higher numbers begin later: seconds for each, and at most; steps of the chief in their place
_SECS_A_TASK, _MOST_SECS, _STEPS_A_TASK = 5, 60, 8000.0
#: how many steps are trained between evaluations where nobody says, and into how many parts a training falls
_STEPS_BETWEEN, _PARTS = 1000, 10


class _EvaluatesAndExports(CheckpointSaverListener):
    """Evaluates and exports each checkpoint."""

    def __init__(self, evaluate: Callable[..., Any], export: Callable[..., Any], folder: Any):
        self._evaluate, self._export, self._folder = evaluate, export, folder
        self._seen: Any = None
        self.eval_result: Any = None
        self.export_results: Any = None

    def after_save(self, session: Any, global_step_value: Any) -> None:
        latest = savers.latest_checkpoint(self._folder)
        if not latest or latest == self._seen:
            return
        self._seen = latest
        self.eval_result = self._evaluate(name="intermediate_export", checkpoint_path=latest)
        self.export_results = self._export(self.eval_result, checkpoint_path=latest)


class Experiment:
    """An estimator with its inputs.

    Args:
        eval_metrics: MetricSpecs by name; None with an Estimator of tf.estimator.
        train_steps, eval_steps: None: until the input ends.
        train_monitors: monitors and hooks of the training.
        min_eval_frequency: how many steps there are at least between evaluations while it is trained; 0: none.
        export_strategies: one, or several.
        checkpoint_and_export: evaluate and export each checkpoint while it is trained.

    Raises:
        ValueError: the estimator is none, or arguments do not go with it.
    """

    def __init__(
        self, estimator: Any, train_input_fn: Any, eval_input_fn: Any, eval_metrics: Any = None,
        train_steps: Any = None, eval_steps: Any = 100, train_monitors: Any = None, eval_hooks: Any = None,
        local_eval_frequency: Any = None, eval_delay_secs: Any = 120, continuous_eval_throttle_secs: Any = 60,
        min_eval_frequency: Any = None, delay_workers_by_global_step: Any = False, export_strategies: Any = None,
        train_steps_per_iteration: Any = None, checkpoint_and_export: Any = False, saving_listeners: Any = None,
        check_interval_secs: Any = 5,
    ):  # fmt: skip
        self._is_core = isinstance(estimator, core.Estimator)
        if self._is_core and eval_metrics is not None:
            raise ValueError("eval_metrics are none of tf.estimator's; its model function gives eval_metric_ops")
        if not self._is_core and not (isinstance(estimator, Evaluable) and isinstance(estimator, Trainable)):
            raise ValueError(f"estimator must be of tf.estimator or of tf.contrib.learn; got {estimator!r}")
        if not self._is_core and saving_listeners is not None:
            raise ValueError("saving_listeners go with an Estimator of tf.estimator alone")
        if train_steps_per_iteration is not None and not isinstance(train_steps_per_iteration, int):
            raise ValueError(f"train_steps_per_iteration must be an integer; got {train_steps_per_iteration!r}")
        self._estimator: Any = estimator
        self._train_input_fn, self._eval_input_fn = train_input_fn, eval_input_fn
        self._eval_metrics, self._train_steps, self._eval_steps = eval_metrics, train_steps, eval_steps
        self._local_eval_frequency, self._eval_delay_secs = local_eval_frequency, eval_delay_secs
        self._throttle_secs, self._interval = continuous_eval_throttle_secs, check_interval_secs
        self._checkpoint_and_export, self._saving_listeners = checkpoint_and_export, saving_listeners
        self._min_eval_frequency = 1 if min_eval_frequency is None else min_eval_frequency
        self._delay_by_step = delay_workers_by_global_step
        self._train_monitors, self._eval_hooks = list(train_monitors or []), list(eval_hooks or [])
        self._train_steps_per_iteration = train_steps_per_iteration
        self._export_strategies = _strategies(export_strategies)

    @property
    def estimator(self) -> Any:
        return self._estimator

    @property
    def eval_metrics(self) -> Any:
        return self._eval_metrics

    @property
    def train_steps(self) -> Any:
        return self._train_steps

    @property
    def eval_steps(self) -> Any:
        return self._eval_steps

    def extend_train_hooks(self, additional_hooks: Any) -> None:
        """Add monitors and hooks to the training."""
        self._train_monitors.extend(additional_hooks)

    def reset_export_strategies(self, new_export_strategies: Any = None) -> Any:
        """Take other strategies; returns those before."""
        before, self._export_strategies = self._export_strategies, _strategies(new_export_strategies)
        return before

    # -- schedules ------------------------------------------------------------------------------------------------

    def train(self, delay_secs: Any = None) -> Any:
        """Train; workers of higher numbers begin later."""
        config = self._estimator.config
        hooks: list[Any] = []
        if isinstance(config, LearnRunConfig):
            is_far = config.environment not in (Environment.LOCAL, Environment.GOOGLE)
            if is_far and config.cluster_spec and config.master:
                self._start_server()
        elif config.cluster_spec and config.master:
            raise ValueError(f"tasks of a cluster are known by tf.contrib.learn.RunConfig; got {type(config).__name__}")
        if delay_secs is None:
            task = config.task_id or 0
            delay_secs = 0 if self._delay_by_step else min(_MOST_SECS, task * _SECS_A_TASK)
            if self._delay_by_step:
                hooks.append(GlobalStepWaiterHook(int(_STEPS_A_TASK * math.log(task + 1))))
        if delay_secs > 0:
            time.sleep(delay_secs)
        return self._call_train(
            input_fn=self._train_input_fn, max_steps=self._train_steps, hooks=[*self._train_monitors, *hooks],
            saving_listeners=self._saving_listeners,
        )  # fmt: skip

    def evaluate(self, delay_secs: Any = None, name: Any = None) -> Any:
        """Evaluate the latest checkpoint."""
        delay = self._eval_delay_secs if delay_secs is None else delay_secs
        if delay:
            time.sleep(delay)
        return self._evaluated(name or "one_pass")

    def local_run(self) -> Any:
        """`train_and_evaluate`, evaluating as often as `local_eval_frequency` says."""
        before, self._min_eval_frequency = self._min_eval_frequency, self._local_eval_frequency
        try:
            return self.train_and_evaluate()
        finally:
            self._min_eval_frequency = before

    def continuous_eval(
        self, delay_secs: Any = None, throttle_delay_secs: Any = None, evaluate_checkpoint_only_once: Any = True,
        continuous_eval_predicate_fn: Any = None, name: Any = "continuous",
    ) -> None:  # fmt: skip
        """Evaluate and export each new checkpoint, until all steps are trained or a function says so."""
        self._continuous_eval(
            self._eval_input_fn, name, delay_secs, throttle_delay_secs, evaluate_checkpoint_only_once,
            continuous_eval_predicate_fn,
        )  # fmt: skip

    def continuous_eval_on_train_data(
        self, delay_secs: Any = None, throttle_delay_secs: Any = None, continuous_eval_predicate_fn: Any = None,
        name: Any = "continuous_on_train_data",
    ) -> None:  # fmt: skip
        """As `continuous_eval`, with the inputs of the training, and without exports."""
        self._continuous_eval(
            self._train_input_fn, name, delay_secs, throttle_delay_secs, True, continuous_eval_predicate_fn, False
        )

    def _continuous_eval(
        self, input_fn: Any, name: Any, delay_secs: Any, throttle_secs: Any, only_once: Any, predicate_fn: Any,
        exports: bool = True,
    ) -> None:  # fmt: skip
        goes_on = _predicate(predicate_fn)
        delay = self._eval_delay_secs if delay_secs is None else delay_secs
        throttle = self._throttle_secs if throttle_secs is None else throttle_secs
        if delay:
            time.sleep(delay)
        seen: Any = None
        found: Any = None
        while goes_on(found, seen) and not self._has_ended(found):
            began = time.time()
            latest = savers.latest_checkpoint(self._estimator.model_dir)
            if not latest or (only_once and latest == seen):
                found = {}
            else:
                found = self._call_evaluate(
                    input_fn=input_fn, steps=self._eval_steps, metrics=self._eval_metrics, name=name,
                    checkpoint_path=latest, hooks=self._eval_hooks,
                ) or {}  # fmt: skip
                if exports:
                    self._maybe_export(found, latest)
                seen = latest
            time.sleep(max(0.0, throttle - (time.time() - began)))

    def _has_ended(self, found: Any) -> bool:
        step = (found or {}).get(GraphKeys.GLOBAL_STEP)
        return bool(step and self._train_steps and step >= self._train_steps)

    def train_and_evaluate(self) -> tuple[Any, Any]:
        """Train, evaluate on the way and at the end, export; returns the values and the exports."""
        config = self._estimator.config
        before, monitors = self._train_monitors, list(self._train_monitors)
        listener: Any = None
        if self._checkpoint_and_export and (config.save_checkpoints_secs or config.save_checkpoints_steps):

            def evaluate(**given: Any) -> Any:
                return self._call_evaluate(
                    input_fn=self._eval_input_fn, steps=self._eval_steps, metrics=self._eval_metrics,
                    hooks=self._eval_hooks, **given,
                )  # fmt: skip

            listener = _EvaluatesAndExports(evaluate, self._maybe_export, self._estimator.model_dir)
            monitors.append(CheckpointSaverHook(
                self._estimator.model_dir, config.save_checkpoints_secs, config.save_checkpoints_steps,
                listeners=[listener],
            ))  # fmt: skip
        elif self._min_eval_frequency:
            monitors.append(ValidationMonitor(
                input_fn=self._eval_input_fn, eval_steps=self._eval_steps, metrics=self._eval_metrics,
                every_n_steps=self._min_eval_frequency, check_interval_secs=self._interval, hooks=self._eval_hooks,
            ))  # fmt: skip
        self._train_monitors = monitors
        try:
            self.train(delay_secs=0)
        finally:
            self._train_monitors = before
        if listener is not None:
            return listener.eval_result, listener.export_results
        found = self._evaluated(None)
        return found, self._maybe_export(found)

    def continuous_train_and_eval(self, continuous_eval_predicate_fn: Any = None) -> tuple[Any, Any]:
        """Train some steps, evaluate, export, and so on; returns the last values and exports."""
        goes_on = _predicate(continuous_eval_predicate_fn)
        steps = self._train_steps_per_iteration
        if steps is None:
            steps = _STEPS_BETWEEN if self._train_steps is None else int(self._train_steps / _PARTS)
        found: Any = None
        exports: Any = None
        latest: Any = None
        while goes_on(found, latest if found else None) and not self._has_ended(found):
            self._call_train(
                input_fn=self._train_input_fn, steps=steps, hooks=self._train_monitors,
                saving_listeners=self._saving_listeners,
            )  # fmt: skip
            latest = savers.latest_checkpoint(self._estimator.model_dir)
            found = self._evaluated("one_pass", latest)
            exports = self._maybe_export(found)
        return found, exports

    def test(self) -> Any:
        """One step of everything."""
        self._call_train(
            input_fn=self._train_input_fn, steps=1, hooks=self._train_monitors, saving_listeners=self._saving_listeners
        )
        found = self._call_evaluate(
            input_fn=self._eval_input_fn, steps=1, metrics=self._eval_metrics, name="one_pass"
        )  # fmt: skip
        self._maybe_export(found)
        return found

    def run_std_server(self) -> None:
        """Serve as a task of the cluster, for ever."""
        self._start_server().join()

    # -- calls ----------------------------------------------------------------------------------------------------

    def _evaluated(self, name: Any, checkpoint: Any = None) -> Any:
        return self._call_evaluate(
            input_fn=self._eval_input_fn, steps=self._eval_steps, metrics=self._eval_metrics, name=name,
            checkpoint_path=checkpoint, hooks=self._eval_hooks,
        )  # fmt: skip

    def _maybe_export(self, eval_result: Any, checkpoint_path: Any = None) -> list[Any]:
        base = os.path.join(os.fsdecode(self._estimator.model_dir), "export")
        return [
            each.export(self._estimator, os.path.join(base, each.name), checkpoint_path, eval_result)
            for each in self._export_strategies
        ]

    def _start_server(self) -> Any:
        from toolkit.tensorflow.families.train.cluster import Server

        config = self._estimator.config
        if not config.cluster_spec or not config.task_type or not config.master:
            raise ValueError("a server is a task of a cluster; TF_CONFIG must have a cluster and a task")
        return Server(
            config.cluster_spec, job_name=config.task_type, task_index=config.task_id, config=config.tf_config
        )

    def _call_train(
        self, _sentinel: Any = None, input_fn: Any = None, steps: Any = None, hooks: Any = None,
        max_steps: Any = None, saving_listeners: Any = None,
    ) -> Any:  # fmt: skip
        hooks = replace_monitors_with_hooks(hooks, self._estimator)
        if not self._is_core:
            return self._estimator.fit(input_fn=input_fn, steps=steps, max_steps=max_steps, monitors=hooks)
        return self._estimator.train(
            input_fn=input_fn, steps=steps, max_steps=max_steps, hooks=hooks, saving_listeners=saving_listeners
        )

    def _call_evaluate(
        self, _sentinel: Any = None, input_fn: Any = None, steps: Any = None, metrics: Any = None, name: Any = None,
        checkpoint_path: Any = None, hooks: Any = None,
    ) -> Any:  # fmt: skip
        more = {} if self._is_core else {"metrics": metrics}
        return self._estimator.evaluate(
            input_fn=input_fn, steps=steps, name=name, checkpoint_path=checkpoint_path, hooks=hooks, **more
        )


def _strategies(given: Any) -> tuple[Any, ...]:
    found = (given,) if isinstance(given, ExportStrategy) else tuple(given or ())
    for each in found:
        if not isinstance(each, ExportStrategy):
            raise ValueError(f"export_strategies must be ExportStrategies; got {each!r}")
    return found


def _predicate(function: Any) -> Callable[[Any, Any], Any]:
    """A function of the result and the checkpoint of the last evaluation: whether it goes on."""
    if function is None:
        return lambda found, checkpoint: True
    if not callable(function):
        raise ValueError(f"continuous_eval_predicate_fn must be a function; got {function!r}")
    if "checkpoint_path" in arguments_of(function):
        return lambda found, checkpoint: function(found, checkpoint_path=checkpoint)
    return lambda found, checkpoint: function(found)
