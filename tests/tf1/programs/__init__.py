"""Complete programs in the style of 2016 to 2019, and what TensorFlow made of them.

A program prints numbers, at least twenty, one in a line. `python -m tests.tf1.record PYTHON --programs [NAME...]` keeps
what TensorFlow 2.21 prints, or 1.15 where that lacks something, and the graph, in recorded.json.xz.
"""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
from pathlib import Path
from typing import TypedDict

FOLDER = Path(__file__).resolve().parent
RECORDED = FOLDER / "recorded.json.xz"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


class Record(TypedDict):
    """What TensorFlow made of a program: its source (SHA-256), the release, the numbers it printed, its graph's nodes."""

    source: str
    release: str
    printed: list[str]
    graph: list[str]


def path(name: str) -> Path:
    return FOLDER / f"{name}.py"


def source_hash(name: str) -> str:
    return hashlib.sha256(path(name).read_bytes()).hexdigest()


@functools.cache
def recorded() -> dict[str, Record]:
    return json.loads(lzma.decompress(RECORDED.read_bytes())) if RECORDED.exists() else {}


def write(records: dict[str, Record]) -> None:
    text = json.dumps(records, indent=0, sort_keys=True)
    RECORDED.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    recorded.cache_clear()
