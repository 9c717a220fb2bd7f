"""Split a placed graph into one graph per task or device (white paper, section 3.2.2).

Every edge that crosses becomes a `_Send`/`_Recv` pair, one for each tensor and destination. A control edge
crosses as an empty constant that is sent after its source has run. A loop over several partitions gets, in each of
them that receives inside it, a control loop: a skeleton of Enter, Merge, Switch and NextIteration on the loop's
predicate, whose Merge starts the receives of every iteration.

Attributes, names and structure follow TensorFlow's partitioner, so that its kernels and ours can run the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from schemas import tensor_pb2
from toolkit.errors import GraphError, UsageError, did_you_mean
from toolkit.graph import dtypes
from toolkit.graph.check import colocations
from toolkit.graph.device import DeviceSpec
from toolkit.graph.device import incarnation as stable_incarnation
from toolkit.graph.dtypes import DType
from toolkit.graph.frames import StaticFrame, assign_frames
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, EXIT_OPS, MERGE_OPS, NEXT_ITERATION_OPS, SWITCH_OPS, Node, Output
from toolkit.graph.partitioned import MARK, RECV_OPS, SEND_OPS, join
from toolkit.kernels.facts import input_in_host_memory, output_in_host_memory
from toolkit.passes.base import PassResult
from toolkit.passes.prune import prune_library
from toolkit.passes.receive_schedule import ReceiveSchedule

GRANULARITIES = ("task", "device")
#: what float32 tensors may be on their way
COMPRESSIONS = {"bfloat16": dtypes.bfloat16, "half": dtypes.float16}

Incarnation = Callable[[str], int]


def by_task(node: Node) -> str:
    """The task a placed node is on: /job:worker/replica:0/task:0.

    Raises:
        GraphError: it is not placed.
    """
    return _placed(node).task_name


def by_device(node: Node) -> str:
    """The device a placed node is on.

    Raises:
        GraphError: it is not placed.
    """
    name = _names.get(node.device)
    if name is None:
        name = _names[node.device] = str(_placed(node))
    return name


_specs: dict[str, DeviceSpec] = {}
_names: dict[str, str] = {}  # in full, by what nodes have


def _placed(node: Node) -> DeviceSpec:
    spec = _specs.get(node.device)
    if spec is None:
        try:
            spec = DeviceSpec.parse(node.device)
        except UsageError as error:
            raise GraphError(error.message, node=node.name) from None
        if not spec.is_full:
            what = f"its device '{node.device}' is only part of a name" if node.device else "it has no device"
            raise GraphError(f"{what}; run graphmill place first", node=node.name)
        _specs[node.device] = spec
    return spec


@dataclass(frozen=True, slots=True)
class Transfer:
    """One tensor on its way from a partition to another.

    Attributes:
        tensor: what is sent, "w/read:0", or "^step" for a control edge.
        tensor_name: its name in rendezvous keys, "edge_4_w/read".
    """

    tensor: str
    tensor_name: str
    send_device: str
    send_device_incarnation: int
    recv_device: str
    dtype: DType
    source: str
    target: str

    @property
    def key(self) -> str:
        """The rendezvous key outside loops: sender;incarnation;receiver;name;frame:iteration."""
        return f"{self.send_device};{self.send_device_incarnation:016x};{self.recv_device};{self.tensor_name};0:0"


@dataclass(slots=True)
class Partitioned:
    """The parts of a graph.

    Attributes:
        graphs: partition name to graph, in the order of their first nodes.
        transfers: what crosses.
        control_loops: how many control loops were added.
        schedule: when receives begin, where that was asked for.
    """

    graphs: dict[str, Graph]
    transfers: list[Transfer] = field(default_factory=list[Transfer])
    control_loops: int = 0
    schedule: ReceiveSchedule | None = None


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
        schedule: makes receives begin later (`passes/schedule_receives`).
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
        self.check()
        key = by_task if self.by == "task" else by_device
        compress = COMPRESSIONS[self.compress] if self.compress else None
        parts = partition(
            graph, key, incarnation=self.incarnation, share_controls=self.share_controls, compress=compress,
            keep=keep or self.schedule is not None, order=order,
        )  # fmt: skip
        if self.schedule is not None:
            parts.schedule = self.schedule(graph, parts)
        return parts

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
    return _Partitioner(
        whole, key, incarnation, loops, share_controls=share_controls, compress=compress, tag=tag,
        keep=keep and whole is graph,
    ).run()  # fmt: skip


# -- control loops ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Loops:
    """What the partitioner needs to know about loops.

    Attributes:
        frames: by node id, the frame that a node's outputs are in; None outside loops.
        merges: (frame name, partition) to the Merge of the control loop there.
    """

    frames: list[StaticFrame | None]
    merges: dict[tuple[str, str], Node]


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

    def add(self, *, keep: bool, order: list[Node] | None = None) -> tuple[Graph, _Loops]:
        """A copy of the graph with the control loops that it needs; the graph itself when it needs none, or need not
        be kept."""
        graph = self.graph
        if not any(node.op in ENTER_OPS for node in graph.nodes):
            return graph, _Loops([None] * len(graph), {})
        frames = value_frames(graph, order)
        if not self._crossings(graph, frames):
            return graph, _Loops(frames, {})
        whole = graph.copy() if keep else graph
        _gather_plumbing(whole)
        loops = _Loops(frames, {})  # nodes keep their ids, so the frames hold for the copy
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
        attrs={"dtype": dtypes.float32, "value": _empty(), MARK: "loop"},
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


def _empty() -> tensor_pb2.TensorProto:
    proto = tensor_pb2.TensorProto(dtype=dtypes.float32.enum)  # type: ignore[arg-type]
    proto.tensor_shape.dim.add(size=0)
    return proto


# -- sends and receives ----------------------------------------------------------------------------------


class _Partitioner:
    def __init__(
        self,
        graph: Graph,
        key: Callable[[Node], str],
        incarnation: Incarnation,
        loops: _Loops,
        *,
        share_controls: bool,
        compress: DType | None,
        tag: str,
        keep: bool,
    ):
        """Args:
        keep: make copies of the nodes; else they are moved.
        """
        self.graph = graph
        self.keep = keep
        self.tag = tag
        self.share_controls = share_controls
        self.compress = compress
        self.tensors: dict[tuple[int, str], Node] = {}  # source, partition -> a receive of its tensor
        self.waiting: list[tuple[Node, Node, int]] = []  # control edges that may share one: source, target, number
        self.incarnation = incarnation
        self.loops = loops
        self.places = [key(node) for node in graph.nodes]
        self.parts: dict[str, Graph] = {}
        self.copies: list[Node] = []
        # source, index, partition, host, for readers of variables what else they wait for -> what to use
        self.received: dict[tuple[int, int, str, bool, frozenset[int]], tuple[Node, Node]] = {}
        self.names: set[str] = {node.name for node in graph.nodes}
        self.counter = 0
        self.result = Partitioned(self.parts, control_loops=len(loops.merges))

    def run(self) -> Partitioned:
        empty = self.graph.subgraph(())
        for node, place in zip(self.graph.nodes, self.places, strict=True):
            part = self.parts.get(place)
            if part is None:
                part = self.parts[place] = empty.copy()
            self.copies.append(part.add_copy(node) if self.keep else part.adopt(node))
        edge = 0
        for node in self.graph.nodes:
            edge = self._connect(node, edge)
        for src, node, number in self.waiting:
            used = self.tensors.get((src.id, self.places[node.id]))
            self.copies[node.id].control_inputs.append(used or self._receive(src, -1, node, -1, number)[0])
        if not self.keep:
            self.graph.keep([])
        for part in self.parts.values():
            if not self.keep:
                part.settle()
            prune_library(part)
            _drop_missing_colocations(part)
        return self.result

    def _connect(self, node: Node, edge: int) -> int:
        """Give a node of a part its inputs; returns the number of its last edge."""
        copy, place, places = self.copies[node.id], self.places[node.id], self.places
        if not self.keep:
            for src, _ in node.inputs:
                if places[src.id] != place:
                    break
            else:
                for src in node.control_inputs:
                    if places[src.id] != place:
                        break
                else:  # everything is as it was
                    return edge + len(node.inputs) + len(node.control_inputs)
        inputs: list[Output] = []
        controls: list[Node] = []
        reads: list[Node] = []  # receives of values of variables
        others: list[Node] = []
        for position, (src, index) in enumerate(node.inputs):
            edge += 1
            if places[src.id] == place:
                inputs.append(Output(self.copies[src.id], index))
                others.append(self.copies[src.id])
                continue
            given = src.output_types[index]
            if given.is_ref and node.input_types[position].is_ref:
                raise GraphError(
                    f"it changes '{src.name}' on {src.device} through a reference, but is placed on {node.device}; "
                    "references cannot cross: colocate the two",
                    node=node.name,
                )
            used, recv = self._receive(src, index, node, position, edge)
            inputs.append(Output(used, 0))
            (reads if given.is_ref else others).append(recv)
            if self.share_controls and not given.is_ref and src.op not in SWITCH_OPS:
                self.tensors.setdefault((src.id, place), recv)
        for src in node.control_inputs:
            edge += 1
            if places[src.id] == place:
                controls.append(self.copies[src.id])
                others.append(self.copies[src.id])
            else:
                if self.share_controls and self._may_share(node):
                    self.waiting.append((src, node, edge))
                    continue
                used, _ = self._receive(src, -1, node, -1, edge)
                controls.append(used)
                others.append(used)
        copy.inputs, copy.control_inputs = inputs, controls
        # A variable read across partitions is read when everything else the node waits for has happened.
        if node.op not in MERGE_OPS:
            for recv in reads:
                for other in others:
                    if other.op not in NEXT_ITERATION_OPS and other not in recv.control_inputs:
                        recv.control_inputs.append(other)
        return edge

    @staticmethod
    def _may_share(node: Node) -> bool:
        """Whether a node's control edges may wait: a value of a variable that it reads may have to come after them."""
        return not any(src.output_types[index].is_ref for src, index in node.inputs)

    def _receive(self, src: Node, index: int, dst: Node, position: int, edge: int) -> tuple[Node, Node]:
        """The node in dst's partition that stands for an output of src, and the one that receives it."""
        on_host = index < 0 or _input_on_host(dst, position)
        place = self.places[dst.id]
        is_read = index >= 0 and src.output_types[index].is_ref
        # readers that wait for different things may read different values of a variable
        after = frozenset(each.id for each in _waited_for(dst)) if is_read else frozenset[int]()
        key = (src.id, index, place, on_host, after)
        known = self.received.get(key)
        if known is not None:
            return known
        source_part, part = self.parts[self.places[src.id]], self.parts[place]
        attrs: dict[str, Any] = {
            "tensor_name": f"edge_{edge}_{src.name}",
            "send_device": src.device,
            "send_device_incarnation": self.incarnation(src.device),
            "recv_device": dst.device,
            "client_terminated": False,
            MARK: "edge",
        }
        if index < 0:
            dtype = dtypes.float32
            sent = source_part.add(
                "Const", self._name(src, "ctrl/"), device=src.device, control_inputs=[self.copies[src.id]],
                attrs={"dtype": dtype, "value": _empty(), MARK: "control"},
            ).output()  # fmt: skip
            send_op = "_Send"
        else:
            sent = Output(self.copies[src.id], index)
            dtype = src.output_types[index].base
            send_op = "_HostSend" if _output_on_host(src, index) else "_Send"
            if self.compress is not None and dtype is dtypes.float32:
                sent = self._cast(source_part, src, sent, self.compress, src.device)
                dtype = self.compress
        source_part.add(send_op, self._name(src), [sent], attrs={"T": dtype, **attrs}, device=src.device)
        recv_op = "_HostRecv" if index >= 0 and on_host and not _is_cpu(dst) else "_Recv"
        recv = part.add(recv_op, self._name(src), attrs={"tensor_type": dtype, **attrs}, device=dst.device)
        frame = self.loops.frames[src.id]
        if frame is not None:
            recv.control_inputs.append(self.copies[self.loops.merges[frame.name, place].id])
        used = recv
        if index >= 0 and dtype is self.compress and src.output_types[index].base is dtypes.float32:
            used = self._cast(part, src, recv.output(), dtypes.float32, dst.device).node
        if index < 0:
            used = part.add(
                "Identity", self._name(src), [recv.output()], attrs={"T": dtype, MARK: "control"}, device=dst.device
            )
        self.received[key] = (used, recv if index >= 0 else used)
        tensor = f"^{src.name}" if index < 0 else f"{src.name}:{index}"
        self.result.transfers.append(
            Transfer(
                tensor, attrs["tensor_name"], src.device, attrs["send_device_incarnation"], dst.device, dtype,
                self.places[src.id], place,
            )
        )  # fmt: skip
        return self.received[key]

    def _cast(self, part: Graph, src: Node, source: Output, target: DType, device: str) -> Output:
        """A tensor in another type; bfloat16 is float32 without its lower half."""
        given = dtypes.float32 if target is not dtypes.float32 else source.dtype.base
        attrs = {"SrcT": given, "DstT": target, "Truncate": target is dtypes.bfloat16, MARK: "cast"}
        return part.add("Cast", self._name(src, "cast/"), [source], attrs=attrs, device=device).output()

    def _name(self, src: Node, what: str = "") -> str:
        while True:
            self.counter += 1
            name = f"{src.name}/{what}_{self.tag}{self.counter}"
            if name not in self.names:
                self.names.add(name)
                return name


def _waited_for(node: Node) -> list[Node]:
    """What a node waits for besides variables whose value it reads."""
    return [src for src, index in node.inputs if not src.output_types[index].is_ref] + node.control_inputs


def _is_cpu(node: Node) -> bool:
    return _placed(node).device_type == "CPU"


def _output_on_host(node: Node, index: int) -> bool:
    kind = _placed(node).device_type
    return kind is not None and kind != "CPU" and output_in_host_memory(node, kind, index)


def _input_on_host(node: Node, position: int) -> bool:
    kind = _placed(node).device_type
    return kind is not None and (kind == "CPU" or input_in_host_memory(node, kind, position))


def _drop_missing_colocations(part: Graph) -> None:
    """`_class` entries whose node is in another partition say nothing any more."""
    for node in part.nodes:
        kind = node.kind
        if kind is not None and kind.companions == ():
            continue
        gone = {b"loc:@" + name.encode() for name in colocations(node) if name not in part}
        if gone:
            kept = [value for value in node.attr("_class") if value not in gone]
            if kept:
                node.attrs["_class"] = kept
            else:
                del node.attrs["_class"]


__all__ = [
    "GRANULARITIES", "MARK", "RECV_OPS", "SEND_OPS", "PartitionGraph", "Partitioned", "Transfer", "by_device",
    "by_task", "join", "partition", "split", "value_frames",
]  # fmt: skip
