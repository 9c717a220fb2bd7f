"""`graphmill run MODEL --feed x=requests/*.npz --fetch y --coalesce N --out DIR` as one call.

Every file that fits is a request, as a server would have it, and gets a file of results. They are read in the order of
their names while steps run; what waits is put together, up to N examples a step (`runtime.sessions.coalescing`), and
results are written in the same order. Results that are there are not computed again (`manifest`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from toolkit.errors import ArgumentValueError, GraphmillError, UsageError, about_option
from toolkit.formats.arrays import output as array_output
from toolkit.graph.graph import Graph
from toolkit.graph.infer import infer
from toolkit.graph.node import Output
from toolkit.runtime.jobs.job import Job
from toolkit.runtime.jobs.loading import load
from toolkit.runtime.jobs.option_checks import check_request_options
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.jobs.wishes import request_of
from toolkit.runtime.session import Session
from toolkit.runtime.sessions.coalescing import Coalescer
from toolkit.runtime.sessions.feeds import feed_array
from toolkit.runtime.sessions.fetches import Fetches
from toolkit.runtime.shards.files import find_shards, split_feeds
from toolkit.runtime.shards.manifest import Entry, Manifest, described
from toolkit.runtime.shards.reading import read_source

#: steps' worth of examples that are read before results are waited for: one runs, one is put together meanwhile
_STEPS_AHEAD = 2
#: ms that a request waits for others to fill its step: longer than reading them takes; it is hurried where none come
_WAIT_MS = 1e6


@dataclass(slots=True)
class Answered:
    """What a run has left.

    Attributes:
        requests: how many results there are.
        computed: how many of them by this run.
        steps: in so many steps.
    """

    requests: int
    computed: int = 0
    steps: int = 0


def answer(
    source: str, tags: Sequence[str] | None, options: RunOptions, feed: Sequence[str], out: str | None,
    log: Callable[[str], None],
) -> Answered:  # fmt: skip
    """Run a model over all files that feeds name, several in one step.

    Args:
        source: the model.
        options: with `coalesce`, the most examples of a step.
        feed: the texts of --feed; those with a pattern are the requests, all others are the same for every step.
        out: the folder of the results.
        log: takes lines of progress.

    Raises:
        UsageError: options, feeds or files do not fit, or requests to this model cannot be put together.
        GraphmillError: a request has failed; all others have their results. The message names the first.
    """
    check_request_options(options)
    patterns, others = split_feeds(feed)
    if not patterns:
        raise UsageError(
            "--coalesce joins requests, each of a file of its own: name them with --feed NAME=PATTERN, as in x=in/*.npz"
        )
    if out is None:
        raise UsageError("--coalesce writes the results of each request to a folder: add --out DIR")
    if source == "-":
        raise UsageError("--coalesce notes which model its results are of, and standard input has no name; name a file")
    shards = find_shards(patterns, others)
    model = load(source, tags).model
    fed = dict.fromkeys(patterns) | {name: read_source(name, text) for name, text in others.items()}
    options = replace(options, feeds=fed, keep_values=True)
    job = Job(model, options, request_of(model, options, ()), log)
    outputs = list(job.request.feeds)
    with about_option("--coalesce"):
        _check_rows(model.graph, job.request.fetches.values())
    session, _ = job.create()
    with session:
        answering = _Answering(job, session, outputs[: len(patterns)], outputs[len(patterns) :])
        try:
            manifest = Manifest(out, described(source, tags, options, others), shards)
            try:
                failed = answering.run(manifest, list(patterns), log)
            finally:
                manifest.write()
                manifest.sweep()
        finally:
            answering.close()
    if failed:
        entry, error = failed[0]
        error.message = (
            f"{len(failed)} of {len(shards)} requests failed; the first is {entry.shard.name}: {error.message}"
        )
        raise error
    return answering.answered


def _check_rows(graph: Graph, fetches: Iterable[Output]) -> None:
    """Make sure that what is fetched can have a row for each example.

    Raises:
        UsageError: its shape says otherwise.
    """
    shapes = infer(graph, strict=False)
    for output in fetches:
        dims = shapes[output].dims
        if dims is not None and (not dims or dims[0] is not None):
            found = f"{dims[0]} as its first size, whatever is fed" if dims else "no axes"
            raise ArgumentValueError(
                f"'{output.name}' has {found}, so the results of requests in one step could not be told apart; "
                "fetch something with a row for each example, or run the requests one by one"
            )


class _Answering:
    """A session that requests are put together for.

    Args:
        examples: what requests have a value of each for.
        others: what is fed the same with every step.
    """

    def __init__(self, job: Job, session: Session, examples: Sequence[Output], others: Sequence[Output]):
        self._job, self._session = job, session
        self._labels = list(job.request.fetches)
        self._examples = list(examples)
        self.answered = Answered(0)
        wanted = Fetches(job.model.graph, list(job.request.fetches.values()))
        with about_option("--feed"):
            constant = [feed_array(output, job.request.feeds[output]) for output in others]
        step = session.make_callable(wanted.outputs, [*examples, *others])

        def counted(*values: Any) -> list[Any]:
            self.answered.steps += 1
            return step(*values, *constant)

        self._step = counted
        self._most = job.options.coalesce or 1
        with about_option("--coalesce"):
            self._coalescer = Coalescer(counted, examples, wanted, most=self._most, wait_ms=_WAIT_MS)

    def close(self) -> None:
        """Take no more requests."""
        self._coalescer.close()

    def run(
        self, manifest: Manifest, names: Sequence[str], log: Callable[[str], None]
    ) -> list[tuple[Entry, GraphmillError]]:
        """Answer what has no results yet; the requests that have failed, and why, in their order.

        Args:
            names: of what a request has, in the order of the tensors.
        """
        missing = manifest.missing()
        self.answered.requests = len(manifest.entries)
        if len(missing) < len(manifest.entries):
            log(
                f"{len(manifest.entries) - len(missing)} of {len(manifest.entries)} requests have their results already"
            )
        failed: list[tuple[Entry, GraphmillError]] = []
        waiting: deque[tuple[Entry, Future[Any], int]] = deque()
        held = 0
        for entry in [*missing, None]:
            while waiting and (entry is None or held >= _STEPS_AHEAD * self._most):
                first, future, rows = waiting.popleft()
                held -= rows
                try:
                    if not future.done():
                        self._coalescer.hurry()  # until then nobody else is read
                    with self._job.hints.around_step(self._session):
                        values = future.result()
                    self._write(manifest, first, values)
                except GraphmillError as error:
                    failed.append((first, self._failed(first, error, log)))
                else:
                    first.is_complete, first.rows = True, rows
                    self.answered.computed += 1
            if entry is None:
                break
            try:
                future, rows = self._submit([read_source(name, entry.shard.feeds[name]) for name in names])
            except GraphmillError as error:
                failed.append((entry, self._failed(entry, error, log)))
                continue
            waiting.append((entry, future, rows))
            held += rows
        position = {entry.shard.name: number for number, entry in enumerate(manifest.entries)}
        return sorted(failed, key=lambda item: position[item[0].shard.name])

    def _submit(self, values: list[Any]) -> tuple[Future[Any], int]:
        """A request under way, and how many examples it has."""
        fed = [feed_array(output, value) for output, value in zip(self._examples, values, strict=True)]
        if all(array.ndim and not len(array) for array in fed):  # nothing that could be put together
            empty: Future[Any] = Future()
            empty.set_result(self._step(*fed))
            return empty, 0
        return self._coalescer.submit(*fed), len(fed[0])

    def _write(self, manifest: Manifest, entry: Entry, values: Sequence[Any]) -> None:
        path = manifest.path(entry)
        path.parent.mkdir(parents=True, exist_ok=True)
        array_output.write_arrays(path, dict(zip(self._labels, values, strict=True)))

    def _failed(self, entry: Entry, error: GraphmillError, log: Callable[[str], None]) -> GraphmillError:
        entry.error = str(error)
        log(f"request {entry.shard.name} failed: {error}")
        return error
