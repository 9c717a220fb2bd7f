"""What can be fetched, fed and run, known by its type."""

from __future__ import annotations

from toolkit.graph.node import Node, Output


class GraphElement:
    """A tensor, an operation or a variable of a graph that is being made."""

    __slots__ = ()

    def endpoint(self) -> Output | Node:
        """What it stands for in the core graph: of a variable, the tensor that reads it."""
        raise NotImplementedError
