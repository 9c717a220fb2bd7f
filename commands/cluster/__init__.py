"""`graphmill cluster`: the tasks of a cluster file, all together; one module each."""

from __future__ import annotations

from commands.groups import lazy_group
from commands.options import command_app

#: command to (module, one line of help); `--help` prints this without importing any of them.
COMMANDS: dict[str, tuple[str, str]] = {
    "up": ("commands.cluster.up", "Start all tasks of a file that are this machine's, and stop them together."),
    "status": ("commands.cluster.status", "Say which tasks answer: incarnations, sessions, steps, memory."),
}


app = command_app(cls=lazy_group(COMMANDS, "cluster ", knows_ops=False))


@app.callback()
def cluster() -> None:
    """Start and watch the tasks of a cluster file (see: graphmill help clusters)."""
