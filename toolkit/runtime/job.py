"""`graphmill run` as one call: load, initialise, run, save, hand back."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.errors import UsageError
from toolkit.formats.model import Kind, Model
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.node import Output
from toolkit.runtime.batches import Batches
from toolkit.runtime.devices import Device
from toolkit.runtime.feeds import feed_array
from toolkit.runtime.initialize import initialize, initialize_local, load_saved_model, restore_or_initialize
from toolkit.runtime.loop import LoopResult, run_steps, time_steps
from toolkit.runtime.request import Request, resolve
from toolkit.runtime.saver import Saver
from toolkit.runtime.session import Session

CHECKPOINT_NAME = "model.ckpt"


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
    keep: int | None = None
    log_steps: int | None = None
    keep_values: bool = False
    warmup: int = 0
    repeat: int | None = None
    devices: Mapping[str, int] | Sequence[Device] | None = None
    force_tokens: bool = False


@dataclass(slots=True)
class RunReport:
    """What a run leaves: fetched values by label, timings, and where checkpoints are."""

    outputs: dict[str, Any]
    steps: int = 0
    stats: dict[str, Any] | None = None
    checkpoint: str | None = None
    restored: str | None = None
    interrupted: bool = False


def run_model(model: Model, options: RunOptions, *, log: Callable[[str], None], load_ms: float = 0.0) -> RunReport:
    """Run a model as asked.

    Args:
        log: takes one line of progress.
        load_ms: how long reading the model took, for the timing report.

    Raises:
        GraphmillError: see `Session.run`; nothing is written then but checkpoints of earlier steps.
    """
    start = time.perf_counter()
    meta = model.meta
    request = resolve(
        meta, feeds=options.feeds, fetches=options.fetches, targets=options.targets, signature=options.signature
    )
    session = Session(meta, devices=options.devices, force_tokens=options.force_tokens)
    try:
        saver = Saver(meta, options.keep)
        report = RunReport({})
        report.restored = _prepare(session, model, options, saver)
        if report.restored:
            log(f"restored {report.restored}")
        load_ms += (time.perf_counter() - start) * 1e3
        if options.repeat is not None:
            _time(session, request, options, report, load_ms)
        else:
            _loop(session, meta, request, options, saver, report, log)
        return report
    finally:
        session.close()


def _prepare(session: Session, model: Model, options: RunOptions, saver: Saver) -> str | None:
    """Give the session its state; returns the checkpoint it came from."""
    meta = model.meta
    if options.checkpoint is not None:
        saver.restore(session, options.checkpoint)
        if model.kind is not Kind.SAVED_MODEL:
            initialize_local(session, meta)
        return options.checkpoint
    if options.checkpoint_dir is not None:
        return restore_or_initialize(session, model, options.checkpoint_dir, saver)
    if options.init:
        initialize(session, meta)
    elif model.kind is Kind.SAVED_MODEL:
        load_saved_model(session, model)
    return None


def _time(session: Session, request: Request, options: RunOptions, report: RunReport, load_ms: float) -> None:
    request.feeds = {output: feed_array(output, value) for output, value in request.feeds.items()}
    timing = time_steps(session, request, warmup=options.warmup, repeat=max(1, options.repeat or 1))
    report.outputs = dict(zip(request.fetches, timing.values, strict=True))
    report.stats = timing.report(load_ms)
    report.steps = options.repeat or 1


def _loop(
    session: Session, meta: MetaGraph, request: Request, options: RunOptions, saver: Saver, report: RunReport,
    log: Callable[[str], None],
) -> None:  # fmt: skip
    feeds = {output: feed_array(output, value, _any_batch(options)) for output, value in request.feeds.items()}
    one_pass = options.batch is not None and options.steps is None and options.epochs is None
    epochs = 1 if one_pass or (options.batch is None and options.steps is None) else options.epochs
    batches = Batches(feeds, options.batch, shuffle=options.shuffle, seed=options.seed, epochs=epochs, partial=one_pass)
    with _stop_on_signal() as stop:
        observers = list(_observers(session, meta, request, options, saver, report, log))
        result = run_steps(
            session, request, batches, limit=options.steps, keep=options.keep_values and _many(options, batches),
            observers=observers, should_stop=stop.is_set,
        )  # fmt: skip
        report.interrupted = result.stopped
    report.steps = result.steps
    report.outputs = _outputs(request, result, options, batches, one_pass)
    if options.checkpoint_dir is not None:
        report.checkpoint = _save(session, meta, saver, options.checkpoint_dir)
    if options.save is not None:
        report.checkpoint = saver.save(session, options.save)


def _any_batch(options: RunOptions) -> Any:
    """Whole arrays are checked against the placeholder; those that will be cut are not."""
    from toolkit.graph.shape import UNKNOWN

    return None if options.batch is None else UNKNOWN


def _many(options: RunOptions, batches: Batches) -> bool:
    if options.steps is not None:
        return options.steps > 1
    return options.batch is not None


def _outputs(
    request: Request, result: LoopResult, options: RunOptions, batches: Batches, one_pass: bool
) -> dict[str, Any]:
    if not (options.keep_values and _many(options, batches)):
        return dict(zip(request.fetches, result.values, strict=False))
    join = _join_examples if one_pass else _stack
    return {label: join(label, values) for label, values in zip(request.fetches, result.values, strict=True)}


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
    """One pass over the data: per-example results are joined along the first axis, others stacked."""
    if values and np.ndim(values[0]) and len({np.shape(v)[1:] for v in values}) == 1:
        return np.concatenate(values)
    return _stack(label, values)


def _observers(
    session: Session, meta: MetaGraph, request: Request, options: RunOptions, saver: Saver, report: RunReport,
    log: Callable[[str], None],
) -> Iterator[Callable[[int, Sequence[Any]], None]]:  # fmt: skip
    if options.log_steps:
        every = options.log_steps
        start = time.perf_counter()

        def show(step: int, values: Sequence[Any]) -> None:
            if step % every == 0:
                scalars = [
                    f"{label} = {np.asarray(value).item():.6g}"
                    for label, value in zip(request.fetches, values, strict=True)
                    if np.size(value) == 1 and np.asarray(value).dtype.kind in "fiub"
                ]
                rate = step / (time.perf_counter() - start)
                log(", ".join([f"step {step}", *scalars, f"{rate:.1f} steps/s"]))

        yield show
    if options.checkpoint_dir is not None and options.save_steps:
        every_save, folder = options.save_steps, options.checkpoint_dir

        def save(step: int, values: Sequence[Any]) -> None:
            if step % every_save == 0:
                report.checkpoint = _save(session, meta, saver, folder)

        yield save


def _save(session: Session, meta: MetaGraph, saver: Saver, folder: str) -> str:
    return saver.save(session, str(Path(folder) / CHECKPOINT_NAME), global_step(session, meta))


def global_step(session: Session, meta: MetaGraph) -> int | None:
    """The value of the graph's global step, or None when it has none."""
    for item in meta.collections.get(GraphKeys.GLOBAL_STEP, []):
        if isinstance(item, bytes):
            from schemas import variable_pb2

            variable = variable_pb2.VariableDef.FromString(item)
            return int(session.run(meta.graph.output(variable.snapshot_name or variable.variable_name)))
        if isinstance(item, str):
            return int(session.run(meta.graph.output(item)))
    node = meta.graph.get("global_step/read") or meta.graph.get("global_step/Read/ReadVariableOp")
    if node is None:
        node = meta.graph.get("global_step")
        if node is None or node.op not in ("VariableV2", "Variable"):
            return None
    return int(session.run(Output(node, 0)))


@contextmanager
def _stop_on_signal() -> Generator[threading.Event]:
    """SIGINT and SIGTERM ask the loop to stop after the step under way; a second one ends the program."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before: dict[int, Any] = {}

    def request_stop(number: int, frame: object) -> None:
        stop.set()
        signal.signal(number, before[number])

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, request_stop)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
