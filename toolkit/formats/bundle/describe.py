"""What reports show of tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from toolkit.formats.bundle.entry import Entry
from toolkit.formats.bundle.source import Array


def describe(entry: Entry) -> dict[str, Any]:
    """An entry for a JSON report."""
    report: dict[str, Any] = {
        "dtype": entry.dtype.name,
        "shape": list(entry.dims),
        "bytes": entry.bytes,
        "shard": entry.shard,
        "offset": entry.offset,
        "crc32c": f"{entry.crc:08x}",
    }
    if entry.slices:
        report["slices"] = [str(part) for part in entry.slices]
    return report


def json_values(array: Array) -> Any:
    """The elements of an array as JSON has them; NaN and infinity as strings, complex numbers as pairs."""

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, bytes):
            return value.decode("utf-8", "backslashreplace")
        if isinstance(value, complex):
            return [plain(value.real), plain(value.imag)]
        if isinstance(value, bool | int):
            return value
        number = float(value)
        return number if math.isfinite(number) else str(number)

    return plain(array.tolist())


def format_values(array: Array, full: bool = False) -> str:
    """The elements of an array as numpy prints them; shortened unless `full`."""
    import numpy as np

    shown = array
    if array.dtype.kind == "V":  # types of ml_dtypes
        shown = array.astype(np.float32)
    with np.printoptions(threshold=array.size + 1 if full else 1000, linewidth=120):
        return str(shown)


def by_scope(entries: Iterable[Entry], depth: int = 0) -> dict[str, tuple[int, int, int]]:
    """Tensors, elements and bytes of every scope, in name order; "" is everything.

    Args:
        depth: how many levels to go down; 0 is all. Tensors themselves are no scopes.
    """
    found: dict[str, tuple[int, int, int]] = {"": (0, 0, 0)}
    for entry in entries:
        # In object-based checkpoints the object is what has a scope, not its value.
        parts = entry.name.split("/.ATTRIBUTES/")[0].split("/")[:-1]
        levels = len(parts) if depth == 0 else min(depth, len(parts))
        for level in range(levels + 1):
            scope = "/".join(parts[:level])
            tensors, elements, nbytes = found.get(scope, (0, 0, 0))
            found[scope] = (tensors + 1, elements + entry.count, nbytes + entry.bytes)
    return dict(sorted(found.items(), key=lambda item: item[0].split("/") if item[0] else []))
