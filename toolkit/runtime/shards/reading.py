"""The arrays that one of many files gives to a feed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolkit.formats.arrays import given


def read_source(name: str, source: str) -> Any:
    """The array of a source (`formats.arrays.read_array`); of an archive with several the one called `name` is meant.

    Raises:
        GraphmillError: it cannot be read.
    """
    path, key = given.split_key(source)
    if key is None and path.lower().endswith(".npz") and Path(path).is_file():
        keys = given.npz_keys(path)
        if len(keys) > 1 and name in keys:
            source = f"{path}:{name}"
    return given.read_array(source)
