"""What nothing needs removed, and shapes given to inputs, as the Graph Transform Tool's strip_unused_nodes did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.errors import GraphmillError, UsageError, did_you_mean
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.removal.remove_unused import RemoveUnused
from toolkit.passes.optimize.rewriting import Optimization

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
#: names of types as TensorFlow's files and C++ have them
_TYPES = {"float": "float32", "double": "float64", "half": "float16"}


@dataclass(frozen=True)
class StripUnusedNodes(Optimization):
    """Remove what no fetch or target needs; inputs whose shape is not known get the one given.

    The report is that of remove_unused, with `shapes`: names of inputs to the shapes that they got.

    Attributes:
        type: of inputs; what is known of an input's type is never changed, so it has no effect but for `type_for_name`.
        shape: sizes separated by commas, for inputs of unknown shape; -1 is any size.
        name, type_for_name, shape_for_name: the same for single inputs: the first type and shape are those of the first
            name, and so on. A type that the input does not have is an error.
    """

    name: ClassVar[str] = "strip_unused_nodes"
    in_functions: ClassVar[bool] = False

    type: str = ""
    shape: str = ""
    of: tuple[str, ...] = ()
    type_for_name: tuple[str, ...] = ()
    shape_for_name: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for text in (self.shape, *self.shape_for_name):
            _shape(text)
        for text in (self.type, *self.type_for_name):
            if text:
                dtypes.from_name(_TYPES.get(text, text))

    def apply(self, graph: Graph) -> PassResult:
        """
        Raises:
            UsageError: there is no such input, or it has another type or shape.
        """
        result = RemoveUnused(kept=self.kept).apply(graph)
        changes: dict[Node, Shape] = {}
        for position, name in enumerate(self.of):
            node = result.graph.get(name.removesuffix(":0"))
            if node is None or node.op not in _PLACEHOLDERS:
                inputs = [each.name for each in result.graph if each.op in _PLACEHOLDERS]
                raise UsageError(f"strip_unused_nodes: there is no input '{name}'{did_you_mean(name, inputs)}")
            if position < len(self.type_for_name):
                wanted = dtypes.from_name(_TYPES.get(self.type_for_name[position], self.type_for_name[position]))
                if node.attr("dtype") != wanted:
                    raise UsageError(f"strip_unused_nodes: the input '{name}' is {node.attr('dtype')}, not {wanted}")
            if position < len(self.shape_for_name):
                changes[node] = _shape(self.shape_for_name[position])
        if self.shape:
            default = _shape(self.shape)
            for node in result.graph:
                if node.op in _PLACEHOLDERS and node not in changes and node.attr("shape").dims is None:
                    changes[node] = default
        return _with_shapes(result, changes)


def _with_shapes(result: PassResult, changes: dict[Node, Shape]) -> PassResult:
    made: dict[str, str] = {}
    graph = result.graph
    for node, shape in changes.items():
        try:
            merged = node.attr("shape").merge(shape)
        except GraphmillError:
            raise UsageError(
                f"strip_unused_nodes: the input '{node.name}' has the shape {node.attr('shape')}, not {shape}"
            ) from None
        if merged != node.attr("shape"):
            if not made:
                graph = result.graph.copy()
            copy = graph.node(node.name)
            copy.attrs["shape"] = merged
            copy.attrs.pop("_output_shapes", None)
            made[node.name] = str(merged)
    return PassResult(graph, result.modified or bool(made), {**result.report, "shapes": made})


def _shape(text: str) -> Shape:
    """
    Raises:
        UsageError: it is no list of sizes.
    """
    try:
        return Shape([int(size) for size in text.split(",") if size.strip()])
    except ValueError:
        raise UsageError(f"'{text}' is no shape; expected sizes separated by commas, as in \"1,299,299,3\"") from None
