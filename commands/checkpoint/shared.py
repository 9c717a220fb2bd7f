"""Options and printing that the checkpoint commands share."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from commands import messages
from commands.checkpoint.complete import complete_prefix, complete_tensor

Prefix = Annotated[
    str,
    typer.Argument(metavar="PREFIX", help="Checkpoint: prefix, file or folder.", autocompletion=complete_prefix),
]
NewPrefix = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        metavar="NEW",
        help="What to write: a checkpoint's prefix, or a file ending in .npz or .safetensors.",
        autocompletion=complete_prefix,
    ),
]
PlannedPrefix = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="NEW",
        help="What to write: a checkpoint's prefix, or a file ending in .npz or .safetensors. Not with --dry-run.",
        autocompletion=complete_prefix,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="PATTERN",
        help="Only tensors whose name matches: a glob ('dense/*') or 're:EXPRESSION'. Repeatable.",
        autocompletion=complete_tensor,
    ),
]


def planned(output: str | None, dry_run: bool) -> str:
    """The name to write, which only a dry run may lack.

    Raises:
        UsageError: it is missing.
    """
    if output is None and not dry_run:
        from toolkit.errors import UsageError

        raise UsageError("say what to write: -o NEW (or --dry-run, to see what would happen)")
    return output or ""


def table(rows: Sequence[Sequence[str]], head: Sequence[str], right: Sequence[int] = ()) -> list[str]:
    """Rows as aligned columns, one line each.

    Args:
        head: titles of the columns.
        right: columns that are aligned to the right, as numbers are.
    """
    from toolkit.formats.inspection import report

    return report.table([head, *rows], right)


def size(count: int) -> str:
    """A number of bytes for people: "17.2 MB"."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def plural(count: int, what: str) -> str:
    """ "1 tensor", "2 tensors"."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def bytes_done(what: str) -> messages.Progress:
    """A bar that shows bytes and their speed."""
    return messages.Progress(what, size)


@contextmanager
def writing() -> Generator[None]:
    """Show a bar for what is written within the block, if it takes long."""
    with reporting("writing"):
        yield


@contextmanager
def reporting(what: str) -> Generator[None]:
    """Show a bar for what is done within the block, if it takes long.

    Args:
        what: the bar's title.
    """
    from toolkit.formats.bundle.progress import report_to

    with messages.step("checkpoint", what), bytes_done(what) as progress, report_to(progress):
        yield
