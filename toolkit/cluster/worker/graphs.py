"""A graph that a master has registered.

A master of TensorFlow's has feeds come by `_Recv` and fetches leave by `_Send`, for the client is behind it. In a step
that is run at once these are arguments and results, with which the graph can be compiled when nothing else crosses; in
a partial run they stay transfers. Which it is says the first RunGraph.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.partitioned import RECV_OPS, SEND_OPS
from toolkit.kernels.context import DEAD
from toolkit.passes.pruning.client_graph import feed_key, fetch_key
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.steps.rendezvous import make_key
from toolkit.runtime.workers.base import Registered, Worker


class RegisteredGraph:
    """A graph of a session, by its handle.

    Args:
        graph: the master's partition; it is changed.

    Attributes:
        feeds, fetches: the keys under which `RunGraph` gives and asks for tensors.

    Raises:
        GraphError: it is malformed.
        UnimplementedError: an op has no kernel.
    """

    def __init__(self, worker: Worker, graph: Graph):
        self._worker = worker
        self._lock = threading.Lock()
        self._as_sent = graph
        called, keys = _with_arguments(graph)
        self._called = worker.register(called)
        self._transfers: Registered | None = self._called if called is graph else None
        self._given = {key: position for position, key in enumerate(self._called.inputs)}
        self._asked = {key: position for position, key in enumerate(self._called.outputs)}
        self._given |= {key: self._given[feed_key(index)] for key, index in keys[0].items()}
        self._asked |= {key: self._asked[fetch_key(index)] for key, index in keys[1].items()}
        self.feeds, self.fetches = frozenset(self._given), frozenset(self._asked)

    @property
    def partitions(self) -> Mapping[str, Graph]:
        """What each device runs, by its name."""
        return self._called.partitions

    def run(self, step_id: int, feeds: Mapping[str, Any], fetches: Sequence[str], probe: Probe | None) -> list[Any]:
        """Run it at once; values in the order of `fetches`.

        Raises:
            InvalidArgumentError: a feed is missing, or there is no such fetch, or it has no value.
            OpError: the step failed.
        """
        arguments: list[Any] = [None] * len(self._called.inputs)
        for key, value in feeds.items():
            position = self._given.get(key)
            if position is None:
                raise InvalidArgumentError(f"this graph receives nothing under the key '{key}'")
            arguments[position] = value
        for position, value in enumerate(arguments):
            if value is None:
                raise InvalidArgumentError(f"a value for '{self._called.inputs[position]}' is missing in this call")
        wanted = [self._position(key) for key in fetches]
        values = self._worker.run(self._called.handle, step_id, arguments, probe)
        for key, position in zip(fetches, wanted, strict=True):
            if values[position] is DEAD:
                raise InvalidArgumentError(
                    f"'{key}' was fetched but is on a branch that was not taken; it has no value"
                )
        return [values[position] for position in wanted]

    def _position(self, key: str) -> int:
        position = self._asked.get(key)
        if position is None:
            raise InvalidArgumentError(f"this graph sends nothing under the key '{key}'")
        return position

    def run_with_transfers(self, step_id: int, probe: Probe | None) -> None:
        """Run it for a partial run: what is fed and fetched crosses while it runs."""
        with self._lock:
            if self._transfers is None:
                self._transfers = self._worker.register(self._as_sent)
        if self._transfers.inputs:
            raise InvalidArgumentError("a graph with arguments cannot be run bit by bit; its feeds must be received")
        self._worker.run(self._transfers.handle, step_id, [], probe)

    def drop(self) -> None:
        """Forget it at the worker; steps that run it go on."""
        with self._lock:
            for registered in {self._called.handle, *([] if self._transfers is None else [self._transfers.handle])}:
                self._worker.deregister(registered)


def _is_from_client(node: Node) -> bool:
    return bool(node.attr("client_terminated", False))


def _key(node: Node) -> str:
    incarnation: int = node.attr("send_device_incarnation")
    return make_key(node.text("send_device"), incarnation, node.text("recv_device"), node.text("tensor_name"), (0, 0))


def _with_arguments(graph: Graph) -> tuple[Graph, tuple[dict[str, int], dict[str, int]]]:
    """The graph with `_Arg` and `_Retval` for what the client sends and receives, and their numbers by key."""
    named: list[tuple[str, str]] = [
        (node.name, _key(node)) for node in graph if node.op in RECV_OPS | SEND_OPS and _is_from_client(node)
    ]
    if not named:
        return graph, ({}, {})
    graph = graph.copy()
    numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
    following = {op: 1 + max((n.attr("index") for n in graph if n.op == op), default=-1) for op in ("_Arg", "_Retval")}
    for name, key in named:
        node = graph.node(name)
        is_feed = node.op in RECV_OPS
        found = numbers[0 if is_feed else 1]
        if key in found:
            raise InvalidArgumentError(f"two nodes {'receive' if is_feed else 'send'} '{key}'", node=name)
        own = "_Arg" if is_feed else "_Retval"
        index = found[key] = following[own]
        following[own] += 1
        dtype = node.attr("tensor_type" if is_feed else "T")
        node.op = own
        for attr in list(node.attrs):
            if not attr.startswith("_"):
                del node.attrs[attr]
        node.attrs.update({"T": dtype, "index": index})
        node.invalidate_types()
    return graph, numbers
