"""What folding looks for among the links of a large model, as columns: links within scopes, and between members."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.node_tables.columns import ints
from toolkit.render.elements import Model, Scope
from toolkit.render.link_table import Beside, columns
from toolkit.render.sections import Member

#: what keys may be: those of more columns would not fit into 64 bits
_MOST_KEYS = 1 << 62


def inner_links(model: Model, scopes: Sequence[Scope]) -> list[int]:
    """A number for the links that are within each scope and no scope in it (`toolkit.render.signatures`).

    Args:
        scopes: a scope and all in it, outer ones first.
    """
    links, op_column = columns(model)
    number = {id(scope): position for position, scope in enumerate(scopes)}
    parent = np.array([number[id(scope.parent)] if at else 0 for at, scope in enumerate(scopes)], np.int32)
    depth = _depths(parent)
    homes = np.fromiter(map(number.get, map(id, model.homes), repeat(-1)), np.int32, len(model.homes))
    a, b = homes[links.src], homes[links.dst]
    inside = np.flatnonzero((a >= 0) & (b >= 0))
    a, b = a[inside], b[inside]
    apart = np.flatnonzero(a != b)
    while len(apart):  # from the deeper of the two to the scope around it
        one, other = a[apart], b[apart]
        of_one, of_other = depth[one], depth[other]
        a[apart] = one = np.where(of_one >= of_other, parent[one], one)
        b[apart] = other = np.where(of_other >= of_one, parent[other], other)
        apart = apart[one != other]
    ops = op_column.of
    parts = (ops[links.src], ops[links.dst], links.kind, links.src_output, links.dst_input)
    keys, kind_of = np.unique(_keys([part[inside] for part in parts]), return_inverse=True)
    hashes = np.array([hash(("links", key)) for key in ints(keys)], np.int64)
    found = np.zeros(len(scopes), np.int64)
    np.add.at(found, a, hashes[kind_of])  # what does not fit into 64 bits is lost
    return ints(found)


def _depths(parent: NDArray[np.int32]) -> NDArray[np.int32]:
    """How many scopes are around each, none around the first.

    Args:
        parent: the place of the scope around each, before it.
    """
    depth = [0] * len(parent)
    for place, around in enumerate(ints(parent)):
        if place:
            depth[place] = depth[around] + 1
    return np.array(depth, np.int32)


def _keys(columns: Sequence[NDArray[np.signedinteger]]) -> NDArray[np.int64]:
    """A number for each row, the same for equal ones.

    Args:
        columns: of numbers from -1.
    """
    keys, count = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        size = int(column.max(initial=-1)) + 2
        if count * size > _MOST_KEYS:
            known, keys = np.unique(keys, return_inverse=True)
            count = len(known)
        keys = keys * size + column + 1
        count *= size
    return keys


def connector(model: Model, noted: Collection[int]) -> Callable[[Sequence[Member]], None]:
    """What fills in `before` and `after` among members (`toolkit.render.fold`)."""
    (links, _), count = columns(model), len(model.homes)
    is_noted = np.zeros(count, np.bool_)
    is_noted[list(noted)] = True
    chosen = ~links.is_control() & ~is_noted[links.src]
    incoming = Beside(links.dst[chosen], links.src[chosen], count)
    owner = np.full(count, -1, np.int32)
    held: dict[int, NDArray[np.int64]] = {}  # the elements of scopes, by their `id`: they stay the same

    def elements_of(member: Member) -> NDArray[np.int64]:
        if member.scope is None:
            return np.array([member.element], np.int64)
        found = held.get(id(member.scope))
        if found is None:
            found = held[id(member.scope)] = np.fromiter(member.scope.all_elements(), np.int64)
        return found

    def connect(members: Sequence[Member]) -> None:
        of_each = list(map(elements_of, members))
        elements = np.concatenate(of_each) if of_each else np.zeros(0, np.int64)
        owner[elements] = np.repeat(np.arange(len(of_each), dtype=np.int32), list(map(len, of_each)))
        sources = incoming.of_all(elements)
        into = np.repeat(owner[elements], incoming.counts[elements])
        out_of = np.where(owner[sources] < 0, -1 - sources, owner[sources])
        owner[elements] = -1
        are_apart = out_of != into
        keys = np.unique(into[are_apart].astype(np.int64) << 32 | (out_of[are_apart].astype(np.int64) + count))
        for into_one, out_of_one in zip(ints(keys >> 32), ints((keys & 0xFFFFFFFF) - count), strict=True):
            members[into_one].before.add(out_of_one)
            if out_of_one >= 0:
                members[out_of_one].after.add(into_one)

    return connect
