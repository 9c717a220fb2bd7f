"""A progress bar for training on a terminal: how far, the fetched scalars, the speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

import numpy as np

from toolkit.printable import printable
from toolkit.runtime.session import Session
from toolkit.runtime.training.hooks.base import Hook, RunArgs, RunContext
from toolkit.runtime.training.hooks.logging import as_text

#: how often values are fetched for the bar: seldom enough to cost nothing
_EVERY_SECS = 0.2


class ProgressHook(Hook):
    """Draws a bar on a terminal; lines printed through `log` appear above it.

    Args:
        tensors: label to tensor; scalars are shown.
        total: the step that the loop goes to; None where nobody knows.
        stream: the terminal.
    """

    def __init__(self, tensors: Mapping[str, Any], total: int | None, stream: TextIO):
        self._tensors = dict(tensors)
        self._total = total
        self._stream = stream
        self._bar: Any = None
        self._task: Any = None
        self._drawn = 0.0
        self._asked = False
        self._start = (0.0, 0)
        self._shown = ""

    def log(self, line: str) -> None:
        """Print a line; above the bar while there is one."""
        line = printable(line)
        if self._bar is None:
            print(line, file=self._stream, flush=True)
        else:
            self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def after_create_session(self, session: Session, step: int) -> None:
        if self._bar is None:
            self._bar, self._task = _make_bar(self._total, self._stream)
            self._bar.start()
        self._start = (time.monotonic(), step)
        self._bar.update(self._task, completed=step)

    def before_run(self, run: RunContext) -> RunArgs | None:
        last = self._total is not None and run.step + 1 >= self._total
        self._asked = last or time.monotonic() >= self._drawn + _EVERY_SECS
        return RunArgs(self._tensors) if self._asked else None

    def after_run(self, run: RunContext, values: Any) -> None:
        if not self._asked:
            return
        self._drawn = time.monotonic()
        scalars = [f"{label} = {as_text(value)}" for label, value in values.items() if np.size(value) == 1]
        elapsed = self._drawn - self._start[0]
        speed = (run.step - self._start[1]) / elapsed if elapsed > 0 else 0.0
        self._shown = ", ".join([*scalars, f"{speed:.1f} steps/s"])
        self._bar.update(self._task, completed=run.step, shown=self._shown)

    def end(self, session: Session, step: int) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=step)

    def close(self) -> None:
        """Leave the bar as it is and give the terminal back; whatever happened."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _make_bar(total: int | None, stream: TextIO) -> tuple[Any, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    progress = Progress(
        TextColumn("step"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.fields[shown]}", markup=False),
        TimeRemainingColumn(),
        console=Console(file=stream),
        redirect_stdout=False,
        redirect_stderr=False,
    )
    return progress, progress.add_task("", total=total, shown="")


def plain_or(hook: ProgressHook | None, log: Callable[[str], None]) -> Callable[[str], None]:
    """Where lines go: above the bar, or as they always did."""
    return log if hook is None else hook.log
