"""What stands in the place of edges that cross between partitions: sends and receives, one pair for each tensor
and destination. A control edge crosses as an empty constant that is sent after its source has run.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas import tensor_pb2
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.check import colocations
from toolkit.graph.device import DeviceSpec
from toolkit.graph.dtypes import DType
from toolkit.graph.frames import StaticFrame
from toolkit.graph.graph import Graph
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS, SWITCH_OPS, Node, Output
from toolkit.graph.partitioned import MARK
from toolkit.kernels.facts import input_in_host_memory, output_in_host_memory
from toolkit.passes.partitioning.receive_schedule import ReceiveSchedule
from toolkit.passes.pruning.prune import prune_library

#: the incarnation number of a device, by full name
Incarnation = Callable[[str], int]

_specs: dict[str, DeviceSpec] = {}


def placed_spec(node: Node) -> DeviceSpec:
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


@dataclass(slots=True)
class PlacedLoops:
    """What the partitioner needs to know about loops.

    Attributes:
        frames: by node id, the frame that a node's outputs are in; None outside loops.
        merges: (frame name, partition) to the Merge of the control loop there.
    """

    frames: list[StaticFrame | None]
    merges: dict[tuple[str, str], Node]


def empty_tensor() -> tensor_pb2.TensorProto:
    proto = tensor_pb2.TensorProto(dtype=dtypes.float32.enum)  # type: ignore[arg-type]
    proto.tensor_shape.dim.add(size=0)
    return proto


class Partitioner:
    """Divides the nodes of a graph, and puts transfers where their edges cross.

    Attributes:
        parts: by name.
        result: what was made.
    """

    def __init__(
        self,
        graph: Graph,
        places: Sequence[str],
        incarnation: Incarnation,
        loops: PlacedLoops,
        *,
        share_controls: bool = False,
        compress: DType | None = None,
        tag: str = "",
        keep: bool = False,
        taken: Container[str] | None = None,
    ):
        """Args:
        places: the partition of each node, by id.
        share_controls, compress, tag: see `toolkit.passes.partitioning.partition`.
        keep: make copies of the nodes; else they are moved.
        taken: names that no new node may have; by default those of the graph.
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
        self.places = places
        self.parts: dict[str, Graph] = {}
        self.copies: list[Node] = []
        # source, index, partition, host, for readers of variables what else they wait for -> what to use
        self.received: dict[tuple[int, int, str, bool, frozenset[int]], tuple[Node, Node]] = {}
        self.taken: Container[str] = {node.name for node in graph.nodes} if taken is None else taken
        self.names: set[str] = set()
        self.counter = 0
        self.result = Partitioned(self.parts, control_loops=len(loops.merges))

    def run(self) -> Partitioned:
        """The parts of the whole graph."""
        self.divide()
        edge = 0
        for node in self.graph.nodes:
            edge = self.connect(node, edge)
        self.connect_waiting()
        if not self.keep:
            self.graph.keep([])
        for part in self.parts.values():
            if not self.keep:
                part.settle()
            prune_library(part)
            drop_colocations(part.nodes, lambda _, name, part=part: name in part)
        return self.result

    def divide(self, names: Iterable[str] = ()) -> None:
        """Give each node to its part.

        Args:
            names: of parts, in their order; others follow in that of their first nodes.
        """
        empty = self.graph.subgraph(())
        for name in names:
            self.parts[name] = empty.copy()
        for node, place in zip(self.graph.nodes, self.places, strict=True):
            part = self.parts.get(place)
            if part is None:
                part = self.parts[place] = empty.copy()
            self.copies.append(part.add_copy(node) if self.keep else part.adopt(node))

    def connect_waiting(self) -> None:
        """Draw the control edges that may share a transfer, once all others are known."""
        for src, node, number in self.waiting:
            used = self.tensors.get((src.id, self.places[node.id]))
            self.copies[node.id].control_inputs.append(used or self._receive(src, -1, node, -1, number)[0])

    def connect(self, node: Node, edge: int) -> int:
        """Give a node of a part its inputs; returns the number of its last edge.

        Args:
            edge: the number of the last edge before.

        Raises:
            GraphError: a reference would have to cross.
        """
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
                attrs={"dtype": dtype, "value": empty_tensor(), MARK: "control"},
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
            if name not in self.taken and name not in self.names:
                self.names.add(name)
                return name


def _waited_for(node: Node) -> list[Node]:
    """What a node waits for besides variables whose value it reads."""
    return [src for src, index in node.inputs if not src.output_types[index].is_ref] + node.control_inputs


def _is_cpu(node: Node) -> bool:
    return placed_spec(node).device_type == "CPU"


def _output_on_host(node: Node, index: int) -> bool:
    kind = placed_spec(node).device_type
    return kind is not None and kind != "CPU" and output_in_host_memory(node, kind, index)


def _input_on_host(node: Node, position: int) -> bool:
    kind = placed_spec(node).device_type
    return kind is not None and (kind == "CPU" or input_in_host_memory(node, kind, position))


def drop_colocations(nodes: Iterable[Node], is_there: Callable[[Node, str], bool]) -> None:
    """Take out of `_class` what names a node of another partition: it says nothing any more.

    Args:
        is_there: whether a name that a node has there is that of a node in its partition.
    """
    for node in nodes:
        kind = node.kind
        if kind is not None and kind.companions == ():
            continue
        gone = {b"loc:@" + name.encode() for name in colocations(node) if not is_there(node, name)}
        if gone:
            kept = [value for value in node.attr("_class") if value not in gone]
            if kept:
                node.attrs["_class"] = kept
            else:
                del node.attrs["_class"]
