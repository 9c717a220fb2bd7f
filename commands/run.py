"""graphmill run: run a graph, a model's signature, a partition folder or a training loop."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any, cast

import typer

from commands import messages, models
from commands.options import In, Tags, command_app, print_json
from commands.run_options import with_run_options
from toolkit.printable import printable

app = command_app()

_Feed = Annotated[
    list[str] | None,
    typer.Option(
        "--feed",
        metavar="NAME=SRC",
        help="Feed a tensor (or an input of the signature). SRC is a .npy, FILE.npz:KEY, .json, .csv, "
        "FILE.tfrecord:FEATURE, or a literal such as [[1,2]]. Repeatable.",
    ),
]


@app.command()
@with_run_options(after="feeds")
def run(
    source: In = "-",
    feed: _Feed = None,
    feeds: Annotated[str | None, typer.Option(metavar="FILE.npz", help="Feed every array under its key.")] = None,
    tags: Tags = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write fetched arrays: .npz, .npy or .json.")
    ] = None,
    stats: Annotated[str | None, typer.Option(metavar="json", help="Print step times as JSON on stdout.")] = None,
    estimate: Annotated[
        str | None,
        typer.Option(
            metavar="REPORT.json", help="With --repeat: how far the simulated step of place --report is from this one."
        ),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER", help="Run OTHER on the same feeds and compare the fetches; exit 1 if they differ."
        ),
    ] = None,
    rtol: Annotated[
        float | None, typer.Option(min=0, help="Relative tolerance of --compare (default 1e-5).", show_default=False)
    ] = None,
    atol: Annotated[
        float | None, typer.Option(min=0, help="Absolute tolerance of --compare (default 1e-8).", show_default=False)
    ] = None,
    find_first: Annotated[
        bool, typer.Option("--bisect", help="With --compare: name the first tensor that differs.")
    ] = False,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Run in a child process that the kernel confines to what is allowed.")
    ] = False,
    limit: Annotated[
        str | None,
        typer.Option(
            metavar="memory=4G,time=60s,tensor=1G",
            help="What the whole run may use: memory of all arrays, time, the size of any tensor.",
        ),
    ] = None,
    **given: Any,
) -> None:
    """Run a graph and print or store what it computes.

    IN is a GraphDef, MetaGraphDef, SavedModel or a folder that `partition` wrote. Without --fetch, --target and
    --signature the file's only signature is run. With --steps N (N > 1), each array in --out has a leading axis
    of the N steps; with --batch alone one pass over the data is made and results per example are joined.
    With --engine ray and --feed NAME=PATTERN, as in x=in/*.npz, every file that fits is one pass, and --out a folder;
    with --coalesce every file is a request, and several run as one step.

    Example: graphmill run model.pb --feed x=images.npy --fetch probabilities --out p.npz
    """
    from toolkit.errors import UsageError, about_option

    # with a limit, reading has to be refused where it goes beyond; a sandbox reads for itself
    if limit is None and (not sandbox or messages.confined is not None):
        from toolkit.formats.ahead import read_ahead

        read_ahead(source)
    if stats not in (None, "json"):
        raise UsageError(f"--stats: expected json, found '{stats}'")
    if compare is None and (rtol is not None or atol is not None or find_first):
        raise UsageError("--rtol, --atol and --bisect say how to compare; add --compare OTHER")
    if stats and given["repeat"] is None:
        given["repeat"] = 1
    repeat: int | None = given["repeat"]
    if estimate is not None and repeat is None:
        raise UsageError("--estimate is compared with steps that are timed; add --repeat R")
    from toolkit.limits.limits import Limits
    from toolkit.limits.process import bounded, keep_freed_memory
    from toolkit.runtime.jobs.signals import Terminated, end_by_force, end_on_term

    start = time.perf_counter()
    shards = False
    with about_option("--limit"):
        limits = None if limit is None else Limits.parse(limit)
    keep_freed_memory()
    try:
        with end_by_force(), end_on_term(), bounded(limits) as allowance:
            from toolkit.formats.arrays import output
            from toolkit.runtime.jobs.loading import load
            from toolkit.runtime.jobs.option_checks import check_options
            from toolkit.runtime.jobs.options import from_command_line

            shards = given["coalesce"] is not None or (given["engine"] is not None and _has_shards(feed))
            if out is not None and not shards:
                output.check_destination(out)
            tolerance = {"rtol": 1e-5 if rtol is None else rtol, "atol": 1e-8 if atol is None else atol}
            if compare is not None and _are_results(source, compare):
                raise typer.Exit(_compare_results(source, compare, tolerance))
            named = [*_named_files(feed), *([] if estimate is None else [estimate])]
            options = from_command_line(given, keep_values=out is not None, limits=allowance, named_files=named)
            check_options(options, comparing=compare is not None)
            if sandbox and options.master is not None:
                raise UsageError("--sandbox and --master do not go together: the model runs at the servers")
            if sandbox and options.engine is not None:
                raise UsageError("--sandbox and --engine do not go together: the model runs in other processes")
            if shards and options.coalesce is None:
                _run_shards(options, source, tags, feed or [], feeds, out)
                return
            if sandbox:
                _confine(options, source, out, compare)
            if options.coalesce is not None:
                _answer_requests(options, source, tags, feed or [], feeds, out)
                return
            options.feeds = _given(source, feeds, feed)
            expected = None if estimate is None else _read_estimate(estimate)
            loaded = load(source, models.tag_set(tags))
            _collect_garbage()
            if options.master is None and options.engine is None:
                _tell_what_is_missing()
                options.devices = options.devices or loaded.devices
            if compare is not None:
                from toolkit.runtime.analysis.compare_models import compare_models

                other = load(compare, models.tag_set(tags))
                found = compare_models(loaded.model, other.model, options, find_first=find_first, log=_log, **tolerance)
                messages.show(*found.lines())
                raise typer.Exit(1 if found.differences else 0)
            with _actors(options, loaded.model):
                report = _run(loaded.model, options, source, (time.perf_counter() - start) * 1e3)
    except Terminated:
        if repeat is not None or compare is not None or shards:  # in the middle of what was asked for
            raise KeyboardInterrupt from None
        _log("stopped by SIGTERM before the first step")
        return
    for note in report.notes:
        messages.detail("run", f"not compiled: {note}")
    for line in report.moved:
        messages.detail("run", f"soft placement: {line}")
    for line in report.wanting:
        messages.detail("run", line)
    if report.checkpoint:
        _log(f"saved {report.checkpoint}")
    if out is not None:
        output.write_arrays(out, report.outputs)
    if expected is not None:
        from toolkit.runtime.steps.timing import add_estimate

        add_estimate(report.stats, expected)
    if stats:
        print_json(report.stats)
    elif report.explanation is not None:
        messages.show(*report.explanation)
    elif out is None:
        _show(report.outputs)
    _report(report, repeat if not stats else None)
    if report.interrupted_by == signal.SIGINT:
        raise typer.Exit(130)


def _collect_garbage() -> None:
    """Begin to look for garbage, where `commands.main` has put it off: among modules and the nodes of a file, which
    live until the end, there is none."""
    from toolkit.graph.garbage import resume

    resume()


def _tell_what_is_missing() -> None:
    from toolkit.kernels.cpu.extras import missing_for_speed

    missing = missing_for_speed()
    if missing is not None:
        messages.say("run", missing)


def _has_shards(feed: list[str] | None) -> bool:
    """Whether a feed names many files."""
    from toolkit.runtime.shards.files import split_feeds

    return bool(split_feeds(feed or ())[0])


def _run_shards(
    options: Any, source: str, tags: str | None, feed: list[str], feeds: str | None, out: str | None
) -> None:
    """Batches over many files, at all actors of a Ray cluster."""
    from toolkit.cluster.ray.inference.run import infer
    from toolkit.errors import UsageError

    if feeds is not None:
        raise UsageError("--feeds names the arrays of one pass; name each with --feed where others are many files")
    if out is None:
        raise UsageError("the results of many files are written to a folder: add --out DIR")
    _collect_garbage()
    found = infer(source, models.tag_set(tags), options, feed, out, _log)
    _log(f"{found.shards} shard(s) are in {out}")


def _answer_requests(
    options: Any, source: str, tags: str | None, feed: list[str], feeds: str | None, out: str | None
) -> None:
    """Requests of many files, several in one step."""
    from toolkit.errors import UsageError
    from toolkit.runtime.shards.requests import answer

    if feeds is not None:
        raise UsageError("--feeds names the arrays of one request; name each with --feed, those of many by a pattern")
    _tell_what_is_missing()
    _collect_garbage()
    found = answer(source, models.tag_set(tags), options, feed, out, _log)
    _log(f"{found.requests} result(s) are in {out}: {found.computed} computed, in {found.steps} step(s)")


@contextmanager
def _actors(options: Any, model: Any) -> Generator[None]:
    """With --engine, the actors that the steps run in; they end with the block."""
    if options.engine is None:
        yield
        return
    from toolkit.cluster.ray.kind import running
    from toolkit.cluster.ray.run_settings import actor_settings, cluster_of
    from toolkit.errors import about_option

    with ExitStack() as stack:
        with about_option("--engine"):
            cluster, settings = cluster_of(options), actor_settings(options, model.folder or model.source)
            options.engine = stack.enter_context(running(options.engine, cluster, settings))
        yield


def _given(source: str, feeds: str | None, feed: list[str] | None) -> dict[str, Any]:
    """What is fed, by the names that were given."""
    from toolkit.errors import UsageError, about_option
    from toolkit.formats.arrays import given as arrays
    from toolkit.runtime.jobs.random_feeds import random_feed
    from toolkit.runtime.jobs.record_feeds import record_feed
    from toolkit.runtime.shards.files import names_files

    given: dict[str, Any] = dict(arrays.read_arrays(feeds)) if feeds else {}
    for item in feed or []:
        name, equals, text = item.partition("=")
        if not equals or not name:
            raise UsageError(f"--feed wants NAME=SOURCE, not '{item}'")
        if name in given:
            raise UsageError(f"--feed: '{name}' is fed twice")
        with about_option(f"--feed {name}"):
            if text == "-":
                if source == "-":
                    raise UsageError("standard input holds one thing, which is read for something else")
                source = "-"
            if names_files(text):
                raise UsageError(f"'{text}' names many files; --coalesce N makes each a request, --engine ray a pass")
            drawn = random_feed(text) or record_feed(text)
            given[name] = arrays.read_array(text) if drawn is None else drawn
    return given


def _confine(options: Any, source: str, out: str | None, compare: str | None) -> None:
    """Go on in a confined child, and end as it does; in that child, go on.

    Raises:
        UsageError: nothing can be enforced on this system.
        Exit: the child has ended.
    """
    import tempfile
    from contextlib import nullcontext
    from pathlib import Path

    from toolkit.errors import InternalError, UsageError
    from toolkit.formats.folders.archive import may_be_archive
    from toolkit.policy import sandbox
    from toolkit.runtime.jobs.trust import policy_of

    if options.trust:
        raise UsageError("--sandbox and --trust do not go together: a sandbox holds a model to what is allowed")
    if messages.confined is not None:
        for line in messages.confined:
            messages.detail("run", f"sandbox: {line}")
        return
    for line in sandbox.missing():
        messages.say("run", f"sandbox: {line}")
    words = [word for argument in messages.arguments for word in (argument, argument.partition("=")[2]) if word]
    named = [word for word in words if "\0" not in word and os.path.exists(word)]  # noqa: PTH110 -- any text
    patterns = [os.path.dirname(word) for word in words if "*" in word]  # noqa: PTH120
    read = [*named, *options.named_files, *(pattern or "." for pattern in patterns)]
    files = [*options.written("file").values(), *([out] if out else [])]
    write = [str(Path(folder)) for folder in options.written("folder").values()]
    write += [str(Path(file).parent) for file in files]
    # what comes as an archive is unpacked in a folder of the child's own
    unpacks = any(map(may_be_archive, (source, *([compare] if compare else []))))
    with tempfile.TemporaryDirectory(prefix="graphmill-") if unpacks else nullcontext() as scratch:
        if scratch:
            os.environ["TMPDIR"] = scratch
            write.append(scratch)
        wanted = sandbox.confinement_of(policy_of(source, options), read, write)
        code = sandbox.run_confined(Path(__file__).with_name("confined.py"), wanted, messages.arguments)
    if code > 128 and code != 130:
        signals = {number.value: number.name for number in signal.Signals}
        raise InternalError(f"the confined process was ended by {signals.get(code - 128, code - 128)}", file=source)
    raise typer.Exit(code)


def _named_files(feed: list[str] | None) -> list[str]:
    """Files that --feed names, as a source of arrays or as the text that is fed: the model may read them."""
    import json

    from toolkit.formats.arrays.given import split_key

    named: list[str] = []
    for item in feed or []:
        text = item.partition("=")[2]
        try:
            value: Any = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        candidates = cast("list[Any]", value) if isinstance(value, list) else [value]
        for candidate in [*candidates, split_key(text)[0]]:
            if isinstance(candidate, str) and candidate and "\0" not in candidate and os.path.isfile(candidate):  # noqa: PTH113 -- a name that is too long is no file
                named.append(candidate)
    return named


def _read_estimate(file: str) -> float:
    from toolkit.errors import about_option
    from toolkit.runtime.steps.timing import read_estimate

    with about_option("--estimate"):
        return read_estimate(file)


def _run(model: Any, options: Any, source: str, load_ms: float) -> Any:
    from toolkit.errors import GraphmillError
    from toolkit.runtime.jobs.job import run_model

    terminal = sys.stderr if sys.stderr.isatty() and messages.level() >= messages.NORMAL else None
    try:
        return run_model(model, options, log=_log, load_ms=load_ms, terminal=terminal)
    except GraphmillError as error:
        raise error.at(file=source) from error.__cause__


def _report(report: Any, repeat: int | None) -> None:
    """What is said beside the results: timings on standard error, profiles on standard output."""
    if repeat is not None:
        from toolkit.runtime.steps.timing import timing_text

        messages.tell(timing_text(report.stats, repeat))  # asked for: a result
    if report.profile is not None:
        from toolkit.runtime.probes.profile import profile_lines

        messages.show(*profile_lines(report.profile))
    if report.interrupted_by is not None:
        _log(f"stopped by {signal.Signals(report.interrupted_by).name} after {report.steps} step(s)")


def _are_results(*files: str) -> bool:
    """Whether these are files of arrays and not models."""
    return all(file.lower().endswith((".npz", ".npy")) for file in files)


def _compare_results(mine: str, other: str, tolerance: dict[str, float]) -> int:
    """Compare two files of arrays; returns the exit code."""
    from toolkit.formats.arrays import given as arrays
    from toolkit.runtime.analysis.compare import Comparison, Contract, compare_results

    def read(file: str) -> dict[str, Any]:
        return arrays.read_arrays(file) if file.lower().endswith(".npz") else {"": arrays.read_array(file)}

    found = Comparison(
        compare_results(read(mine), read(other), **tolerance), contract=Contract(tolerance["rtol"], tolerance["atol"])
    )
    messages.show(*found.lines())
    return 1 if found.differences else 0


def _log(line: str) -> None:
    if messages.level() >= messages.NORMAL:
        messages.tell(line)


def _show(outputs: dict[str, Any]) -> None:
    """Print values for reading; --out is for machines."""
    import numpy as np

    with np.printoptions(threshold=200, edgeitems=3, linewidth=110):
        for name, value in outputs.items():
            label = printable(name)
            array = np.asarray(value)
            text = np.array2string(array, separator=", ") if array.dtype.kind != "O" else repr(array.tolist())
            messages.show(*(f"{label} = {text}" if array.ndim < 2 else f"{label} =\n{text}").split("\n"))
