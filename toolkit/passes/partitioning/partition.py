"""Split a placed graph into one graph per task or device (white paper, section 3.2.2).

Every edge that crosses becomes a `_Send`/`_Recv` pair, one for each tensor and destination. A control edge
crosses as an empty constant that is sent after its source has run. A loop over several partitions gets, in each of
them that receives inside it, a control loop: a skeleton of Enter, Merge, Switch and NextIteration on the loop's
predicate, whose Merge starts the receives of every iteration.

Attributes, names and structure follow TensorFlow's partitioner, so that its kernels and ours can run the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.errors import GraphError, UsageError, did_you_mean
from toolkit.graph import dtypes
from toolkit.graph.device import incarnation as stable_incarnation
from toolkit.graph.dtypes import DType
from toolkit.graph.frames import StaticFrame, assign_frames
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, EXIT_OPS, MERGE_OPS, NEXT_ITERATION_OPS, SWITCH_OPS, Node, Output
from toolkit.graph.partitioned import MARK, RECV_OPS, SEND_OPS, join
from toolkit.passes.base import PassResult
from toolkit.passes.partitioning.receive_schedule import ReceiveSchedule
from toolkit.passes.partitioning.transfers import (
    Incarnation,
    Partitioned,
    Partitioner,
    PlacedLoops,
    Transfer,
    empty_tensor,
    placed_spec,
)

GRANULARITIES = ("task", "device")
#: what float32 tensors may be on their way
COMPRESSIONS = {"bfloat16": dtypes.bfloat16, "half": dtypes.float16}


def by_task(node: Node) -> str:
    """The task a placed node is on: /job:worker/replica:0/task:0.

    Raises:
        GraphError: it is not placed.
    """
    return placed_spec(node).task_name


def by_device(node: Node) -> str:
    """The device a placed node is on.

    Raises:
        GraphError: it is not placed.
    """
    name = _names.get(node.device)
    if name is None:
        name = _names[node.device] = str(placed_spec(node))
    return name


_names: dict[str, str] = {}  # in full, by what nodes have


@dataclass(frozen=True)
class PartitionGraph:
    """Split by task or by device.

    As a pass it makes the graph that the parts add up to: all their nodes, sends and receives included.

    Attributes:
        by: "task" or "device".
        share_controls: a control edge from a node whose tensor is received anyway waits for that tensor, instead of a
            transfer of its own.
        compress: the type of 16 bits that float32 tensors have on their way: "bfloat16", by cutting off the lower half
            of each number (white paper, section 5.5), or "half"; "" for none.
        schedule: makes receives begin later (`passes/partitioning/schedule_receives`).
    """

    name: ClassVar[str] = "partition"

    by: str = "task"
    incarnation: Incarnation = stable_incarnation
    share_controls: bool = False
    compress: str = ""
    schedule: Callable[[Graph, Partitioned], ReceiveSchedule] | None = None

    def check(self) -> None:
        """Raise UsageError when `by` is unknown."""
        if self.by not in GRANULARITIES:
            hint = did_you_mean(self.by, GRANULARITIES, then=f"by {' or '.join(GRANULARITIES)}")
            raise UsageError(f"graphs are not partitioned by '{self.by}'{hint}")
        if self.compress and self.compress not in COMPRESSIONS:
            hint = did_you_mean(self.compress, COMPRESSIONS, then=f"to {' or '.join(COMPRESSIONS)}")
            raise UsageError(f"transfers are not compressed to '{self.compress}'{hint}")

    def split(self, graph: Graph, *, keep: bool = True, order: list[Node] | None = None) -> Partitioned:
        """The parts.

        Args:
            keep: see `partition`; a schedule needs the graph.
            order: the graph's topological order, where it is known.

        Raises:
            UsageError: `by` is unknown.
            GraphError: a node is not placed; a reference would have to cross; a loop cannot be split.
        """
        unmade = self.split_unmade(graph)
        if unmade is not None:
            return unmade
        key = by_task if self.by == "task" else by_device
        compress = COMPRESSIONS[self.compress] if self.compress else None
        parts = partition(
            graph, key, incarnation=self.incarnation, share_controls=self.share_controls, compress=compress,
            keep=keep or self.schedule is not None, order=order,
        )  # fmt: skip
        if self.schedule is not None:
            parts.schedule = self.schedule(graph, parts)
        return parts

    def split_unmade(self, graph: Graph) -> Partitioned | None:
        """The parts of a graph whose nodes have not been made, which stays as it is; None where they have to be.

        Raises:
            UsageError, GraphError: as `split`.
        """
        self.check()
        if graph.unmade is None or self.schedule is not None:
            return None
        from toolkit.passes.partitioning.partition_table import partition_table  # which imports NumPy

        compress = COMPRESSIONS[self.compress] if self.compress else None
        return partition_table(
            graph, self.by, self.incarnation, share_controls=self.share_controls, compress=compress
        )  # fmt: skip

    def apply(self, graph: Graph) -> PassResult:
        parts = self.split(graph)
        whole = Graph()
        copies: dict[Node, Node] = {}
        for part in parts.graphs.values():
            for node in part.nodes:
                copies[node] = whole.add_copy(node)
        for node, copy in copies.items():
            copy.inputs = [Output(copies[src], index) for src, index in node.inputs]
            copy.control_inputs = [copies[src] for src in node.control_inputs]
        report: dict[str, Any] = {"partitions": {name: len(part) for name, part in parts.graphs.items()}}
        if parts.schedule is not None:
            report["schedule"] = parts.schedule.facts()
        return PassResult(whole, bool(parts.transfers), report)


def split(
    graph: Graph, key: Callable[[Node], str] = by_device, *, incarnation: Incarnation = stable_incarnation,
    tag: str = "",
) -> dict[str, Graph]:  # fmt: skip
    """The parts of a graph by name; see `partition`."""
    return partition(graph, key, incarnation=incarnation, tag=tag).graphs


def partition(
    graph: Graph,
    key: Callable[[Node], str] = by_device,
    *,
    incarnation: Incarnation = stable_incarnation,
    share_controls: bool = False,
    compress: DType | None = None,
    tag: str = "",
    keep: bool = True,
    order: list[Node] | None = None,
) -> Partitioned:
    """Split a graph. Without `share_controls` and `compress` what crosses is what crosses in TensorFlow.

    Args:
        key: which partition a node belongs to.
        incarnation: the incarnation number of a device, by full name.
        share_controls, compress: see `PartitionGraph`.
        tag: in the name of every node that is added. TensorFlow's workers keep the kernels of nodes with a state by
            their names as long as a session lasts, and those of sends and receives are such.
        keep: whether the graph is needed afterwards; else its nodes become those of the parts, and it has none.
        order: the graph's topological order, where it is known.

    Raises:
        GraphError: a node is not placed; an op needs a reference to a variable in another partition; a loop over
            several partitions has no predicate, or its nodes are malformed.
    """
    whole, loops = _ControlLoops(graph, key).add(keep=keep, order=order)
    return Partitioner(
        whole, [key(node) for node in whole.nodes], incarnation, loops, share_controls=share_controls,
        compress=compress, tag=tag, keep=keep and whole is graph,
    ).run()  # fmt: skip


# -- control loops ---------------------------------------------------------------------------------------


def value_frames(graph: Graph, order: list[Node] | None = None) -> list[StaticFrame | None]:
    """The frame that each node's outputs are in, by id; None outside loops.

    Args:
        order: the graph's topological order, where it is known.

    Raises:
        GraphError: a node has inputs from different frames.
    """
    frames, every = assign_frames(graph, graph.topological_order() if order is None else order)
    by_name = {frame.name: frame for frame in every}
    found: list[StaticFrame | None] = []
    for node, frame in zip(graph.nodes, frames, strict=True):
        inside: StaticFrame | None = frame
        if node.op in ENTER_OPS:
            inside = by_name[node.text("frame_name")]
        elif node.op in EXIT_OPS:
            inside = frame.parent
        found.append(inside if inside is not None and inside.parent is not None else None)
    return found


class _ControlLoops:
    def __init__(self, graph: Graph, key: Callable[[Node], str]):
        self.graph = graph
        self.key = key

    def add(self, *, keep: bool, order: list[Node] | None = None) -> tuple[Graph, PlacedLoops]:
        """A copy of the graph with the control loops that it needs; the graph itself when it needs none, or need not
        be kept."""
        graph = self.graph
        if not any(node.op in ENTER_OPS for node in graph.nodes):
            return graph, PlacedLoops([None] * len(graph), {})
        frames = value_frames(graph, order)
        if not self._crossings(graph, frames):
            return graph, PlacedLoops(frames, {})
        whole = graph.copy() if keep else graph
        _gather_plumbing(whole)
        loops = PlacedLoops(frames, {})  # nodes keep their ids, so the frames hold for the copy
        predicates = self._predicates(whole, frames)
        needed = self._crossings(whole, frames)
        for (name, place), (frame, device) in sorted(needed.items(), key=lambda item: (_depth(item[1][0]), item[0])):
            predicate = predicates.get(name)
            if predicate is None:
                raise GraphError(
                    f"the loop '{name}' spreads over several partitions but has no LoopCond; place its nodes together"
                )
            outer = None if frame.parent is None else loops.merges.get((frame.parent.name, place))
            loops.merges[name, place] = _add_control_loop(whole, frame, device, predicate, outer)
        loops.frames = value_frames(whole)
        return whole, loops

    def _crossings(
        self, graph: Graph, frames: list[StaticFrame | None]
    ) -> dict[tuple[str, str], tuple[StaticFrame, str]]:
        """(frame, partition) where something is received inside a loop, with a device there; outer frames too.

        So is where a reference enters that is read elsewhere: it stays with its variable, and is sent each time.
        """
        places = [self.key(node) for node in graph.nodes]
        needed: dict[tuple[str, str], tuple[StaticFrame, str]] = {}
        for node in graph.nodes:
            here = places[node.id]
            crossing = [src for src, _ in node.inputs if places[src.id] != here]
            if node.control_inputs:
                crossing += (src for src in node.control_inputs if places[src.id] != here)
            for src in crossing:
                frame = frames[src.id]
                if frame is None:
                    continue
                ends = (node, src) if src.op in ENTER_OPS else (node,)
                while frame.parent is not None:
                    for end in ends:
                        needed.setdefault((frame.name, places[end.id]), (frame, end.device))
                    frame = frame.parent
        return needed

    @staticmethod
    def _predicates(graph: Graph, frames: list[StaticFrame | None]) -> dict[str, Output]:
        """What decides whether each frame goes on: its LoopCond, or the predicate of a control loop in it."""
        found: dict[str, Output] = {}
        for node in graph.nodes:
            frame = frames[node.id]
            if frame is None:
                continue
            if node.op == "LoopCond":
                found[frame.name] = node.output()
            elif node.op in SWITCH_OPS and node.inputs and node.inputs[0].node.op in MERGE_OPS and MARK in node.attrs:
                found.setdefault(frame.name, node.inputs[1])
        return found


def _depth(frame: StaticFrame) -> int:
    depth = 0
    while frame.parent is not None:
        depth, frame = depth + 1, frame.parent
    return depth


def _gather_plumbing(graph: Graph) -> None:
    """Move the plumbing of loops to what it serves, as TensorFlow does before it splits.

    Enter and NextIteration go to their first consumer (the Merge), Switch to its data, Exit to its Switch: a loop
    variable then circulates in one partition, and only what its body really exchanges crosses.
    """
    consumers = graph.consumers()
    for node in graph.nodes:
        if node.op == "Enter" or node.op in NEXT_ITERATION_OPS:
            consumer = next((edge.dst for edge in consumers[node.id] if not edge.is_control), None)
            if consumer is not None:
                node.device = consumer.device
    for node in graph.topological_order():
        if (node.op == "Switch" or node.op in EXIT_OPS) and node.inputs:
            node.device = node.inputs[0].node.device


def _add_control_loop(graph: Graph, frame: StaticFrame, device: str, predicate: Output, outer: Node | None) -> Node:
    """Enter -> Merge -> Switch(predicate) -> NextIteration -> Merge on one device; returns the Merge."""
    stem = f"{frame.name}/_cloop"

    def add(op: str, inputs: list[Output], **attrs: Any) -> Node:
        name = graph.unique_name(f"{stem}/{op}")
        return graph.add(op, name, inputs, attrs={"T": dtypes.float32, **attrs, MARK: "loop"}, device=device)

    const = graph.add(
        "Const", graph.unique_name(f"{stem}/Const"), device=device,
        attrs={"dtype": dtypes.float32, "value": empty_tensor(), MARK: "loop"},
    )  # fmt: skip
    if outer is not None:
        const.control_inputs.append(outer)  # an inner loop starts once in each iteration of the outer
    enter = add(
        "Enter", [const.output()], frame_name=frame.name, parallel_iterations=frame.parallel_iterations,
        is_constant=False,
    )  # fmt: skip
    merge = add("Merge", [enter.output(), enter.output()], N=2)
    switch = add("Switch", [merge.output(), predicate])
    following = add("NextIteration", [switch.output(1)])
    merge.inputs[1] = following.output()
    return merge


__all__ = [
    "GRANULARITIES", "MARK", "RECV_OPS", "SEND_OPS", "PartitionGraph", "Partitioned", "Transfer", "by_device",
    "by_task", "join", "partition", "split", "value_frames",
]  # fmt: skip
