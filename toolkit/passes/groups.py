"""Colocation groups: sets of nodes that must share a device."""

from __future__ import annotations

from typing import cast

from toolkit.graph.node import Node

COLOCATION_ATTRIBUTE = "_class"
COLOCATION_PREFIX = b"loc:@"


class Groups:
    """Disjoint sets of node ids; the smallest id leads (union-find with path halving)."""

    def __init__(self, count: int):
        self._parent = list(range(count))
        self._size = [1] * count

    def find(self, item: int) -> int:
        """The leader of an item's set."""
        parent = self._parent
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    def union(self, a: int, b: int) -> None:
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        if b < a:
            a, b = b, a
        self._parent[b] = a
        self._size[a] += self._size[b]

    def size(self, leader: int) -> int:
        return self._size[leader]


def colocation_targets(node: Node) -> list[str]:
    """The nodes that a node's `_class` attribute ties it to."""
    if COLOCATION_ATTRIBUTE not in node.attrs:
        return []
    value = node.attr(COLOCATION_ATTRIBUTE)
    entries: list[bytes] = cast("list[bytes]", value) if isinstance(value, list) else [value]
    return [e[len(COLOCATION_PREFIX) :].decode() for e in entries if e.startswith(COLOCATION_PREFIX)]
