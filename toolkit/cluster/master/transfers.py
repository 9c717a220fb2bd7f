"""A partition as TensorFlow's workers take it: arguments come and results go by the rendezvous.

RunGraph hands in tensors and takes them out by rendezvous keys, so `_Arg` becomes a `_Recv` and `_Retval` a `_Send`
that the client is at the other end of. Both ends of such a key are a device of the task itself: a worker looks in its
own memory for what one of its own devices has sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.partitioning.partition import RECV_OPS, SEND_OPS
from toolkit.passes.pruning.client_graph import feed_key, fetch_key
from toolkit.runtime.steps.rendezvous import make_key


@dataclass(frozen=True, slots=True)
class WorkerGraph:
    """A graph to register.

    Attributes:
        graph: without arguments and results.
        inputs, outputs: the names of what were its arguments and results, in order.
        keys: the rendezvous key of every name that the client sends or receives, those of a partial run included.
        is_partial: whether it was made for a partial run.
    """

    graph: Graph
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    keys: Mapping[str, str]
    is_partial: bool


def worker_graph(graph: Graph, device: str, incarnation: int) -> WorkerGraph:
    """The graph of one task for its worker.

    Args:
        graph: a part that `passes.partitioning.partition` has made; it is not changed.
        device: any device of the task, by its full name.
        incarnation: of that device.
    """
    graph = graph.copy()
    inputs: dict[int, str] = {}
    outputs: dict[int, str] = {}
    names: list[str] = []
    is_partial = False
    for node in graph.nodes:
        if node.op == "_Arg":
            index: int = node.attr("index")
            name = inputs[index] = feed_key(index)
            _exchange(node, "_Recv", "tensor_type", name, device, incarnation)
        elif node.op == "_Retval":
            index = node.attr("index")
            name = outputs[index] = fetch_key(index)
            _exchange(node, "_Send", "T", name, device, incarnation)
        elif node.op in SEND_OPS | RECV_OPS and node.attr("client_terminated", False):
            is_partial = True
            name = node.text("tensor_name")
            node.attrs["send_device"] = node.attrs["recv_device"] = device
            node.attrs["send_device_incarnation"] = incarnation
        else:
            continue
        names.append(name)
    keys = {name: make_key(device, incarnation, device, name, (0, 0)) for name in names}
    in_order = [tuple(found[index] for index in sorted(found)) for found in (inputs, outputs)]
    return WorkerGraph(graph, in_order[0], in_order[1], keys, is_partial)


def _exchange(node: Node, op: str, type_attr: str, name: str, device: str, incarnation: int) -> None:
    dtype = node.attr("T")
    for attr in list(node.attrs):
        del node.attrs[attr]
    node.op = op
    node.attrs.update(
        {
            type_attr: dtype,
            "tensor_name": name,
            "send_device": device,
            "send_device_incarnation": incarnation,
            "recv_device": device,
            "client_terminated": True,
        }
    )
    node.invalidate_types()
