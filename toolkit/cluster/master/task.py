"""Another task of the cluster as its master calls it: the calls of its WorkerService that are under way."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from schemas import worker_pb2
from toolkit.cluster.master.found import FoundTask
from toolkit.cluster.rpc import services, statuses, wire
from toolkit.cluster.rpc.channels import Channels, Turns
from toolkit.cluster.rpc.library import grpc
from toolkit.cluster.rpc.lines import Lines
from toolkit.cluster.rpc.pending import Pending
from toolkit.errors import CancelledError, OpError, UnavailableError

#: after how many seconds a task counts as gone that is told something it need not answer
FAREWELL_SECONDS = 10.0
_RAW = ("RunGraph",)


class RemoteTask:
    """One task.

    Args:
        name: /job:worker/replica:0/task:0.
        address: host:port.
        channels: where the channels come from: one for all that is said, and all in turns for steps, whose messages
            are large where much is fed or fetched.
        lines: to tasks of ours (`rpc.lines`); None for none.
    """

    def __init__(self, name: str, address: str, channels: Channels, lines: Lines | None = None):
        self.name = name
        self.address = address
        self._metadata = channels.access.metadata or None
        self._stub = services.Stub(channels[address], services.WORKER)
        every = channels.every(address)
        self._raw_stubs = Turns([services.Stub(at, services.WORKER, raw=_RAW, raw_requests=_RAW) for at in every])
        self._lines = lines
        self._farewells = _Farewells()

    def start(self, method: str, request: Any, *, timeout: float | None = None, wait: bool = False) -> Any:
        """Begin a call; the `grpc.Future` of its response.

        Args:
            timeout: seconds until it fails with DEADLINE_EXCEEDED.
            wait: for the task to be there, instead of failing at once.
        """
        return self._stub[method].future(request, timeout=timeout, metadata=self._metadata, wait_for_ready=wait)

    def begin(self, method: str, pieces: Sequence[Any]) -> Pending:
        """Begin a call of a step, over a line where there is one.

        Args:
            method: RunGraph, or another of `frames.METHODS`.
            pieces: the request's bytes.
        """
        line = None if self._lines is None else self._lines.get(self.address)
        if line is not None:
            with contextlib.suppress(UnavailableError):  # it has just ended
                return line.start(method, pieces, f"{self} cannot be reached")
        future = self._raw_stubs.next()[method].future(b"".join(pieces), metadata=self._metadata)
        call = Pending(lambda _: future.cancel(), method)

        def ended(_: Any) -> None:
            try:
                call.finish(self.result(future, method))
            except OpError as error:
                call.finish(b"", error)

        future.add_done_callback(ended)
        return call

    def approach(self) -> None:
        """Ask for a line, now that it is known that the task is there. Returns at once."""
        if self._lines is not None:
            self._lines.get(self.address)

    def meet(self) -> None:
        """Wait until it is known whether there is one."""
        if self._lines is not None:
            self._lines.wait(self.address)

    def lose(self) -> None:
        """It does not answer, or is another one: what was connected is not."""
        if self._lines is not None:
            self._lines.forget(self.address)

    def result(self, call: Any, method: str) -> Any:
        """Wait for the response of a call.

        Raises:
            CancelledError: it was cancelled here.
            OpError: the status that the task answered; UnavailableError names the task where there is no answer.
        """
        library = grpc()
        try:
            return call.result()
        except library.FutureCancelledError:
            raise CancelledError("the step was cancelled") from None
        except library.RpcError as error:
            raise self.error(error, method) from None

    def error(self, error: Any, method: str) -> OpError:
        """The error of a `grpc.RpcError` that a call of this task ended with."""
        found = statuses.from_call(error, f"{method} at {self}", self.address)
        if isinstance(found, UnavailableError):
            return UnavailableError(f"{self} cannot be reached: {found.message}")
        return found

    def ask_status(self, timeout: float) -> Callable[[], FoundTask]:
        """See `health.AskedTask`."""
        call = self.start("GetStatus", worker_pb2.GetStatusRequest(), timeout=timeout)
        return lambda: FoundTask(self.name, tuple(self.result(call, "GetStatus").device_attributes))

    def clean_up(self, step_id: int) -> None:
        """Tell it that a step is over. Returns at once."""
        line = None if self._lines is None else self._lines.get(self.address)
        if line is not None:
            with contextlib.suppress(UnavailableError):
                line.tell("CleanupGraph", wire.number(1, step_id))
                return
        self.tell("CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=step_id))

    def tell(self, method: str, request: Any) -> None:
        """Make a call that nobody waits for, and whose failure changes nothing. Returns at once."""
        self._farewells.put(self, method, request)

    def finish(self, seconds: float) -> None:
        """Wait until all that was told has arrived, or for so long."""
        self._farewells.finish(seconds)

    def __str__(self) -> str:
        return f"{self.name} ({self.address})"


class _Farewells:
    """A thread that makes the calls nobody waits for, so that no step is longer for them."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[RemoteTask, str, Any]] = SimpleQueue()
        self._lock = threading.Lock()
        self._empty = threading.Condition(self._lock)
        self._under_way: set[Any] = set()
        self._count = 0
        self._started = False

    def put(self, task: RemoteTask, method: str, request: Any) -> None:
        with self._lock:
            self._count += 1
            if not self._started:
                self._started = True
                threading.Thread(target=self._serve, name="graphmill farewells", daemon=True).start()
        self._waiting.put((task, method, request))

    def finish(self, seconds: float) -> None:
        """Wait until all that was put has arrived, or failed to, or for so long."""
        with self._lock:
            self._empty.wait_for(lambda: not self._count, seconds)

    def _over(self, call: Any = None) -> None:
        with self._lock:
            self._under_way.discard(call)
            self._count -= 1
            self._empty.notify_all()

    def _serve(self) -> None:
        while True:
            task, method, request = self._waiting.get()
            try:
                call = task.start(method, request, timeout=FAREWELL_SECONDS)
            except ValueError:  # the channel is closed: so is everything at the other end, for us
                self._over()
                continue
            with self._lock:
                self._under_way.add(call)  # gRPC cancels a call that nobody holds
            call.add_done_callback(self._over)
