"""A session of the master: a graph that runs on the tasks of a cluster."""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from schemas import config_pb2, graph_pb2
from toolkit.errors import AbortedError, GraphmillError, OpError, ResourceExhaustedError
from toolkit.graph.graph import Graph
from toolkit.policy.rules import Policy
from toolkit.runtime.devices import Device
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.session import Session
from toolkit.runtime.steps.cancellation import CancellationManager
from toolkit.runtime.steps.compiled import CompiledStep
from toolkit.runtime.steps.under_way import StepUnderWay
from toolkit.runtime.workers.base import Environment, Worker

#: bytes that all GraphDefs of a session take together: what one message of a worker can hold
GRAPH_BYTES = (1 << 31) - 1
#: makes the session's worker of a task
MakeWorker = Callable[[str, Sequence[Device], Environment], Worker]


class ClusterSession(Session):
    """A session over workers near and far. Many clients' threads may run steps at once.

    Args:
        handle: its name.
        definition: the graph that the client begins with.
        devices: of all tasks that take part, the master's own first: nodes without a device go there.
        config: of the client.
        make_worker: makes the worker of each task.
        at_end: called once, when the session is closed.
        graph_bytes: what all of its graph may take.
    """

    def __init__(
        self, handle: str, definition: graph_pb2.GraphDef, devices: Sequence[Device], config: config_pb2.ConfigProto,
        make_worker: MakeWorker, at_end: Callable[[], None], graph_bytes: int = GRAPH_BYTES,
    ):  # fmt: skip
        self._most_bytes = min(graph_bytes, GRAPH_BYTES)
        self._bytes = definition.ByteSize()
        self._check_size()
        graph = Graph.from_proto(definition)
        super().__init__(
            graph,
            devices=devices,
            allow_soft_placement=config.allow_soft_placement,
            policy=Policy.everything(),  # every worker has its own, and judges what it is given
            workers=make_worker,
        )
        self.handle = handle
        self.config = config
        self.graph_version = 0
        self.steps = 0
        self.last_used = time.monotonic()
        self._at_end = at_end
        self._extending = threading.Lock()
        self._step_ids = RandomStepIds()
        self._asking = threading.local()
        self.running = 0
        self._running_lock = threading.Lock()

    @property
    def nodes(self) -> int:
        """How many the graph has."""
        return len(self._core)

    # -- the graph ---------------------------------------------------------------------------------------

    def extend(self, definition: graph_pb2.GraphDef, version: int) -> int:
        """Add nodes and functions.

        Args:
            version: of the graph, as the client knows it.

        Returns:
            the version that the graph has now.

        Raises:
            AbortedError: another client has extended the graph in the meantime.
            GraphError: a node is there already, or an input is not.
            ResourceExhaustedError: the graph is too large.
        """
        with self._extending:
            if version != self.graph_version:
                raise AbortedError(
                    f"the graph of the session has version {self.graph_version}, and the client's is {version}: "
                    "somebody else has extended it"
                )
            before = self._bytes
            self._bytes += definition.ByteSize()
            try:
                self._check_size()
                with self._lock:  # nothing is compiled meanwhile
                    self._core.extend(definition)
            except GraphmillError:
                self._bytes = before
                raise
            self.graph_version += 1
            return self.graph_version

    def _check_size(self) -> None:
        if self._bytes > self._most_bytes:
            raise ResourceExhaustedError(
                f"the graph takes {self._bytes:,} bytes; a session of this cluster holds {self._most_bytes:,} at most"
            )

    # -- steps -------------------------------------------------------------------------------------------

    def run_for(self, ending: CancellationManager, call: Callable[[], Any]) -> Any:
        """Run steps for a client whose call may end before they do.

        Args:
            ending: is cancelled when nobody waits for the answer any more; so are the steps, then.
            call: runs them, in this thread.
        """
        self._asking.ending = ending
        with self._running_lock:
            self.running += 1
        try:
            return call()
        finally:
            self._asking.ending = None
            with self._running_lock:
                self.running -= 1
                self.steps += 1
            self.last_used = time.monotonic()

    def partial_run(self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """See `Session.partial_run`."""
        under_way = self._partial_runs.get(handle)
        ending: CancellationManager | None = getattr(self._asking, "ending", None)
        if under_way is None or ending is None:
            return super().partial_run(handle, fetches, feed_dict)
        token = ending.register(under_way.cancel)
        try:
            return super().partial_run(handle, fetches, feed_dict)
        finally:
            ending.deregister(token)

    def _execute(
        self, compiled: CompiledStep, arguments: list[Any], timeout_ms: int | None, probe: Probe | None = None
    ) -> list[Any]:
        ending: CancellationManager | None = getattr(self._asking, "ending", None)
        watched: Any = compiled if ending is None else _Watched(compiled, ending)
        try:
            return super()._execute(watched, arguments, timeout_ms, probe)
        except OpError as error:
            if error.node is not None and error.node not in self._core:
                error.node = client_node(error.node)
            raise

    def close(self) -> None:
        """End what runs, and tell the workers. Closing twice is fine."""
        if not self._closed:
            super().close()
            self._at_end()


class _Watched:
    """A compiled step that is cancelled when the client's call ends."""

    def __init__(self, compiled: CompiledStep, ending: CancellationManager):
        self._compiled = compiled
        self._ending = ending
        self.cleanup = compiled.cleanup
        self.cancel = compiled.cancel

    def run(self, step_id: int, arguments: Sequence[Any], probe: Probe | None) -> list[Any]:
        under_way = StepUnderWay(self._compiled, step_id)
        token = self._ending.register(under_way.cancel)
        try:
            if token < 0:
                under_way.cancel()
            return self._compiled.run(step_id, arguments, probe)
        finally:
            under_way.finish()
            self._ending.deregister(token)


#: how the nodes are called that stand for a client's node in its worker's graph
_ADDED = re.compile(r"_(?:arg|retval)_(.+)_\d+_\d+|_(?:target|sent)_(.+)_\d+|(.+?)/(?:ctrl/|cast/)?_[SG]?(?:\d+_)?\d+")


def client_node(name: str) -> str:
    """The node of the client's graph that a node of a worker's was made for; the name itself where it is none."""
    found = _ADDED.fullmatch(name)
    return name if found is None else next(each for each in found.groups() if each)


class RandomStepIds(Iterator[int]):
    """Step ids that no other master has: tasks tell steps apart by nothing else. Of 57 bits, as TensorFlow's are.

    Steps of many threads ask at the same time, which a generator does not bear.
    """

    def __next__(self) -> int:
        return secrets.randbits(56) | 1 << 56
