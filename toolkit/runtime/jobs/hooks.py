"""The hooks of a run, as its options ask for them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from toolkit.errors import UsageError
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.jobs.request import Request
from toolkit.runtime.jobs.signals import Asked
from toolkit.runtime.training.hooks.base import Hook
from toolkit.runtime.training.hooks.stop import EarlyStoppingHook, NanGuardHook, StopAtStepHook, StopWhenAskedHook

if TYPE_CHECKING:  # what few runs ask for is imported when one does: a first step is short
    from toolkit.runtime.probes.measure import MeasureProbe
    from toolkit.runtime.training.hooks.progress import ProgressHook

DEFAULT_SAVE_SECS = 600.0
_PROFILE_STEPS = 100
_SAY_SECS = 10.0  # how often training that nobody watches says where it is


def run_hooks(
    options: RunOptions,
    request: Request,
    asked: Asked,
    *,
    has_global_step: bool,
    bar: ProgressHook | None,
    measure: MeasureProbe | None,
    log: Callable[[str], None],
    written: Callable[[str], None],
) -> list[Hook]:
    """Those that options ask for, but the user's own and those of summaries.

    Args:
        asked: whether the run has been asked to end.
        bar, measure: what shows the progress and what measures nodes, where there is such a thing.
        log: takes one line of progress.
        written: called with each checkpoint's prefix.

    Raises:
        UsageError: what an option watches is not fetched.
    """
    hooks: list[Hook] = [StopWhenAskedHook(lambda: asked.number is not None)]
    watched = [output for output in request.fetches.values() if output.dtype.is_floating]
    if options.nan_guard:
        if not watched:
            raise UsageError("--nan-guard watches what is fetched; name a floating-point tensor with --fetch")
        hooks += [NanGuardHook(output) for output in watched]
    if options.patience:
        if not watched:
            raise UsageError("--patience watches the first thing that is fetched; name the loss with --fetch")
        hooks.append(EarlyStoppingHook(watched[0], options.patience))
    if options.log_steps or (bar is None and options.is_training):
        from toolkit.runtime.training.hooks.logging import LoggingHook

        if options.log_steps:
            hooks.append(LoggingHook(request.fetches, log, every_steps=options.log_steps))
        else:
            hooks.append(LoggingHook(request.fetches, log, every_secs=_SAY_SECS, at_end=True))
    if bar is not None:
        hooks.append(bar)
    if measure is not None:
        hooks.append(measure.hook())
    if options.profile_dir is not None:
        from toolkit.runtime.training.hooks.profiler import ProfilerHook

        every = options.profile_steps or _PROFILE_STEPS
        hooks.append(ProfilerHook(options.profile_dir, every_steps=every, written=lambda path: log(f"wrote {path}")))
    if options.checkpoint_dir is not None:
        from toolkit.runtime.training.hooks.checkpoint import CheckpointSaverHook

        if options.steps is not None and has_global_step:
            hooks.append(StopAtStepHook(options.steps))
        secs = None if options.save_steps else options.save_secs or DEFAULT_SAVE_SECS
        hooks.append(
            CheckpointSaverHook(
                options.checkpoint_dir, every_steps=options.save_steps, every_secs=secs, written=written
            )
        )
    return hooks


def own_hooks(options: RunOptions) -> list[Hook]:
    """Those of the user's files."""
    if not options.hook_files:
        return []
    from toolkit.runtime.training.hooks.user import load_hooks

    return [hook for file in options.hook_files for hook in load_hooks(file)]


def progress_bar(options: RunOptions, request: Request, terminal: TextIO | None) -> ProgressHook | None:
    """What shows how far training is; None where nobody watches a terminal, or nothing is trained."""
    if terminal is None or not options.is_training or options.repeat is not None:
        return None
    from toolkit.runtime.training.hooks.progress import ProgressHook

    return ProgressHook(request.fetches, options.steps, terminal)


@contextmanager
def summary_hooks(options: RunOptions) -> Generator[list[Hook]]:
    """Those that write summaries, and their file, which is closed behind the run."""
    if options.summaries is None:
        yield []
        return
    from toolkit.formats.records.events import EventWriter
    from toolkit.runtime.training.hooks.summary import StepCounterHook, SummarySaverHook

    every = options.summary_steps or 100
    writer = EventWriter(options.summaries)
    try:
        yield [SummarySaverHook(writer, every_steps=every), StepCounterHook(writer, every_steps=every)]
    finally:
        writer.close()
