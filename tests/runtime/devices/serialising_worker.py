"""A worker behind a wire: whatever crosses is bytes, and another thread answers. Nothing is shared with its session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np

from schemas.graph_pb2 import GraphDef
from schemas.tensor_pb2 import TensorProto
from toolkit import errors
from toolkit.errors import GraphmillError, InternalError
from toolkit.formats.arrays.tensor import from_array, to_array
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.kernels.context import DEAD
from toolkit.kernels.device_memory import MemoryStatistics
from toolkit.runtime.devices import Device
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.steps.cancellation import CancellationManager
from toolkit.runtime.steps.rendezvous import Receiver
from toolkit.runtime.steps.resources import ResourceManager
from toolkit.runtime.workers.base import Environment, Registered, Worker
from toolkit.runtime.workers.local import LocalWorker

_CLASSES = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}


def to_bytes(value: Any) -> bytes:
    """A tensor, or the mark of a dead one. Whatever else there is in this process may not cross."""
    if value is DEAD:
        return b""
    assert isinstance(value, np.ndarray | np.generic), f"{type(value).__name__} is not a tensor"
    return from_array(value).SerializeToString()


def from_bytes(data: bytes) -> Any:
    return to_array(TensorProto.FromString(data)).copy() if data else DEAD


def graph_bytes(graph: Graph) -> bytes:
    return graph.to_proto().SerializeToString()


def graph_of(data: bytes) -> Graph:
    return Graph.from_proto(GraphDef.FromString(data))


Status = tuple[str, str, str | None]


def status_of(error: BaseException) -> Status:
    """An error's class, message and node, as texts."""
    if isinstance(error, GraphmillError):
        return type(error).__name__, error.message, error.node
    return InternalError.__name__, f"{type(error).__name__}: {error}", None


def error_of(status: Status) -> GraphmillError:
    name, message, node = status
    return _CLASSES[name](message, node=node)


class _Observed:
    """What a probe was told, written down: the node's name and the types and shapes of what went in and came out."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, int, int, list[bytes], list[bytes]]] = []

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        both = [[to_bytes(v) for v in values if isinstance(v, np.ndarray | np.generic)] for values in (inputs, outputs)]
        self.lines.append((node.name, device, start_ns, end_ns, both[0], both[1]))


class SerialisingWorker:
    """A `Worker` whose far side lives in threads of its own."""

    def __init__(self, task: str, devices: Sequence[Device], environment: Environment):
        self._far_cancellation = CancellationManager()
        environment.cancellation.register(self._far_cancellation.cancel)
        self._far: Worker = LocalWorker(
            task,
            devices,
            Environment(
                ResourceManager(), self._far_cancellation, environment.access, environment.settings,
                environment.force_tokens, environment.pool, environment.peers,
            ),
        )  # fmt: skip
        self._nodes: dict[int, dict[str, Node]] = {}

    @staticmethod
    def _asked(work: Callable[[], Any]) -> Any:
        """Have the far side do something, and wait for its answer or its status."""
        answers: SimpleQueue[tuple[Any, Status | None]] = SimpleQueue()

        def serve() -> None:
            try:
                answers.put((work(), None))
            except BaseException as error:
                answers.put((None, status_of(error)))

        threading.Thread(target=serve, daemon=True).start()
        answer, status = answers.get()
        if status is not None:
            raise error_of(status)
        return answer

    def register(self, graph: Graph) -> Registered:
        sent = graph_bytes(graph)

        def work() -> tuple[int, tuple[str, ...], tuple[str, ...], dict[str, bytes]]:
            made = self._far.register(graph_of(sent))
            return made.handle, made.inputs, made.outputs, {k: graph_bytes(v) for k, v in made.partitions.items()}

        handle, inputs, outputs, parts = self._asked(work)
        partitions = {device: graph_of(data) for device, data in parts.items()}
        self._nodes[handle] = {node.name: node for part in partitions.values() for node in part}
        return Registered(handle, inputs, outputs, partitions)

    def run(self, handle: int, step_id: int, inputs: Sequence[Any], probe: Probe | None = None) -> list[Any]:
        sent = [to_bytes(value) for value in inputs]
        observed = _Observed() if probe is not None else None

        def work() -> list[bytes]:
            return [to_bytes(value) for value in self._far.run(handle, step_id, [*map(from_bytes, sent)], observed)]

        try:
            return [from_bytes(data) for data in self._asked(work)]
        finally:
            if probe is not None and observed is not None:
                for name, device, start, end, given, made in observed.lines:
                    node = self._nodes[handle][name]
                    probe.ran(node, device, start, end, [*map(from_bytes, given)], [*map(from_bytes, made)])

    def send(self, step_id: int, key: str, value: Any) -> None:
        sent = to_bytes(value)
        self._asked(lambda: self._far.send(step_id, key, from_bytes(sent)))

    def receive(self, step_id: int, key: str, done: Receiver) -> None:
        def arrived(value: Any, is_dead: bool, error: BaseException | None) -> None:
            data = b"" if is_dead or error is not None else to_bytes(value)
            status = None if error is None else status_of(error)

            def answer() -> None:
                done(None if not data else from_bytes(data), is_dead, None if status is None else error_of(status))

            threading.Thread(target=answer, daemon=True).start()

        self._asked(lambda: self._far.receive(step_id, key, arrived))

    def cancel(self, step_id: int) -> None:
        self._asked(lambda: self._far.cancel(step_id))

    def cleanup(self, step_id: int) -> None:
        self._asked(lambda: self._far.cleanup(step_id))

    def deregister(self, handle: int) -> None:
        self._asked(lambda: self._far.deregister(handle))

    def explain(self, handle: int, step_id: int, inputs: Sequence[Any]) -> list[str]:
        sent = [to_bytes(value) for value in inputs]
        return self._asked(lambda: self._far.explain(handle, step_id, [*map(from_bytes, sent)]))

    def notes(self) -> list[str]:
        return self._asked(self._far.notes)

    def statistics(self) -> dict[str, MemoryStatistics]:
        return dict(self._asked(self._far.statistics))
