"""Edits of inputs' shapes; what is known of shapes elsewhere follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from toolkit.errors import GraphError, UsageError
from toolkit.formats.inspection.report import plural
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.passes.edit.base import PATTERNS, SHAPE, SIZE, argument
from toolkit.passes.edit.draft import Draft
from toolkit.passes.edit.reshape import change_shapes

_INPUTS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")


@dataclass(frozen=True)
class SetShape:
    """Set the shape of inputs: of placeholders, of signatures, and of whatever is computed from them."""

    name: ClassVar[str] = "set_shape"

    nodes: tuple[str, ...] = argument(PATTERNS, "placeholders")
    shape: Shape = argument(SHAPE, "the shape")

    def apply(self, draft: Draft) -> str:
        nodes = draft.choose(self.nodes)
        for node in nodes:
            require_input(node)
        changed = change_shapes(draft, dict.fromkeys(nodes, self.shape))
        return f"{plural(len(nodes), 'input')} of shape {self.shape}{changed.said()}"


@dataclass(frozen=True)
class SetBatchSize:
    """Set the batch size, the first size of inputs; constants that bake it into a Reshape follow where it is proven."""

    name: ClassVar[str] = "set_batch_size"

    size: int | None = argument(SIZE, "the size, or null for any")
    nodes: tuple[str, ...] = argument(PATTERNS, "placeholders (default: all whose shape has a first size)", ())

    def apply(self, draft: Draft) -> str:
        if self.nodes:
            nodes = draft.choose(self.nodes)
            for node in nodes:
                require_input(node)
                if not _shape(node).rank:
                    raise GraphError(f"its shape {_shape(node)} has no first size", node=node.name)
        else:
            nodes = [node for node in draft.graph.nodes if node.op in _INPUTS and _shape(node).rank]
            if not nodes:
                raise UsageError("no placeholder has a shape with a first size; set_shape gives one")
        shapes: Mapping[Node, Shape] = {node: Shape([self.size, *_rest(_shape(node))]) for node in nodes}
        changed = change_shapes(draft, shapes, batch=True)
        size = "any" if self.size is None else f"{self.size:,}"
        return f"{plural(len(nodes), 'input')} of batch size {size}{changed.said()}"


def require_input(node: Node) -> None:
    """Refuse a node that is no placeholder.

    Raises:
        GraphError: it is none.
    """
    if node.op not in _INPUTS:
        raise GraphError(f"it is a {node.op}, not a placeholder: its shape follows from its inputs", node=node.name)


def _shape(node: Node) -> Shape:
    return node.attr_or("shape", Shape(None))


def _rest(shape: Shape) -> list[int | None]:
    assert shape.dims is not None
    return list(shape.dims[1:])
