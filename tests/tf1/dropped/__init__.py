"""Calls of functions and classes that TensorFlow 1.15 had and later releases do not, a file for each family.

A file's `CALLS` maps a canonical name (without "tf.") to expressions, as in tests/tf1/calls. The nodes that 1.15 makes
for them are recorded beside it, in FAMILY.json.xz, by `python -m tests.tf1.record PYTHON`, for no interpreter that this
project runs under has that release. `DIFFERING` maps an expression whose nodes here are others to the reason.

What has its algorithm from 1.15 and nodes of its own has `VALUES` in place of `CALLS`: lines of code that leave tensors
or values in `result`. What comes out, and the names of the variables, are recorded and compared.
`BITS` says to how few bits something rounds.
"""

from __future__ import annotations

import functools
import importlib
import json
import lzma
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
FAMILIES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def calls(family: str) -> dict[str, list[str]]:
    """Canonical name to expressions."""
    return getattr(importlib.import_module(f"{__name__}.{family}"), "CALLS", {})


def values(family: str) -> dict[str, list[str]]:
    """Canonical name to lines of code."""
    return getattr(importlib.import_module(f"{__name__}.{family}"), "VALUES", {})


def differing(family: str) -> dict[str, str]:
    """An expression whose nodes differ, to the reason."""
    return getattr(importlib.import_module(f"{__name__}.{family}"), "DIFFERING", {})


def rounded_to(family: str, name: str) -> int | None:
    """To how few bits what has the name rounds tensors; None where it rounds none."""
    return getattr(importlib.import_module(f"{__name__}.{family}"), "BITS", {}).get(name)


def recorded_file(family: str) -> Path:
    return FOLDER / f"{family}.json.xz"


@functools.cache
def recorded(family: str) -> dict[str, Any]:
    """An expression to the nodes of TensorFlow 1.15, a line for each (`node_oracle.described`), or to its values."""
    file = recorded_file(family)
    return json.loads(lzma.decompress(file.read_bytes())) if file.exists() else {}
