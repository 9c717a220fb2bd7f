"""Which loop a node runs in (white paper, section 4.4)."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.errors import GraphError
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, EXIT_OPS, NEXT_ITERATION_OPS


@dataclass(frozen=True, slots=True)
class Frame:
    """A loop frame.

    Attributes:
        path: the names of the frames from the outermost to this one (Enter's `frame_name`).
        parallel_iterations: of its Enter nodes.
    """

    path: tuple[str, ...]
    parallel_iterations: int

    @property
    def name(self) -> str:
        return self.path[-1]


def frames_of(graph: Graph) -> list[Frame | None]:
    """The frame of every node, by id; None outside loops. An Enter is in the frame it enters, an Exit in the one
    it leaves for, as the node's inputs and outputs are (so that an edge joins nodes of one frame, but for Enter
    and Exit themselves).

    Raises:
        GraphError: a node has inputs from different frames.
    """
    found: list[Frame | None] = [None] * len(graph)
    known: dict[tuple[str, ...], Frame] = {}
    for node in graph.topological_order():
        sources = [src for src, _ in node.inputs] + node.control_inputs
        frame: Frame | None = None
        for src in sources:
            if src.op in NEXT_ITERATION_OPS:
                continue
            theirs = found[src.id]
            if theirs is None or (frame is not None and frame.path == theirs.path):
                continue
            if frame is not None and len(frame.path) == len(theirs.path):
                raise GraphError(
                    f"it has inputs from the loops '{frame.name}' and '{theirs.name}'; use Exit to leave a loop",
                    node=node.name,
                )
            if frame is None or len(theirs.path) > len(frame.path):
                frame = theirs
        if node.op in ENTER_OPS:
            name = node.attr("frame_name")
            text = name.decode() if isinstance(name, bytes) else str(name)
            path = (*(frame.path if frame is not None else ()), text)
            frame = known.get(path)
            if frame is None:
                frame = known[path] = Frame(path, node.attr("parallel_iterations", 10))
        elif node.op in EXIT_OPS:
            frame = known.get(frame.path[:-1]) if frame is not None and len(frame.path) > 1 else None
        found[node.id] = frame
    return found
