"""graphmill place: assign every node to a device of a cluster."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from commands import messages
from commands.options import Allow, As, In, Out, Tags, command_app

app = command_app()
#: the largest size of a dimension
MOST_EXAMPLES = (1 << 63) - 1


@app.command()
def place(
    source: In = "-",
    cluster: Annotated[
        str,
        typer.Option(
            metavar="CLUSTER.yaml",
            help="The jobs, tasks and devices there are, and how fast (see: graphmill help clusters).",
        ),
    ] = "",
    strategy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For nodes that may go anywhere: default, single, round-robin, greedy (simulate the run), stages, or "
            "a plugin's (see: graphmill help placement).",
        ),
    ] = None,
    stages: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="A pipeline over N devices, balanced by time and memory.")
    ] = None,
    rules: Annotated[
        str | None, typer.Option(metavar="RULES.yaml", help="Which nodes go where: PATTERN: DEVICE, the first wins.")
    ] = None,
    variables: Annotated[
        str, typer.Option(metavar="SPEC", help="Where variables go that name no job, such as /job:ps.")
    ] = "",
    balance: Annotated[
        str, typer.Option(metavar="WHAT", help="How --variables spreads them: 'round-robin' or by 'bytes'.")
    ] = "round-robin",
    costs: Annotated[
        str | None, typer.Option(metavar="FILE", help="Measured times: of run --measure, or a trace of run --trace.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_EXAMPLES, metavar="N", help="What an unknown batch size counts as (default 32)."),
    ] = None,
    soft: Annotated[
        bool, typer.Option("--soft-placement", help="Take another device where the one asked for cannot be had.")
    ] = False,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.json",
            help="Write each node's device and why, and the simulated step, which visualize draws as a timeline.",
        ),
    ] = None,
    tags: Tags = None,
    out: Out = "-",
    as_kind: As = None,
    allow: Allow = None,
) -> None:
    """Assign every node to a device of a cluster.

    Device names, colocation, references, resources and missing kernels bind nodes; the strategy decides the rest
    (see: graphmill help placement). Memory that the cluster file bounds is never exceeded.
    """
    from commands import models
    from toolkit.errors import UsageError, about_option
    from toolkit.formats.settings.cluster import read_cluster
    from toolkit.formats.settings.cost_file import read_cost_file
    from toolkit.passes.base import run_pass
    from toolkit.passes.placement.costs import BATCH
    from toolkit.passes.placement.devices import DeviceSet
    from toolkit.passes.placement.place import Place

    if not cluster:
        raise UsageError("say what devices there are with --cluster CLUSTER.yaml")
    if report == "-" and out == "-":
        raise UsageError("--report and the graph would both go to standard output; give -o FILE")
    if stages is not None and strategy not in (None, "stages"):
        raise UsageError(f"--stages is a strategy of its own, and --strategy says '{strategy}'")
    if not variables and balance != "round-robin":
        raise UsageError(f"--balance {balance} is without effect here: say where variables go with --variables /job:ps")
    described = read_cluster(cluster)
    devices = DeviceSet(described.devices, described.default)
    placing = Place(
        devices,
        soft,
        "stages" if stages is not None else strategy or "default",
        variables=variables,
        balance=balance,
        rules=() if rules is None else _rules(rules, devices),
        speeds=described.speeds,
        measured=None if costs is None else read_cost_file(costs),
        batch=batch or BATCH,
        stages=stages or 0,
        timeline=report is not None,
        details=report is not None,
    )
    with about_option("--strategy"):
        placing.check()
    if variables:
        with about_option("--balance" if balance != "round-robin" else "--variables"):
            placing.tasks_of_variables()
    model = models.read("place", source, tags)
    with models.about(source):
        result = run_pass(placing, model.graph, keep=False)
    if report:
        from toolkit.formats.io import write_output

        write_output(report, json.dumps(result.report, indent=1) + "\n")
    models.write("place", model.with_graph(result.graph), out, as_kind, allow)
    _say(result.report, placing.rules)


def _rules(file: str, devices: Any) -> Any:
    from toolkit.errors import UsageError
    from toolkit.formats.settings.placement_rules import PlacementRule, read_rules

    def fits(rule: PlacementRule) -> None:
        if not rule.device.startswith("@") and not devices.matching(rule.spec):
            raise UsageError(f"no device fits '{rule.device}'; the cluster has {devices.listed()}")

    return read_rules(file, fits)


def _say(facts: dict[str, Any], rules: Any) -> None:
    from toolkit.formats.inspection.report import bytes_text, plural

    for rule in rules:
        if not facts["rules"][rule.pattern]:
            messages.say("place", f"warning: {rule.where}: no node is decided by the rule '{rule.pattern}'")
    for device, count in facts["devices"].items():
        if count:
            messages.say("place", f"{plural(count, 'node')} on {device}")
    simulated = facts.get("simulated")
    if simulated is not None:
        sent = len(simulated["transfers"])
        messages.say("place", f"simulated step {_ms(simulated['seconds'])}, {plural(sent, 'transfer')}")
        for device, row in simulated["devices"].items():
            messages.say("place", f"{device}: busy {row['load']:.0%}, peak memory {bytes_text(row['peak_bytes'])}")
    if "simulated_seconds" in facts:
        tried = ", ".join(f"{name} {_ms(seconds)}" for name, seconds in facts["simulated_seconds"].items())
        messages.say("place", f"took '{facts['chosen']}' of: {tried}")
    for number, stage in enumerate(facts.get("stages") or (), 1):
        messages.detail("place", f"stage {number}: {_ms(stage['seconds'])}, {stage['bytes_in']:,} bytes in")
    if facts.get("measured"):
        row = facts["measured"]
        messages.say(
            "place",
            f"the measured step took {_ms(row['step_seconds'])}, its simulation {_ms(row['estimated_seconds'])} "
            f"({row['ratio']:.2f} times that)",
        )


def _ms(seconds: float | None) -> str:
    return "does not fit" if seconds is None else f"{seconds * 1e3:.3g} ms"
