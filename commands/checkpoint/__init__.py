"""`graphmill checkpoint`: a command for everything people do with checkpoints; one module each."""

from __future__ import annotations

from commands.groups import lazy_group
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


app = command_app(cls=lazy_group(COMMANDS, "checkpoint ", knows_ops=False))


@app.callback()
def checkpoint() -> None:
    """Inspect, verify, compare and convert checkpoints.

    PREFIX is a checkpoint's prefix ("model/ckpt-7"), one of its files (.index, .data-...), or a folder, which stands
    for its latest checkpoint. Commands that read tensors also take .npz and .safetensors files. All of them may be
    URLs (s3://bucket/model/ckpt-7) where fsspec and its package for the store are installed.

    Exit codes: 0 fine, 1 findings (verify, diff, restore-check; inspect: a data file is missing), 2 bad input or
    usage, 3 failed on the way (a full disk, a failing device or store).
    """
