"""The hook interface (SessionRunHook) and the timer that most hooks share (SecondOrStepTimer)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolkit.errors import UsageError

if TYPE_CHECKING:
    from toolkit.runtime.probes.trace import TraceProbe
    from toolkit.runtime.session import Session
    from toolkit.runtime.training.scaffold import Scaffold


@dataclass(slots=True)
class RunArgs:
    """What a hook wants computed in the same step as the caller's fetches, and what it feeds."""

    fetches: Any = None
    feeds: Mapping[Any, Any] = field(default_factory=dict[Any, Any])


class RunContext:
    """One step of a monitored session.

    Attributes:
        session: the session it runs in.
        fetches, feeds: what the caller asked for.
        values: what the caller's fetches gave; None before the step.
        step: the global step after the step, or how many steps this process has run where the graph has none.
        trace: set by a hook that wants the step traced.
        tracer: what was traced, after such a step; else None.
    """

    __slots__ = ("feeds", "fetches", "session", "step", "stop_requested", "trace", "tracer", "values")

    def __init__(self, session: Session, fetches: Any, feeds: Mapping[Any, Any], step: int):
        self.session = session
        self.fetches = fetches
        self.feeds = feeds
        self.values: Any = None
        self.step = step
        self.stop_requested = False
        self.trace = False
        self.tracer: TraceProbe | None = None

    def request_stop(self) -> None:
        """End the loop after this step."""
        self.stop_requested = True


class Hook:
    """Override what is needed; every method does nothing by default.

    The order of calls: `begin` once, `after_create_session` for every session that is made (again after a
    recovery), `before_run` and `after_run` around each step, `end` once when the loop ended without an error.
    """

    def begin(self, scaffold: Scaffold) -> None:
        """Before the first session: look names up."""

    def after_create_session(self, session: Session, step: int) -> None:
        """A session is ready; variables are initialised or restored."""

    def before_run(self, run: RunContext) -> RunArgs | None:
        """Ask for more fetches or feeds in the coming step."""

    def after_run(self, run: RunContext, values: Any) -> None:
        """The step is done; `values` has the structure of the fetches asked for in `before_run`."""

    def end(self, session: Session, step: int) -> None:
        """The loop is over."""


class Timer:
    """Triggers every so many steps or seconds.

    Raises:
        UsageError: both are given, or neither.
    """

    def __init__(self, every_steps: int | None = None, every_secs: float | None = None):
        if (every_steps is None) == (every_secs is None):
            raise UsageError("give either a number of steps or a number of seconds")
        self._steps = every_steps
        self._secs = every_secs
        self._last_step: int | None = None
        self._last_time = 0.0

    @property
    def last_step(self) -> int | None:
        return self._last_step

    def should_trigger(self, step: int) -> bool:
        """Whether it is time; always for the first step."""
        if self._last_step is None:
            return True
        if step == self._last_step:
            return False
        if self._steps is not None:
            return step >= self._last_step + self._steps
        assert self._secs is not None
        return time.monotonic() >= self._last_time + self._secs

    def update(self, step: int) -> tuple[float, int] | None:
        """Note a trigger; returns seconds and steps since the one before, None for the first."""
        now = time.monotonic()
        elapsed = None if self._last_step is None else (now - self._last_time, step - self._last_step)
        self._last_step, self._last_time = step, now
        return elapsed
