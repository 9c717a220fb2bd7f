"""graphmill freeze: variables to constants."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from commands import messages
from commands.options import Allow, As, Feeds, Fetches, In, Out, Report, Tags, command_app

if TYPE_CHECKING:
    from toolkit.formats.models.model import Model
    from toolkit.passes.freezing.freeze_model import FreezeRequest

app = command_app()


@app.command()
def freeze(
    source: In = "-",
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="PREFIX", help="Where the values are (default: the SavedModel's, or beside the .meta)."),
    ] = None,
    signature: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Keep what this signature needs. Repeatable (default: all signatures)."),
    ] = None,
    fetch: Fetches = None,
    feed: Feeds = None,
    keep_variables: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Variables that stay variables. Repeatable.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Freeze these variables and no others. Repeatable.")
    ] = None,
    tags: Tags = None,
    report: Report = None,
    out: Out = "-",
    as_kind: As = None,
    allow: Allow = None,
) -> None:
    """Make constants of a graph's variables, so that it needs no checkpoint.

    What the signatures, or --fetch, do not need is left out. A file is a GraphDef; one that ends in .meta or .tar,
    --as metagraph and --as savedmodel keep signatures and what fills tables, and so does a pipe, which is given what
    was read. A pattern is a name, a glob ("dense/*") or "re:REGEX".
    """
    from commands import models
    from commands.prune import split_names
    from toolkit.formats.bundle.locate import open_tensors
    from toolkit.formats.models.model import variables_prefix
    from toolkit.passes.freezing.freeze_model import freeze_model

    model = models.read("freeze", source, tags)
    with models.about(source):
        kind = as_kind or _kind_for(model, out)
        request = _request(model, kind, signature or [], split_names(fetch), split_names(feed), keep_variables, only)
        prefix = checkpoint or variables_prefix(model)
        values = None if prefix is None else open_tensors(prefix)
        try:
            frozen, facts = freeze_model(model, values, request)
        finally:
            if values is not None:
                values.close()
    if report:
        from toolkit.formats.io import write_output

        write_output(report, json.dumps(facts, indent=2) + "\n")
    models.write("freeze", frozen, out, kind, allow)
    _say(facts)
    if kind == "savedmodel" and as_kind is None and out == "-":
        messages.say("freeze", "the pipe is given a SavedModel with its signatures; --as graphdef gives it the graph")
    _say_names(model, request)


def _kind_for(model: Model, out: str) -> str:
    """What is written where nobody says: to the next command of a pipe all that there is, else the graph alone."""
    from toolkit.formats.models.model import ModelKind

    if out == "-" and _is_pipe(sys.stdout):
        return model.kind.value
    named = {".meta": ModelKind.META_GRAPH, ".tar": ModelKind.SAVED_MODEL}
    return named.get(Path(out).suffix.lower(), ModelKind.GRAPH_DEF).value


def _is_pipe(stream: TextIO) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # no file of the system stands behind it
        return False


def _request(
    model: Model,
    kind: str,
    keys: list[str],
    fetches: list[str],
    feeds: list[str],
    keep: list[str] | None,
    only: list[str] | None,
) -> FreezeRequest:
    from toolkit.errors import UsageError, about_option
    from toolkit.formats.models.model import ModelKind, parse_kind
    from toolkit.graph.summary import likely_outputs
    from toolkit.graph.tensorref import parse_tensor
    from toolkit.passes.freezing.freeze_model import FreezeRequest
    from toolkit.runtime.jobs.request import get_signature, public_signatures
    from toolkit.runtime.jobs.suggest import result_of_scope

    meta = model.meta
    fetches = [result_of_scope(meta.graph, name) or name for name in fetches]
    for option, names in (("--fetch", fetches), ("--feed", feeds)):
        with about_option(option):
            for name in names:
                meta.graph.output(parse_tensor(name))
    chosen = keys or ([] if fetches else public_signatures(meta))
    if not chosen and not fetches:
        likely = ", ".join(likely_outputs(meta)[:12])
        raise UsageError(
            f"there are no signatures; say what to keep with --fetch{f' (likely: {likely})' if likely else ''}"
        )
    for key in chosen:
        with about_option("--signature"):
            signature = get_signature(meta, key)
        fetches = [*fetches, *signature.output_tensors().values()]
        feeds = [*feeds, *(tensor for tensor in signature.input_tensors().values() if tensor not in feeds)]
    keeps_surroundings = parse_kind(kind)[0] is not ModelKind.GRAPH_DEF
    return FreezeRequest(
        tuple(dict.fromkeys(fetches)),
        tuple(dict.fromkeys(feeds)),
        tuple(keep or ()),
        tuple(only or ()),
        keeps_surroundings,
    )


def _say(facts: dict[str, Any]) -> None:
    from toolkit.formats.inspection.report import plural

    size = sum(facts["variables"].values())
    lines = [f"{plural(len(facts['variables']), 'variable')} became constants ({size:,} bytes)"]
    if facts["functions"]:
        lines.append(f"specialised {plural(facts['functions'], 'function')}")
    if facts["kept"]:
        shown = _listed(facts["kept"])
        lines.append(f"{plural(len(facts['kept']), 'variable')} stay, and need a checkpoint or initialisation: {shown}")
    if facts["initializer"]:
        lines.append(
            f"{plural(len(facts['tables']), 'table')} cannot be constants: run the operation '{facts['initializer']}' "
            "once before anything else (graphmill run --init-op)"
        )
    for name, path in facts["asset_paths"].items():
        lines.append(f"'{name}' is the path of an asset: {path}")
    for name in facts.get("unfilled", []):
        lines.append(f"warning: what fills the table '{name}' is not constant and stayed behind")
    for line in lines:
        messages.say("freeze", line)


def _say_names(model: Model, request: FreezeRequest) -> None:
    """Where signatures do not come along: what they were about, and how they would."""
    from toolkit.runtime.jobs.request import public_signatures

    signatures = model.meta.signatures
    fetches = set(request.fetches)
    lost = [
        key for key in public_signatures(model.meta) if fetches.issuperset(signatures[key].output_tensors().values())
    ]
    if request.surroundings or not lost:
        return
    messages.say("freeze", f"a GraphDef has no signatures; --as savedmodel keeps {_listed(lost)}")
    for key in lost[:3]:
        fed = [f"--feed {name}=..." for name in signatures[key].input_tensors().values()]
        fetched = [f"--fetch {name}" for name in signatures[key].output_tensors().values()]
        messages.say("freeze", f"what {key} computes: {' '.join([*fed[:5], *fetched[:5]])}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
