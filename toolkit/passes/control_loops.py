"""Control loops: what keeps the parts of a loop on several devices in the same iteration.

A loop's nodes may be in several partitions, but only one of them computes the loop's condition. Each partition gets
a minimal loop of its own for every frame it has a share in,

    Enter -> Merge -> Switch -> NextIteration -> Merge

whose Switch takes the condition from wherever LoopCond is; the transfers inside the frame are started by its Merge
once per iteration. (TensorFlow's partitioner does the same: AddControlFlow in graph_partition.cc.)
"""

from __future__ import annotations

from schemas.tensor_pb2 import TensorProto
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.frames import StaticFrame, assign_frames
from toolkit.graph.graph import Graph
from toolkit.graph.node import CONTROL_FLOW_OPS, ENTER_OPS, EXIT_OPS, Node, Output, in_edges

#: marks nodes that splitting adds besides transfers, so that `join` can take them out again
SCAFFOLDING = "_partition_scaffolding"


class ControlLoops:
    """A copy of a graph with control loops added where loops span partitions.

    Attributes:
        graph: the copy; its first nodes correspond to the original's by id.
        homes: the partition of each of its nodes.
    """

    def __init__(self, graph: Graph, homes: list[str]):
        self.graph = graph
        self.homes = list(homes)
        self._merges: dict[tuple[str, str], Node] = {}
        self._frames: list[StaticFrame] = []
        self._by_name: dict[str, StaticFrame] = {}
        if any(node.op in CONTROL_FLOW_OPS for node in graph):
            self.graph = graph.copy()
            self._frames, every = assign_frames(self.graph, self.graph.topological_order())
            self._by_name = {frame.name: frame for frame in every}
            self._add_loops()

    def edge_frame(self, src: Node) -> StaticFrame:
        """The frame that a value out of `src` is in."""
        if not self._frames:
            return _ROOT
        frame = self._frames[src.id]
        if src.op in ENTER_OPS:
            return self._child(src)
        if src.op in EXIT_OPS:
            assert frame.parent is not None
            return frame.parent
        return frame

    def merge(self, home: str, frame: StaticFrame) -> Node:
        """The Merge that fires once per iteration of `frame` in a partition."""
        return self._merges[home, frame.name]

    def _child(self, enter: Node) -> StaticFrame:
        return self._by_name[enter.attr("frame_name").decode()]

    def _add_loops(self) -> None:
        spread: dict[str, dict[str, str]] = {}  # frame -> partition -> a device in it
        conditions: dict[str, Node] = {}
        for node in self.graph.nodes:
            frame = self._frames[node.id]
            if node.op == "LoopCond":
                conditions[frame.name] = node
        for node in list(self.graph.nodes):
            frames = [self._frames[node.id]]
            if node.op in ENTER_OPS:
                frames.append(self.edge_frame(node))
            for edge in in_edges(node):
                frames.append(self.edge_frame(edge.src))
            for frame in frames:
                while frame.parent is not None:
                    spread.setdefault(frame.name, {}).setdefault(self.homes[node.id], node.device)
                    frame = frame.parent
        for name in sorted(spread, key=lambda n: _depth(self._by_name[n])):
            partitions = spread[name]
            if len(partitions) < 2:
                continue
            condition = conditions.get(name)
            if condition is None:
                raise GraphError(f"the loop '{name}' is spread over partitions but has no LoopCond")
            for home, device in partitions.items():
                self._add_loop(self._by_name[name], home, device, condition)

    def _add_loop(self, frame: StaticFrame, home: str, device: str, condition: Node) -> None:
        parent = frame.parent
        assert parent is not None
        trigger = [] if parent.parent is None else [self._merges[home, parent.name]]
        kind = dtypes.int32

        def add(op: str, what: str, inputs: list[Output], where: StaticFrame, **attrs: object) -> Node:
            name = self.graph.unique_name(f"{frame.name}/control_loop/{what}")
            node = self.graph.add(op, name, inputs, attrs={**attrs, SCAFFOLDING: True}, device=device)
            self.homes.append(home)
            self._frames.append(where)
            return node

        start = add("Const", "start", [], parent, dtype=kind, value=_ZERO)
        start.control_inputs = list(trigger)
        enter = add(
            "Enter", "enter", [start.output()], parent,
            T=kind, frame_name=frame.name, is_constant=False, parallel_iterations=frame.parallel_iterations,
        )  # fmt: skip
        merge = add("Merge", "merge", [enter.output()], frame, T=kind, N=2)
        switch = add("Switch", "switch", [merge.output(), condition.output()], frame, T=kind)
        following = add("NextIteration", "next", [switch.output(1)], frame, T=kind)
        merge.inputs.append(following.output())
        self._merges[home, frame.name] = merge


def _depth(frame: StaticFrame) -> int:
    depth = 0
    while frame.parent is not None:
        depth, frame = depth + 1, frame.parent
    return depth


_ROOT = StaticFrame("", None)
_ZERO = TensorProto(dtype=dtypes.int32.enum, int_val=[0])  # type: ignore[arg-type]
_ZERO.tensor_shape.SetInParent()
