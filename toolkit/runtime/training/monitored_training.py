"""A training session in one call, for the chief and for the workers that wait for it (MonitoredTrainingSession)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from toolkit.errors import UsageError
from toolkit.formats.records.events import EventWriter
from toolkit.graph.metagraph import MetaGraph
from toolkit.runtime.session import Session
from toolkit.runtime.training.hooks.base import Hook
from toolkit.runtime.training.hooks.checkpoint import CheckpointSaverHook
from toolkit.runtime.training.hooks.logging import LoggingHook
from toolkit.runtime.training.hooks.summary import StepCounterHook, SummarySaverHook
from toolkit.runtime.training.monitored import MonitoredSession
from toolkit.runtime.training.scaffold import Scaffold
from toolkit.runtime.training.session_manager import SessionManager

SAVE_SECS = 600.0
EVERY_STEPS = 100


class MonitoredTrainingSession(MonitoredSession):
    """A monitored session with the hooks that training usually has:

        with MonitoredTrainingSession(meta, target="local://job", is_chief=index == 0, checkpoint_dir=d) as session:
            while not session.should_stop():
                session.run("train")

    The chief restores or initialises the variables, and alone saves checkpoints and writes summaries. Every other
    worker waits until the chief's variables, which it shares through `target`, are initialised.

    Args:
        meta: the graph with its collections, or a Scaffold made of it.
        target: where the variables live; see `Session`.
        is_chief: whether this is the chief.
        checkpoint_dir: where checkpoints and event files go; None: neither is written.
        hooks: of every worker; `begin` and `end` included.
        chief_only_hooks: of the chief alone.
        save_steps, save_secs: how often to save, one of the two; default: every 600 seconds; 0: never.
        summary_steps, log_steps: how often to write summaries and to print a line; 0: never.
        max_wait_secs: how long a worker waits for the chief.
        make_session: opens a session on the graph; default: one with `target`.
        log: takes one line.

    Raises:
        UsageError: both `save_steps` and `save_secs` are given.
        DeadlineExceededError: the chief did not initialise the variables in time.
    """

    def __init__(
        self,
        meta: MetaGraph | Scaffold,
        *,
        target: str = "",
        is_chief: bool = True,
        checkpoint_dir: str | None = None,
        hooks: Sequence[Hook] = (),
        chief_only_hooks: Sequence[Hook] = (),
        save_steps: int | None = None,
        save_secs: float | None = None,
        summary_steps: int = EVERY_STEPS,
        log_steps: int = EVERY_STEPS,
        max_wait_secs: float = 7200,
        make_session: Callable[[], Session] | None = None,
        log: Callable[[str], None] = lambda line: None,
    ):
        if save_steps and save_secs:
            raise UsageError("give either save_steps or save_secs")
        scaffold = meta if isinstance(meta, Scaffold) else Scaffold.of(meta)
        manager = SessionManager(scaffold, make_session or (lambda: Session(scaffold.meta, target=target)), log)
        self._files = ExitStack()
        everyone = list(hooks)
        if log_steps:
            everyone.append(LoggingHook({}, log, every_steps=log_steps))

        def create() -> tuple[Session, str | None]:
            if is_chief:
                return manager.prepare_session(checkpoint_dir)
            return manager.wait_for_session(max_wait_secs), None

        if is_chief and checkpoint_dir is not None:
            if summary_steps:
                writer = EventWriter(checkpoint_dir)
                self._files.callback(writer.close)
                everyone += [SummarySaverHook(writer, every_steps=summary_steps)]
                everyone += [StepCounterHook(writer, every_steps=summary_steps)]
            if save_steps:
                everyone.append(CheckpointSaverHook(checkpoint_dir, every_steps=save_steps))
            elif save_steps is None and save_secs != 0:
                everyone.append(CheckpointSaverHook(checkpoint_dir, every_secs=save_secs or SAVE_SECS))
        if is_chief:
            everyone += chief_only_hooks
        try:
            super().__init__(scaffold, create, everyone, log=log)
        except BaseException:
            self._files.close()
            raise

    def close(self) -> None:
        with self._files:
            super().close()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> Any:
        with self._files:
            return super().__exit__(kind, value, trace)
