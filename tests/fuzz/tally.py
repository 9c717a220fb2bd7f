"""What a long run has done, kept line by line: runs that are interrupted go on, and their lines add up.

A line of a tally is one block of cases, all of them run: its kinds, seed and first number, the revision of the code,
cases by kind, command lines by command and exit code, findings by class. A run skips the blocks that are there.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: cases of a block: what is lost when a run is interrupted
BLOCK = 240


@dataclass
class Block:
    """A line of a tally.

    Attributes:
        kind, seed, start, count: which cases.
        revision: of the code that they were run with.
        seconds: how long it took.
        cases: how many of each kind ("graphs"), and of these "in every executor"; a number may have no case.
        codes: command lines by "command exit-code".
        classes: cases with a finding of each class, and in `again` the classes that were found again in a new child.
    """

    kind: str
    seed: int
    start: int
    count: int
    revision: str = ""
    seconds: float = 0.0
    cases: dict[str, int] = field(default_factory=dict[str, int])
    codes: dict[str, int] = field(default_factory=dict[str, int])
    classes: dict[str, int] = field(default_factory=dict[str, int])
    again: list[str] = field(default_factory=list[str])


class Tally:
    """The file that a run keeps.

    Args:
        path: JSON lines, made where there is none; None keeps nothing.
    """

    def __init__(self, path: Path | None):
        self._path = path
        if path is not None and path.exists():  # a last line may not have been finished
            os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        self._done = {_which(block) for block in (read([path]) if path is not None and path.exists() else ())}
        self._revision = _revision() if path is not None else ""

    def left(self, kind: str, seed: int, start: int, count: int) -> Iterator[Block]:
        """The blocks of a run that are not there yet; all of it at once where nothing is kept."""
        size = count if self._path is None else BLOCK
        for first in range(start, start + count, max(1, size)):
            block = Block(kind, seed, first, min(size, start + count - first), self._revision)
            if _which(block) not in self._done:
                yield block

    def add(self, block: Block) -> None:
        """Keep a block that was run."""
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(asdict(block)) + "\n")


def read(paths: Iterable[Path]) -> Iterator[Block]:
    """The blocks of tallies; a last line that is being written is no block."""
    for path in paths:
        for line in path.read_text().split("\n")[:-1]:
            yield Block(**json.loads(line))


def summary(blocks: Iterable[Block]) -> str:
    """What blocks add up to, each set of cases counted once."""
    total: dict[str, Counter[str]] = {
        "cases": Counter(),
        "codes": Counter(),
        "classes": Counter(),
        "revisions": Counter(),
    }
    seconds, seen, again = 0.0, set[Any](), set[str]()
    for block in blocks:
        if _which(block) in seen:
            continue
        seen.add(_which(block))
        seconds += block.seconds
        again.update(block.again)
        for name, counts in (("cases", block.cases), ("codes", block.codes), ("classes", block.classes)):
            total[name].update(counts)
        total["revisions"][f"{block.revision or '?'} {block.kind} seed {block.seed}"] += block.count
    rows: list[str] = [f"{len(seen)} blocks, {total['codes'].total()} command lines, {seconds / 3600:.1f} hours"]
    rows += _table("cases", total["cases"])
    rows += _table("cases by revision, kinds and seed", total["revisions"])
    rows += _table("command lines by exit code", total["codes"])
    classes = {key if key in again else f"{key} (not seen again)": n for key, n in total["classes"].items()}
    return "\n".join(rows + _table(f"{len(classes)} classes of findings", classes))


def _table(title: str, counts: Mapping[str, int]) -> list[str]:
    return [title, *(f"  {times:9}  {name}" for name, times in sorted(counts.items()))]


def _which(block: Block) -> tuple[str, int, int, int]:
    return block.kind, block.seed, block.start, block.count


def _revision() -> str:
    """The commit of this checkout, "" outside of one."""
    line = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(line, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip()
