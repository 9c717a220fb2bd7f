"""`GRAPHMILL_GUARD`: memory that compiled code and oneDNN are given is between zones, or ends at forbidden pages.

`on`: bytes before and behind a buffer that nobody may write, looked at after every call. They hold a pattern that reads
as NaN, and so does a fresh buffer: what is read without ever having been written shows in results.
`pages`: besides, each tensor ends at a page that may not be touched. Who reads or writes beyond it ends the process
there, and `faults` says which node that was and beside what. A tensor begins at a multiple of 64 bytes, an array of
NumPy's at one of 16; what that leaves before the page is a zone.

Buffers and arenas have zones from here, every other array, variables above all, from `zones`, if the process was
started like this. Without the variable nothing is allocated or checked.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import gc
import mmap
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.errors import InternalError, UsageError
from toolkit.kernels.cpu.memory import faults, zones
from toolkit.kernels.cpu.memory.zones import PAGE, PATTERN, POISON, ZONE
from toolkit.kernels.types import Array

VARIABLE = "GRAPHMILL_GUARD"
_OFF, _ON = ("", "off"), ("on", "pages")
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
        held: what they hold.
        pieces: what is between them, from the start of `raw`.
        place: the address of `raw`.
    """

    raw: Any
    zones: Array
    held: Array
    pieces: Sequence[Piece]
    place: int


_watched: dict[int, _Watched] = {}
_running: dict[int, str] = {}  # the node at hand, by thread


def is_on() -> bool:
    """Whether buffers have zones."""
    return os.environ.get(VARIABLE, "") not in _OFF


def has_pages() -> bool:
    """Whether buffers end at pages that may not be touched."""
    return os.environ.get(VARIABLE, "") == "pages"


def spread(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Where things of these sizes begin in a buffer that holds all of them with zones between them, and its size."""
    offsets: list[int] = []
    total = 0
    for size in sizes:
        held = max(_ALIGNMENT, _up(size, _ALIGNMENT))
        if has_pages():
            total += _up(held + ZONE, PAGE)
            offsets.append(total - held)
            total += PAGE
        else:
            offsets.append(total)
            total += _up(size + ZONE, _ALIGNMENT)
    return offsets, total


def zoned(size: int, name: str, pieces: Iterable[Piece] | None = None) -> Array:
    """A buffer of so many bytes between zones, which are looked at as long as somebody has it.

    Args:
        pieces: what it holds, where there is more than one thing; each lies where `spread` said.
    """
    if has_pages():
        return _paged(size, name, pieces)
    raw = np.full(size + 2 * ZONE + _ALIGNMENT, POISON, np.uint8)
    start = ZONE + -(_place(raw) + ZONE) % _ALIGNMENT
    held = [Piece(0, size, name)] if pieces is None else pieces
    moved = [Piece(piece.start + start, piece.stop + start, piece.name) for piece in held]
    free = np.ones(len(raw), bool)
    for piece in moved:
        free[piece.start : piece.stop] = False
    _watch(raw, np.flatnonzero(free), moved)
    return raw[start : start + size]


def _paged(size: int, name: str, pieces: Iterable[Piece] | None) -> Array:
    """`zoned` in pages of its own."""
    start, total = 0, size
    if pieces is None:
        (start,), total = spread([size])
        pieces = [Piece(start, start + size, name)]
    held = list(pieces)
    raw = np.frombuffer(mmap.mmap(-1, max(total, PAGE)), np.uint8)
    raw.fill(POISON)
    edges: list[Array] = []
    for piece in held:
        end = piece.start + max(_ALIGNMENT, _up(piece.stop - piece.start, _ALIGNMENT))
        edges += [np.arange(piece.start - ZONE, piece.start), np.arange(piece.stop, end)]
        faults.forbid(_place(raw) + end, PAGE)
    _watch(raw, np.concatenate(edges) if edges else np.zeros(0, np.int64), held)
    return raw[start : start + size]


def _watch(raw: Array, where: Array, pieces: Sequence[Piece]) -> None:
    key, place = id(raw), _place(raw)
    held = np.frombuffer(PATTERN, np.uint8)[(where + place) % len(PATTERN)]
    raw[where] = held
    _watched[key] = _Watched(weakref.ref(raw, lambda _: _watched.pop(key, None)), where, held, pieces, place)


def empty(shape: Sequence[int], dtype: Any, name: str) -> Array:
    """An array of poison between zones."""
    count = int(np.prod(shape, dtype=np.int64))
    return zoned(count * dtype.itemsize, name).view(dtype).reshape(shape)


# -- reports -------------------------------------------------------------------------------------------------------


def enter(node: str) -> None:
    """What runs in this thread from now on belongs to a node, until that is checked."""
    _running[threading.get_ident()] = node


def check(node: str) -> None:
    """Look at all zones.

    Raises:
        InternalError: somebody wrote into one; names the node that ran last, and the buffer beside it.
    """
    _running.pop(threading.get_ident(), None)
    for watched in list(_watched.values()):
        raw = watched.raw()
        if raw is None:
            continue
        damaged = watched.zones[raw[watched.zones] != watched.held]
        if damaged.size:
            first = int(damaged[0])
            raw[watched.zones] = watched.held  # one damage is reported once
            raise _written(node, int(damaged.size), _nearest(watched.pieces, first), first)
    check_arrays(node)


def check_arrays(node: str) -> None:
    """Look at the zones around arrays that NumPy allocated.

    Raises:
        InternalError: as `check`.
    """
    found = zones.damaged()
    if found is None:
        return
    block, first, count = found
    others: list[str] = []
    while (more := zones.damaged()) is not None:
        others.append(_name(more[0]))
    raise _written(node, count, Piece(block.start, block.start + block.size, _name(block)), first, others)


def checked(compute: Callable[..., Any], node: str) -> Callable[..., Any]:
    """A node's kernel, after which the zones of arrays are looked at; variables are updated in place by kernels."""

    @functools.wraps(compute)
    def run(*args: Any) -> Any:
        before = _running.get(threading.get_ident())
        enter(node)
        result = compute(*args)
        if before is None:
            _running.pop(threading.get_ident(), None)
        else:
            enter(before)
        check_arrays(node)
        return result

    return run


def _written(node: str, count: int, piece: Piece, first: int, others: Sequence[str] = ()) -> InternalError:
    return InternalError(
        f"{count} bytes outside {piece.name} were written, the first {first - piece.start} bytes from its start; "
        f"it has {piece.stop - piece.start}" + "".join(f"; some outside {name} as well" for name in others),
        node=node,
    )


def _nearest(pieces: Sequence[Piece], at: int) -> Piece:
    return min(pieces, key=lambda piece: max(piece.start - at, at - piece.stop + 1))


def _name(block: zones.Allocation) -> str:
    """What lies in a block: a variable's value, or nobody knows."""
    from toolkit.kernels.resources.variables import Cell

    for thing in gc.get_objects():
        if isinstance(thing, Cell) and isinstance(thing.value, np.ndarray) and _place(thing.value) == block.start:
            return f"the variable '{thing.name}'"
    return "an array"


def _place(array: Array) -> int:
    return array.__array_interface__["data"][0]


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _told(address: int) -> str:
    """What is to be said of a fault."""
    node = _running.get(threading.get_ident()) or ", ".join(sorted(set(_running.values()))) or "none of a graph"
    found = _around(address)
    if found is None:
        return f"graphmill guard: node '{node}': memory at {address:#x} was touched, where there is no tensor"
    return (
        f"graphmill guard: node '{node}': memory outside {found.name} was touched, "
        f"{address - found.start} bytes from its start; it has {found.stop - found.start}"
    )


def _around(address: int) -> Piece | None:
    """The piece to which a forbidden page belongs; in addresses."""
    for watched in list(_watched.values()):
        place = watched.place
        pieces = [Piece(piece.start + place, piece.stop + place, piece.name) for piece in watched.pieces]
        near = _nearest(pieces, address) if pieces else None
        if near is not None and near.start - PAGE <= address < near.stop + PAGE + _ALIGNMENT:
            return near
    for block in zones.blocks():
        if block.first <= address < block.last:
            return Piece(block.start, block.start + block.size, _name(block))
    return None


if is_on():
    if os.environ[VARIABLE] not in _ON:
        raise UsageError(f"{VARIABLE} is '{os.environ[VARIABLE]}'; it can be on, pages or off")
    if has_pages():
        faults.report(_told)
    zones.install(pages=has_pages())
