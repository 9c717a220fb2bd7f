"""graphmill place: assign every node to a device of a cluster."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from commands import messages
from commands.options import Allow, As, In, Out, command_app

app = command_app()


@app.command()
def place(
    source: In = "-",
    cluster: Annotated[
        str,
        typer.Option(
            metavar="CLUSTER.yaml", help="The jobs, tasks and devices there are (see: graphmill help clusters)."
        ),
    ] = "",
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="For nodes that may go anywhere: 'default' (the default task's first device) or 'greedy' (simulate "
            "the run; spread only if that gains).",
        ),
    ] = "default",
    variables: Annotated[
        str, typer.Option(metavar="SPEC", help="Where variables go that name no job, such as /job:ps; tasks in turn.")
    ] = "",
    soft: Annotated[
        bool, typer.Option("--soft-placement", help="Take another device where the one asked for cannot be had.")
    ] = False,
    report: Annotated[
        str | None, typer.Option(metavar="FILE.json", help="Write each node's device, reason and colocation group.")
    ] = None,
    tags: Annotated[str | None, typer.Option(metavar="A,B", help="Tag set that picks a SavedModel's graph.")] = None,
    out: Out = "-",
    as_kind: As = None,
    allow: Allow = None,
) -> None:
    """Assign every node to a device of a cluster.

    Device names, colocation, references, resources and missing kernels bind nodes; the strategy decides the rest
    (see: graphmill help placement).
    """
    from commands import models
    from toolkit.errors import UsageError, about_option
    from toolkit.formats.cluster import read_cluster
    from toolkit.formats.report import plural
    from toolkit.passes.base import run_pass
    from toolkit.passes.devices import DeviceSet
    from toolkit.passes.place import Place

    if not cluster:
        raise UsageError("say what devices there are with --cluster CLUSTER.yaml")
    described = read_cluster(cluster)
    devices = DeviceSet(described.devices, described.default)
    placing = Place(devices, soft, strategy, variables=variables)
    with about_option("--strategy"):
        placing.check()
    if variables:
        with about_option("--variables"):
            placing.tasks_of_variables()
    model = models.read("place", source, tags)
    with models.about(source):
        result = run_pass(placing, model.graph)
    facts = result.report
    if report:
        from toolkit.formats.io import write_output

        write_output(report, json.dumps(facts, indent=2) + "\n")
    models.write("place", model.with_graph(result.graph), out, as_kind, allow)
    for device, count in facts["devices"].items():
        if count:
            messages.say("place", f"{plural(count, 'node')} on {device}")
    if "simulated_seconds" in facts:
        one, spread = (f"{facts['simulated_seconds'][key]:.3g} s" for key in ("default", "greedy"))
        verdict = "spread" if facts["is_spread"] else "not spread, for that is no clear gain"
        messages.say("place", f"{verdict}: simulated {one} with the default strategy, {spread} spread")
