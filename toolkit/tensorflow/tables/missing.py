"""Why names of TensorFlow are not here: `toolkit/tensorflow/missing.txt`, a row for each name or family.

A row is a dotted name, or a prefix that ends in ".*", a tab, and the reason.
"""

from __future__ import annotations

import functools
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "missing.txt"


@functools.cache
def rows() -> dict[str, str]:
    """Name or prefix to the reason."""
    found: dict[str, str] = {}
    for line in FILE.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition("\t")
            found[name] = reason.strip()
    return found


def row_of(name: str) -> str | None:
    """The row that a name falls under."""
    if name in rows():
        return name
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length]) + ".*"
        if prefix in rows():
            return prefix
    return None


def reason(name: str) -> str:
    """Why a name is not here; "" where no row says."""
    row = row_of(name)
    return "" if row is None else rows()[row]
