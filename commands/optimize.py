"""graphmill optimize: the same results from a smaller or faster graph."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commands import messages
from commands.options import Allow, As, Feeds, Fetches, In, Json, Out, Tags, Targets, command_app, print_json

if TYPE_CHECKING:
    from toolkit.formats.models.model import Model
    from toolkit.passes.optimize.rewriting import Optimization
    from toolkit.passes.optimize.run import Applied, Optimized
    from toolkit.runtime.analysis.compare import Comparison

app = command_app()
#: the pass that needs data
_CALIBRATED = "quantize_static"


@app.command()
def optimize(
    source: In = "-",
    passes: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Passes to run, in this order: NAME or NAME(KEY=VALUE,...). Repeatable."),
    ] = None,
    rewrite: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Then rewrite by the rules of FILE: Relu(Relu(x)) => Relu(x). Repeatable."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="inference (default), size, training, canonical or gtt; before --passes."),
    ] = None,
    canonical: Annotated[
        bool, typer.Option("--canonical", help="Normal order, names and attributes in the end; as --preset canonical.")
    ] = False,
    release: Annotated[
        str | None,
        typer.Option("--for", metavar="RELEASE", help="Then take out what this release of TensorFlow does not know."),
    ] = None,
    fetch: Fetches = None,
    feed: Feeds = None,
    target: Targets = None,
    signature: Annotated[str | None, typer.Option(metavar="KEY", help="Keep what this signature needs.")] = None,
    tags: Tags = None,
    verify: Annotated[
        str | None,
        typer.Option(metavar="FEEDS.npz|random", help="Run both on these feeds and compare; exit 1 if they differ."),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.npz", help="Data that quantize_static measures ranges on: rows for each input, or FILE.npy."
        ),
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="PREFIX", help="With --verify: variables of both (default: initialised).")
    ] = None,
    rtol: Annotated[float | None, typer.Option(min=0, help="Relative tolerance of --verify (default 1e-5).")] = None,
    atol: Annotated[float | None, typer.Option(min=0, help="Absolute tolerance of --verify (default 1e-8).")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="S", help="Seed of --verify random.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Run the passes at most so often.")] = 10,
    list_passes: Annotated[bool, typer.Option("--list", help="List the passes with their parameters and end.")] = False,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE.json", help="Write what each pass did as JSON, with sizes before and after."),
    ] = None,
    out: Out = "-",
    as_kind: As = None,
    allow: Allow = None,
    as_json: Json = False,
) -> None:
    """Make a graph smaller or faster; what it computes stays.

    What signatures, collections and the saver name stays under its name, and so do --fetch, --feed and --target; where
    nothing is named, everything that nothing else reads. Presets and passes are explained by: graphmill help optimize
    """
    if list_passes:
        _list(as_json)
        return
    if verify is None and (checkpoint is not None or rtol is not None or atol is not None):
        from toolkit.errors import UsageError

        raise UsageError("--checkpoint, --rtol and --atol say how to verify; add --verify FEEDS.npz or --verify random")
    from commands import models
    from toolkit.formats.io import write_output
    from toolkit.passes.optimize.run import optimize as run

    chosen = _passes(passes, rewrite, preset, canonical, release)
    if calibrate is not None and not any(each.name == _CALIBRATED for each in chosen):
        from toolkit.errors import UsageError

        raise UsageError(f"--calibrate is data for the pass {_CALIBRATED}; add --passes {_CALIBRATED}")
    model = models.read("optimize", source, tags)
    if calibrate is not None:
        chosen = _calibrated(chosen, calibrate, model)
    with models.about(source):
        model, named = _pruned(model, fetch, feed, target, signature)
        from toolkit.passes.optimize.kept import kept_by

        kept = kept_by(model.meta, *named)
        done = run(model.graph, chosen, kept, rounds=rounds, sizes=report is not None, heard=_hear)
    from toolkit.passes.models.surroundings import record_initializer, shrink

    meta, surroundings = shrink(model.meta, done.graph)
    for name in done.initializers:
        record_initializer(meta, name)
    smaller = model.with_meta(meta) if done.modified else model
    facts = _facts(model, done) | surroundings
    comparison: Comparison | None = None
    if verify is not None:
        from toolkit.runtime.analysis.verify import verify_models

        comparison = verify_models(
            model, smaller, verify, list(named[1]), checkpoint=checkpoint, seed=seed,
            rtol=1e-5 if rtol is None else rtol, atol=1e-8 if atol is None else atol,
        )  # fmt: skip
        facts["verified"] = comparison.report()
    if report is not None:
        write_output(report, json.dumps(facts, indent=2).encode() + b"\n")
    if comparison is not None and comparison.differences:
        for line in comparison.lines():
            messages.tell(f"graphmill: optimize: --verify: {line}")
        raise typer.Exit(1)
    models.write("optimize", smaller, out, as_kind, allow)
    _say(done, surroundings)
    if comparison is not None:
        messages.say("optimize", f"--verify: {comparison.lines()[0]}")


def _passes(
    texts: list[str] | None, rewrites: list[str] | None, preset: str | None, canonical: bool, release: str | None
) -> list[Optimization]:
    from toolkit.errors import about_option
    from toolkit.passes.optimize import table
    from toolkit.passes.optimize.notation import parse_passes

    chosen: list[Optimization] = []
    with about_option("--preset"):
        if preset is not None or not (texts or rewrites or canonical or release):
            chosen += table.preset(preset or "inference")
    with about_option("--passes"):
        for text in texts or []:
            chosen += parse_passes(text)
    with about_option("--rewrite"):
        if rewrites:
            from toolkit.passes.optimize.rewrite import Rewrite

            chosen += [Rewrite(file) for file in rewrites]
    with about_option("--for"):
        if release is not None:
            from toolkit.passes.optimize.forms.for_release import ForRelease

            chosen.append(ForRelease(release=release))
    return [*chosen, *(table.preset("canonical") if canonical and preset != "canonical" else ())]


def _calibrated(chosen: list[Optimization], file: str, model: Model) -> list[Optimization]:
    """The passes, those that measure ranges with the data to do it on."""
    from dataclasses import replace

    from toolkit.errors import about_option
    from toolkit.passes.optimize.quantization.quantize_static import QuantizeStatic
    from toolkit.policy.rules import Policy
    from toolkit.runtime.analysis.calibration import read_calibration

    with about_option("--calibrate"):
        data = read_calibration(file, Policy.of_model(model.folder or model.source))
    return [replace(each, measure=data.measure) if isinstance(each, QuantizeStatic) else each for each in chosen]


Named = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _pruned(
    model: Model, fetch: list[str] | None, feed: list[str] | None, target: list[str] | None, signature: str | None
) -> tuple[Model, Named]:
    """The model cut to what was asked for, where something was; and the feeds, fetches and targets in it."""
    if not (fetch or feed or target or signature):
        return model, ((), (), ())
    from dataclasses import replace

    from commands.prune import prune_options, split_names
    from toolkit.formats.models.model import ModelKind
    from toolkit.passes.base import run_pass
    from toolkit.passes.models.surroundings import lifecycle_operations, record_signature, shrink

    meta = model.meta
    options, labels = prune_options(
        meta, split_names(feed), split_names(fetch), split_names(target), signature, keep_functions=False
    )
    if model.kind is ModelKind.SAVED_MODEL:  # its variables come back through its saver
        options = replace(options, targets=(*options.targets, *lifecycle_operations(meta)))
    result = run_pass(options, model.graph)
    smaller, lost = shrink(meta, result.graph)
    _say_cut(len(model.graph), len(result.graph), lost)
    feeds: dict[str, str] = {text: name for text, name in result.report["feeds"].items() if name}
    fetches: dict[str, str] = {text: name for text, name in result.report["fetches"].items() if name}
    if model.kind is not ModelKind.GRAPH_DEF and fetches:
        named = [{labels.get(text) or text: name for text, name in group.items()} for group in (feeds, fetches)]
        record_signature(smaller, *named)
    return model.with_meta(smaller), (tuple(feeds.values()), tuple(fetches.values()), options.targets)


def _say_cut(before: int, after: int, lost: dict[str, Any]) -> None:
    """What went because nothing that was asked for needs it, before any pass ran."""
    if after == before:
        return
    messages.say("optimize", f"what was asked for needs {after:,} of {before:,} nodes; the others go, as with prune")
    if lost["saver"] == "dropped":
        messages.say("optimize", "dropped the saver: its operations are not needed")
    for key, what in lost["signatures"].items():
        messages.say("optimize", f"the signature '{key}': {what}")


def _hear(applied: Applied) -> None:
    what = f"{applied.nodes_before:,} to {applied.nodes_after:,} nodes" if applied.modified else "nothing to do"
    messages.detail("optimize", f"round {applied.round}, {applied.name}: {what}, {applied.elapsed:.2f} s")


def _facts(model: Model, done: Optimized) -> dict[str, Any]:
    from toolkit.passes.optimize.run import count_nodes

    return {
        "nodes_before": count_nodes(model.graph),
        "nodes_after": count_nodes(done.graph),
        "settled": done.settled,
        "contrary": [list(pair) for pair in done.contrary],
        "passes": [each.as_json() for each in done.passes],
    }


def _say(done: Optimized, surroundings: dict[str, Any]) -> None:
    from toolkit.formats.inspection.report import plural

    nodes = (done.passes[0].nodes_before, done.passes[-1].nodes_after) if done.passes else (0, 0)
    lines = [_left(*nodes)] if done.modified else ["nothing to do"]
    by_name: dict[str, int] = {}
    for each in done.passes:
        if each.modified:
            by_name[each.name] = by_name.get(each.name, 0) + each.nodes_before - each.nodes_after
    lines += [f"{name}: {_fewer(count)}" for name, count in by_name.items()]
    lines += [f"{each.name}: {note}" for each in done.passes for note in each.report.get("notes", ())]
    if not done.settled:
        lines.append(f"the last round still changed something ({', '.join(done.restless)}); --rounds N allows more")
    lines += [f"{one} undoes {other}: each ran once" for one, other in done.contrary]
    for name, count in surroundings["collections"].items():
        lines.append(f"dropped {plural(count, 'entry', 'entries')} of the collection '{name}'")
    for line in lines:
        messages.say("optimize", line)


def _left(before: int, after: int) -> str:
    from toolkit.formats.inspection.report import plural

    return f"{plural(before, 'node')} became {after:,}" if after > before else f"{after:,} of {before:,} nodes are left"


def _fewer(count: int) -> str:
    from toolkit.formats.inspection.report import plural

    return f"{plural(abs(count), 'node')} {'fewer' if count > 0 else 'more'}" if count else "as many nodes"


def _list(as_json: bool) -> None:
    from toolkit.passes.optimize.notation import describe
    from toolkit.passes.optimize.table import TABLE

    if as_json:
        print_json([describe(row) for row in TABLE.values()])
        return
    for row in TABLE.values():
        facts = describe(row)
        given = ", ".join(f"{name}={value['default']}" for name, value in facts["parameters"].items())
        messages.show(f"{row.name}{f'({given})' if given else ''}")
        messages.show(f"    {row.text}")
        if row.presets:
            messages.show(f"    presets: {', '.join(row.presets)}")
        if row.transforms:
            messages.show(f"    Graph Transform Tool: {', '.join(row.transforms)}")
