# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""SessionRunHook and what it is given; hooks that stop, feed, wait and log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from toolkit.client.construction import context
from toolkit.client.train.global_step import global_step_read
from toolkit.errors import OutOfRangeError
from toolkit.tensorflow.deprecation import log


class SessionRunHook:
    """What is called around the steps of a monitored session; a subclass overrides what it needs.

    `begin` comes once, while the graph may still grow; `after_create_session` for each session, also for one that
    takes the place of a lost one; `before_run` and `after_run` around each step; `end` before the session is closed,
    unless an error other than the end of the input is on its way.
    """

    def begin(self) -> None:
        """Before the graph is finalized."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """A session is ready: its variables are initialized or restored, its queue runners run."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Ask for more fetches, feeds and options in the coming step."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """The step is done; not called when it failed."""

    def end(self, session: Any) -> None:
        """The session will be closed."""


class _Args(NamedTuple):
    fetches: Any
    feed_dict: Any
    options: Any


class SessionRunArgs(_Args):
    """What a hook adds to a step: fetches of any structure, feeds, RunOptions."""

    def __new__(cls, fetches: Any, feed_dict: Any = None, options: Any = None) -> SessionRunArgs:
        return super().__new__(cls, fetches, feed_dict, options)


class SessionRunValues(NamedTuple):
    """What a step gave: `results` has the structure of the hook's fetches."""

    results: Any
    options: Any
    run_metadata: Any


class SessionRunContext:
    """One step, as its hooks see it."""

    def __init__(self, original_args: SessionRunArgs, session: Any):
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """What the caller of `run` asked for."""
        return self._original_args

    @property
    def session(self) -> Any:
        return self._session

    @property
    def stop_requested(self) -> bool:
        return self._stop_requested

    def request_stop(self) -> None:
        """End the loop after this step."""
        self._stop_requested = True


class SecondOrStepTimer:
    """Triggers every so many steps, or when so many seconds have gone by.

    Raises:
        ValueError: both are given, or neither.
    """

    def __init__(self, every_secs: Any = None, every_steps: Any = None):
        if (every_secs is None) == (every_steps is None):
            raise ValueError(
                f"give one of every_secs and every_steps, not {'none' if every_secs is None else 'both'} of them"
            )
        self._every_secs, self._every_steps = every_secs, every_steps
        self.reset()

    def reset(self) -> None:
        """Trigger at the next step, whichever it is."""
        self._step: Any = None
        self._time = 0.0

    def should_trigger_for_step(self, step: Any) -> bool:
        if self._step is None:
            return True
        if step == self._step:
            return False
        if self._every_secs is not None:
            return time.time() >= self._time + self._every_secs
        return step >= self._step + self._every_steps

    def update_last_triggered_step(self, step: Any) -> tuple[Any, Any]:
        """Note a trigger; returns seconds and steps since the one before, (None, None) for the first."""
        now = time.time()
        passed = (None, None) if self._step is None else (now - self._time, step - self._step)
        self._step, self._time = step, now
        return passed

    def last_triggered_step(self) -> Any:
        return self._step


class _Never(SecondOrStepTimer):
    """For hooks that only act at the end."""

    def __init__(self) -> None:
        self.reset()

    def should_trigger_for_step(self, step: Any) -> bool:
        return False


def read_step_of(hook: object) -> Any:
    """The tensor that a hook reads the global step from.

    Raises:
        RuntimeError: the graph has no global step.
    """
    found = global_step_read()
    if found is None:
        raise RuntimeError(
            f"{type(hook).__name__} counts by the global step, which the graph does not have; "
            "make it with tf.train.get_or_create_global_step() before the session"
        )
    return found


class StopAtStepHook(SessionRunHook):
    """Stops after so many steps, or when the global step has come to a number.

    Raises:
        ValueError: both are given, or neither.
    """

    def __init__(self, num_steps: Any = None, last_step: Any = None):
        if (num_steps is None) == (last_step is None):
            raise ValueError(
                f"give one of num_steps and last_step, not {'none' if num_steps is None else 'both'} of them"
            )
        self._num_steps, self._last_step = num_steps, last_step

    def begin(self) -> None:
        self._global_step_tensor = read_step_of(self)

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._last_step is None:
            self._last_step = session.run(self._global_step_tensor) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        # The value was read at some time of the step; it is read again only where it may be the last one.
        if run_values.results + 1 < self._last_step:
            return
        if run_context.session.run(self._global_step_tensor) >= self._last_step:
            run_context.request_stop()


class LoggingTensorHook(SessionRunHook):
    """Logs tensors every so many steps of this process or seconds, and at the end, at the level INFO.

    Args:
        tensors: a dict from labels to tensors or their names, or a sequence of them.
        formatter: makes the line of a dict from labels to values.

    Raises:
        ValueError: it is not said when to log, or `every_n_iter` is not positive.
    """

    def __init__(
        self, tensors: Any, every_n_iter: Any = None, every_n_secs: Any = None, at_end: bool = False,
        formatter: Callable[[dict[Any, Any]], str] | None = None,
    ):  # fmt: skip
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError("give every_n_iter or every_n_secs (one of them), at_end=True, or both of that")
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"every_n_iter must be positive, not {every_n_iter}")
        self._tensors = tensors if isinstance(tensors, dict) else {each: each for each in tensors}
        self._order = sorted(tensors) if isinstance(tensors, dict) else list(tensors)
        self._formatter = formatter
        self._timer = _Never() if only_at_end else SecondOrStepTimer(every_n_secs, every_n_iter)
        self._log_at_end = at_end

    def begin(self) -> None:
        self._timer.reset()
        self._iter_count = 0
        self._current = [_tensor(self._tensors[label]) for label in self._order]

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._due = self._timer.should_trigger_for_step(self._iter_count)
        return SessionRunArgs(self._current) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._due:
            self._say(run_values.results)
        self._iter_count += 1

    def end(self, session: Any) -> None:
        if self._log_at_end:
            self._say(session.run(self._current))

    def _say(self, values: list[Any]) -> None:
        import numpy as np

        seconds, _ = self._timer.update_last_triggered_step(self._iter_count)
        with np.printoptions(suppress=True):
            if self._formatter is not None:
                line = self._formatter(dict(zip(self._order, values, strict=True)))
            else:
                # as str() has it: numbers of numpy format with more digits
                line = ", ".join(f"{label!s} = {value!s}" for label, value in zip(self._order, values, strict=True))
                line += "" if seconds is None else f" ({seconds:.3f} sec)"
        log().info("%s", line)


def _tensor(thing: Any) -> Any:
    """A tensor of the default graph, by itself or by name; an operation's name stands for its only output."""
    graph = context.get_default_graph()
    if not isinstance(thing, str):
        if getattr(thing, "graph", None) is not graph:
            raise ValueError(f"{thing} is not in the default graph, whose session will run")
        return thing
    if ":" in thing:
        return graph.as_graph_element(thing)
    outputs = graph.get_operation_by_name(thing).outputs
    if len(outputs) != 1:
        raise ValueError(f"'{thing}' has {len(outputs)} outputs; name one of them, as '{thing}:0'")
    return outputs[0]


class NanLossDuringTrainingError(RuntimeError):
    """The loss is not a number."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Ends the training when a loss is NaN: with NanLossDuringTrainingError, or as if it were the last step."""

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True):
        self._loss_tensor, self._fail = loss_tensor, fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        import numpy as np

        if not np.isnan(run_values.results):
            return
        name = getattr(self._loss_tensor, "name", self._loss_tensor)
        if self._fail:
            log().error("the loss '%s' is NaN: training has diverged", name)
            raise NanLossDuringTrainingError
        log().warning("the loss '%s' is NaN: training has diverged, and stops here", name)
        run_context.request_stop()


class GlobalStepWaiterHook(SessionRunHook):
    """Holds the first step back until other workers have brought the global step to a number."""

    def __init__(self, wait_until_step: int):
        self._wait_until_step = wait_until_step

    def begin(self) -> None:
        self._started = False
        self._global_step_tensor = read_step_of(self)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        if not self._started and self._wait_until_step > 0:
            log().info("waiting for global step %d before the first step", self._wait_until_step)
            while run_context.session.run(self._global_step_tensor) < self._wait_until_step:
                time.sleep(0.5)
        self._started = True
        return None


class FinalOpsHook(SessionRunHook):
    """Computes something at the end: a tensor, or any structure of tensors."""

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None):
        self._final_ops, self._feeds = final_ops, final_ops_feed_dict
        self._values: Any = None

    @property
    def final_ops_values(self) -> Any:
        return self._values

    def end(self, session: Any) -> None:
        if self._final_ops is None:
            return
        try:
            self._values = session.run(self._final_ops, feed_dict=self._feeds)
        except (OutOfRangeError, StopIteration):
            log().warning(
                "what FinalOpsHook computes takes another batch of the input, which has ended; give it tensors that "
                "only read variables, such as the value of a metric and not its update"
            )
            raise


class FeedFnHook(SessionRunHook):
    """Feeds each step what a function returns."""

    def __init__(self, feed_fn: Callable[[], Any]):
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        return SessionRunArgs(None, self.feed_fn())
