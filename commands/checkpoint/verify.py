"""`graphmill checkpoint verify`: is a checkpoint whole?"""

from __future__ import annotations

from typing import Annotated

import typer

from commands import messages
from commands.checkpoint.shared import Prefix, bytes_done, plural, size
from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()
FINDINGS_EXIT = 1


@app.command()
def verify(
    prefix: Prefix,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="GRAPH",
            help="Also compare with the variables of this graph, MetaGraph or SavedModel: missing ones, other shapes "
            "or types.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Check the index, every CRC and every byte of the data files; of .npz and .safetensors files, every tensor.

    Finds damaged and truncated files, missing data files, entries that overlap or leave gaps, partitioned variables
    with missing parts; of archives, members that are there twice. Names the tensor, the file and the offset. Exit code
    1 when there is any finding.

    graphmill checkpoint verify model/ --graph model/ckpt-7.meta
    """
    from toolkit.formats.bundle import check as checking
    from toolkit.formats.bundle.locate import find_prefix

    name = find_prefix(prefix)
    with messages.step("checkpoint", "verified"), bytes_done("verifying") as progress:
        report = checking.check_file(name, progress)
    findings = list(report.findings)
    if graph is not None and not any(finding.kind == "index" for finding in findings):
        from toolkit.formats.bundle.locate import open_tensors
        from toolkit.formats.models.checkpoint_graph import compare_with_graph
        from toolkit.formats.models.model import read_model

        with open_tensors(name) as reader:
            findings += compare_with_graph(reader, read_model(graph))
    if json:
        print_json(
            {
                "prefix": name,
                "ok": not findings,
                "tensors": report.tensors,
                "bytes": report.bytes,
                "findings": [
                    {"kind": f.kind, "tensor": f.tensor, "file": f.file, "offset": f.offset, "message": f.message}
                    for f in findings
                ],
                "notes": report.notes,
            }
        )
    else:
        for f in findings:
            where = ": ".join(part for part in (f.file, f"tensor '{f.tensor}'" if f.tensor else "") if part)
            show(f"{where}{f' at offset {f.offset}' if f.offset >= 0 else ''}: {f.kind}: {f.message}")
        for note in report.notes:
            show(f"note: {note}")
        verdict = "no findings" if not findings else plural(len(findings), "finding")
        show(f"{name}: {verdict} in {plural(report.tensors, 'tensor')}, {size(report.bytes)}")
    if findings:
        raise typer.Exit(FINDINGS_EXIT)
