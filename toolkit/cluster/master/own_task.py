"""The master's own task as a `Worker`: called in this process, judged and told apart as others are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from toolkit.compiler.context import Watcher
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.kernels import registry
from toolkit.kernels.device_memory import MemoryStatistics
from toolkit.policy.access import Access
from toolkit.policy.check import check_graph
from toolkit.runtime.probes.base import Manner, Probe, manner_of
from toolkit.runtime.steps.rendezvous import Receiver
from toolkit.runtime.workers.base import Registered, Worker


class OwnWorker:
    """A worker of this process. See `Worker`.

    Args:
        worker: does the work.
        device: the name of its first device, for probes.
        access: what the server allows.
        within: around what a thread does here: the task's limits.
    """

    def __init__(
        self, worker: Worker, device: str, access: Access,
        within: Callable[[], AbstractContextManager[None]] = nullcontext,
    ):  # fmt: skip
        self._within = within
        self._worker = worker
        self._device = device
        self._access = access

    def register(self, graph: Graph) -> Registered:
        """See `Worker.register`.

        Raises:
            RefusedError: it would touch what the server does not allow.
        """
        check_graph(graph, self._access, registry.lacking)
        with self._within():
            return self._worker.register(graph)

    def run(self, handle: int, step_id: int, inputs: Sequence[Any], probe: Probe | None = None) -> list[Any]:
        """See `Worker.run`."""
        with self._within():
            return self._worker.run(handle, step_id, inputs, None if probe is None else _Named(probe, self._device))

    def send(self, step_id: int, key: str, value: Any) -> None:
        """See `Worker.send`."""
        self._worker.send(step_id, key, value)

    def receive(self, step_id: int, key: str, done: Receiver) -> Callable[[], object] | None:
        """See `Worker.receive`."""
        return self._worker.receive(step_id, key, done)

    def cancel(self, step_id: int) -> None:
        """See `Worker.cancel`."""
        self._worker.cancel(step_id)

    def cleanup(self, step_id: int) -> None:
        """See `Worker.cleanup`."""
        self._worker.cleanup(step_id)

    def deregister(self, handle: int) -> None:
        """See `Worker.deregister`."""
        self._worker.deregister(handle)

    def explain(self, handle: int, step_id: int, inputs: Sequence[Any]) -> list[str]:
        """See `Worker.explain`."""
        return self._worker.explain(handle, step_id, inputs)

    def notes(self) -> list[str]:
        """See `Worker.notes`."""
        return self._worker.notes()

    def statistics(self) -> Mapping[str, MemoryStatistics]:
        """See `Worker.statistics`."""
        return self._worker.statistics()


class _Named:
    """A probe of several tasks: devices have their names, the only one of a task too."""

    def __init__(self, probe: Probe, device: str):
        self._probe = probe
        self._device = device

    @property
    def manner(self) -> Manner:
        return manner_of(self._probe)

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        self._probe.ran(node, device or self._device, start_ns, end_ns, inputs, outputs)

    def ran_plan(self, entries: Sequence[Any], device: str, marks: list[int]) -> None:
        cast("Watcher", self._probe).ran_plan(entries, device or self._device, marks)

    def compiled(self, what: str, start_ns: int, end_ns: int) -> None:
        cast("Watcher", self._probe).compiled(what, start_ns, end_ns)
