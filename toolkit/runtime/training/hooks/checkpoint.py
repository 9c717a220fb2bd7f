"""Saving checkpoints while training (CheckpointSaverHook)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.formats.bundle import paths
from toolkit.runtime.session import Session
from toolkit.runtime.training.hooks.base import Hook, RunContext, Timer
from toolkit.runtime.training.scaffold import Scaffold


class CheckpointSaverHook(Hook):
    """Saves at the start, every so many steps or seconds, and at the end.

    A session that was just restored from the checkpoint that would be written is not saved again.

    Args:
        folder: where to; checkpoints are named `basename-STEP`.
        every_steps, every_secs: one of the two.
        written: called with each prefix written.
    """

    def __init__(
        self,
        folder: str,
        *,
        every_steps: int | None = None,
        every_secs: float | None = None,
        basename: str = "model.ckpt",
        written: Callable[[str], None] = lambda prefix: None,
    ):
        self._prefix = paths.join(folder, basename)
        self._timer = Timer(every_steps, every_secs)
        self._written = written
        self._scaffold: Scaffold | None = None

    def begin(self, scaffold: Scaffold) -> None:
        self._scaffold = scaffold

    def after_create_session(self, session: Session, step: int) -> None:
        assert self._scaffold is not None, "begin was not called"
        if self._scaffold.saver.restored == f"{self._prefix}-{step}":
            self._timer.update(step)
        else:
            self._save(session, step)

    def after_run(self, run: RunContext, values: Any) -> None:
        if self._timer.should_trigger(run.step):
            self._save(run.session, run.step)

    def end(self, session: Session, step: int) -> None:
        if self._timer.last_step != step:
            self._save(session, step)

    def _save(self, session: Session, step: int) -> None:
        assert self._scaffold is not None, "begin was not called"
        self._timer.update(step)
        self._written(self._scaffold.saver.save(session, self._prefix, step))
