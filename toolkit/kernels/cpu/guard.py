"""`GRAPHMILL_GUARD=on`: red zones around every buffer that compiled code is given, looked at after every call.

A zone is bytes before and behind a buffer that nobody may write. They hold a pattern that reads as NaN, and so does a
fresh buffer: what is read without ever having been written shows in results. Off, nothing is allocated or checked.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.errors import InternalError
from toolkit.kernels.types import Array

VARIABLE = "GRAPHMILL_GUARD"
ZONE = 256  # bytes on either side: several vectors, and a row of most tensors in tests
POISON = 0xFF  # four of them are NaN as float32, eight as float64, two as bfloat16
_ALIGNMENT = 64


class Piece(NamedTuple):
    """A part of a buffer that holds one thing.

    Attributes:
        start, stop: bytes from the buffer's own start.
        name: what it holds.
    """

    start: int
    stop: int
    name: str


class _Watched(NamedTuple):
    """Memory with zones in it.

    Attributes:
        raw: a weak reference to all of it.
        zones: where the bytes of all zones are in it.
        pieces: what is between them, from the start of `raw`.
    """

    raw: Any
    zones: Array
    pieces: Sequence[Piece]


_watched: dict[int, _Watched] = {}


def is_on() -> bool:
    """Whether buffers have zones."""
    return os.environ.get(VARIABLE, "") == "on"


def zoned(size: int, name: str, pieces: Iterable[Piece] | None = None) -> Array:
    """A buffer of so many bytes between zones, which are looked at as long as somebody has it.

    Args:
        pieces: what it holds, where there are gaps between them; those are zones as well.
    """
    raw = np.full(size + 2 * ZONE + _ALIGNMENT, POISON, np.uint8)
    start = ZONE + -(raw.__array_interface__["data"][0] + ZONE) % _ALIGNMENT
    held = [Piece(0, size, name)] if pieces is None else pieces
    moved = [Piece(piece.start + start, piece.stop + start, piece.name) for piece in held]
    free = np.ones(len(raw), bool)
    for piece in moved:
        free[piece.start : piece.stop] = False
    key = id(raw)
    _watched[key] = _Watched(weakref.ref(raw, lambda _: _watched.pop(key, None)), np.flatnonzero(free), moved)
    return raw[start : start + size]


def empty(shape: Sequence[int], dtype: Any, name: str) -> Array:
    """An array of poison between zones."""
    count = int(np.prod(shape, dtype=np.int64))
    return zoned(count * dtype.itemsize, name).view(dtype).reshape(shape)


def check(node: str) -> None:
    """Look at all zones.

    Raises:
        InternalError: somebody wrote into one; names the node that ran last, and the buffer beside it.
    """
    for watched in list(_watched.values()):
        raw = watched.raw()
        if raw is None:
            continue
        damaged = watched.zones[raw[watched.zones] != POISON]
        if damaged.size:
            first = int(damaged[0])
            piece = min(watched.pieces, key=lambda piece: max(piece.start - first, first - piece.stop + 1))
            raw[damaged] = POISON  # one damage is reported once
            raise InternalError(
                f"node '{node}': {damaged.size} bytes outside {piece.name} were written, the first "
                f"{first - piece.start} bytes from its start; it has {piece.stop - piece.start}"
            )
