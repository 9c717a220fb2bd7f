"""What can be fetched, fed and run, known by its type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.graph.node import Node, Output


class GraphElement:
    """A tensor, an operation or a variable of a graph that is being made."""

    __slots__ = ()

    def endpoint(self) -> Output | Node:
        """What it stands for in the core graph: of a variable, the tensor that reads it."""
        raise NotImplementedError


class Composite:
    """Several tensors that are fetched and fed as one thing."""

    def parts(self) -> tuple[Callable[..., Any], Sequence[GraphElement]]:
        """What makes its value of the values of its tensors, and these."""
        raise NotImplementedError

    def of_parts(self, tensors: Sequence[Any]) -> Any:
        """One like it, of other tensors."""
        raise NotImplementedError
