"""Writing timelines while training (ProfilerHook)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolkit.runtime.probes.trace import TraceProbe, write_trace
from toolkit.runtime.session import Session
from toolkit.runtime.training.hooks.base import Hook, RunContext, Timer


class ProfilerHook(Hook):
    """Traces a step every so many steps or seconds: `timeline-STEP.json` and `run_metadata-STEP.pb` in a folder.

    Steps are counted from the first one of the session, which is never traced: it is the one that compiles.

    Args:
        folder: where to; made if it is missing.
        every_steps, every_secs: one of the two.
        written: called with the path of each timeline.
    """

    def __init__(
        self,
        folder: str,
        *,
        every_steps: int | None = None,
        every_secs: float | None = None,
        written: Callable[[str], None] = lambda path: None,
    ):
        self._folder = Path(folder)
        self._timer = Timer(every_steps, every_secs)
        self._written = written
        self._is_first = True

    def after_create_session(self, session: Session, step: int) -> None:
        self._is_first = True

    def before_run(self, run: RunContext) -> None:
        run.trace = run.trace or (not self._is_first and self._timer.should_trigger(run.step + 1))

    def after_run(self, run: RunContext, values: Any) -> None:
        if self._is_first:
            self._is_first = False
            self._timer.update(run.step - 1)
        elif run.tracer is not None and self._timer.should_trigger(run.step):
            self._write(run.tracer, run.step)

    def _write(self, tracer: TraceProbe, step: int) -> None:
        self._timer.update(step)
        self._folder.mkdir(parents=True, exist_ok=True)
        timeline = self._folder / f"timeline-{step}.json"
        write_trace(str(timeline), tracer.timeline())
        write_trace(str(self._folder / f"run_metadata-{step}.pb"), tracer.timeline())
        self._written(str(timeline))
