"""What is written in a box about the constants and variables that it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node
from toolkit.render import describe
from toolkit.render.elements import Link, Model

#: ops that hand on what they take
HAND_ON = frozenset({"Identity", "ReadVariableOp", "Snapshot", "_Arg"})
# A box that uses more variables than this says how many.
_MOST_VARIABLES = 3
# Where a constant comes from is looked for through at most so many nodes.
_LONGEST_WAY = 40

#: what an element that hands something on takes first, or None
Source = Callable[[int], int | None]


class Notes:
    """Writes the notes of boxes.

    Args:
        constant: by element, whether it depends on constants only.
        handles: what elements hold of which variable.
        source: see `Source`.
    """

    def __init__(self, model: Model, constant: bytearray, handles: dict[int, int], source: Source):
        self._model, self._constant, self._handles, self._source = model, constant, handles, source
        self._texts: dict[NodeKind, str] = {}  # of constants that are alike

    def write(self, links: Iterable[Link]) -> dict[int, list[str]]:
        """The lines by host.

        Args:
            links: data links from absorbed elements into others, in order.
        """
        notes: dict[int, list[str]] = {}
        variables: dict[int, int] = {}
        ops = self._model.ops
        for link in links:
            if self._constant[link.src]:
                text = self._constant_text(link.src)
            else:
                variable = self._handles.get(link.src)
                if variable is None:
                    continue
                variables[link.dst] = variables.get(link.dst, 0) + 1
                if variables[link.dst] > _MOST_VARIABLES:
                    continue
                text = self._variable_text(variable)
            name = describe.input_name(ops[link.dst], link.dst_input)
            notes.setdefault(link.dst, []).append(f"{name} {text}".strip())
        for i, count in variables.items():
            if count > _MOST_VARIABLES:
                notes[i] = [*notes[i][:-_MOST_VARIABLES], f"{count} variables"]
        return notes

    def _constant_text(self, element: int) -> str:
        # An Identity or Reshape of one weight still is that weight to the reader.
        origin = self._origin(element)
        alike = origin.source if origin.changed_attrs is None else None
        if not isinstance(alike, NodeKind):
            return describe.constant_text(origin)
        text = self._texts.get(alike)
        if text is None:
            text = self._texts[alike] = describe.constant_text(origin)
        return text

    def _variable_text(self, variable: int) -> str:
        node = self._model.elements[variable].node
        name = "/".join(node.name.split("/")[-2:])
        return f"{name} {describe.variable_text(node).rpartition(' ')[2]}".strip()

    def _origin(self, start: int) -> Node:
        """The constant that an element hands on, through Identity nodes and the arguments of functions."""
        here = start
        for _ in range(_LONGEST_WAY):
            before = self._source(here)
            if before is None:
                break
            here = before
        return self._model.elements[here].node
