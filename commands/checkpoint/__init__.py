"""`graphmill checkpoint`: a command for everything people do with checkpoints; one module each."""

from __future__ import annotations

import importlib
from typing import Any

import typer
import typer.core
from typer.main import get_command

from commands.options import command_app

#: command to (module, one line of help); `--help` prints this without importing any of them.
COMMANDS: dict[str, tuple[str, str]] = {
    "inspect": ("commands.checkpoint.inspect", "List the tensors; statistics, values, sizes by scope, objects."),
    "verify": ("commands.checkpoint.verify", "Check every CRC and the structure; exit 1 on any finding."),
    "diff": ("commands.checkpoint.diff", "Compare two checkpoints; exit 1 if they differ."),
    "convert": ("commands.checkpoint.convert", "Copy to another format: .npz, .safetensors, V1 to V2, and back."),
    "prune": ("commands.checkpoint.prune", "Drop optimizer slots, counters, averages, what a graph does not need."),
    "rename": ("commands.checkpoint.rename", "Rename by patterns; name-based to object-based and back."),
    "cast": ("commands.checkpoint.cast", "Floating-point tensors in another type."),
    "average": ("commands.checkpoint.average", "Average checkpoints: equal, weighted, or exponentially."),
    "slice": ("commands.checkpoint.slice", "Parts of tensors; cut one into a partitioned variable."),
    "merge": ("commands.checkpoint.merge", "Join shares, shards and parts; write N data files."),
    "import": ("commands.checkpoint.import_", "Replace tensors by arrays."),
    "latest": ("commands.checkpoint.latest", "Print the prefix of a folder's latest checkpoint."),
    "list": ("commands.checkpoint.list", "List a folder's checkpoints."),
    "clean": ("commands.checkpoint.clean", "Delete old checkpoints by a Saver's policy; dry run first."),
    "relocate": ("commands.checkpoint.relocate", "Fix the paths in a state file that was copied from elsewhere."),
    "restore-check": ("commands.checkpoint.restore_check", "Would this checkpoint restore into this graph?"),
}


class _Subcommands(typer.core.TyperGroup):
    """Imports a subcommand when it is called, not before."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = get_command(importlib.import_module(entry[0]).app)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from toolkit.errors import did_you_mean

            ctx.fail(f"there is no command 'checkpoint {args[0]}'{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


app = command_app(cls=_Subcommands)


@app.callback()
def checkpoint() -> None:
    """Inspect, verify, compare and convert checkpoints.

    PREFIX is a checkpoint's prefix ("model/ckpt-7"), one of its files (.index, .data-...), or a folder, which stands
    for its latest checkpoint. Commands that read tensors also take .npz and .safetensors files.

    Exit codes: 0 fine, 1 findings (verify, diff, restore-check), 2 bad input or usage, 3 failed while running.
    """
