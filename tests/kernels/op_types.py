"""The types that an op takes, for the tables of the op suite."""

from __future__ import annotations

from toolkit.graph import opdefs


def taken(op: str, among: tuple[str, ...], attr: str = "T") -> tuple[str, ...]:
    """Those of `among` that the OpDef allows for a type attribute."""
    allowed = {dtype.name for dtype in opdefs.get(op).attrs[attr].allowed or ()}
    return tuple(name for name in among if name in allowed)
