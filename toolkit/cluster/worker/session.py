"""What a master's session has at a worker: its graphs, and a `LocalWorker` that runs them."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from schemas import graph_pb2
from toolkit.cluster.worker.graphs import RegisteredGraph
from toolkit.cluster.worker.partial import PartialStep
from toolkit.cluster.worker.steps import Steps
from toolkit.compiler.settings import Settings
from toolkit.errors import AbortedError, InvalidArgumentError, UnavailableError
from toolkit.formats.models import graphdef
from toolkit.graph.consistency import require_consistent
from toolkit.graph.garbage import no_collection
from toolkit.graph.graph import Graph
from toolkit.kernels import registry
from toolkit.policy.access import Access
from toolkit.policy.check import check_graph
from toolkit.runtime.devices import Device
from toolkit.runtime.executors.inter_op import InterOpPool
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.steps.cancellation import CancellationManager
from toolkit.runtime.steps.resources import ResourceManager
from toolkit.runtime.steps.step import DeviceStep
from toolkit.runtime.workers.base import Environment
from toolkit.runtime.workers.local import LocalWorker
from toolkit.runtime.workers.peers import Sender


class TaskWorker(LocalWorker):
    """The worker of a session: where a step ends, it ends for those who wait for its tensors as well.

    Args:
        under_way: the steps of the task, which call `drop` when one ends.
    """

    def __init__(self, task: str, devices: Sequence[Device], environment: Environment, under_way: Steps):
        super().__init__(task, devices, environment)
        self._under_way = under_way

    def cleanup(self, step_id: int) -> None:
        """See `Worker.cleanup`."""
        self._under_way.finish(step_id)

    def cancel(self, step_id: int) -> None:
        """See `Worker.cancel`."""
        with contextlib.suppress(AbortedError, UnavailableError):  # it is over, or has never begun
            super().cancel(step_id)

    def drop(self, step_id: int) -> None:
        """End a step here: what still runs of it is cancelled.

        The master's word that a step is over may overtake the end of its call, and is then all that ends the step.
        """
        step = self._steps.get(step_id)
        if step is not None:
            step.cancellation.cancel()
        super().cleanup(step_id)

    def _begin(self, step_id: int) -> DeviceStep:
        step = super()._begin(step_id)
        if step_id not in self._under_way:  # it was ended before it could be found here
            self.drop(step_id)
        return step


class WorkerSession:
    """One session at one task.

    Args:
        handle: its name; "" for masters that make no sessions at workers.
        task: what the session's cluster calls this task.
        devices: under that name.
        resources: variables and queues, the task's own or, isolated, the session's alone.
        parent: what cancels all of the task.
        sender: the worker of another task, by name.
        steps: of the task.
        within: around what a thread does here: the task's limits.

    Attributes:
        worker: runs its graphs.
        is_isolated: whether its resources are its own.
    """

    def __init__(
        self,
        handle: str,
        task: str,
        devices: Sequence[Device],
        resources: ResourceManager,
        *,
        parent: CancellationManager,
        sender: Callable[[str], Sender],
        steps: Steps,
        access: Access,
        settings: Settings | None = None,
        pool: InterOpPool | None = None,
        within: Callable[[], AbstractContextManager[None]] = nullcontext,
        is_isolated: bool = False,
    ):
        self.handle = handle
        self.task = task
        self.devices = list(devices)
        self.resources = resources
        self.sender = sender
        self.is_isolated = is_isolated
        self._within = within
        self._access = access
        self._names = frozenset(device.name for device in devices)
        self.cancellation = CancellationManager(parent)
        self._graphs: dict[str, RegisteredGraph] = {}
        self._partial: dict[int, PartialStep] = {}
        self._lock = threading.Lock()
        environment = Environment(
            resources, self.cancellation, access, settings, pool is not None, pool,
            peers=sender, rendezvous=lambda step_id: steps.join(step_id, self),
        )  # fmt: skip
        self.worker = TaskWorker(task, self.devices, environment, steps)

    @no_collection()
    def register(self, definition: graph_pb2.GraphDef) -> str:
        """Make a graph ready to run; its handle.

        Args:
            definition: is used up.

        Raises:
            GraphError: it is malformed.
            InvalidArgumentError: a node is on another task's device.
            UnimplementedError: an op has no kernel.
            RefusedError: it would touch what the server does not allow.
        """
        with self._within():
            return self._register(graphdef.from_proto(definition))

    def _register(self, graph: Graph) -> str:
        for node in graph:
            if node.device not in self._names:
                known = ", ".join(sorted(self._names))
                raise InvalidArgumentError(
                    f"its device '{node.device}' is none of this task's; there are {known}", node=node.name
                )
        check_graph(graph, self._access, registry.lacking)
        require_consistent(graph, {})
        registered = RegisteredGraph(self.worker, graph)
        handle = secrets.token_hex(8)
        self._graphs[handle] = registered
        return handle

    def graph(self, handle: str) -> RegisteredGraph:
        """A registered graph.

        Raises:
            AbortedError: there is none of this handle.
        """
        found = self._graphs.get(handle)
        if found is None:
            raise AbortedError(
                f"there is no graph with the handle '{handle}' at {self.task}; it was dropped, or the task has started "
                "anew since"
            )
        return found

    def deregister(self, handle: str) -> None:
        """Forget a graph.

        Raises:
            AbortedError: there is none of this handle.
        """
        self.graph(handle).drop()
        self._graphs.pop(handle, None)

    def run(
        self, handle: str, step_id: int, feeds: Mapping[str, Any], fetches: Sequence[str], probe: Probe | None = None
    ) -> list[Any]:
        """Run a graph once; values in the order of `fetches`.

        Raises:
            AbortedError: there is no such graph.
            OpError: the step failed.
        """
        with self._within():
            return self.graph(handle).run(step_id, feeds, fetches, probe)

    def run_partially(
        self, handle: str, step_id: int, feeds: Mapping[str, Any], fetches: Sequence[str], *,
        is_last: bool, probe: Probe | None = None,
    ) -> list[Any]:  # fmt: skip
        """Begin a step that is fed and fetched bit by bit, or go on with it.

        Raises:
            AbortedError: there is no such graph.
            OpError: the step failed.
        """
        with self._lock:
            under_way = self._partial.get(step_id)
            if under_way is None:
                graph = self.graph(handle)
                under_way = self._partial[step_id] = PartialStep(self.worker, graph, step_id, probe, self._within)
        try:
            return under_way.run(feeds, fetches, is_last=is_last)
        except BaseException:
            self._partial.pop(step_id, None)
            raise
        finally:
            if is_last:
                self._partial.pop(step_id, None)

    def forget(self, step_id: int) -> None:
        """A step is over, whether it was run bit by bit or not."""
        self._partial.pop(step_id, None)
        self.worker.drop(step_id)

    @property
    def num_graphs(self) -> int:
        return len(self._graphs)

    def close(self) -> None:
        """End its steps and drop its graphs; an isolated one loses its variables."""
        self.cancellation.cancel()
        self.cancellation.detach()
        for handle in list(self._graphs):
            graph = self._graphs.pop(handle, None)
            if graph is not None:
                graph.drop()
        if self.is_isolated:
            self.resources.clear()
