"""Splitting a placed graph into one graph per device or task, joined by _Send/_Recv pairs.

White paper, section 3.2.2: edges between partitions become a send and a receive; all consumers of a tensor in one
partition share one receive; a control edge carries an empty tensor. A loop whose nodes are in several partitions
gets a small control loop in each, so that every partition takes the same iterations (`control_loops`).
"""

from __future__ import annotations

from collections.abc import Callable

from schemas.tensor_pb2 import TensorProto
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec, incarnation
from toolkit.graph.frames import StaticFrame
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, MERGE_OPS, NEXT_ITERATION_OPS, Edge, Node, Output, in_edges
from toolkit.passes.control_loops import SCAFFOLDING, ControlLoops

PartitionKey = Callable[[Node], str]
SEND_OPS = frozenset({"_Send", "_HostSend"})
RECV_OPS = frozenset({"_Recv", "_HostRecv"})


def by_device(node: Node) -> str:
    """Partition key: the whole device name.

    Raises:
        GraphError: the node has no full device; place the graph first.
    """
    if not node.device or not DeviceSpec.parse(node.device).is_full:
        raise GraphError(
            f"it has no full device ('{node.device}'), so it cannot be put into a partition; run `place` first",
            node=node.name,
        )
    return node.device


def by_task(node: Node) -> str:
    """Partition key: job, replica and task.

    Raises:
        GraphError: the node has no full device; place the graph first.
    """
    return DeviceSpec.parse(by_device(node)).task_name


def split(graph: Graph, key: PartitionKey = by_device) -> dict[str, Graph]:
    """Split a graph; linear in its nodes and edges.

    Args:
        key: which partition a node belongs to.

    Returns:
        partition name to graph, in order of first appearance. Nodes keep names, attributes and devices.

    Raises:
        GraphError: a node is not placed, a reference would have to cross between devices, or the inputs of a
            loop's Merge are not where the Merge is.
    """
    homes = [key(node) for node in graph.nodes]
    if len(set(homes)) <= 1:
        return {homes[0]: graph.copy()} if homes else {}
    return _Split(graph, homes).run()


class _Split:
    def __init__(self, graph: Graph, homes: list[str]):
        self.loops = ControlLoops(graph, homes)
        self.graph = self.loops.graph  # the graph with control loops in it
        self.homes = self.loops.homes
        self.parts: dict[str, Graph] = {}
        self.copies: list[Node] = []
        self.recvs: dict[tuple[int, int, str], Node] = {}
        self.sends = 0

    def run(self) -> dict[str, Graph]:
        for node, home in zip(self.graph.nodes, self.homes, strict=True):
            part = self.parts.get(home)
            if part is None:
                part = self.parts[home] = Graph()
                part.versions.CopyFrom(self.graph.versions)
                part.library = self.graph.library.copy()
            self.copies.append(part.add_copy(node))
        for node in self.graph.nodes:
            copy = self.copies[node.id]
            for edge in in_edges(node):
                local = self._endpoint(edge)
                if edge.is_control:
                    copy.control_inputs.append(local.node)
                else:
                    copy.inputs.append(local)
        return self.parts

    def _endpoint(self, edge: Edge) -> Output:
        """Where the destination reads from: the source's copy when it is in the same partition, else a _Recv."""
        here, there = self.homes[edge.dst.id], self.homes[edge.src.id]
        if here == there:
            return Output(self.copies[edge.src.id], edge.src_output)
        self._check_crossing(edge)
        found = self.recvs.get((edge.src.id, edge.src_output, here))
        if found is None:
            found = self._transfer(edge, there, here)
            self.recvs[edge.src.id, edge.src_output, here] = found
        return Output(found, 0)

    @staticmethod
    def _check_crossing(edge: Edge) -> None:
        if edge.dst.op in MERGE_OPS and edge.src.op in ENTER_OPS | NEXT_ITERATION_OPS:
            raise GraphError(
                f"the loop variable's {edge.src.op} '{edge.src.name}' is on {edge.src.device}, but its {edge.dst.op} "
                f"is on {edge.dst.device}; they must be on one device",
                node=edge.dst.name,
            )
        if not edge.is_control and edge.dst.input_types[edge.dst_input].is_ref:
            raise GraphError(
                f"it needs a reference to '{edge.src.name}', which is on {edge.src.device}, but is itself on "
                f"{edge.dst.device}; a reference cannot leave its device",
                node=edge.dst.name,
            )

    def _transfer(self, edge: Edge, there: str, here: str) -> Node:
        """Make a send in the source's partition and a receive in the destination's."""
        src = edge.src
        number = self.sends
        self.sends += 1
        sender, receiver = self.parts[there], self.parts[here]
        copy = self.copies[src.id]
        if edge.is_control:
            # A control edge has no value: an empty tensor made after the source stands for "it has run".
            value = sender.add(
                "Const",
                sender.unique_name(f"{src.name}/_{number}/control"),
                control_inputs=[copy],
                attrs={"dtype": dtypes.float32, "value": _EMPTY, SCAFFOLDING: True},
                device=src.device,
            ).output()
            dtype = dtypes.float32
        else:
            value, dtype = Output(copy, edge.src_output), src.output_types[edge.src_output].base
        attrs = {
            "tensor_name": f"edge_{number}_{src.name}" + (f":{edge.src_output}" if edge.src_output > 0 else ""),
            "send_device": src.device,
            "send_device_incarnation": incarnation(src.device),
            "recv_device": edge.dst.device,
            "client_terminated": False,
        }
        sender.add(
            "_Send",
            sender.unique_name(f"{src.name}/_{number}"),
            [value],
            attrs={"T": dtype, **attrs},
            device=src.device,
        )
        trigger = self._trigger(edge, here)
        return receiver.add(
            "_Recv",
            receiver.unique_name(f"{src.name}/_{number}/recv"),
            control_inputs=trigger,
            attrs={"tensor_type": dtype, **attrs},
            device=edge.dst.device,
        )

    def _trigger(self, edge: Edge, here: str) -> list[Node]:
        """What starts the receive: nothing at the top, the iteration inside a loop."""
        frame: StaticFrame = self.loops.edge_frame(edge.src)
        if frame.parent is None:
            return []
        return [self.copies[self.loops.merge(here, frame).id]]


_EMPTY = TensorProto(dtype=dtypes.float32.enum)  # type: ignore[arg-type]
_EMPTY.tensor_shape.dim.add(size=0)


def join(parts: dict[str, Graph]) -> Graph:
    """Put partitions together again: the inverse of `split`, up to the order of nodes.

    Raises:
        GraphError: a receive has no matching send, or two nodes share a name.
    """
    sends: dict[str, Output] = {}
    for part in parts.values():
        for node in part:
            if node.op in SEND_OPS:
                sends[_pair_key(node)] = node.inputs[0]
    out = Graph()
    copies: dict[int, Node] = {}
    dropped = SEND_OPS | RECV_OPS
    kept = [node for part in parts.values() for node in part if node.op not in dropped and not _is_scaffolding(node)]
    for number, part in enumerate(parts.values()):
        if number == 0:
            out.versions.CopyFrom(part.versions)
        for name in part.library:
            out.library.add(part.library.function(name))
        out.library.gradients.update(part.library.gradients)
    for node in kept:
        copies[id(node)] = out.add_copy(node)

    def source(endpoint: Output) -> Output:
        while endpoint.node.op in RECV_OPS:
            try:
                endpoint = sends[_pair_key(endpoint.node)]
            except KeyError:
                name = endpoint.node.attr("tensor_name").decode()
                raise GraphError(f"no partition sends '{name}', which it receives", node=endpoint.node.name) from None
        return endpoint

    for node in kept:
        copy = copies[id(node)]
        for endpoint in node.inputs:
            real = source(endpoint)
            copy.inputs.append(Output(copies[id(real.node)], real.index))
        for src in node.control_inputs:
            if src.op in RECV_OPS:
                sent = source(Output(src, 0)).node
                # an empty constant was sent in place of the control edge; see `_transfer`
                copy.control_inputs += [copies[id(origin)] for origin in sent.control_inputs]
            elif not _is_scaffolding(src):
                copy.control_inputs.append(copies[id(src)])
    return out


def _pair_key(node: Node) -> str:
    return "|".join(
        str(node.attr(name)) for name in ("tensor_name", "send_device", "recv_device", "send_device_incarnation")
    )


def _is_scaffolding(node: Node) -> bool:
    """Nodes that `split` added besides transfers: control loops, and the constants sent for control edges."""
    return SCAFFOLDING in node.attrs


__all__ = ["by_device", "by_task", "join", "split"]
