"""Saying how training goes (LoggingTensorHook)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from toolkit.runtime.session import Session
from toolkit.runtime.training.hooks.base import Hook, RunArgs, RunContext, Timer


class LoggingHook(Hook):
    """Prints scalars and the speed every so many steps or seconds.

    Args:
        tensors: label to tensor; only scalars are shown.
        log: takes one line.
        at_end: also print the values after the last step.
    """

    def __init__(
        self,
        tensors: Mapping[str, Any],
        log: Callable[[str], None],
        *,
        every_steps: int | None = None,
        every_secs: float | None = None,
        at_end: bool = False,
    ):
        self._tensors = dict(tensors)
        self._log = log
        self._timer = Timer(every_steps, every_secs)
        self._at_end = at_end
        self._last: Mapping[str, Any] | None = None

    def after_create_session(self, session: Session, step: int) -> None:
        self._timer.update(step)

    def before_run(self, run: RunContext) -> RunArgs | None:
        return RunArgs(self._tensors) if self._at_end or self._timer.should_trigger(run.step + 1) else None

    def after_run(self, run: RunContext, values: Any) -> None:
        self._last = values
        if values is not None and self._timer.should_trigger(run.step):
            self._say(run.step, values)

    def end(self, session: Session, step: int) -> None:
        if self._at_end and self._last is not None and self._timer.last_step != step:
            self._say(step, self._last)

    def _say(self, step: int, values: Mapping[str, Any]) -> None:
        elapsed = self._timer.update(step)
        shown = [f"{label} = {as_text(value)}" for label, value in values.items() if np.size(value) == 1]
        if elapsed is not None and elapsed[0] > 0:
            shown.append(f"{elapsed[1] / elapsed[0]:.1f} steps/s")
        self._log(", ".join([f"step {step}", *shown]))


def as_text(value: Any) -> str:
    """A scalar for reading."""
    array = np.asarray(value).reshape(-1)
    item = array[0]
    return f"{float(item):.6g}" if array.dtype.kind in "fc" else str(item)
