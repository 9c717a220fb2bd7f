"""Graphs that were split: what partitioning adds to them, and how they become one graph again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from toolkit.errors import GraphError
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output

SEND_OPS = frozenset({"_Send", "_HostSend"})
RECV_OPS = frozenset({"_Recv", "_HostRecv"})
#: marks what partitioning added, so that `join` can take it out again
MARK = "_partition"


def join(parts: Mapping[str, Graph]) -> Graph:
    """One graph from its partitions: sends, receives and control loops are taken out and their edges drawn again.

    The result equals the graph that was split, up to the order of nodes and of control inputs.

    Raises:
        GraphError: a receive has no matching send; two partitions have a node of one name.
    """
    sends: dict[tuple[str, str, str], Node] = {}
    for part in parts.values():
        for node in part.nodes:
            if node.op in SEND_OPS and not node.attr("client_terminated", False):
                sends[_rendezvous(node)] = node
    out = Graph()
    copies: dict[Node, Node] = {}
    first = True
    for part in parts.values():
        if first:
            out = part.subgraph(())
            first = False
        for name in part.library:
            out.library.add(part.library.function(name))
        out.library.gradients |= part.library.gradients
        for node in part.nodes:
            if not _is_added(node):
                copies[node] = out.add_copy(node)

    def origin(recv: Node) -> Output:
        send = sends.get(_rendezvous(recv))
        if send is None:
            raise GraphError(
                f"nothing sends the tensor '{recv.text('tensor_name')}' from "
                f"{recv.text('send_device')}; is a partition missing?",
                node=recv.name,
            )
        if not send.inputs:
            raise GraphError("it sends nothing: it has no input", node=send.name)
        return send.inputs[0]

    def resolve(source: Output) -> Output:
        seen: set[Node] = set()
        while True:
            node = source.node
            if node in seen:
                raise GraphError("what it receives is sent on to itself", node=node.name)
            seen.add(node)
            if node.op in RECV_OPS and not node.attr("client_terminated", False):
                source = origin(node)
            elif node.op == "Cast" and node.inputs and node.attr(MARK, b"") == b"cast":  # a compressed transfer's
                source = node.inputs[0]
            else:
                return source

    for node, copy in copies.items():
        for source in node.inputs:
            src, index = resolve(source)
            if src not in copies:
                raise GraphError(
                    f"its input '{src.name}' is marked as a transfer between partitions, but is none", node=node.name
                )
            copy.inputs.append(Output(copies[src], index))
        for src in node.control_inputs:
            for real in _control_sources(src, resolve):
                if real in copies and copies[real] not in copy.control_inputs:
                    copy.control_inputs.append(copies[real])
    return out


def first_lone_receive(graph: Graph, wanted: Iterable[Node]) -> Node | None:
    """A node that some nodes need and that receives what no node of the graph sends, as in one part of a graph."""
    if not graph.nodes_of(RECV_OPS):
        return None
    sent = {_rendezvous(node) for node in graph if node.op in SEND_OPS}
    waiting, seen = list(wanted), set[int]()
    while waiting:
        node = waiting.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        if node.op in RECV_OPS and not node.attr("client_terminated", False) and _rendezvous(node) not in sent:
            return node
        waiting += [source.node for source in node.inputs] + node.control_inputs
    return None


def _rendezvous(node: Node) -> tuple[str, str, str]:
    return (
        node.text("send_device"), node.text("recv_device"), node.text("tensor_name"),
    )  # fmt: skip


def _is_added(node: Node) -> bool:
    """Whether partitioning put the node in: ours are marked, TensorFlow's are known by their ops."""
    if MARK in node.attrs:
        return True
    return node.op in SEND_OPS | RECV_OPS and not node.attr("client_terminated", False)


def _control_sources(src: Node, resolve: Callable[[Output], Output]) -> list[Node]:
    """What a control input stands for: itself, or across a transfer the nodes that its constant waits for."""
    found: list[Node] = []
    waiting, seen = [src], {src}
    while waiting:
        node = waiting.pop()
        if node.attr(MARK, b"") == b"control" and node.op == "Identity" and node.inputs:
            more = [wait for wait in resolve(node.inputs[0]).node.control_inputs if wait not in seen]
            seen.update(more)
            waiting += reversed(more)
        else:
            found.append(resolve(node.output()).node if node.op in RECV_OPS or MARK in node.attrs else node)
    return found
