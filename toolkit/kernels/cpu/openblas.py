"""How many threads NumPy's own matrix products use, where NumPy is built with OpenBLAS."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from toolkit.kernels.once import once

#: names of the two functions: of NumPy's wheels, with 64-bit and 32-bit integers, and of the system's library
_SUFFIXES = (("scipy_openblas", "64_"), ("scipy_openblas", ""), ("openblas", "64_"), ("openblas", ""))
_given: int | None = None


@once
def _functions() -> tuple[Any, int] | None:
    """The function that sets the number, and the number at first; None without the library."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf8").splitlines()
    except OSError:
        return None
    for path in sorted({line.split()[-1] for line in maps if "openblas" in line}):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for prefix, suffix in _SUFFIXES:
            set_, get = (getattr(library, f"{prefix}_{what}_num_threads{suffix}", None) for what in ("set", "get"))
            if set_ is not None and get is not None:
                return set_, int(get())
    return None


def threads() -> int:
    """How many it uses by default; 1 without the library."""
    found = _functions()
    return 1 if found is None else found[1]


def set_threads(count: int | None) -> None:
    """So many for the whole process, or as many as at first; never more than these."""
    global _given
    if count == _given:
        return
    found = _functions()
    _given = count
    if found is not None:
        set_, most = found
        set_(most if count is None else min(count, most))
