# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Monitors: what came before hooks. They are told of steps, ask for tensors by name, and may end the training."""

from __future__ import annotations

import inspect
from typing import Any

from toolkit.client.construction import context
from toolkit.client.train.global_step import get_global_step
from toolkit.tensorflow.families.train.session_hooks import SessionRunArgs, SessionRunHook


class BaseMonitor:
    """What is called around the steps of an estimator's training; a subclass overrides what it needs."""

    def __init__(self) -> None:
        self._begun = False
        self._current_epoch: Any = None
        self._current_step: Any = None
        self._max_steps: Any = None
        self._estimator: Any = None

    @property
    def run_on_all_workers(self) -> bool:
        return False

    def set_estimator(self, estimator: Any) -> None:
        """Raises ValueError: there is none."""
        if estimator is None:
            raise ValueError("a monitor watches an estimator; got None")
        self._estimator = estimator

    def begin(self, max_steps: Any = None) -> None:
        """Before the first step.

        Raises:
            ValueError: it has begun already.
        """
        if self._begun:
            raise ValueError(f"{type(self).__name__} has begun already")
        self._max_steps, self._begun = max_steps, True

    def end(self, session: Any = None) -> None:
        """After the last step.

        Raises:
            ValueError: it has not begun.
        """
        if not self._begun:
            raise ValueError(f"{type(self).__name__} ends and has not begun")
        self._max_steps, self._begun = None, False

    def epoch_begin(self, epoch: Any) -> None:
        if self._current_epoch is not None or epoch < 0:
            raise ValueError(f"epoch {epoch} begins in epoch {self._current_epoch}")
        self._current_epoch = epoch

    def epoch_end(self, epoch: Any) -> None:
        if self._current_epoch != epoch:
            raise ValueError(f"epoch {epoch} ends in epoch {self._current_epoch}")
        self._current_epoch = None

    def step_begin(self, step: Any) -> list[Any]:
        """The tensors that are wanted of a step, or their names."""
        if step < 0 or (self._max_steps is not None and step > self._max_steps):
            raise ValueError(f"step {step} begins; expected 0 to {self._max_steps}")
        self._current_step = step
        return []

    def step_end(self, step: Any, output: Any) -> bool:
        """Take what was wanted; True ends the training."""
        if self._current_step != step:
            raise ValueError(f"step {step} ends in step {self._current_step}")
        self._current_step = None
        return False

    def post_step(self, step: Any, session: Any) -> None:
        """After a step and all `step_end`s."""


class EveryN(BaseMonitor):
    """Acts at the first steps, and then after every so many."""

    def __init__(self, every_n_steps: Any = 100, first_n_steps: Any = 1):
        super().__init__()
        self._every_n_steps, self._first_n_steps = every_n_steps, first_n_steps
        self._last_successful_step: Any = None
        self._last_active_step: Any = 0
        self._is_active = False

    def every_n_step_begin(self, step: Any) -> list[Any]:
        """As `step_begin`, of those steps."""
        return []

    def every_n_step_end(self, step: Any, outputs: Any) -> Any:
        """As `step_end`, of those steps."""
        return False

    def every_n_post_step(self, step: Any, session: Any) -> None:
        """As `post_step`, of those steps."""

    def step_begin(self, step: Any) -> list[Any]:
        super().step_begin(step)
        is_due = step >= self._every_n_steps + self._last_active_step
        self._is_active = step <= self._first_n_steps or is_due or step == self._max_steps
        return self.every_n_step_begin(step) if self._is_active else []

    def step_end(self, step: Any, output: Any) -> Any:
        super().step_end(step, output)
        return self.every_n_step_end(step, output) if self._is_active else False

    def post_step(self, step: Any, session: Any) -> None:
        super().post_step(step, session)
        if self._is_active:
            self.every_n_post_step(step, session)
            self._last_active_step = step
        self._last_successful_step = step

    def end(self, session: Any = None) -> None:
        super().end(session)
        if self._last_successful_step != self._last_active_step:
            self.every_n_post_step(self._last_successful_step, session)


class RunHookAdapterForMonitors(SessionRunHook):
    """Monitors as one hook."""

    def __init__(self, monitors: Any):
        self._monitors = monitors

    def begin(self) -> None:
        self._last_step: Any = None
        self._global_step = get_global_step()
        for monitor in self._monitors:
            monitor.begin(max_steps=None)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        if self._last_step is None:
            self._last_step = run_context.session.run(self._global_step) + 1
        wanted: list[Any] = []
        for monitor in self._monitors:
            found = monitor.step_begin(self._last_step)
            if found and not isinstance(found, list):
                raise ValueError(f"step_begin of {type(monitor).__name__} must return a list; got {found!r}")
            wanted += found or []
        fetches = {"step": self._global_step, "monitors": {each: _element(each) for each in wanted}}
        return SessionRunArgs(fetches)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        results = run_values.results
        for monitor in self._monitors:
            if monitor.step_end(self._last_step, results["monitors"]):
                run_context.request_stop()
        for monitor in self._monitors:
            monitor.post_step(self._last_step, run_context.session)
        self._last_step = results["step"] + 1

    def end(self, session: Any) -> None:
        self._last_step = None
        for monitor in self._monitors:
            takes = "session" in inspect.signature(monitor.end).parameters
            monitor.end(**({"session": session} if takes else {}))


def replace_monitors_with_hooks(monitors_or_hooks: Any, estimator: Any) -> list[Any]:
    """Hooks as they are, and one for all monitors of an estimator that run in this task."""
    found = list(monitors_or_hooks or [])
    hooks = [each for each in found if isinstance(each, SessionRunHook)]
    monitors = [each for each in found if not isinstance(each, SessionRunHook)]
    if not estimator.config.is_chief:
        monitors = [each for each in monitors if each.run_on_all_workers]
    for monitor in monitors:
        monitor.set_estimator(estimator)
    return [*hooks, RunHookAdapterForMonitors(monitors)] if monitors else hooks


def _element(wanted: Any) -> Any:
    """A tensor or operation of the default graph, or the one of a name.

    Raises:
        ValueError: it is of another graph, or an operation with several outputs.
    """
    graph = context.get_default_graph()
    if not isinstance(wanted, str):
        if getattr(wanted, "graph", None) is not graph:
            raise ValueError(f"a monitor asks for {wanted!r}, which is not of the graph that is trained")
        return wanted
    if ":" in wanted:
        return graph.as_graph_element(wanted)
    operation = graph.get_operation_by_name(wanted)
    if len(operation.outputs) != 1:
        raise ValueError(f"'{wanted}' has {len(operation.outputs)} outputs; write '{wanted}:0' for the first")
    return operation.outputs[0]


def output_of(outputs: Any, wanted: Any) -> Any:
    """What a step gave for a tensor, or for its name."""
    return outputs[wanted] if wanted in outputs else outputs[wanted.name]
