"""graphmill partition: split a placed graph into one graph per task or device, or join such graphs again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commands import messages
from commands.options import Allow, As, In, Json, Tags, command_app, print_json

if TYPE_CHECKING:
    from toolkit.formats.models.model import Model
    from toolkit.passes.partitioning.partition import Partitioned, PartitionGraph
    from toolkit.passes.partitioning.receive_schedule import ReceiveSchedule
    from toolkit.passes.partitioning.schedule_receives import ScheduleReceives

app = command_app()


@app.command()
def partition(
    source: In = "-",
    by: Annotated[str, typer.Option(metavar="WHAT", help="One partition per 'task' or per 'device'.")] = "task",
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder to write: a .pb per partition, partitions.yaml; '-' or FILE.tar for one stream. With --join "
            "the file for the graph.",
        ),
    ] = "",
    join: Annotated[
        str | None, typer.Option(metavar="DIR", help="Give back the graph that the partitions in DIR ('-') add up to.")
    ] = None,
    compress: Annotated[
        str,
        typer.Option(
            "--compress-transfers",
            metavar="bfloat16|half",
            help="Send float32 tensors with 16 bits: without the lower half of each number, or as half. Lossy.",
        ),
    ] = "",
    schedule: Annotated[
        bool,
        typer.Option(
            "--schedule-recvs", help="Receive as late as the step allows, by control edges: tensors lie about for less."
        ),
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="CLUSTER.yaml", help="With --schedule-recvs: how fast devices and links are."),
    ] = None,
    costs: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --schedule-recvs: measured times, as for place --costs.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="With --schedule-recvs: what an unknown batch size counts as (32)."),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE.json", help="With --schedule-recvs: write which receive waits for which node."),
    ] = None,
    tags: Tags = None,
    as_kind: As = None,
    as_json: Json = False,
    allow: Allow = None,
) -> None:
    """Split a placed graph into one graph per task or device.

    Edges that cross become _Send/_Recv pairs. The folder is written whole or not at all, with the variables and assets
    of a SavedModel; every command takes it, and the stream of -o -.
    """
    from commands import models
    from toolkit.errors import UsageError, about_option
    from toolkit.passes.partitioning.partition import PartitionGraph

    told = {"--cluster": cluster, "--costs": costs, "--batch": batch, "--report": report}
    useless = [option for option, value in told.items() if value is not None]
    if useless and not schedule:
        raise UsageError(f"{useless[0]} is without effect here: add --schedule-recvs")
    if join is not None:
        if source != "-" or compress or by != "task" or schedule:
            raise UsageError("--join DIR names what is joined, and nothing is split; give -o FILE beside it")
        _join(join, out or "-", as_kind, allow)
        return
    if not out:
        raise UsageError("partitions are a folder; name it with -o DIR, or write one stream with -o -")
    if as_kind is not None:
        raise UsageError("--as says what --join writes; partitions are a folder of GraphDefs, or one MetaGraph")
    if out == "-" and as_json:
        raise UsageError("--json and the partitions would both go to standard output; give -o DIR")
    if report == "-" and (out == "-" or as_json):
        raise UsageError("--report - and the partitions or --json would both go to standard output; give FILE.json")
    splitter = PartitionGraph(
        by, share_controls=True, compress=compress, schedule=_scheduling(cluster, costs, batch) if schedule else None
    )
    with about_option("--compress-transfers" if by in ("task", "device") else "--by"):
        splitter.check()
    model = models.read("partition", source, tags)
    _split(model, source, splitter, out, as_json, allow, report)


def _scheduling(cluster: str | None, costs: str | None, batch: int | None) -> ScheduleReceives:
    from toolkit.formats.settings.cluster import read_cluster
    from toolkit.formats.settings.cluster_speeds import Speeds
    from toolkit.formats.settings.cost_file import read_cost_file
    from toolkit.passes.partitioning.schedule_receives import ScheduleReceives
    from toolkit.passes.placement.costs import BATCH

    return ScheduleReceives(
        Speeds() if cluster is None else read_cluster(cluster).speeds,
        None if costs is None else read_cost_file(costs),
        batch or BATCH,
    )


def _join(source: str, out: str, as_kind: str | None, allow: list[str] | None) -> None:
    from commands import models
    from toolkit.errors import UsageError

    model = models.read("partition", source, None)
    if not model.split_by:
        raise UsageError("this is no partition folder or stream; graphmill partition writes them", file=source)
    models.write("partition", model, out, as_kind, allow)


def _split(
    model: Model,
    source: str,
    splitter: PartitionGraph,
    out: str,
    as_json: bool,
    allow: list[str] | None,
    report: str | None,
) -> None:
    from commands import models
    from toolkit.formats.folders.partitions import write_partition_stream, write_partitions
    from toolkit.formats.inspection.report import plural
    from toolkit.formats.io import write_output
    from toolkit.graph.check import require_valid
    from toolkit.graph.garbage import no_collection
    from toolkit.passes.placement.costs import CrossingBytes

    graph = model.graph
    with models.about(source), no_collection():
        require_valid(graph)
        parts = splitter.split_unmade(graph)
        if parts is not None:
            from toolkit.passes.partitioning.crossing_table import crossing_bytes  # which imports NumPy

            sizes = crossing_bytes(graph, parts)
        else:
            order = graph.topological_order()
            found = CrossingBytes(graph, order)
            parts = splitter.split(graph, keep=False, order=order)
            sizes = found.of(parts)
    rows = _crossings(parts, sizes)
    schedule = None if parts.schedule is None else parts.schedule.facts()
    if report is not None and parts.schedule is not None:
        write_output(report, json.dumps({"schedule": schedule, "waits": parts.schedule.waits}, indent=1) + "\n")
    write = write_partition_stream if out == "-" or out.endswith(".tar") else write_partitions
    write(
        out, parts.graphs, model, splitter.by, crossings=rows, schedule=schedule,
        check_links=models.link_check(allow),
    )  # fmt: skip
    if as_json:
        print_json(
            {
                "folder": out,
                "by": splitter.by,
                "partitions": {name: len(graph) for name, graph in parts.graphs.items()},
                "transfers": rows,
                "control_loops": parts.control_loops,
                **({} if schedule is None else {"schedule": schedule}),
            }
        )
        return
    for name, graph in parts.graphs.items():
        sent = sum(t.source == name for t in parts.transfers)
        received = sum(t.target == name for t in parts.transfers)
        messages.say("partition", f"{name}: {plural(len(graph), 'node')}, sends {sent}, receives {received}")
    if parts.schedule is not None:
        _say_schedule(parts.schedule)
    messages.detail("partition", f"about {sum(row['bytes'] for row in rows):,} bytes cross")


def _say_schedule(schedule: ReceiveSchedule) -> None:
    from toolkit.formats.inspection.report import bytes_text, plural

    before, after = schedule.seconds
    messages.say(
        "partition",
        f"{plural(schedule.scheduled, 'receive')} scheduled; the simulated step takes {after * 1e3:.3g} ms "
        f"(without: {before * 1e3:.3g} ms)",
    )
    for device, (most, then) in schedule.peaks.items():
        messages.say("partition", f"{device}: peak memory {bytes_text(then)}, without: {bytes_text(most)}")
    for reason, count in schedule.left.items():
        messages.detail("partition", f"{plural(count, 'receive')} as they were: {reason}")


def _crossings(parts: Partitioned, bytes_of: list[int]) -> list[dict[str, Any]]:
    """What crosses, with the bytes that it has as far as shapes tell."""
    return [
        {
            "tensor": t.tensor, "name": t.tensor_name, "dtype": str(t.dtype), "from": t.source, "to": t.target,
            "bytes": size,
        }
        for t, size in zip(parts.transfers, bytes_of, strict=True)
    ]  # fmt: skip
