"""graphmill partition: split a placed graph into one graph per task or device."""

from __future__ import annotations

from typing import Annotated

import typer

from commands import messages
from commands.options import In, Json, command_app, print_json

app = command_app()


@app.command()
def partition(
    source: In = "-",
    by: Annotated[str, typer.Option(metavar="WHAT", help="One partition per 'task' or per 'device'.")] = "task",
    folder: Annotated[
        str,
        typer.Option("-o", "--output", metavar="DIR", help="Folder to write: a .pb per partition, partitions.yaml."),
    ] = "",
    tags: Annotated[str | None, typer.Option(metavar="A,B", help="Tag set that picks a SavedModel's graph.")] = None,
    as_json: Json = False,
) -> None:
    """Split a placed graph into one graph per task or device.

    Edges that cross become _Send/_Recv pairs. The folder is written whole or not at all; `graphmill run` takes it.
    """
    from commands import models
    from toolkit.errors import UsageError, about_option
    from toolkit.formats.partitions import write_partitions
    from toolkit.formats.report import plural
    from toolkit.graph.check import require_valid
    from toolkit.passes.partition import PartitionGraph

    if not folder or folder == "-":
        raise UsageError("partitions are a folder; name it with -o DIR")
    splitter = PartitionGraph(by)
    with about_option("--by"):
        splitter.check()
    model = models.read("partition", source, tags)
    with models.about(source):
        require_valid(model.graph)
        parts = splitter.split(model.graph)
    write_partitions(folder, parts.graphs, model, by)
    if as_json:
        print_json(
            {
                "folder": folder,
                "by": by,
                "partitions": {name: len(graph) for name, graph in parts.graphs.items()},
                "transfers": [
                    {"tensor": t.tensor, "name": t.tensor_name, "dtype": str(t.dtype), "from": t.source, "to": t.target}
                    for t in parts.transfers
                ],
                "control_loops": parts.control_loops,
            }
        )
        return
    for name, graph in parts.graphs.items():
        sent = sum(t.source == name for t in parts.transfers)
        received = sum(t.target == name for t in parts.transfers)
        messages.say("partition", f"{name}: {plural(len(graph), 'node')}, sends {sent}, receives {received}")
