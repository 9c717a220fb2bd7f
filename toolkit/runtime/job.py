"""`graphmill run` as one call: load, bring to life, run, save, hand back."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.errors import UsageError
from toolkit.formats.model import Kind, Model, from_graph, write_model
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import UNKNOWN
from toolkit.kernels.types import Array
from toolkit.runtime.batches import Batches
from toolkit.runtime.compare import Comparison, bisect, compare_results
from toolkit.runtime.devices import Device
from toolkit.runtime.feeds import feed_array
from toolkit.runtime.probes.base import Probe, Probes
from toolkit.runtime.probes.dump import DumpProbe
from toolkit.runtime.probes.numerics import NumericsProbe
from toolkit.runtime.probes.profile import profile_report
from toolkit.runtime.probes.trace import TraceProbe, write_trace
from toolkit.runtime.request import Request, resolve
from toolkit.runtime.saved_model import load_saved_model
from toolkit.runtime.saver import Saver
from toolkit.runtime.session import Session
from toolkit.runtime.timing import time_steps
from toolkit.runtime.training.hooks.base import Hook
from toolkit.runtime.training.hooks.checkpoint import CheckpointSaverHook
from toolkit.runtime.training.hooks.logging import LoggingHook
from toolkit.runtime.training.hooks.stop import NanGuardHook, StopAtStepHook, StopWhenAskedHook
from toolkit.runtime.training.hooks.user import load_hooks
from toolkit.runtime.training.monitored import MonitoredSession
from toolkit.runtime.training.scaffold import Scaffold, run_in_dependency_order
from toolkit.runtime.training.session_manager import SessionManager

DEFAULT_SAVE_SECS = 600.0


@dataclass(slots=True)
class RunOptions:
    """Everything `graphmill run` can be told; names as on the command line."""

    feeds: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fetches: Sequence[str] = ()
    targets: Sequence[str] = ()
    signature: str | None = None
    checkpoint: str | None = None
    init: bool = False
    steps: int | None = None
    batch: int | None = None
    epochs: int | None = None
    shuffle: bool = False
    seed: int | None = None
    save: str | None = None
    checkpoint_dir: str | None = None
    save_steps: int | None = None
    save_secs: float | None = None
    keep: int | None = None
    keep_every_n_hours: float | None = None
    log_steps: int | None = None
    summaries: str | None = None
    summary_steps: int | None = None
    nan_guard: bool = False
    keep_values: bool = False
    warmup: int = 0
    repeat: int | None = None
    devices: Mapping[str, int] | Sequence[Device] | None = None
    force_tokens: bool = False
    trace: str | None = None
    profile: bool = False
    dump: tuple[str, str] | None = None
    check_numerics: bool = False
    dump_stages: str | None = None
    hook_files: Sequence[str] = ()
    hooks: Sequence[Hook] = ()


@dataclass(slots=True)
class RunReport:
    """What a run leaves: fetched values by label, timings, and where checkpoints are."""

    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    steps: int = 0
    stats: dict[str, Any] | None = None
    checkpoint: str | None = None
    restored: str | None = None
    profile: dict[str, Any] | None = None
    interrupted_by: int | None = None


def run_model(model: Model, options: RunOptions, *, log: Callable[[str], None], load_ms: float = 0.0) -> RunReport:
    """Run a model as asked.

    Args:
        log: takes one line of progress.
        load_ms: how long reading the model took, for the timing report.

    Raises:
        GraphmillError: see `Session.run`; checkpoints of earlier steps stay.
    """
    start = time.perf_counter()
    request = resolve(
        model.meta, feeds=options.feeds, fetches=options.fetches, targets=options.targets, signature=options.signature
    )
    job = _Job(model, options, request, log)
    if options.repeat is not None:
        session, job.report.restored = job.create()
        with session:
            job.dump_stages(session)
            load_ms += (time.perf_counter() - start) * 1e3
            timing = time_steps(session, request, warmup=options.warmup, repeat=options.repeat)
        job.report.outputs = dict(zip(request.fetches, timing.values, strict=True))
        job.report.stats = timing.report(load_ms)
        job.report.steps = options.repeat
    else:
        job.loop()
    return job.report


def compare_models(
    first: Model, second: Model, options: RunOptions, *, rtol: float, atol: float, find_first: bool
) -> Comparison:
    """Run two models once on the same feeds and compare what they compute, tensor by tensor.

    Args:
        find_first: also look for the first tensor, in the order of computation, in which they differ.

    Raises:
        GraphmillError: see `run_model`.
    """
    results: list[dict[str, Any]] = []
    sessions: list[Session] = []
    requests: list[Request] = []
    try:
        for model in (first, second):
            request = resolve(
                model.meta, feeds=options.feeds, fetches=options.fetches, targets=(), signature=options.signature
            )
            session, _ = _Job(model, options, request, lambda line: None).create()
            sessions.append(session)
            requests.append(request)
            values = session.run(list(request.fetches.values()), request.feeds)
            results.append(dict(zip(request.fetches, values, strict=True)))
        comparison = Comparison(compare_results(results[0], results[1], rtol=rtol, atol=atol))
        if find_first and comparison.differences:
            feeds = {output.name: value for output, value in requests[0].feeds.items()}
            names = [output.name for output in requests[0].fetches.values()]
            found = bisect(sessions[0], sessions[1], feeds, names, rtol=rtol, atol=atol)
            if found is not None:
                comparison.first, comparison.compared = found
        return comparison
    finally:
        for session in sessions:
            session.close()


class _Job:
    """One run under way."""

    def __init__(self, model: Model, options: RunOptions, request: Request, log: Callable[[str], None]):
        self.model = model
        self.options = options
        self.request = request
        self.log = log
        self.report = RunReport()
        self.scaffold = Scaffold.of(model.meta, Saver(model.meta, options.keep, options.keep_every_n_hours))
        self.tracer = TraceProbe() if options.trace or options.profile else None
        self.probe = self._make_probe()
        self.one_pass = options.batch is not None and options.steps is None and options.epochs is None

    def _make_probe(self) -> Probe | None:
        options = self.options
        probes: list[Probe] = []
        if options.check_numerics:
            probes.append(NumericsProbe())
        if options.dump is not None:
            pattern, folder = options.dump
            probes.append(DumpProbe([pattern], folder))
        if self.tracer is not None:
            probes.append(self.tracer)
        return Probes(probes) if probes else None

    def _finish_probes(self) -> None:
        if self.tracer is None:
            return
        spans = self.tracer.spans
        if self.tracer.dropped:
            self.log(f"the trace is cut after {len(spans)} kernels; {self.tracer.dropped} more ran")
        if self.options.trace is not None:
            write_trace(self.options.trace, spans)
        if self.options.profile:
            self.report.profile = profile_report(self.tracer)

    def create(self) -> tuple[Session, str | None]:
        """A session with the state that was asked for."""
        options = self.options
        if options.checkpoint_dir is not None:
            return SessionManager(self.scaffold, self._open, self.log).prepare_session(options.checkpoint_dir)
        session = self._open()
        restored: str | None = None
        try:
            if options.checkpoint is not None:
                restored = self.scaffold.saver.restore(session, options.checkpoint)
                if self.model.kind is not Kind.SAVED_MODEL:
                    run_in_dependency_order(session, self.scaffold.local_init_ops)
            elif options.init:
                if not self.scaffold.init_ops:
                    raise UsageError("--init: the graph lists no init op and no variables to initialise")
                run_in_dependency_order(session, self.scaffold.init_ops)
                run_in_dependency_order(session, self.scaffold.local_init_ops)
            elif self.model.kind is Kind.SAVED_MODEL:
                load_saved_model(session, self.model)
        except BaseException:
            session.close()
            raise
        return session, restored

    def _open(self) -> Session:
        return Session(self.model.meta, devices=self.options.devices, force_tokens=self.options.force_tokens)

    def dump_stages(self, session: Session) -> None:
        """Write the graph after each stage of compilation, when it was asked for."""
        if self.options.dump_stages is None:
            return
        wanted = [list(self.request.fetches.values()), self.request.targets]
        stages = session.compiled(wanted, list(self.request.feeds)).stages
        folder = Path(self.options.dump_stages)
        folder.mkdir(parents=True, exist_ok=True)
        graphs = {"1-full": self.model.graph, "2-placed": stages.placed, "3-client": stages.client}
        for number, (device, graph) in enumerate(stages.partitions.items()):
            graphs[f"4-partition-{number}-{re.sub(r'[^A-Za-z0-9]+', '_', device).strip('_')}"] = graph
        for name, graph in graphs.items():
            write_model(from_graph(graph), folder / f"{name}.pb")

    def loop(self) -> None:
        """Run the steps with their hooks, then save and collect."""
        options, report = self.options, self.report
        batches = self._batches()
        keep = options.keep_values and self._is_many()
        kept: list[list[Any]] = []
        last: list[Any] = []
        fetches = [list(self.request.fetches.values()), self.request.targets]
        with _stop_on_signal() as asked, self._summary_hooks() as summary_hooks:
            own = [hook for file in options.hook_files for hook in load_hooks(file)]
            hooks = [*self._hooks(asked), *summary_hooks, *own, *options.hooks]
            with MonitoredSession(self.scaffold, self.create, hooks, log=self.log, probe=self.probe) as session:
                report.restored = session.restored
                self.dump_stages(session.session)
                if session.restored:
                    self.log(f"restored {session.restored}" + (f" at step {session.step}" if session.step else ""))
                limit = self._limit(session.step)
                if limit == 0:
                    self.log(f"already at step {session.step}; nothing to do")
                # Data goes on where the restored step left it.
                for batch in batches.start_at(session.step if options.checkpoint_dir is not None else 0):
                    if session.should_stop() or (limit is not None and report.steps >= limit):
                        break
                    last = session.run(fetches, batch)[0]
                    report.steps += 1
                    if keep:
                        kept.append(last)
                if options.save is not None:
                    report.checkpoint = self.scaffold.saver.save(session.session, options.save)
        report.interrupted_by = asked.number
        self._finish_probes()
        report.outputs = self._outputs(kept, last, keep)

    def _batches(self) -> Batches:
        options = self.options
        # Whole arrays must fit the placeholder; those that will be cut are checked batch by batch.
        shape = None if options.batch is None else UNKNOWN
        feeds: dict[Any, Array] = {
            output: feed_array(output, value, shape) for output, value in self.request.feeds.items()
        }
        epochs = options.epochs
        fed_by_queues = bool(self.model.meta.collections.get(GraphKeys.QUEUE_RUNNERS)) and bool(options.targets)
        if self.one_pass or (options.batch is None and options.steps is None and not fed_by_queues):
            epochs = 1  # a graph with its own input runs until that ends
        return Batches(
            feeds, options.batch, shuffle=options.shuffle, seed=options.seed, epochs=epochs, partial=self.one_pass
        )

    def _limit(self, step: int) -> int | None:
        """How many steps to run; with a checkpoint folder, --steps is the step to reach."""
        steps = self.options.steps
        if steps is None or self.options.checkpoint_dir is None:
            return steps
        return max(0, steps - step)

    def _is_many(self) -> bool:
        return self.options.batch is not None if self.options.steps is None else self.options.steps > 1

    def _hooks(self, asked: _Asked) -> list[Hook]:
        options = self.options
        hooks: list[Hook] = [StopWhenAskedHook(lambda: asked.number is not None)]
        if options.nan_guard:
            hooks += [NanGuardHook(output) for output in self.request.fetches.values() if output.dtype.is_floating]
        if options.log_steps:
            hooks.append(LoggingHook(self.request.fetches, self.log, every_steps=options.log_steps))
        if options.checkpoint_dir is not None:
            if options.steps is not None and self.scaffold.global_step is not None:
                hooks.append(StopAtStepHook(options.steps))
            secs = None if options.save_steps else options.save_secs or DEFAULT_SAVE_SECS
            hooks.append(
                CheckpointSaverHook(
                    options.checkpoint_dir, every_steps=options.save_steps, every_secs=secs, written=self._written
                )
            )
        return hooks

    def _written(self, prefix: str) -> None:
        self.report.checkpoint = prefix

    @contextmanager
    def _summary_hooks(self) -> Generator[list[Hook]]:
        if self.options.summaries is None:
            yield []
            return
        from toolkit.formats.events import EventWriter
        from toolkit.runtime.training.hooks.summary import StepCounterHook, SummarySaverHook

        every = self.options.summary_steps or 100
        writer = EventWriter(self.options.summaries)
        try:
            yield [SummarySaverHook(writer, every_steps=every), StepCounterHook(writer, every_steps=every)]
        finally:
            writer.close()

    def _outputs(self, kept: list[list[Any]], last: list[Any], keep: bool) -> dict[str, Any]:
        labels = list(self.request.fetches)
        if not keep:
            return dict(zip(labels, last, strict=False))
        join = _join_examples if self.one_pass else _stack
        return {label: join(label, [values[i] for values in kept]) for i, label in enumerate(labels)}


def _stack(label: str, values: list[Any]) -> Any:
    """One array with a leading axis of steps.

    Raises:
        UsageError: the steps gave different shapes.
    """
    shapes = {np.shape(v) for v in values}
    if len(shapes) > 1:
        raise UsageError(
            f"'{label}' has different shapes in different steps ({', '.join(map(str, sorted(shapes)))}); "
            "choose --batch so that it divides the data, or fetch something of fixed shape"
        )
    return np.stack(values) if values else np.empty(0)


def _join_examples(label: str, values: list[Any]) -> Any:
    """One pass over the data: results per example are joined along the first axis, others stacked."""
    if values and np.ndim(values[0]) and len({np.shape(v)[1:] for v in values}) == 1:
        return np.concatenate(values)
    return _stack(label, values)


class _Asked:
    """Which signal asked for the end, if any."""

    number: int | None = None


@contextmanager
def _stop_on_signal() -> Generator[_Asked]:
    """SIGINT and SIGTERM ask the loop to stop after the step under way; a second one ends the program."""
    asked = _Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before: dict[int, Any] = {}

    def note(number: int, frame: object) -> None:
        asked.number = number
        signal.signal(number, before[number])

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, note)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
