"""Comparing checkpoints tensor by tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from toolkit.formats.bundle.entry import Entry
from toolkit.formats.bundle.progress import Counter
from toolkit.formats.bundle.source import CHUNK, Array, TensorSource

ADDED, REMOVED, CHANGED, EQUAL = "added", "removed", "changed", "equal"


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """How a tensor differs between two files.

    Attributes:
        name: the tensor.
        status: ADDED (only in the second), REMOVED (only in the first), CHANGED or EQUAL (within the tolerance).
        old, new: what the files say of it; None where it is missing.
        count: elements that differ by more than the tolerance; 0 where type or shape differ.
        max_abs: the largest absolute difference, None where it makes no sense (types, shapes, strings, NaN or
            infinity against numbers).
        max_rel: the largest difference relative to the first file's value, likewise; infinite where that is 0.
    """

    name: str
    status: str
    old: Entry | None
    new: Entry | None
    count: int = 0
    max_abs: float | None = None
    max_rel: float | None = None


def compare(
    old: TensorSource,
    new: TensorSource,
    rtol: float = 0.0,
    atol: float = 0.0,
    wanted: Callable[[str], bool] | None = None,
) -> Iterator[TensorDifference]:
    """Every tensor of either file, in name order, with how it differs.

    Elements a (first file) and b are equal when |a - b| <= atol + rtol * |a|, or when both are NaN. Plain tensors
    are compared a piece at a time.

    Args:
        wanted: which names to look at; all by default.

    Raises:
        NotFoundError, DataLossError: a file is damaged.
    """
    names = [name for name in sorted({*old.entries, *new.entries}) if wanted is None or wanted(name)]
    count = Counter(sum(old.entries[name].bytes for name in names if name in old and name in new))
    for name in names:
        a, b = old.entries.get(name), new.entries.get(name)
        if a is None or b is None:
            yield TensorDifference(name, ADDED if a is None else REMOVED, a, b)
        elif a.dtype is not b.dtype or a.shape != b.shape:
            yield TensorDifference(name, CHANGED, a, b)
        else:
            yield _compare_values(old, new, a, b, rtol, atol, count)


def _compare_values(
    old: TensorSource, new: TensorSource, a: Entry, b: Entry, rtol: float, atol: float, counter: Counter
) -> TensorDifference:
    import numpy as np

    if a.dtype.kind in "sv":
        count = int(np.count_nonzero(old.read(a.name) != new.read(b.name)))
        return TensorDifference(a.name, CHANGED if count else EQUAL, a, b, count)
    count = 0
    largest: list[float] = [0.0, 0.0]
    comparable = True
    for old_bytes, new_bytes in zip_longest(old.chunks(a, CHUNK), new.chunks(b, CHUNK), fillvalue=b""):
        counter.add(len(old_bytes))
        if old_bytes == new_bytes:
            continue
        x, y = np.frombuffer(old_bytes, a.dtype.numpy), np.frombuffer(new_bytes, a.dtype.numpy)
        different, max_abs, max_rel, sensible = _differ(x, y, rtol, atol)
        count += different
        comparable = comparable and sensible
        largest = [max(largest[0], max_abs), max(largest[1], max_rel)]
    return TensorDifference(
        a.name, CHANGED if count else EQUAL, a, b, count,
        largest[0] if comparable else None, largest[1] if comparable else None,
    )  # fmt: skip


def _differ(x: Array, y: Array, rtol: float, atol: float) -> tuple[int, float, float, bool]:
    """How many elements differ, the largest absolute and relative difference, and whether those make sense."""
    import numpy as np

    if x.dtype.kind == "b":
        different = x != y
        return int(different.sum()), float(different.any()), float(different.any()), True
    wide: Any = np.complex128 if x.dtype.kind == "c" else np.float64
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        # Differences of 64-bit integers would round away in float64.
        delta = np.abs(x.astype(object) - y.astype(object)).astype(np.float64)
        base = np.abs(x.astype(np.float64))
    else:
        with np.errstate(all="ignore"):  # of what is infinite or NaN
            p, q = x.astype(wide), y.astype(wide)
            delta = np.abs(p - q)
            base = np.abs(p)
        delta[(p == q) | (np.isnan(p) & np.isnan(q))] = 0.0
    finite = np.isfinite(delta)
    with np.errstate(all="ignore"):
        bad = ~(delta <= atol + rtol * base)
        relative = np.where(delta > 0, delta / base, 0.0)
    max_abs = float(delta[finite].max(initial=0.0))
    max_rel = float(relative[finite].max(initial=0.0))
    return int(bad.sum()), max_abs, max_rel, bool(finite.all())
