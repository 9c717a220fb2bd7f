"""`graphmill run` as one call: load, bring to life, run, save, hand back."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from toolkit.errors import CancelledError, UsageError, about_option
from toolkit.formats import bundle
from toolkit.formats.bundle.locate import find_prefix
from toolkit.formats.code_cache import without_cache
from toolkit.formats.models.model import Model, ModelKind, from_graph, write_model
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import UNKNOWN
from toolkit.kernels.types import Array
from toolkit.runtime.jobs.batches import Batches, fed_whole
from toolkit.runtime.jobs.collect import join_examples, stack
from toolkit.runtime.jobs.hints import Hints
from toolkit.runtime.jobs.hooks import own_hooks, progress_bar, run_hooks, summary_hooks
from toolkit.runtime.jobs.input_end import mistakes_raised, mistakes_told_apart
from toolkit.runtime.jobs.option_checks import check_options
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.jobs.probes import RunProbes
from toolkit.runtime.jobs.report import RunReport
from toolkit.runtime.jobs.request import Request
from toolkit.runtime.jobs.signals import GRACE_SECS, SAVING_GRACE_SECS, Asked, stop_on_signal
from toolkit.runtime.jobs.trust import granted, policy_of
from toolkit.runtime.jobs.wishes import request_of
from toolkit.runtime.saving.saver import Saver, read_variables, stand_in
from toolkit.runtime.session import Session
from toolkit.runtime.sessions.feeds import feed_array
from toolkit.runtime.training.hooks.base import Hook
from toolkit.runtime.training.monitored import MonitoredSession
from toolkit.runtime.training.scaffold import Scaffold, run_in_dependency_order


def run_model(
    model: Model,
    options: RunOptions,
    *,
    log: Callable[[str], None],
    load_ms: float = 0.0,
    terminal: TextIO | None = None,
) -> RunReport:
    """Run a model as asked.

    Args:
        log: takes one line of progress.
        load_ms: how long reading the model took, for the timing report.
        terminal: where a progress bar may be drawn while training; None: lines are logged instead.

    Raises:
        GraphmillError: see `Session.run`; checkpoints of earlier steps stay.
    """
    start = time.perf_counter()
    check_options(options)
    request = request_of(model, options, options.targets)
    job = Job(model, options, request, log, terminal)
    if options.repeat is not None:
        from toolkit.runtime.steps.timing import time_steps

        session, job.report.restored = job.create()
        with session:
            job.dump_stages(session)
            load_ms += (time.perf_counter() - start) * 1e3
            with job.hints.around_step(session):
                timing = time_steps(
                    session, request, warmup=1 if options.warmup is None else options.warmup, repeat=options.repeat
                )
            job.note(session)
        job.report.outputs = dict(zip(request.fetches, timing.values, strict=True))
        job.report.stats = timing.report(load_ms)
        job.report.steps = options.repeat
    elif options.explain:
        job.explain()
    else:
        job.loop()
    return job.report


def _fed(output: Any, value: Any, shape: Any) -> Any:
    with about_option("--feed"):
        return feed_array(output, value, shape)


class Job:
    """One run under way.

    Args:
        request: `request_of` the options.
    """

    def __init__(
        self,
        model: Model,
        options: RunOptions,
        request: Request,
        log: Callable[[str], None],
        terminal: TextIO | None = None,
    ):
        self.model = model
        self.options = options
        self.request = request
        self.bar = progress_bar(options, request, terminal)
        self.log = log if self.bar is None else self.bar.log
        self.report = RunReport()
        self.policy = policy_of(model.folder or model.source, options)
        if line := granted(model.folder or model.source, options):
            self.log(line)
        self.scaffold = Scaffold.of(model.meta, Saver(model.meta, options.keep, options.keep_every_n_hours))
        self.hints = Hints(model, options, self.scaffold)
        self.probes = RunProbes(model, options, request)
        self.one_pass = options.batch is not None and options.steps is None and options.epochs is None
        self._runs_once = False

    def create(self) -> tuple[Session, str | None]:
        """A session with the state that was asked for; what has to run first has run."""
        session, restored = self._with_state()
        try:
            for node in self.request.init_ops:
                session.run(node, self._whole_feeds())
        except BaseException:
            session.close()
            raise
        return session, restored

    def _with_state(self) -> tuple[Session, str | None]:
        """A session whose variables have been restored or initialised."""
        options = self.options
        if options.checkpoint_dir is not None:
            from toolkit.runtime.training.session_manager import SessionManager

            manager = SessionManager(self.scaffold, self._open, self.log)
            return manager.prepare_session(options.checkpoint_dir, options.checkpoint)
        session = self._open()
        restored: str | None = None
        try:
            if options.checkpoint is not None:
                if options.init:  # what the checkpoint does not have keeps its first value
                    run_in_dependency_order(session, self.scaffold.init_ops)
                restored = self.scaffold.saver.restore_given(session, options.checkpoint)
                if self.model.kind is not ModelKind.SAVED_MODEL:
                    run_in_dependency_order(session, self.scaffold.local_init_ops)
            elif options.init:
                if not self.scaffold.init_ops and not self.scaffold.local_init_ops:
                    raise UsageError(
                        "--init: the graph lists no init op and no variables to initialise; name what has to run first "
                        "with --init-op OP"
                    )
                run_in_dependency_order(session, self.scaffold.init_ops)
                run_in_dependency_order(session, self.scaffold.local_init_ops)
            elif self.model.kind is ModelKind.SAVED_MODEL:
                from toolkit.runtime.saving.saved_model import load_saved_model

                load_saved_model(session, self.model)
        except BaseException:
            session.close()
            raise
        return session, restored

    def _open(self) -> Session:
        if self.options.no_cache:
            without_cache()
        target = self.options.master or self.options.engine
        if target is not None:
            with about_option("--engine" if self.options.master is None else "--master"):
                return Session(self.model.meta, target=target, allow_soft_placement=not self.options.no_soft_placement)
        return Session(
            self.model.meta,
            devices=self.options.devices,
            device_options=self.options.device_options,
            allow_soft_placement=not self.options.no_soft_placement,
            force_tokens=self.options.force_tokens,
            inter_op_threads=self.options.inter_op or 0,
            threads=self.options.threads,
            precision=self.options.precision,
            limits=self.options.limits,
            policy=self.policy,
            stages=self.options.dump_stages,
            once=self._runs_once,
        )

    def note(self, session: Session) -> None:
        """Keep what is told of a session's steps when it has none left to run."""
        self.report.notes, self.report.moved = session.notes(), session.moved()
        self.report.wanting = session.wanting()

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

    def explain(self) -> None:
        """Say what a step is compiled to. Nothing of the graph is run: no step, no initialiser, no restore op."""
        options = self.options
        fetches = [list(self.request.fetches.values()), self.request.targets]
        with self._open() as session:
            if options.checkpoint is not None or options.checkpoint_dir is not None:
                given = options.checkpoint
                if options.checkpoint_dir is not None:
                    given = bundle.latest_checkpoint(options.checkpoint_dir) or given
                if given is not None:
                    read_variables(session, self.model.meta, find_prefix(given))
            elif self.model.kind is ModelKind.SAVED_MODEL and not options.init:
                from toolkit.runtime.saving.saved_model import read_saved_model

                read_saved_model(session, self.model)
            stand_in(session, self.model.graph)  # plans take weights that nobody writes as constants
            self.dump_stages(session)
            batch = next(iter(self._batches().start_at(0)), None)
            self.report.explanation = session.explain(fetches, batch)

    def loop(self) -> None:
        """Run the steps with their hooks, then save and collect."""
        options, report = self.options, self.report
        batches = self._batches()
        self._runs_once = options.steps == 1 or (options.steps is None and batches.count == 1)
        keep = options.keep_values and self._is_many()
        kept: list[list[Any]] = []
        last: list[Any] = []
        fetches = [list(self.request.fetches.values()), self.request.targets, self.probes.dumped]
        with (
            mistakes_raised(),
            stop_on_signal(self.log, self._grace()) as asked,
            self._closing_bar(),
            summary_hooks(options) as of_summaries,
            self.hints.around_session(),
        ):
            hooks = [*self._hooks(asked), *of_summaries, *own_hooks(options), *options.hooks]
            with MonitoredSession(self.scaffold, self.create, hooks, log=self.log, probe=self.probes.probe) as session:
                asked.watch(session.stop_input)
                asked.force_by(session.cancel)
                report.restored = session.restored
                self.dump_stages(session.session)
                if session.restored:
                    self.log(f"restored {session.restored}" + (f" at step {session.step}" if session.step else ""))
                limit = self._limit(session.step)
                if limit == 0:
                    self.log(f"already at step {session.step}; nothing to do")
                # Data goes on where the restored step left it.
                for batch in batches.start_at(session.step if options.checkpoint_dir is not None else 0):
                    if asked.number is not None or session.should_stop():
                        break
                    if limit is not None and report.steps >= limit:
                        break
                    if options.check_numerics:
                        from toolkit.runtime.probes.numerics import check_feed

                        for output, value in batch.items():
                            check_feed(output.name, value)
                    try:
                        with self.hints.around_step(session.session), mistakes_told_apart(self.model.graph):
                            last, _, dumped = session.run(fetches, batch)
                        if self.probes.dump is not None:
                            self.probes.dump.fetched(self.probes.dumped, dumped)
                    except CancelledError:
                        if asked.is_forced:
                            raise KeyboardInterrupt from None
                        if asked.number is None:
                            raise
                        break  # what it waited for was cancelled by the signal
                    report.steps += 1
                    if keep:
                        kept.append(last)
                asked.heeded()
                self.note(session.session)
                if options.save is not None:
                    report.checkpoint = self.scaffold.saver.save(session.session, options.save)
        report.interrupted_by = asked.number
        self.probes.finish(report, self.log)
        report.outputs = self._outputs(kept, last, keep)

    def pass_over(self, session: Session) -> dict[str, Any]:
        """The results of one pass over what is fed, in a session that `create` made and that is not closed by it."""
        fetches = [list(self.request.fetches.values()), self.request.targets]
        kept: list[list[Any]] = []
        for batch in self._batches():
            with self.hints.around_step(session):
                kept.append(session.run(fetches, batch)[0])
        return self._outputs(kept, kept[-1], self.one_pass)

    def _grace(self) -> float:
        """How long a step may go on that was asked to end."""
        saves = self.options.checkpoint_dir is not None or self.options.save is not None
        return SAVING_GRACE_SECS if saves else GRACE_SECS

    def _whole_feeds(self) -> dict[Any, Array]:
        # Whole arrays must fit the placeholder; those that will be cut are checked batch by batch.
        shape = None if self.options.batch is None else UNKNOWN
        return {output: _fed(output, value, shape) for output, value in self.request.feeds.items()}

    def _batches(self) -> Batches:
        options = self.options
        feeds = self._whole_feeds()
        epochs = options.epochs
        fed_by_queues = bool(self.model.meta.collections.get(GraphKeys.QUEUE_RUNNERS)) and bool(options.targets)
        if self.one_pass or (options.batch is None and options.steps is None and not fed_by_queues):
            epochs = 1  # a graph with its own input runs until that ends
        return Batches(
            feeds,
            options.batch,
            shuffle=options.shuffle,
            seed=options.seed,
            epochs=epochs,
            partial=self.one_pass,
            whole=fed_whole(feeds, options.batch),
        )

    def _limit(self, step: int) -> int | None:
        """How many steps to run; with a checkpoint folder, --steps is the step to reach."""
        steps = self.options.steps
        if steps is None or self.options.checkpoint_dir is None:
            return steps
        return max(0, steps - step)

    def _is_many(self) -> bool:
        return self.options.batch is not None if self.options.steps is None else self.options.steps > 1

    def _hooks(self, asked: Asked) -> list[Hook]:
        has_global_step = self.scaffold.global_step is not None
        return run_hooks(
            self.options, self.request, asked, has_global_step=has_global_step, bar=self.bar,
            measure=self.probes.measure, log=self.log, written=self._written,
        )  # fmt: skip

    def _written(self, prefix: str) -> None:
        self.report.checkpoint = prefix

    @contextmanager
    def _closing_bar(self) -> Generator[None]:
        try:
            yield
        finally:
            if self.bar is not None:
                self.bar.close()

    def _outputs(self, kept: list[list[Any]], last: list[Any], keep: bool) -> dict[str, Any]:
        labels = list(self.request.fetches)
        if not keep:
            return dict(zip(labels, last, strict=False))
        join = join_examples if self.one_pass else stack
        return {label: join(label, [values[i] for values in kept]) for i, label in enumerate(labels)}
