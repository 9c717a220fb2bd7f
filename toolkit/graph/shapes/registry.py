"""The registry of shape functions and what they see."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.errors import GraphError
from toolkit.graph.node import Node
from toolkit.graph.shape import UNKNOWN, Shape


class ShapeContext:
    """A node while its output shapes are inferred.

    Attributes:
        node: the node.
        inputs: the shapes of its data inputs.
    """

    __slots__ = ("_constants", "inputs", "node")

    def __init__(self, node: Node, inputs: Sequence[Shape], constants: Callable[[int], Any]):
        self.node = node
        self.inputs = list(inputs)
        self._constants = constants

    def attr(self, name: str, default: Any = ...) -> Any:
        return self.node.attr(name, default)

    def constant(self, index: int) -> Any:
        """The value of an integer input when it is known before running: an int, a list of ints, or None.

        Elements that are not known (one of `Pack`ed sizes, say) are None.
        """
        return self._constants(index)

    def constant_shape(self, index: int) -> Shape:
        """The value of an integer vector input read as a shape; as much of it as is known."""
        value = self._constants(index)
        if isinstance(value, list):
            return Shape([v if isinstance(v, int) else None for v in value])  # type: ignore[misc]
        length = self.inputs[index][0] if self.inputs[index].rank == 1 else None
        return UNKNOWN if length is None else Shape([None] * length)


ShapeFunction = Callable[[ShapeContext], Sequence[Shape]]
_functions: dict[str, ShapeFunction] = {}
_loaded = False


def shape_function(*ops: str) -> Callable[[ShapeFunction], ShapeFunction]:
    """Register a shape function; it returns one Shape per output, or raises GraphmillError on a contradiction.

    Raises:
        GraphError: an op has one already.
    """

    def register(function: ShapeFunction) -> ShapeFunction:
        for op in ops:
            if op in _functions:
                raise GraphError(f"two shape functions for '{op}'")
            _functions[op] = function
        return function

    return register


def find(op: str) -> ShapeFunction | None:
    """The shape function of an op, or None."""
    global _loaded
    if not _loaded:
        import toolkit.graph.shapes as package

        for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            importlib.import_module(info.name)
        _loaded = True
    return _functions.get(op)
