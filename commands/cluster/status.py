"""`graphmill cluster status`: which tasks answer, and what they do."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commands import messages
from commands.options import Json, command_app, print_json

app = command_app()


@app.command()
def status(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER.yaml", help="The cluster file.")],
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How long to wait for an answer of each task.")
    ] = 5.0,
    json: Json = False,
) -> None:
    """Ask every task of a cluster for its incarnation, its open sessions and their steps, running steps and memory.

    Sessions are those that have the task as their master; in brackets, those that it works for. Servers of TensorFlow
    tell their devices and incarnations alone. Exit 1 when a task does not answer.
    """
    from toolkit.cluster.status import ask_all
    from toolkit.formats.settings.cluster import read_cluster

    rows = ask_all(read_cluster(cluster), timeout)
    if json:
        print_json(rows)
    else:
        messages.show(*(_line(row) for row in rows))
    if any("error" in row for row in rows):
        raise typer.Exit(1)


def _line(row: dict[str, Any]) -> str:
    where = f"{row['task']}  {row['address']}"
    if "error" in row:
        return f"{where}  does not answer: {row['error']}"
    told = [where, f"incarnation {row['incarnation']}", f"devices {len(row['devices'])}"]
    if "sessions" in row:
        steps = sum(int(each["steps"]) for each in row["sessions"])
        running = int(row["steps_running"])
        told += [
            f"sessions {len(row['sessions'])} (worker {int(row['worker_sessions'])})",
            f"steps {steps}, running {running}",
            f"memory {int(row['memory_bytes']) >> 20} MiB",
            f"up {row['uptime_seconds']:.0f} s",
        ]
    return "  ".join(told)
