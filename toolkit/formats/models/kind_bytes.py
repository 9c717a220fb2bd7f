"""Kinds of nodes from the bytes of their attributes."""

from __future__ import annotations

import mmap

from toolkit.formats.models import large_constants, protoscan
from toolkit.graph.kinds import NodeKind

#: bytes of attributes up to which nodes are asked whether another has the same: 0.2 us to hash, a fiftieth of what it
#: takes to decode so many
SHARED = 1024
#: of attributes among NodeDef's fields
ATTR_NUMBER = 5
#: an attribute, how the one called `_class` begins behind its length, a text of a list, and how it begins
_ATTR, _CLASS, _TEXTS, _COLOCATION = 0x2A, b"\n\x06_class\x12", 0x12, b"loc:@"


class IrregularError(Exception):
    """The bytes are not as serializers write them, or the graph is malformed."""


def class_parts(tail: bytes, known: set[bytes]) -> tuple[bytes, tuple[str, ...], bytes] | None:
    """Where attributes have `_class`, what stands before it, the nodes that it names, and what stands behind it.

    None where there is none, or where it is not a list of names written in few bytes: variables bring thousands of
    nodes that differ in nothing but such a list.

    Args:
        known: bytes that are attributes, as far as they have been met before such a list; more are added.
    """
    start = at = tail.find(_CLASS) - 2
    if start < 0:
        return None
    before = tail[:start]
    if before not in known:
        at = 0
        while at < start:  # the bytes may be within another attribute
            if tail[at] != _ATTR or tail[at + 1] > 127:
                return None
            at += 2 + tail[at + 1]
        if at == start:
            known.add(before)
    if at != start or tail[at] != _ATTR or tail[at + 1] > 127:
        return None
    stop = at + 2 + tail[at + 1]
    at += 2 + len(_CLASS)
    # the length of the value, its list and the length of that
    if stop > len(tail) or stop - at < 3 or tail[at] != stop - at - 1 or tail[at + 1] != 0x0A:
        return None
    if tail[at + 2] != stop - at - 3:
        return None
    at += 3
    names: list[str] = []
    while at < stop:
        if tail[at] != _TEXTS or at + 2 > stop or tail[at + 1] > 127:
            return None
        end = at + 2 + tail[at + 1]
        if end > stop:
            return None
        if tail.startswith(_COLOCATION, at + 2, end):
            names.append(tail[at + 2 + len(_COLOCATION) : end].decode(errors="replace"))
        at = end
    return before, tuple(names), tail[stop:]


class KindReader:
    """Makes the kinds of one graph's nodes.

    Attributes:
        large: the kinds of large constants, with where their contents begin.
        has_plugins: whether an attribute says which plugin an op comes from.
    """

    def __init__(self, data: bytes | mmap.mmap):
        self._data: bytes = data  # type: ignore[assignment] # a memory map is indexed and sliced as bytes are
        self.large: list[tuple[NodeKind, int]] = []
        self.has_plugins = False
        # kinds by op and what stands before and behind `_class`
        self._classes: dict[tuple[str, bytes, bytes], NodeKind] = {}
        self._before: set[bytes] = set()  # what stands before `_class` anywhere

    def kind(self, op: str, tail: bytes) -> NodeKind:
        """The kind of an op with attributes that have not been met before.

        Raises:
            IrregularError: the bytes are no attributes.
        """
        parted = class_parts(tail, self._before) if len(tail) <= SHARED else None
        if parted is not None:
            before, companions, after = parted
            like = self._classes.get((op, before, after))
            if like is not None:
                return like.with_companions(tail, companions)
        kind = self._new_kind(op, tail)
        if parted is not None and kind.attributes == tail:  # in the order in which they are written
            before, kind.companions, after = parted
            self._classes[op, before, after] = kind
        return kind

    def own_kind(self, op: str, at: int, stop: int) -> NodeKind:
        """The kind of a node whose attributes are many bytes, so that nobody looks for others like it."""
        large = large_constants.constant_kind(op, self._data, at, stop)
        if large is None:
            return self.kind(op, self._data[at:stop])
        self.large.append(large)
        self.has_plugins = self.has_plugins or large[0].names_plugin
        return large[0]

    def _new_kind(self, op: str, tail: bytes) -> NodeKind:
        try:
            kind = NodeKind(op, tail, is_shared=len(tail) <= SHARED)
        except ValueError:
            raise IrregularError from None
        # other bytes: written in another order, or with fields of a node among its attributes that are empty
        is_the_same = kind.is_shared and kind.attributes == tail
        if not is_the_same and any(field.number < ATTR_NUMBER for field in protoscan.fields(tail, 0, len(tail))):
            raise IrregularError
        self.has_plugins = self.has_plugins or kind.names_plugin
        return kind
