"""What shape inference has found of one node, recalled for every node that is alike.

Shapes and values follow from a node's kind and from what is known of its inputs, for ops that look at nothing else. In
large graphs the same few nodes come again and again, so most are found by one look into a table.
"""

from __future__ import annotations

from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.graph.values.value import Value


class Known(list[Shape]):
    """The shapes of a node's outputs, and their values. Not to be changed; equal to any list of the same shapes, but
    hashed as the one object that it is.

    Attributes:
        values: by output, as far as it goes; None where nobody has looked.
    """

    __slots__ = ("values",)
    __hash__ = object.__hash__  # type: ignore[assignment] # of what is equal there is one object, where that matters

    def __init__(self, shapes: list[Shape], values: list[Value | None] | None = None):
        super().__init__(shapes)
        self.values = values


#: a node's kind and, input by input, what is known of its source; with the number of the output if it is not the first
Key = tuple[object, ...]


class Alike:
    """What is known of nodes, by their keys, each once."""

    def __init__(self) -> None:
        self._found: dict[Key, Known] = {}
        self._made: dict[tuple[tuple[Shape, ...], str], Known] = {}

    def recall(self, key: Key) -> Known | None:
        return self._found.get(key)

    def keep(self, key: Key, known: Known) -> None:
        """Nodes with this key are known like this."""
        self._found[key] = known

    def known(self, shapes: list[Shape], values: list[Value | None]) -> Known:
        """The one object for these shapes and values."""
        # as text: 1, 1.0 and True are equal, and so are zeros of either sign
        key = (tuple(shapes), repr(values) if any(value is not None for value in values) else "")
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Known(shapes, values)
        return found


def key_of(node: Node, shapes: dict[Node, Known]) -> Key | None:
    """The key of a node; None where it has nothing in common with others."""
    kind = node.source
    if not isinstance(kind, NodeKind) or node._types is not kind or not kind.is_shared:  # pyright: ignore[reportPrivateUsage]
        return None
    key: list[object] = [kind.like or kind]
    for source, index in node.inputs:
        known = shapes.get(source)
        if known is not None and known.values is None:
            return None  # of which there is no other
        key.append((known, index) if index else known)
    return tuple(key)
