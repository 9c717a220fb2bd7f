"""Which loop frame each node belongs to (BuildControlFlowInfo), found once per compiled graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.errors import GraphError
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, EXIT_OPS, MERGE_OPS, NEXT_ITERATION_OPS, Node

#: ops whose outputs are in another frame than they are themselves
_CROSSING = ENTER_OPS | EXIT_OPS


@dataclass(slots=True)
class StaticFrame:
    """A `while` frame as written in the graph; it has many instances when loops nest.

    Attributes:
        name: the frame_name attribute; "" for the graph itself.
        parent: the frame around it, None for the graph itself.
        nodes: ids of the nodes inside, in node order.
        enters: how many Enter nodes lead into it.
        parallel_iterations: the attribute of its Enters.
    """

    name: str
    parent: StaticFrame | None
    nodes: list[int] = field(default_factory=list[int])
    enters: int = 0
    parallel_iterations: int = 1


def assign_frames(graph: Graph, order: list[Node]) -> tuple[list[StaticFrame], list[StaticFrame]]:
    """Give every node its frame.

    Enter nodes belong to the frame outside the loop, Exit nodes to the one inside.

    Returns:
        the frame of each node by id, and all frames, the outermost first.

    Raises:
        GraphError: a node has inputs from different frames, or a loop is left without having been entered.
    """
    root = StaticFrame("", None)
    by_name: dict[str, StaticFrame] = {"": root}
    frames: list[StaticFrame] = [root] * len(graph)
    known = bytearray(len(graph))

    def output_frame(src: Node) -> StaticFrame:
        frame = frames[src.id]
        if src.op in ENTER_OPS:
            return _child(src, frame, by_name)
        if src.op in EXIT_OPS:
            if frame.parent is None:
                raise GraphError("it leaves a loop that was never entered", node=src.name)
            return frame.parent
        return frame

    for node in order:
        mine: StaticFrame | None = None
        where = ""
        sources = [src for src, _ in node.inputs]
        for src in sources + node.control_inputs if node.control_inputs else sources:
            if not known[src.id]:  # a back edge; its source is in the same frame
                continue
            theirs = output_frame(src) if src.op in _CROSSING else frames[src.id]
            if mine is None:
                mine, where = theirs, src.name
            elif mine is not theirs:
                raise GraphError(
                    f"its inputs '{where}' and '{src.name}' come from different loop frames "
                    f"('{mine.name}' and '{theirs.name}'); values enter a loop through Enter and leave through Exit",
                    node=node.name,
                )
        frames[node.id] = mine or root
        known[node.id] = 1
        if node.op in ENTER_OPS:
            child = _child(node, frames[node.id], by_name)
            child.enters += 1
            child.parallel_iterations = node.attr("parallel_iterations", 10)
    for node in order:  # the back edges: now all frames are known
        if node.op in MERGE_OPS:
            for src, _ in node.inputs:
                if src.op in NEXT_ITERATION_OPS and output_frame(src) is not frames[node.id]:
                    raise GraphError(
                        f"its input '{src.name}' is of another loop frame ('{output_frame(src).name}') than it is "
                        f"itself ('{frames[node.id].name}')",
                        node=node.name,
                    )
    for node in graph.nodes:
        frames[node.id].nodes.append(node.id)
    return frames, list(by_name.values())


def _child(enter: Node, outside: StaticFrame, by_name: dict[str, StaticFrame]) -> StaticFrame:
    name = enter.text("frame_name")
    child = by_name.get(name)
    if child is None:
        child = by_name[name] = StaticFrame(name, outside)
    elif child.parent is not outside:
        raise GraphError(f"the loop frame '{name}' is entered from two different frames", node=enter.name)
    return child


def is_pivot(node: Node) -> bool:
    """Whether a node only says that an iteration has begun: an Identity of a state that the condition lets through."""
    if node.op != "Identity" or node.control_inputs:
        return False
    switch, side = node.inputs[0]
    return switch.op == "Switch" and side == 1 and switch.inputs[1].node.op == "LoopCond"
