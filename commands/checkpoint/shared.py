"""Options, completion and printing that the checkpoint commands share."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

#: a progress bar appears when something takes longer than this, in seconds
_PATIENCE = 1.0
_BAR_WIDTH = 30


def complete_tensor(ctx: Any, incomplete: str) -> list[str]:
    """Names of the checkpoint on the command line that start with what has been typed."""
    from toolkit.errors import GraphmillError
    from toolkit.formats.bundle.locate import open_tensors

    for candidate in (ctx.params.get("prefix"), *_typed_words()):
        if not candidate:
            continue
        try:
            with open_tensors(candidate) as reader:
                return [name for name in reader if name.startswith(incomplete)]
        except GraphmillError:
            continue
    return []


def _typed_words() -> list[str]:
    """The words after "graphmill checkpoint COMMAND" that can be checkpoints.

    The parser gives up at an option that waits for its value, which is just when the value is to be completed, so
    the words come from where the shell has put them.
    """
    text = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [word for word in words[3:] if not word.startswith("-")]


def complete_prefix(incomplete: str) -> list[str]:
    """Prefixes of checkpoints, and folders, that start with what has been typed."""
    typed = Path(incomplete or ".")
    folder = typed if incomplete.endswith("/") or not incomplete else typed.parent
    try:
        names = sorted(folder.iterdir())
    except OSError:
        return []
    found = [f"{path}/" for path in names if path.is_dir()]
    found += [str(path) for path in names if path.suffix in (".npz", ".safetensors")]
    found += [str(path).removesuffix(".index") for path in names if path.suffix == ".index"]
    return [name for name in found if name.startswith(incomplete)]


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


def table(rows: Sequence[Sequence[str]], head: Sequence[str], right: Sequence[int] = ()) -> str:
    """Rows as aligned columns.

    Args:
        head: titles of the columns.
        right: columns that are aligned to the right, as numbers are.
    """
    lines = [list(head), *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    shown: list[str] = []
    for line in lines:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        shown.append("  ".join(cells).rstrip())
    return "\n".join(shown)


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


class Progress:
    """A bar on standard error for what takes longer than a second; nothing where that is no terminal.

    Args:
        what: the title.
    """

    def __init__(self, what: str):
        self._what = what
        self._started = time.monotonic()
        self._shown = 0.0
        self._is_terminal = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._is_terminal or now - self._started < _PATIENCE or now - self._shown < 0.1:
            return
        self._shown = now
        share = done / total if total else 1.0
        bar = ("=" * int(share * _BAR_WIDTH)).ljust(_BAR_WIDTH)
        sys.stderr.write(f"\r{self._what} [{bar}] {share:4.0%} {size(done)} of {size(total)}\033[K")
        sys.stderr.flush()

    def close(self) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@contextmanager
def writing() -> Generator[None]:
    """Show a bar for what is written within the block, if it takes long."""
    from toolkit.formats.bundle.transfer import report_to

    with Progress("writing") as progress, report_to(progress):
        yield
