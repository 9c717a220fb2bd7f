"""`graphmill run` as one call: load, bring to life, run, save, hand back."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from toolkit.errors import (
    CancelledError,
    FailedPreconditionError,
    GraphError,
    GraphmillError,
    UsageError,
    about_option,
)
from toolkit.formats import bundle
from toolkit.formats.bundle.locate import find_prefix
from toolkit.formats.code_cache import without_cache
from toolkit.formats.model import Model, ModelKind, from_graph, variables_prefix, write_model
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.node import Output
from toolkit.graph.partitioned import first_lone_receive
from toolkit.graph.shape import UNKNOWN
from toolkit.kernels.types import Array
from toolkit.runtime.batches import Batches, fed_whole
from toolkit.runtime.collect import join_examples, stack
from toolkit.runtime.feeds import feed_array
from toolkit.runtime.input_end import mistakes_raised, mistakes_told_apart
from toolkit.runtime.option_checks import check_options
from toolkit.runtime.options import RunOptions
from toolkit.runtime.probes.base import Probe, Probes
from toolkit.runtime.random_feeds import load_random_feeds
from toolkit.runtime.record_feeds import load_record_feeds
from toolkit.runtime.request import Request, resolve
from toolkit.runtime.saver import Saver, read_variables, stand_in, variable_cells, variable_nodes
from toolkit.runtime.session import Session
from toolkit.runtime.signals import GRACE_SECS, SAVING_GRACE_SECS, Asked, stop_on_signal
from toolkit.runtime.training.hooks.base import Hook
from toolkit.runtime.training.hooks.stop import EarlyStoppingHook, NanGuardHook, StopAtStepHook, StopWhenAskedHook
from toolkit.runtime.training.monitored import MonitoredSession
from toolkit.runtime.training.scaffold import Scaffold, run_in_dependency_order
from toolkit.runtime.trust import granted, policy_of

if TYPE_CHECKING:  # what few runs ask for is imported when one does: a first step is short
    from toolkit.runtime.compare import Comparison
    from toolkit.runtime.probes.dump import DumpProbe
    from toolkit.runtime.training.hooks.progress import ProgressHook

DEFAULT_SAVE_SECS = 600.0
_PROFILE_STEPS = 100
_SAY_SECS = 10.0  # how often training that nobody watches says where it is


@dataclass(slots=True)
class RunReport:
    """What a run leaves: fetched values by label, timings, where checkpoints are.

    Attributes:
        notes, moved: what was not compiled, and what was not placed where it asks to be, and why.
        wanting: what runs on the CPU for want of a kernel for GPUs.
    """

    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    steps: int = 0
    stats: dict[str, Any] | None = None
    checkpoint: str | None = None
    restored: str | None = None
    profile: dict[str, Any] | None = None
    explanation: list[str] | None = None
    notes: list[str] = field(default_factory=list[str])
    moved: list[str] = field(default_factory=list[str])
    wanting: list[str] = field(default_factory=list[str])
    interrupted_by: int | None = None


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
        from toolkit.runtime.timing import time_steps

        session, job.report.restored = job.create()
        with session:
            job.dump_stages(session)
            load_ms += (time.perf_counter() - start) * 1e3
            with job.hints(session):
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


def compare_models(
    first: Model,
    second: Model,
    options: RunOptions,
    *,
    rtol: float,
    atol: float,
    find_first: bool,
    log: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Run two models once on the same feeds and compare what they compute, tensor by tensor.

    Args:
        find_first: also look for the first tensor, in the order of computation, in which they differ.
        log: takes one line of what should be known beside the result.

    Raises:
        GraphmillError: see `run_model`.
    """
    from toolkit.runtime.compare import Comparison, Contract, bisect, compare_results

    check_options(options, comparing=True)
    results: list[dict[str, Any]] = []
    sessions: list[Session] = []
    requests: list[Request] = []
    try:
        for model, other in ((first, second), (second, first)):
            try:
                told = _told(model, other, options)
                request = request_of(model, told, ())
                session, _ = Job(model, told, request, log).create()
                sessions.append(session)
                requests.append(request)
                values = session.run(list(request.fetches.values()), request.feeds)
            except GraphmillError as error:
                error.file = error.file or str(model.source)  # an option's too: one of two models does not have it
                raise
            results.append(dict(zip(request.fetches, values, strict=True)))
        contract = Contract(rtol, atol, options.precision)
        comparison = Comparison(compare_results(results[0], results[1], rtol=rtol, atol=atol), contract=contract)
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


def _told(model: Model, other: Model, options: RunOptions) -> RunOptions:
    """What one of two models that are compared is told: a frozen one has nothing that the other's state could go to."""
    if _keeps_state(model) or not _keeps_state(other):
        return options
    return replace(options, checkpoint=None, init=False)


def _keeps_state(model: Model) -> bool:
    scaffold = Scaffold.of(model.meta, Saver(model.meta))
    restorable = model.meta.saver is not None or bool(variable_nodes(model.graph))
    return restorable or bool(scaffold.init_ops or scaffold.local_init_ops)


def request_of(model: Model, options: RunOptions, targets: Sequence[str]) -> Request:
    """What a run fetches, runs and feeds, by the graph's tensors.

    Raises:
        UsageError: a name is none of the graph's, or a feed cannot be read.
        GraphError: the graph is a part of one.
    """
    request = resolve(
        model.meta, feeds=options.feeds, fetches=options.fetches, targets=targets, signature=options.signature,
        init_ops=options.init_ops,
    )  # fmt: skip
    alone = first_lone_receive(model.graph, [*(output.node for output in request.fetches.values()), *request.targets])
    if alone is not None:
        raise GraphError(
            f"it waits for '{alone.text('tensor_name')}' from {alone.text('send_device')}, which another part of the "
            "graph sends; run the folder of the parts, or join them: graphmill partition --join DIR",
            node=alone.name,
        )
    with about_option("--feed"):
        request.feeds = load_random_feeds(load_record_feeds(request.feeds), options.batch)
    return request


def _fed(output: Any, value: Any, shape: Any) -> Any:
    with about_option("--feed"):
        return feed_array(output, value, shape)


#: what helps where variables have no values
_GIVE_VALUES = "; give the variables values with --init, --checkpoint PREFIX or --checkpoint-dir DIR"


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
        self.bar = self._make_bar(terminal)
        self.log = log if self.bar is None else self.bar.log
        self.report = RunReport()
        self.policy = policy_of(model.folder or model.source, options)
        if line := granted(model.folder or model.source, options):
            self.log(line)
        self.scaffold = Scaffold.of(model.meta, Saver(model.meta, options.keep, options.keep_every_n_hours))
        self.tracer = self.measure = None
        if options.trace or options.profile:
            from toolkit.runtime.probes.trace import TraceProbe

            self.tracer = TraceProbe(per_node=options.per_node)
        if options.measure:
            from toolkit.runtime.probes.measure import MeasureProbe

            self.measure = MeasureProbe()
        self.dump: DumpProbe | None = None
        self.dumped: list[Output] = []  # fetched for it
        self.probe = self._make_probe()
        self.one_pass = options.batch is not None and options.steps is None and options.epochs is None
        self._runs_once = False

    def _make_probe(self) -> Probe | None:
        options = self.options
        probes: list[Probe] = []
        if options.check_numerics:
            from toolkit.runtime.probes.numerics import NumericsProbe

            probes.append(NumericsProbe(per_node=options.per_node))
        if options.dump is not None:
            from toolkit.runtime.probes.dump import DumpProbe, require_match

            pattern, folder = options.dump
            require_match(pattern, self.model.graph)
            self.dump = DumpProbe([pattern], folder)
            if (wanted := self._dump_fetches(pattern)) is None:
                probes.append(self.dump)
            else:
                self.dumped = wanted
        if self.measure is not None:
            probes.append(self.measure)
        if self.tracer is not None:
            probes.append(self.tracer)
        return Probes(probes) if probes else None

    def _dump_fetches(self, pattern: str) -> list[Output] | None:
        """What is fetched of each step to be dumped; None where nodes are to be looked at."""
        if self.options.per_node or self.options.measure or self.options.master is not None:
            return None
        from toolkit.runtime.probes.dump_fetches import dump_fetches

        request = self.request
        fetches = list(request.fetches.values())
        return dump_fetches(self.model.graph, pattern, list(request.feeds), fetches, request.targets)

    def _finish_probes(self) -> None:
        if self.dump is not None and not self.dump.written:
            self.log("--dump: nothing was written, for no node that the pattern matches ran and put out a tensor")
        if self.measure is not None and self.options.measure is not None:
            from toolkit.runtime.probes.calibration import measure_host

            self.measure.write(self.options.measure, measure_host(self.options.threads))
        if self.tracer is None:
            return
        spans = self.tracer.timeline()
        if self.tracer.dropped:
            self.log(f"the trace is cut after {len(self.tracer.spans)} kernels; {self.tracer.dropped} more ran")
        if self.options.trace is not None:
            from toolkit.runtime.probes.trace import write_trace

            write_trace(self.options.trace, spans)
        if self.options.profile:
            from toolkit.runtime.probes.profile import profile_report

            self.report.profile = profile_report(self.tracer)

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
                from toolkit.runtime.saved_model import load_saved_model

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
                from toolkit.runtime.saved_model import read_saved_model

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
        fetches = [list(self.request.fetches.values()), self.request.targets, self.dumped]
        with (
            mistakes_raised(),
            stop_on_signal(self.log, self._grace()) as asked,
            self._closing_bar(),
            self._summary_hooks() as summary_hooks,
            self._hints_of_threads(),
        ):
            hooks = [*self._hooks(asked), *summary_hooks, *self._own_hooks(), *options.hooks]
            with MonitoredSession(self.scaffold, self.create, hooks, log=self.log, probe=self.probe) as session:
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
                        with self.hints(session.session), mistakes_told_apart(self.model.graph):
                            last, _, dumped = session.run(fetches, batch)
                        if self.dump is not None:
                            self.dump.fetched(self.dumped, dumped)
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
        self._finish_probes()
        report.outputs = self._outputs(kept, last, keep)

    def pass_over(self, session: Session) -> dict[str, Any]:
        """The results of one pass over what is fed, in a session that `create` made and that is not closed by it."""
        fetches = [list(self.request.fetches.values()), self.request.targets]
        kept: list[list[Any]] = []
        for batch in self._batches():
            with self.hints(session):
                kept.append(session.run(fetches, batch)[0])
        return self._outputs(kept, kept[-1], self.one_pass)

    def _grace(self) -> float:
        """How long a step may go on that was asked to end."""
        saves = self.options.checkpoint_dir is not None or self.options.save is not None
        return SAVING_GRACE_SECS if saves else GRACE_SECS

    @contextmanager
    def hints(self, session: Session) -> Generator[None]:
        """Around a step: where variables have no values, say how they get them."""
        try:
            yield
        except FailedPreconditionError as error:
            options = self.options
            if not self._gives_values() and self._lacks_values(session):
                beside = variables_prefix(self.model)
                error.message += _GIVE_VALUES + (f" (beside it lies --checkpoint {beside})" if beside else "")
            elif not options.init_ops and (
                names := self._makers_of_iterator(error.node) or self._fillers_of_table(error.node)
            ):
                error.message = (
                    f"{error.message.rstrip('.')}; run it first with --init-op {' or --init-op '.join(names)}"
                )
            raise

    def _gives_values(self) -> bool:
        return bool(self.options.init or self.options.checkpoint or self.options.checkpoint_dir)

    @contextmanager
    def _hints_of_threads(self) -> Generator[None]:
        """Around a session: likewise for what its queue runners raise, which is told when it has been closed."""
        try:
            yield
        except FailedPreconditionError as error:
            has_values = self._gives_values() or self.options.init_ops or self.model.kind is ModelKind.SAVED_MODEL
            if _GIVE_VALUES not in error.message and not has_values and variable_nodes(self.model.graph):
                error.message += _GIVE_VALUES
            raise

    def _lacks_values(self, session: Session) -> bool:
        if session.is_remote:
            return bool(variable_nodes(self.model.graph)) and bool(self.scaffold.uninitialized(session))
        return bool(variable_nodes(self.model.graph)) and any(
            cell.value is None for cell in variable_cells(session, self.model.graph).values()
        )

    def _makers_of_iterator(self, name: str | None) -> list[str]:
        """What initialises the iterator that a node takes elements from."""
        node = self.model.graph.get(name or "")
        if node is None or not node.op.startswith("IteratorGetNext"):
            return []
        iterator = node.inputs[0]
        return [each.name for each in self.model.graph if each.op == "MakeIterator" and iterator in each.inputs]

    def _fillers_of_table(self, name: str | None) -> list[str]:
        """What fills the table that a node looks something up in; the operation alone that stands for all tables."""
        node = self.model.graph.get(name or "")
        if node is None or "Lookup" not in node.op or not node.inputs:
            return []
        from toolkit.passes.freeze_tables import FILLING

        graph, table = self.model.graph, node.inputs[0]
        fills = {each: each.name for each in graph if each.op in FILLING and each.inputs[0] == table}
        whole = [each.name for each in graph if each.op == "NoOp" and not fills.keys().isdisjoint(each.control_inputs)]
        return whole[:1] or list(fills.values())

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
        options = self.options
        hooks: list[Hook] = [StopWhenAskedHook(lambda: asked.number is not None)]
        watched = [output for output in self.request.fetches.values() if output.dtype.is_floating]
        if options.nan_guard:
            if not watched:
                raise UsageError("--nan-guard watches what is fetched; name a floating-point tensor with --fetch")
            hooks += [NanGuardHook(output) for output in watched]
        if options.patience:
            if not watched:
                raise UsageError("--patience watches the first thing that is fetched; name the loss with --fetch")
            hooks.append(EarlyStoppingHook(watched[0], options.patience))
        if options.log_steps or (self.bar is None and options.is_training):
            from toolkit.runtime.training.hooks.logging import LoggingHook

            if options.log_steps:
                hooks.append(LoggingHook(self.request.fetches, self.log, every_steps=options.log_steps))
            else:
                hooks.append(LoggingHook(self.request.fetches, self.log, every_secs=_SAY_SECS, at_end=True))
        if self.bar is not None:
            hooks.append(self.bar)
        if self.measure is not None:
            hooks.append(self.measure.hook())
        if options.profile_dir is not None:
            from toolkit.runtime.training.hooks.profiler import ProfilerHook

            every = options.profile_steps or _PROFILE_STEPS
            hooks.append(ProfilerHook(options.profile_dir, every_steps=every, written=self._profiled))
        if options.checkpoint_dir is not None:
            from toolkit.runtime.training.hooks.checkpoint import CheckpointSaverHook

            if options.steps is not None and self.scaffold.global_step is not None:
                hooks.append(StopAtStepHook(options.steps))
            secs = None if options.save_steps else options.save_secs or DEFAULT_SAVE_SECS
            hooks.append(
                CheckpointSaverHook(
                    options.checkpoint_dir, every_steps=options.save_steps, every_secs=secs, written=self._written
                )
            )
        return hooks

    def _own_hooks(self) -> list[Hook]:
        """Those of the user's files."""
        if not self.options.hook_files:
            return []
        from toolkit.runtime.training.hooks.user import load_hooks

        return [hook for file in self.options.hook_files for hook in load_hooks(file)]

    def _written(self, prefix: str) -> None:
        self.report.checkpoint = prefix

    def _profiled(self, path: str) -> None:
        self.log(f"wrote {path}")

    def _make_bar(self, terminal: TextIO | None) -> ProgressHook | None:
        options = self.options
        if terminal is None or not options.is_training or options.repeat is not None:
            return None
        from toolkit.runtime.training.hooks.progress import ProgressHook

        return ProgressHook(self.request.fetches, options.steps, terminal)

    @contextmanager
    def _closing_bar(self) -> Generator[None]:
        try:
            yield
        finally:
            if self.bar is not None:
                self.bar.close()

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
        join = join_examples if self.one_pass else stack
        return {label: join(label, [values[i] for values in kept]) for i, label in enumerate(labels)}
