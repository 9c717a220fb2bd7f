"""Do attributes, static shapes and known values keep the rules of their ops? To be asked before a step runs.

The types of edges are looked at where kernels are chosen (`toolkit.compiler.program`), which needs them anyway.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolkit.errors import BugError, GraphError, InvalidGraphError
from toolkit.graph import check
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS, Node, Output
from toolkit.graph.shape import SCALAR, UNKNOWN, Shape


def require_consistent(graph: Graph, arguments: Mapping[Output, Shape] | None = None) -> None:
    """Raise unless the shape function of each op accepts what is known of its inputs before anything runs.

    What goes around in a loop has no shape here, as in TensorFlow: the first iteration says nothing of the next, and
    there may be none.

    Args:
        arguments: shapes of outputs that are known from outside: what will be fed.

    Raises:
        InvalidGraphError: a rule of an op is broken.
    """
    shapes = ShapeMap()
    for output, shape in (arguments or {}).items():
        shapes.feed(output, shape)
    with shapes.whole_graph():
        for node in graph.topological_order():
            _require_definition(node)
            if _begins_loop(node):
                shapes.store(node, [UNKNOWN, SCALAR], {})
                continue
            try:
                shapes.visit(node, strict=True)
            except BugError:
                raise
            except GraphError as error:
                raise InvalidGraphError(error.message, node=error.node or node.name) from None


def _require_definition(node: Node) -> None:
    if check.is_sound(node):
        return
    op_def = node.op_def
    for finding in check.check_definition(node, op_def):
        if finding.level == check.ERROR:
            raise InvalidGraphError(finding.message, node=node.name)


def _begins_loop(node: Node) -> bool:
    return node.op in MERGE_OPS and any(source.op in NEXT_ITERATION_OPS for source, _ in node.inputs)


__all__ = ["require_consistent"]
