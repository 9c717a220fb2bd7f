"""What becomes of a graph of one op before it runs, here and in TensorFlow: shapes, or a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from schemas import graph_pb2
from toolkit.errors import GraphmillError
from toolkit.graph import check
from toolkit.graph.consistency import require_consistent
from toolkit.graph.graph import Graph
from toolkit.graph.infer import infer
from toolkit.graph.shape import Shape


@dataclass(frozen=True)
class Outcome:
    """Attributes:
    shapes: of the outputs of the node "node"; None where the graph is refused.
    said: the reason.
    """

    shapes: tuple[Shape, ...] | None
    said: str = ""


def ours(data: bytes) -> Outcome:
    """What we make of a GraphDef."""
    try:
        graph = Graph.from_proto(graph_pb2.GraphDef.FromString(data))
        require_consistent(graph)
        for node in graph:  # types of edges, which sessions look at where they choose kernels
            for finding in check.check_inputs(node, node.op_def):
                if finding.level == check.ERROR:
                    return Outcome(None, finding.message)
        return Outcome(tuple(infer(graph).of(graph.node("node"))))
    except GraphmillError as error:
        return Outcome(None, str(error))


def theirs(tf: Any, data: bytes) -> Outcome:
    """What TensorFlow's importer makes of it."""
    with tf.Graph().as_default() as graph:
        try:
            tf.graph_util.import_graph_def(tf.compat.v1.GraphDef.FromString(data), name="")
        except Exception as error:  # its importer raises several kinds
            return Outcome(None, str(error).split("\n")[0])
        outputs: Sequence[Any] = graph.get_operation_by_name("node").outputs
        return Outcome(tuple(Shape(None if t.shape.rank is None else t.shape.as_list()) for t in outputs))


def difference(mine: Outcome, wanted: Outcome) -> str | None:
    """The kind of a difference: "accepted" (TensorFlow refuses), "refused" (it does not), "shape"; None where there
    is none. A shape may say more than TensorFlow's, or less: what follows from it is judged when the node runs."""
    if mine.shapes is None or wanted.shapes is None:
        if (mine.shapes is None) == (wanted.shapes is None):
            return None
        return "refused" if mine.shapes is None else "accepted"
    same = len(mine.shapes) == len(wanted.shapes)
    if same and all(a.is_compatible_with(b) for a, b in zip(mine.shapes, wanted.shapes, strict=True)):
        return None
    return "shape"
