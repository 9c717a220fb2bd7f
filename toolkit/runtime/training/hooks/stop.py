"""Ending a training loop: at a step, on NaN, when nothing improves any more."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError, UsageError
from toolkit.runtime.session import Session
from toolkit.runtime.training.hooks.base import Hook, RunArgs, RunContext


class StopAtStepHook(Hook):
    """Stops at a global step, or after a number of steps (StopAtStepHook).

    Args:
        last_step: the global step to reach.
        num_steps: how many to run from where the first session starts.

    Raises:
        UsageError: both are given, or neither.
    """

    def __init__(self, last_step: int | None = None, *, num_steps: int | None = None):
        if (last_step is None) == (num_steps is None):
            raise UsageError("give either the step to stop at or a number of steps")
        self._last_step = last_step
        self._num_steps = num_steps

    def after_create_session(self, session: Session, step: int) -> None:
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = step + self._num_steps

    def after_run(self, run: RunContext, values: Any) -> None:
        if self._last_step is not None and run.step >= self._last_step:
            run.request_stop()


class StopWhenAskedHook(Hook):
    """Stops after the step under way once `asked()` is true: signals, deadlines."""

    def __init__(self, asked: Callable[[], bool]):
        self._asked = asked

    def after_run(self, run: RunContext, values: Any) -> None:
        if self._asked():
            run.request_stop()


class NanGuardHook(Hook):
    """Watches a tensor for NaN and infinity (NanTensorHook).

    Args:
        tensor: what to watch; anything `Session.run` fetches.
        fail: raise InvalidArgumentError; otherwise just stop.
    """

    def __init__(self, tensor: Any, *, fail: bool = True):
        self._tensor = tensor
        self._fail = fail

    def before_run(self, run: RunContext) -> RunArgs:
        return RunArgs(self._tensor)

    def after_run(self, run: RunContext, values: Any) -> None:
        if np.all(np.isfinite(values)):
            return
        if self._fail:
            raise InvalidArgumentError(f"'{_name(self._tensor)}' is not finite at step {run.step}: {values}")
        run.request_stop()


class EarlyStoppingHook(Hook):
    """Stops when a scalar has not improved for `patience` steps.

    Args:
        tensor: the scalar.
        patience: in steps.
        minimize: smaller is better; else larger.
        min_delta: what counts as an improvement.
    """

    def __init__(self, tensor: Any, patience: int, *, minimize: bool = True, min_delta: float = 0.0):
        self._tensor = tensor
        self._patience = patience
        self._sign = 1.0 if minimize else -1.0
        self._min_delta = min_delta
        self._best = math.inf
        self._best_step = 0

    def after_create_session(self, session: Session, step: int) -> None:
        self._best, self._best_step = math.inf, step

    def before_run(self, run: RunContext) -> RunArgs:
        return RunArgs(self._tensor)

    def after_run(self, run: RunContext, values: Any) -> None:
        value = self._sign * float(values)
        if value < self._best - self._min_delta:
            self._best, self._best_step = value, run.step
        elif run.step - self._best_step >= self._patience:
            run.request_stop()


def _name(tensor: Any) -> str:
    return getattr(tensor, "name", str(tensor))
