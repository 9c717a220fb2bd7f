"""graphmill worker: serve one task of a cluster."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from commands import messages
from commands.ending import Ended
from commands.options import command_app

app = command_app()


@app.command()
def worker(
    cluster: Annotated[
        str, typer.Option(metavar="CLUSTER.yaml", help="The jobs, tasks and addresses (see: graphmill help clusters).")
    ],
    job: Annotated[str, typer.Option(metavar="NAME", help="Whose task this is.")] = "worker",
    task: Annotated[int, typer.Option(min=0, metavar="N", help="Its number.")] = 0,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Listen there; by default at loopback where the cluster's address of the task is, else anywhere.",
        ),
    ] = "",
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="read=DIR",
            help="What graphs of clients may touch: read=DIR, write=DIR, network, ... (see: graphmill help trust). "
            "Repeatable.",
        ),
    ] = None,
    limit: Annotated[
        str,
        typer.Option(
            metavar="message=64M,...",
            help="What is taken at most: memory and tensor (of all steps), message, graph, sessions.",
        ),
    ] = "",
    compress_transfers: Annotated[
        str,
        typer.Option(metavar="TYPE", help="Have float32 tensors of our other tasks come in 16 bits: bfloat16 or half."),
    ] = "",
    channels: Annotated[
        int,
        typer.Option(metavar="N", help="gRPC connections to each other task, for large tensors over TLS."),
    ] = 1,
    lost_after: Annotated[
        float,
        typer.Option(
            min=1, metavar="SECONDS", help="End steps at a task that has not answered for so long (cut off, stopped)."
        ),
    ] = 30.0,
    drain: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long steps may go on after SIGTERM or Ctrl-C.")
    ] = 30.0,
    idle: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Close sessions that nobody uses for so long; 0: never.")
    ] = 86_400.0,
) -> None:
    """Serve one task of a cluster: a master and a worker on TensorFlow's wire (gRPC), for its clients and ours.

    One line says when it is ready. On SIGTERM new steps are refused and running ones end. At loopback anybody of this
    machine may use it; elsewhere it asks for GRAPHMILL_CLUSTER_TOKEN, or for TLS: GRAPHMILL_CLUSTER_KEY,
    GRAPHMILL_CLUSTER_CERT and, for the certificates of the others, GRAPHMILL_CLUSTER_CA.

    graphmill worker --cluster cluster.yaml --job ps --task 0 --allow write=checkpoints
    """
    from schemas import config_pb2
    from toolkit.cluster.limits import ServerLimits
    from toolkit.cluster.master.health import INTERVAL, Heartbeats
    from toolkit.cluster.rpc.channels import ChannelSettings
    from toolkit.cluster.server import ClusterServer, cluster_def, server_def
    from toolkit.cluster.worker.transfers import check_compression
    from toolkit.errors import UsageError, about_option
    from toolkit.formats.settings.cluster import read_cluster
    from toolkit.policy.rules import Policy

    read = read_cluster(cluster)
    with about_option("--allow"):
        policy = Policy().allowing(*(allow or ()))
    with about_option("--limit"):
        limits = ServerLimits.parse(limit) if limit else None
    with about_option("--compress-transfers"):
        check_compression(compress_transfers)
    with about_option("--channels"):
        ChannelSettings(channels)
    counts = {(each.job, each.index): each.devices for each in read.tasks}
    if (job, task) not in counts:
        known = ", ".join(f"{name}/{number}" for name, number in counts)
        with about_option("--task" if any(job == name for name, _ in counts) else "--job"):
            raise UsageError(f"the cluster has no task {job}/{task}; it has {known}")
    config = config_pb2.ConfigProto(rpc_options={"num_channels_per_target": channels})
    definition = server_def(cluster_def(read), job, task, config)
    with about_option("--host") if host else nullcontext():
        server = ClusterServer(
            definition, policy=policy, host=host, counts=counts[job, task], idle=idle, limits=limits,
            compress_transfers=compress_transfers, heartbeats=Heartbeats(min(INTERVAL, lost_after / 2), lost_after),
        )  # fmt: skip
        server.start()
    messages.show_now(f"ready: {server.name} at {server.target}")
    try:
        server.join()
    except (Ended, KeyboardInterrupt):
        if not server.drain(drain):
            messages.say("worker", f"steps that had not ended after {drain:g} seconds were cancelled")
