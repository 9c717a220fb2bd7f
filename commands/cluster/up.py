"""`graphmill cluster up`: all tasks of a cluster file that are this machine's, in processes of their own."""

from __future__ import annotations

from typing import Annotated

import typer

from commands import messages
from commands.ending import Ended
from commands.options import command_app, load_plugins

app = command_app()


@app.command()
def up(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER.yaml", help="The cluster file.")],
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="read=DIR", help="What graphs of clients may touch at all tasks; see graphmill worker."),
    ] = None,
    plugin: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE.py", help="Custom ops of all tasks; see graphmill worker. Repeatable."),
    ] = None,
    limit: Annotated[
        str, typer.Option(metavar="message=64M,...", help="What each task takes at most; see graphmill worker.")
    ] = "",
    compress_transfers: Annotated[
        str, typer.Option(metavar="TYPE", help="Transfers in 16 bits: bfloat16 or half; see graphmill worker.")
    ] = "",
    channels: Annotated[
        int, typer.Option(metavar="N", help="gRPC connections to each other task; see graphmill worker.")
    ] = 1,
    drain: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long steps may go on after SIGTERM or Ctrl-C.")
    ] = 30.0,
) -> None:
    """Start every task of a cluster whose address is this machine's own, and stop all of them together.

    What a task prints has its name in front. When one ends by itself, the others are stopped, and the exit code is 3.
    """
    from toolkit.cluster.limits import ServerLimits
    from toolkit.cluster.processes import LocalTasks
    from toolkit.cluster.rpc.channels import ChannelSettings
    from toolkit.cluster.worker.transfers import check_compression
    from toolkit.errors import about_option
    from toolkit.formats.settings.cluster import read_cluster
    from toolkit.policy.rules import Policy

    with about_option("--plugin"):
        load_plugins(plugin or ())
    with about_option("--allow"):
        Policy().allowing(*(allow or ()))
    with about_option("--limit"):
        if limit:
            ServerLimits.parse(limit)
    with about_option("--compress-transfers"):
        check_compression(compress_transfers)
    with about_option("--channels"):
        ChannelSettings(channels)
    options = [part for each in allow or () for part in ("--allow", each)]
    options += [part for each in plugin or () for part in ("--plugin", each)]
    options += ["--limit", limit] if limit else []
    options += ["--compress-transfers", compress_transfers] if compress_transfers else []
    options += ["--channels", str(channels)] if channels > 1 else []
    tasks = LocalTasks(read_cluster(cluster), cluster, [*options, "--drain", f"{drain:g}"], messages.show_now)
    failed: str | None = None
    try:
        tasks.start()
        failed = tasks.wait()
    except (Ended, KeyboardInterrupt):
        pass
    finally:
        tasks.stop(drain)
    if failed is not None:
        from toolkit.errors import UnavailableError

        raise UnavailableError(f"{failed}; the other tasks were stopped")
