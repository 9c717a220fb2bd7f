"""graphmill validate: judge model files, for people and for CI.

`--format json` prints a list of objects, one for each finding:

    rule         its id, "structure/dangling-input"; `--rules` lists all
    severity     error | warning | note
    file         as it was given, or found below a folder
    node         the node, or null
    function     the function whose body the node is in, or null
    graph        the tags of the graph, where a SavedModel has several, or null
    message      what is wrong
    fix          what to do about it
    fingerprint  the same in every run for the same finding; baselines are lists of them

Exit codes: 0 no finding at or above --fail-on, 1 at least one, 2 bad usage, a path that does not exist, or a
--checkpoint or --compatible-with that names nothing of that kind. What is damaged is a finding (file/unreadable,
checkpoint/unreadable, signatures/earlier-version), so that one bad file among many does not hide the others.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from commands import messages
from commands.options import command_app

app = command_app()
FINDINGS_EXIT = 1

_Count = str | None


@app.command()
def validate(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH ...",
            help="Model files, SavedModel folders, or folders with such below them; '-' is standard input.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="PREFIX", help="The checkpoint that the graphs must fit.")
    ] = None,
    format: Annotated[str, typer.Option(metavar="FORMAT", help="text, json, sarif, junit or github.")] = "text",
    fail_on: Annotated[
        str | None,
        typer.Option(metavar="SEVERITY", help="Exit with 1 on findings of at least this: error, warning or note."),
    ] = None,
    runs_on: Annotated[
        str | None, typer.Option(metavar="CPU|GPU", help="Every op must have a kernel on this device.")
    ] = None,
    compatible_with: Annotated[
        str | None, typer.Option(metavar="FILE", help="An earlier version whose signatures must go on working.")
    ] = None,
    max_params: Annotated[_Count, typer.Option(metavar="N", help="Most parameters (30M, 30e6).")] = None,
    max_flops: Annotated[_Count, typer.Option(metavar="N", help="Most floating-point operations at batch 1.")] = None,
    max_bytes: Annotated[_Count, typer.Option(metavar="N", help="Most bytes of the file or SavedModel.")] = None,
    max_nodes: Annotated[_Count, typer.Option(metavar="N", help="Most nodes, functions included.")] = None,
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Rules and defaults (default: graphmill.yaml in this folder).")
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE=SEVERITY", help="Set a rule or family: security=error, size/*=off. Repeatable."),
    ] = None,
    baseline: Annotated[str | None, typer.Option(metavar="FILE", help="Findings listed there are accepted.")] = None,
    write_baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Accept today's findings: write them to a baseline, exit 0.")
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List all rules and exit.")] = False,
) -> None:
    """Find everything that is wrong with models, in one pass.

    graphmill validate model.pb

    graphmill validate models/ --format sarif --fail-on warning > findings.sarif

    The rules are listed by: graphmill help rules; graphmill.yaml is described by: graphmill help configuration
    """
    from contextlib import nullcontext

    from toolkit.errors import UsageError, about_option
    from toolkit.formats.inspection.report import plural
    from toolkit.passes.validate import config as configuration
    from toolkit.passes.validate import reports
    from toolkit.passes.validate.finding import Severity

    if rules:
        _print_rules()
        return
    settings = configuration.load(config)
    changed = settings.changed("security") if config is None else []
    if changed:
        messages.say("validate", f"{settings.found} of this folder changes {', '.join(changed)}")
    defaults = settings.defaults
    limits = {"params": max_params, "flops": max_flops, "bytes": max_bytes, "nodes": max_nodes}
    given = {key: configuration.parse_count(text, f"--max-{key}") for key, text in limits.items() if text is not None}
    with about_option("--fail-on") if fail_on else nullcontext():
        level = Severity.parse(fail_on or defaults.get("fail-on", "error"))
    if format not in reports.FORMATS:
        with about_option("--format"):
            reports.render(reports.Report([], [], level), format)  # says what there is
    if not paths:
        if sys.stdin.isatty():
            raise UsageError("nothing to validate; give a file or folder")
        paths = ["-"]
    options = _options(defaults, given, checkpoint, runs_on, compatible_with)
    settings = _with_rules(settings, rule)
    findings, files, accepted = _run(paths, options, settings, baseline or defaults.get("baseline"), bool(baseline))
    own = [file for file in files if settings.came_with(file)]
    if own and (changed or settings.exclude or (defaults.get("baseline") and not baseline)):
        others = f" and {plural(len(own) - 1, 'other model')}" if own[1:] else ""
        messages.say(
            "validate",
            f"{settings.found} may have come with {own[0]}{others}: what it says of security, excludes and accepts is "
            f"not heeded there; --config {settings.found} heeds it",
        )
    if write_baseline is not None:
        configuration.write_baseline(write_baseline, findings)
        messages.say("validate", f"{plural(len(findings), 'finding')} accepted in {write_baseline}")
        return
    from importlib.metadata import version

    report = reports.Report(findings, files, level, accepted, version("graphmill"))
    sys.stdout.write(reports.render(report, format))
    if report.failures:
        raise typer.Exit(FINDINGS_EXIT)


def _options(
    defaults: dict[str, Any],
    budgets: dict[str, int],
    checkpoint: str | None,
    runs_on: str | None,
    compatible_with: str | None,
) -> Any:
    from contextlib import suppress

    from toolkit.errors import DataLossError, FormatError, UsageError, about_option, did_you_mean
    from toolkit.passes.validate.options import Options

    device = (runs_on or defaults.get("runs-on", "")).upper()
    device = {"CUDA": "GPU"}.get(device, device)  # as it was called before 0.2
    if device not in ("", "CPU", "GPU"):
        raise UsageError(f"--runs-on must be CPU or GPU; it is '{runs_on}'{did_you_mean(device, ['CPU', 'GPU'])}")
    earlier = compatible_with or defaults.get("compatible-with", "")
    prefix = checkpoint or defaults.get("checkpoint", "")
    # what models are held against must be there and of the right kind, or nothing could be judged
    if earlier:
        from toolkit.formats.inspection.detect import FileKind, detect, explain

        with about_option("--compatible-with"):
            found = detect(earlier)
            if found.kind is FileKind.GRAPH_DEF:
                raise FormatError("a GraphDef has no signatures; give a MetaGraphDef or SavedModel", file=earlier)
            if found.kind.model is None:
                raise explain(found, earlier)
    if prefix:
        from toolkit.formats.bundle import open_checkpoint
        from toolkit.formats.bundle.locate import find_prefix

        with about_option("--checkpoint"), suppress(DataLossError):  # a damaged one is a finding
            prefix = find_prefix(prefix)
            open_checkpoint(prefix)
    return Options(prefix, device, {**defaults.get("budgets", {}), **budgets}, earlier)


def _with_rules(settings: Any, rules: list[str] | None) -> Any:
    from dataclasses import replace

    from toolkit.errors import UsageError, about_option
    from toolkit.passes.validate.config import setting

    more: list[Any] = []
    for text in rules or ():
        pattern, equals, severity = text.partition("=")
        if not equals:
            raise UsageError(f"--rule takes RULE=SEVERITY such as security/*=off; it is '{text}'")
        with about_option("--rule"):
            more.append(setting(pattern, severity))
    return replace(settings, named=tuple(more))


def _run(
    paths: list[str], options: Any, config: Any, baseline: str | None, is_named: bool
) -> tuple[list[Any], list[str], int]:
    from toolkit.passes.validate.config import read_baseline
    from toolkit.passes.validate.engine import validate_files

    known = read_baseline(baseline) if baseline else frozenset[str]()
    with messages.Progress("validating") as progress:

        def on_file(done: int, total: int, name: str) -> None:
            progress(done, total, f"{done + 1:,} of {total:,}: {name}")
            messages.detail("validate", name)

        result = validate_files(paths, options, config, on_file)
    if not result.files:
        messages.say("validate", f"warning: there is no model below {', '.join(paths)}")
    kept = [finding for finding in result.findings if not config.accepts(finding, known, named=is_named)]
    return kept, result.files, len(result.findings) - len(kept)


def _print_rules() -> None:
    from toolkit.passes.validate import registry

    rules = registry.all_rules()
    width = max(map(len, rules))
    for identifier, rule in rules.items():
        messages.show(f"{identifier:<{width}}  {rule.severity.label:<7}  {rule.summary}")
