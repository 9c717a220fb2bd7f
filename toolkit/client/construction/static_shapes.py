"""Static shapes of operations while a graph is made."""

from __future__ import annotations

from toolkit.graph.alike import Known
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape
from toolkit.graph.shapes.calls import HandleData


class GrowingShapes(ShapeMap):
    """The shapes of a graph under construction: each node is inferred once, when it is added.

    `set_shape` may refine what was inferred; consumers made later see the refined shape.
    """

    def refine(self, output: Output, shape: Shape) -> None:
        """Merge `shape` into what is known about an output.

        Raises:
            GraphmillError: the two contradict each other.
        """
        shapes = Known(self.of(output.node))
        shapes[output.index] = shapes[output.index].merge(shape)
        self._shapes[output.node] = shapes
        self._values.forget(output.node)

    def hold(self, output: Output, handle: HandleData | None) -> None:
        """Note what a resource or variant handle holds that comes from another graph; None where nothing is known."""
        if handle is not None:
            self._handles[(output.node, output.index)] = handle

    def override(self, output: Output, shape: Shape) -> None:
        """Replace what was inferred: a loop variable may take other shapes than the one it starts with."""
        shapes = Known(self.of(output.node))
        shapes[output.index] = shape
        self._shapes[output.node] = shapes
        self._values.forget(output.node)
