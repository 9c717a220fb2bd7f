"""The table of what is computed before running: for each op a function of its node's inputs and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.graph.values.value import Value


class Arguments:
    """A node while it is evaluated: what is known of its inputs, by position; ValueError where nothing is."""

    def __init__(self, node: Node, known: Mapping[Node, list[Value | None]], shape_of: Callable[[Output], Shape]):
        self.node = node
        self._known = known
        self._shape_of = shape_of

    def __getitem__(self, index: int) -> Value:
        src, position = self.node.inputs[index]
        known = self._known.get(src, [])
        value = known[position] if position < len(known) else None
        if value is None:
            raise ValueError  # the result is unknown as well
        return value

    def __len__(self) -> int:
        return len(self.node.inputs)

    def maybe(self, index: int) -> Value | None:
        try:
            return self[index]
        except ValueError:
            return None

    def shape(self, index: int) -> Shape:
        return self._shape_of(self.node.inputs[index])

    def attr(self, name: str) -> Any:
        return self.node.attr(name)


ValueFunction = Callable[[Arguments], Value | list[Value | None] | None]
#: op -> what computes its values
functions: dict[str, ValueFunction] = {}


def register(*ops: str) -> Callable[[ValueFunction], ValueFunction]:
    """Enter the function that follows as what computes these ops."""

    def enter(function: ValueFunction) -> ValueFunction:
        functions.update(dict.fromkeys(ops, function))
        return function

    return enter
