"""Writing event files while training (SummarySaverHook, StepCounterHook)."""

from __future__ import annotations

from typing import Any

from toolkit.formats.models import graphdef
from toolkit.formats.records.events import EventWriter
from toolkit.graph.node import Output
from toolkit.runtime.session import Session
from toolkit.runtime.training.hooks.base import Hook, RunArgs, RunContext, Timer
from toolkit.runtime.training.scaffold import Scaffold


class SummarySaverHook(Hook):
    """Runs the graph's summaries every so often and writes them to an event file, the graph first.

    Args:
        writer: where to; closed by its owner.
    """

    def __init__(self, writer: EventWriter, *, every_steps: int | None = None, every_secs: float | None = None):
        self._writer = writer
        self._timer = Timer(every_steps, every_secs)
        self._tensors: list[Output] = []
        self._due = False

    def begin(self, scaffold: Scaffold) -> None:
        self._tensors = scaffold.summaries
        self._writer.add_graph(graphdef.to_proto(scaffold.meta.graph))

    def before_run(self, run: RunContext) -> RunArgs | None:
        self._due = self._timer.should_trigger(run.step + 1)
        return RunArgs(self._tensors) if self._due and self._tensors else None

    def after_run(self, run: RunContext, values: Any) -> None:
        if not self._due:
            return
        self._timer.update(run.step)
        for summary in values or ():
            self._writer.add_summary(summary, run.step)
        self._writer.flush()

    def end(self, session: Session, step: int) -> None:
        self._writer.flush()


class StepCounterHook(Hook):
    """Writes `global_step/sec` to an event file."""

    def __init__(self, writer: EventWriter, *, every_steps: int | None = None, every_secs: float | None = None):
        self._writer = writer
        self._timer = Timer(every_steps, every_secs)

    def after_run(self, run: RunContext, values: Any) -> None:
        if not self._timer.should_trigger(run.step):
            return
        elapsed = self._timer.update(run.step)
        if elapsed is not None and elapsed[0] > 0:
            self._writer.add_scalar("global_step/sec", elapsed[1] / elapsed[0], run.step)
