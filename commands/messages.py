"""What commands say on standard error beside their results: how much, and progress.

Errors are printed by `commands/main.py` at every level.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from toolkit.printable import printable, text_of

QUIET, NORMAL, VERBOSE = 0, 1, 2
#: seconds before progress is shown
_PATIENCE = 1.0
_INTERVAL = 0.1
_BAR_WIDTH = 30
#: characters of an error
_LONGEST = 2000

#: a quoted name that nobody reads to its end, and how much of both of its ends is shown
_SHOWN = 100
_NAME = re.compile(rf"'([^']{{{3 * _SHOWN},}})'")

_level = NORMAL

#: the command line that is being run
arguments: list[str] = []
#: what the kernel enforces of `run --sandbox` in this process; None outside of a sandbox
confined: list[str] | None = None


def set_level(level: int) -> None:
    """Set how much is said: QUIET, NORMAL or VERBOSE."""
    global _level
    _level = level


def level() -> int:
    """How much is said."""
    return _level


def show(*lines: str) -> None:
    """Results for people, on standard output; every argument is one line, whatever is in it."""
    sys.stdout.write(text_of(lines))


def show_now(line: str) -> None:
    """One line of results, on its way at once: of a command that goes on. May be called from several threads."""
    sys.stdout.write(text_of([line]))
    sys.stdout.flush()


def show_path(path: str) -> None:
    """The path of a file, on standard output; exactly as it is where a program reads it."""
    if sys.stdout.isatty():
        show(path)
    else:
        from toolkit.formats.io import STDIO, write_output

        write_output(STDIO, os.fsencode(path) + b"\n", binary=False)


def tell(line: str) -> None:
    """One line on standard error, at every level; names of hundreds of characters are shortened."""
    print(printable(_NAME.sub(_shorter, line)), file=sys.stderr, flush=True)


def _shorter(name: re.Match[str]) -> str:
    text = name[1]
    return f"'{text[:_SHOWN]}...({len(text) - 2 * _SHOWN:,} characters)...{text[-_SHOWN:]}'"


def shortened(message: str) -> str:
    """A message whose middle is left out where a name of thousands of characters would hide what it says."""
    if len(message) <= _LONGEST:
        return message
    end = _LONGEST // 4
    return f"{message[: _LONGEST - end]} ... ({len(message) - _LONGEST:,} characters) ... {message[-end:]}"


def say(command: str, text: str) -> None:
    """One line about what a command did, unless --quiet."""
    if _level >= NORMAL:
        tell(f"graphmill: {command}: {text}")


def detail(command: str, text: str) -> None:
    """One line that only --verbose prints."""
    if _level >= VERBOSE:
        tell(f"graphmill: {command}: {text}")


@contextmanager
def step(command: str, what: str) -> Generator[None]:
    """With --verbose, say how long the block took."""
    started = time.monotonic()
    yield
    detail(command, f"{what} in {time.monotonic() - started:.2f} s")


class Progress:
    """A bar on standard error for what takes longer than a second; nothing with --quiet or where that is no terminal.

    Args:
        what: the title.
        amount: how done and total are written where they are amounts, such as bytes, whose speed is then shown too;
            None where they only count.
    """

    def __init__(self, what: str, amount: Callable[[int], str] | None = None):
        self._what = what
        self._amount = amount
        self._started = time.monotonic()
        self._shown = 0.0
        self._is_on = _level >= NORMAL and sys.stderr.isatty()

    def __call__(self, done: int, total: int, text: str = "") -> None:
        """Show how far it is, and what is being done now; from any thread, one at a time."""
        now = time.monotonic()
        if not self._is_on or now - self._started < _PATIENCE or now - self._shown < _INTERVAL:
            return
        self._shown = now
        share = done / total if total else 1.0
        bar = ("=" * int(share * _BAR_WIDTH)).ljust(_BAR_WIDTH)
        if self._amount is not None:
            elapsed = now - self._started
            speed = f", {self._amount(int(done / elapsed))}/s" if elapsed > 0 else ""
            text = f"{self._amount(done)} of {self._amount(total)}{speed} {text}".rstrip()
        # a line that wraps could not be wiped
        line = printable(f"{self._what} [{bar}] {share:4.0%} {text}")[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write(f"\r{line}\033[K")
        sys.stderr.flush()

    def close(self) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
