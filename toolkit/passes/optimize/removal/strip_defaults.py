"""Drop attributes that say what is said anyway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.errors import GraphmillError
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization


@dataclass(frozen=True)
class StripDefaults(Optimization):
    """Remove attributes that have the default of their op, as SavedModels for other releases are written without them.

    Attributes:
        shapes: remove `_output_shapes` too, which readers work out anyway.
    """

    name: ClassVar[str] = "strip_defaults"

    shapes: bool = True

    def apply(self, graph: Graph) -> PassResult:
        """The report has `attributes`, how many went."""
        out = graph.copy()
        count = 0
        for node in out:
            gone = [key for key in node.attrs if self._says_nothing(node, key)]
            for key in gone:
                del node.attrs[key]
            count += len(gone)
        return PassResult(out if count else graph, count > 0, {"attributes": count})

    def _says_nothing(self, node: Node, key: str) -> bool:
        if key == "_output_shapes":
            return self.shapes
        return has_default(node, key)


def has_default(node: Node, key: str) -> bool:
    """Whether an attribute has the value that its op's definition has for it."""
    if node.op in node.graph.library:
        return False
    definition = node.graph.find_op_def(node.op)
    known = None if definition is None else definition.attrs.get(key)
    if known is None or not known.has_default or known.type in ("tensor", "func", "list(func)", "list(tensor)"):
        return False
    try:
        return _same(node.attr(key), known.default)
    except GraphmillError:
        return False


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and value == default
