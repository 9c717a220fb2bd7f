"""graphmill run: run a graph, a model's signature, a partition folder or a training loop."""

from __future__ import annotations

import signal
import sys
import time
from typing import Annotated, Any

import typer

from commands.options import In, command_app, print_json

app = command_app()

_Feed = Annotated[
    list[str] | None,
    typer.Option(
        "--feed",
        metavar="NAME=SRC",
        help="Feed a tensor (or an input of the signature). SRC is a .npy, FILE.npz:KEY, .json, .csv, "
        "or a literal such as [[1,2]]. Repeatable.",
    ),
]


@app.command()
def run(
    source: In = "-",
    feed: _Feed = None,
    feeds: Annotated[str | None, typer.Option(metavar="FILE.npz", help="Feed every array under its key.")] = None,
    fetch: Annotated[
        list[str] | None, typer.Option(metavar="T", help="Tensor to compute: NODE or NODE:INDEX. Repeatable.")
    ] = None,
    target: Annotated[list[str] | None, typer.Option(metavar="OP", help="Operation to run. Repeatable.")] = None,
    signature: Annotated[str | None, typer.Option(metavar="KEY", help="Run this signature of the model.")] = None,
    tags: Annotated[str | None, typer.Option(metavar="A,B", help="Tag set that picks a SavedModel's graph.")] = None,
    checkpoint: Annotated[str | None, typer.Option(metavar="PREFIX", help="Restore variables from here.")] = None,
    init: Annotated[bool, typer.Option("--init", help="Run the initialisers first.")] = False,
    steps: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Run N steps; with --checkpoint-dir, up to global step N."),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, metavar="B", help="Cut fed arrays into minibatches along their first axis.")
    ] = None,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Draw the examples in a new order each epoch.")] = False,
    epochs: Annotated[int | None, typer.Option(min=1, metavar="E", help="Passes over the fed data.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="S", help="Seed of --shuffle.")] = None,
    save: Annotated[str | None, typer.Option(metavar="PREFIX", help="Write a checkpoint at the end.")] = None,
    checkpoint_dir: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Continue from the latest checkpoint here, else initialise; save here."),
    ] = None,
    save_steps: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Save to --checkpoint-dir every N steps.")
    ] = None,
    save_secs: Annotated[
        float | None, typer.Option(min=0, metavar="S", help="Save to --checkpoint-dir every S seconds (default 600).")
    ] = None,
    keep: Annotated[int | None, typer.Option(min=0, metavar="K", help="Keep the K newest checkpoints.")] = None,
    keep_every_n_hours: Annotated[
        float | None, typer.Option(min=0, metavar="H", help="Also keep one checkpoint for every H hours for good.")
    ] = None,
    log_steps: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Print fetched scalars every N steps.")
    ] = None,
    summaries: Annotated[
        str | None, typer.Option(metavar="LOGDIR", help="Write the graph's summaries as TensorBoard event files.")
    ] = None,
    summary_steps: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Write summaries every N steps (default 100).")
    ] = None,
    nan_guard: Annotated[
        bool, typer.Option("--nan-guard", help="Fail at the first step whose fetched values are not finite.")
    ] = False,
    trace: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a timeline: Chrome's JSON, or RunMetadata for .pb.")
    ] = None,
    profile: Annotated[bool, typer.Option("--profile", help="Print where time and memory went.")] = False,
    dump: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="PATTERN DIR", help="Write the outputs of matching nodes to DIR as .npy."),
    ] = None,
    dump_stages: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write the graph after each stage: placed, client graph, partitions."),
    ] = None,
    hook: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE.py", help="Add hooks: the file defines hooks() or subclasses of Hook. Repeatable."),
    ] = None,
    check_numerics: Annotated[
        bool, typer.Option("--check-numerics", help="Fail at the first node that makes a NaN or infinity.")
    ] = False,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write fetched arrays: .npz, .npy or .json.")
    ] = None,
    warmup: Annotated[int, typer.Option(min=0, metavar="W", help="Untimed steps before --repeat.")] = 1,
    repeat: Annotated[int | None, typer.Option(min=1, metavar="R", help="Run and time R steps.")] = None,
    stats: Annotated[str | None, typer.Option(metavar="json", help="Print step times as JSON on stdout.")] = None,
    devices: Annotated[list[str] | None, typer.Option(metavar="CPU=N", help="Virtual devices to run on.")] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="OTHER", help="Run OTHER on the same feeds and compare the fetches; exit 1 if they differ."
        ),
    ] = None,
    rtol: Annotated[float, typer.Option(min=0, help="Relative tolerance of --compare.")] = 1e-5,
    atol: Annotated[float, typer.Option(min=0, help="Absolute tolerance of --compare.")] = 1e-8,
    find_first: Annotated[
        bool, typer.Option("--bisect", help="With --compare: name the first tensor that differs.")
    ] = False,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Run every node in the dataflow executor (for debugging).")
    ] = False,
) -> None:
    """Run a graph and print or store what it computes.

    IN is a GraphDef, MetaGraphDef, SavedModel or a folder that `partition` wrote. Without --fetch, --target and
    --signature the file's only signature is run. With --steps N (N > 1), each array in --out has a leading axis
    of the N steps; with --batch alone one pass over the data is made and results per example are joined.

    Example: graphmill run model.pb --feed x=images.npy --fetch probabilities --out p.npz
    """
    if stats not in (None, "json"):
        raise typer.BadParameter(f"--stats knows only 'json', not '{stats}'")
    if stats and repeat is None:
        repeat = 1
    from toolkit.errors import UsageError
    from toolkit.formats import arrays

    start = time.perf_counter()
    given: dict[str, Any] = dict(arrays.read_arrays(feeds)) if feeds else {}
    for item in feed or []:
        name, equals, text = item.partition("=")
        if not equals or not name:
            raise UsageError(f"--feed wants NAME=SOURCE, not '{item}'")
        given[name] = arrays.read_array(text)

    from toolkit.runtime.devices import parse_counts
    from toolkit.runtime.job import RunOptions, run_model
    from toolkit.runtime.loading import load

    loaded = load(source, tags.split(",") if tags else None)
    options = RunOptions(
        feeds=given, fetches=_split(fetch), targets=_split(target), signature=signature,
        checkpoint=checkpoint, init=init, steps=steps, batch=batch, epochs=epochs, shuffle=shuffle,
        seed=seed, save=save, checkpoint_dir=checkpoint_dir, save_steps=save_steps, save_secs=save_secs,
        keep=keep, keep_every_n_hours=keep_every_n_hours, log_steps=log_steps, summaries=summaries,
        summary_steps=summary_steps, nan_guard=nan_guard, trace=trace, profile=profile, dump=dump,
        check_numerics=check_numerics, dump_stages=dump_stages, hook_files=hook or (),
        keep_values=out is not None, warmup=warmup, repeat=repeat,
        devices=parse_counts(devices) if devices else loaded.devices, force_tokens=tokens,
    )  # fmt: skip
    if compare is not None:
        from toolkit.runtime.job import compare_models

        other = load(compare, tags.split(",") if tags else None)
        found = compare_models(loaded.model, other.model, options, rtol=rtol, atol=atol, find_first=find_first)
        print("\n".join(found.lines()))
        if found.differences:
            raise typer.Exit(1)
        return
    try:
        report = run_model(loaded.model, options, log=_log, load_ms=(time.perf_counter() - start) * 1e3)
    except Exception as error:
        from toolkit.errors import GraphmillError

        if isinstance(error, GraphmillError):
            error.at(file=source)
        raise
    if report.checkpoint:
        _log(f"saved {report.checkpoint}")
    if out is not None:
        arrays.write_arrays(out, report.outputs)
    if stats:
        print_json(report.stats)
    elif out is None:
        _show(report.outputs)
    if report.profile is not None:
        from toolkit.runtime.probes.profile import profile_text

        print(profile_text(report.profile))
    if report.interrupted_by is not None:
        _log(f"stopped by {signal.Signals(report.interrupted_by).name} after {report.steps} step(s)")
        if report.interrupted_by == signal.SIGINT:
            raise typer.Exit(130)


def _split(items: list[str] | None) -> list[str]:
    return [part for item in items or [] for part in item.split(",") if part]


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _show(outputs: dict[str, Any]) -> None:
    """Print values for reading; --out is for machines."""
    import numpy as np

    with np.printoptions(threshold=200, edgeitems=3, linewidth=110):
        for label, value in outputs.items():
            array = np.asarray(value)
            text = np.array2string(array, separator=", ") if array.dtype.kind != "O" else repr(array.tolist())
            print(f"{label} = {text}" if array.ndim < 2 else f"{label} =\n{text}")
