# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""The monitors that there are: they print, write summaries and checkpoints, capture values, stop, and validate."""

from __future__ import annotations

import copy
import os
import time
from typing import Any

import numpy as np

from schemas import event_pb2, summary_pb2
from toolkit.client.construction import context
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.estimators import estimator as core
from toolkit.tensorflow.families.train import saver as savers
from toolkit.tensorflow.families.train.saving_hooks import FileWriterCache
from toolkit.tensorflow.families.train.session_hooks import NanLossDuringTrainingError
from toolkit.tensorflow.learn.monitors import BaseMonitor, EveryN, output_of


class StopAtStep(BaseMonitor):
    """Ends after so many steps, or at one.

    Raises:
        ValueError: both are given, or neither.
    """

    def __init__(self, num_steps: Any = None, last_step: Any = None):
        super().__init__()
        if (num_steps is None) == (last_step is None):
            raise ValueError("give num_steps or last_step, one of them")
        self._num_steps, self._last_step = num_steps, last_step

    @property
    def run_on_all_workers(self) -> bool:
        return True

    def step_begin(self, step: Any) -> list[Any]:
        super().step_begin(step)
        if self._last_step is None:
            self._last_step = step + self._num_steps - 1
        return []

    def step_end(self, step: Any, output: Any) -> bool:
        super().step_end(step, output)
        return step >= self._last_step


class PrintTensor(EveryN):
    """Logs the values of tensors.

    Args:
        tensor_names: names, or names by what they are called in the log.
    """

    def __init__(self, tensor_names: Any, every_n: Any = 100, first_n: Any = 1):
        super().__init__(every_n, first_n)
        self._names = tensor_names if isinstance(tensor_names, dict) else {each: each for each in tensor_names}

    def every_n_step_begin(self, step: Any) -> list[Any]:
        return list(self._names.values())

    def every_n_step_end(self, step: Any, outputs: Any) -> Any:
        shown = [f"{tag} = {output_of(outputs, name)}" for tag, name in self._names.items() if name in outputs]
        log().info("step %d: %s", step, ", ".join(shown))


class LoggingTrainable(EveryN):
    """Logs the values of trainable variables."""

    def __init__(self, scope: Any = None, every_n: Any = 100, first_n: Any = 1):
        super().__init__(every_n, first_n)
        self._scope = scope
        self._names: dict[str, str] = {}

    def every_n_step_begin(self, step: Any) -> list[Any]:
        found = context.get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, self._scope)
        self._names = {each.name: each.value().name for each in found}
        return list(self._names.values())

    def every_n_step_end(self, step: Any, outputs: Any) -> Any:
        shown = [f"{tag} = {outputs[name]}" for tag, name in self._names.items() if name in outputs]
        log().info("step %d: %s", step, ", ".join(shown))


class SummarySaver(EveryN):
    """Writes summaries."""

    def __init__(
        self, summary_op: Any, save_steps: Any = 100, output_dir: Any = None, summary_writer: Any = None,
        scaffold: Any = None,
    ):  # fmt: skip
        super().__init__(every_n_steps=save_steps)
        self._summary_op, self._scaffold = summary_op, scaffold
        self._writer = summary_writer or (FileWriterCache.get(output_dir) if output_dir else None)

    def set_estimator(self, estimator: Any) -> None:
        super().set_estimator(estimator)
        self._writer = self._writer or FileWriterCache.get(estimator.model_dir)

    def every_n_step_begin(self, step: Any) -> list[Any]:
        if self._summary_op is None and self._scaffold is not None:
            self._summary_op = self._scaffold.summary_op
        return [] if self._summary_op is None else [self._summary_op]

    def every_n_step_end(self, step: Any, outputs: Any) -> Any:
        if self._summary_op is not None and self._writer is not None:
            self._writer.add_summary(output_of(outputs, self._summary_op), step)
        return False

    def end(self, session: Any = None) -> None:
        super().end(session)
        if self._writer is not None:
            self._writer.flush()


class ValidationMonitor(EveryN):
    """Evaluates new checkpoints while the model is trained, and ends the training where nothing gets better.

    Args:
        x, y, batch_size, input_fn, eval_steps, metrics, hooks, name: of the evaluation.
        early_stopping_rounds: how many steps the metric may stay without getting better; None: for ever.
        check_interval_secs: how often it is looked for checkpoints.

    Raises:
        ValueError: there is nothing to evaluate.
    """

    def __init__(
        self, x: Any = None, y: Any = None, input_fn: Any = None, batch_size: Any = None, eval_steps: Any = None,
        every_n_steps: Any = 100, metrics: Any = None, hooks: Any = None, early_stopping_rounds: Any = None,
        early_stopping_metric: Any = "loss", early_stopping_metric_minimize: Any = True, name: Any = None,
        check_interval_secs: Any = 5,
    ):  # fmt: skip
        super().__init__(every_n_steps=every_n_steps, first_n_steps=-1)
        if x is None and input_fn is None:
            raise ValueError("a ValidationMonitor needs x or input_fn; both are missing")
        self.x, self.y, self.input_fn, self.batch_size = x, y, input_fn, batch_size
        self.eval_steps, self.metrics, self.hooks, self.name = eval_steps, metrics, hooks, name
        self.early_stopping_rounds, self.early_stopping_metric = early_stopping_rounds, early_stopping_metric
        self.early_stopping_metric_minimize = early_stopping_metric_minimize
        self._interval = check_interval_secs
        self._best_step: Any = None
        self._best_value: Any = None
        self._best_metrics: Any = None
        self._stopped = False
        self._checkpoint: Any = None
        self._looked: Any = None

    @property
    def early_stopped(self) -> bool:
        """Whether this monitor has ended the training."""
        return self._stopped

    @property
    def best_step(self) -> Any:
        return self._best_step

    @property
    def best_value(self) -> Any:
        return self._best_value

    @property
    def best_metrics(self) -> Any:
        return self._best_metrics

    def _evaluate_estimator(self) -> Any:
        more: dict[str, Any] = {"x": self.x, "y": self.y, "batch_size": self.batch_size, "metrics": self.metrics}
        if isinstance(self._estimator, core.Estimator):
            given = [key for key, value in more.items() if value is not None]
            if given:
                raise ValueError(f"an Estimator of tf.estimator takes no {', '.join(given)}; give input_fn alone")
            more = {}
        return self._estimator.evaluate(
            input_fn=self.input_fn, steps=self.eval_steps, hooks=self.hooks, name=self.name, **more
        )

    def every_n_step_end(self, step: Any, outputs: Any) -> Any:
        if self._estimator is None:
            raise ValueError("a ValidationMonitor evaluates an estimator; call set_estimator first")
        now = time.time()
        if self._interval is not None and self._looked is not None and now - self._looked <= self._interval:
            return False
        self._looked = now
        latest = savers.latest_checkpoint(self._estimator.model_dir)
        if latest is None or latest == self._checkpoint:
            return False
        self._checkpoint = latest
        found = self._evaluate_estimator()
        log().info("validation (step %d): %s", step, ", ".join(f"{key} = {value}" for key, value in found.items()))
        return self._looked_at(step, found)

    def _looked_at(self, step: Any, found: Any) -> bool:
        """Whether the training ends."""
        if self.early_stopping_rounds is None:
            return False
        if self.early_stopping_metric not in found:
            raise ValueError(f"there is no metric '{self.early_stopping_metric}'; there are: {', '.join(found)}")
        value = found[self.early_stopping_metric]
        sign = 1 if self.early_stopping_metric_minimize else -1
        if self._best_value is None or sign * value < sign * self._best_value:
            self._best_value, self._best_metrics, self._best_step = value, copy.deepcopy(found), step
        if step - self._best_step < self.early_stopping_rounds:
            return False
        log().info("stopping; the best step was %d, with %s", self._best_step, self._best_value)
        self._stopped = True
        return True


class CaptureVariable(EveryN):
    """Keeps the values of a variable, by step."""

    def __init__(self, var_name: Any, every_n: Any = 100, first_n: Any = 1):
        super().__init__(every_n, first_n)
        self._name = var_name
        self._values: dict[Any, Any] = {}

    @property
    def values(self) -> dict[Any, Any]:
        return self._values

    def every_n_step_begin(self, step: Any) -> list[Any]:
        return [self._name]

    def every_n_step_end(self, step: Any, outputs: Any) -> Any:
        self._values[step] = output_of(outputs, self._name)


class CheckpointSaver(BaseMonitor):
    """Writes checkpoints, after the first step and then every so many seconds or steps.

    Raises:
        ValueError: both intervals are given, or neither.
    """

    def __init__(
        self, checkpoint_dir: Any, save_secs: Any = None, save_steps: Any = None, saver: Any = None,
        checkpoint_basename: Any = "model.ckpt", scaffold: Any = None,
    ):  # fmt: skip
        super().__init__()
        if (save_steps is None) == (save_secs is None):
            raise ValueError("give save_steps or save_secs, one of them")
        self._saver, self._scaffold = saver, scaffold
        self._writer = FileWriterCache.get(checkpoint_dir)
        self._path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._secs, self._steps = save_secs, save_steps
        self._time: Any = None
        self._saved: Any = None
        self._begun_step: Any = None

    def begin(self, max_steps: Any = None) -> None:
        super().begin(max_steps)
        self._time = self._saved = self._begun_step = None

    def step_begin(self, step: Any) -> list[Any]:
        found = super().step_begin(step)
        self._begun_step = step
        return found

    def post_step(self, step: Any, session: Any) -> None:
        is_due = self._time is None or (self._steps is not None and step >= self._saved + self._steps)
        if is_due or (self._secs is not None and time.time() >= self._time + self._secs):
            self._save(step, session)

    def end(self, session: Any = None) -> None:
        super().end(session)
        self._save(self._begun_step, session)

    def _save(self, step: Any, session: Any) -> None:
        if step == self._saved:
            return
        self._time, self._saved = time.time(), step
        saver = self._scaffold.saver if self._saver is None else self._saver
        saver.save(session, self._path, global_step=step)
        status = event_pb2.SessionLog(status=event_pb2.SessionLog.CHECKPOINT, checkpoint_path=self._path)
        self._writer.add_session_log(status, step)


class StepCounter(EveryN):
    """Writes how many steps there are in a second."""

    def __init__(self, every_n_steps: Any = 100, output_dir: Any = None, summary_writer: Any = None):
        super().__init__(every_n_steps=every_n_steps)
        self._writer = summary_writer or (FileWriterCache.get(output_dir) if output_dir else None)
        self._last: Any = None

    def set_estimator(self, estimator: Any) -> None:
        super().set_estimator(estimator)
        self._writer = self._writer or FileWriterCache.get(estimator.model_dir)

    def every_n_step_end(self, step: Any, outputs: Any) -> Any:
        now = time.time()
        if self._last is not None and self._writer is not None:
            rate = (step - self._last[0]) / max(now - self._last[1], 1e-9)
            found = summary_pb2.Summary()
            found.value.add(tag="global_step/sec", simple_value=rate)
            self._writer.add_summary(found, step)
        self._last = step, now


class NanLoss(EveryN):
    """Ends the training, or raises, where the loss is no number."""

    def __init__(self, loss_tensor: Any, every_n_steps: Any = 100, fail_on_nan_loss: Any = True):
        super().__init__(every_n_steps=every_n_steps)
        self._loss, self._fails = loss_tensor, fail_on_nan_loss

    def every_n_step_begin(self, step: Any) -> list[Any]:
        return [self._loss]

    def every_n_step_end(self, step: Any, outputs: Any) -> Any:
        if not np.isnan(output_of(outputs, self._loss)):
            return False
        if self._fails:
            raise NanLossDuringTrainingError("the loss is NaN: the model has diverged")
        log().warning("the loss is NaN: the model has diverged")
        return True


def get_default_monitors(
    loss_op: Any = None, summary_op: Any = None, save_summary_steps: Any = 100, output_dir: Any = None,
    summary_writer: Any = None,
) -> list[Any]:  # fmt: skip
    """Monitors that log a loss and write summaries, of those that are given."""
    found: list[Any] = []
    if loss_op is not None:
        found.append(PrintTensor({"loss": loss_op.name}))
    if summary_op is not None:
        found.append(SummarySaver(summary_op, save_summary_steps, output_dir, summary_writer))
    return found
