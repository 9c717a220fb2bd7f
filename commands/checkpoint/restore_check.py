"""`graphmill checkpoint restore-check`: would this restore?"""

from __future__ import annotations

from typing import Annotated

import typer

from commands.checkpoint.complete import complete_prefix
from commands.checkpoint.shared import plural
from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()
FINDINGS_EXIT = 1


@app.command("restore-check")
def restore_check(
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help="GraphDef, MetaGraph or SavedModel.")],
    prefix: Annotated[
        str | None,
        typer.Argument(
            metavar="[PREFIX]",
            help="Checkpoint; by default the one that belongs to GRAPH.",
            autocompletion=complete_prefix,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say whether a checkpoint has everything a graph restores, in the right types and shapes; exit 1 if not.

    graphmill checkpoint restore-check model.pb model/ckpt-7
    """
    from toolkit.errors import UsageError
    from toolkit.formats.bundle.locate import open_tensors
    from toolkit.formats.models.checkpoint_graph import compare_with_graph, expected_tensors
    from toolkit.formats.models.model import read_model, variables_prefix

    model = read_model(graph)
    name = prefix or variables_prefix(model)
    if name is None:
        raise UsageError("no checkpoint belongs to it; give its PREFIX", file=graph)
    with open_tensors(name) as reader:
        findings = compare_with_graph(reader, model, extra=False)
    count = len(expected_tensors(model))
    if json:
        print_json(
            {
                "graph": graph, "prefix": name, "restores": not findings, "tensors": count,
                "findings": [{"kind": f.kind, "tensor": f.tensor, "message": f.message} for f in findings],
            }
        )  # fmt: skip
    else:
        for f in findings:
            show(f"tensor '{f.tensor}': {f.kind}: {f.message}")
        show(f"{name} {'does not restore' if findings else 'restores'} into {graph}: {plural(count, 'tensor')} needed")
    if findings:
        raise typer.Exit(FINDINGS_EXIT)
