"""Asking other workers for tensors: RecvTensor as a client."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from toolkit.cluster.rpc import services, statuses, tensors, wire
from toolkit.cluster.rpc.bulk import BULK, BulkReceiver
from toolkit.cluster.rpc.channels import OPEN, PLAIN, Access, Channels, ChannelSettings, Turns
from toolkit.cluster.rpc.library import grpc
from toolkit.cluster.rpc.lines import Lines
from toolkit.cluster.rpc.server import is_loopback
from toolkit.cluster.worker.step_logs import StepLogs
from toolkit.errors import CancelledError, GraphmillError, OpError, UnavailableError, UsageError, did_you_mean
from toolkit.passes.partitioning.partition import COMPRESSIONS
from toolkit.runtime.steps.rendezvous import Receiver

_RAW = ("RecvTensor",)
#: large tensors that come from one task at one time, so that a slow one holds up no other
_FETCHERS = 8


class RequestIds:
    """Numbers of requests that nobody else uses, so that one that comes twice is known."""

    def __init__(self) -> None:
        # the upper half is this process's, the lower half counts
        self._numbers = itertools.count(secrets.randbits(31) << 32 | 1)

    def __next__(self) -> int:
        return next(self._numbers) & (1 << 63) - 1


def check_compression(kind: str) -> None:
    """Refuse what is neither "" nor a 16-bit type that tensors come in.

    Raises:
        UsageError: so.
    """
    if kind and kind not in COMPRESSIONS:
        hint = did_you_mean(kind, COMPRESSIONS)
        raise UsageError(f"tensors are not compressed to '{kind}'{hint}; to {' or '.join(COMPRESSIONS)}")


class RemoteSenders:
    """The workers of a cluster's other tasks, and what all of them are asked with.

    Args:
        logs: of what comes.
        access: how they let us in.
        compress: the 16-bit type that float32 tensors come in from tasks of ours, "bfloat16" or "half"; "" for none.
            TensorFlow's tasks send them as they are.
        settings: of the channels to those that have no lines (`rpc.lines`).

    Raises:
        UsageError: there is no such compression.
    """

    def __init__(self, logs: StepLogs, access: Access = OPEN, compress: str = "", settings: ChannelSettings = PLAIN):
        check_compression(compress)
        self.logs = logs
        self.compress = compress
        self.channels = Channels(access, settings)
        self.lines = Lines(self.channels)
        self.ids = RequestIds()
        self.bulk = BulkReceiver()
        self._made: dict[tuple[str, str], RemoteSender] = {}
        self._lock = threading.Lock()

    def get(self, task: str, address: str) -> RemoteSender:
        """The worker at an address."""
        with self._lock:
            found = self._made.get((task, address))
            if found is None:
                found = self._made[task, address] = RemoteSender(task, address, self)
            return found

    def close(self) -> None:
        """Close the connections."""
        self.lines.close()
        self.channels.close()
        self.bulk.close()
        for each in self._made.values():
            each.close()


class RemoteSender:
    """The worker of a task, as far as it sends tensors.

    Args:
        task: its name, for messages.
        address: host and port.
    """

    def __init__(self, task: str, address: str, among: RemoteSenders):
        channels = among.channels
        self._host = address.rpartition(":")[0]
        narrow = wire.block(2, among.compress.encode()) if among.compress else b""
        self._by_line, aligned = (
            wire.block(6, wire.block(1, wanted.encode()) + narrow) for wanted in (BULK, tensors.ALIGNED)
        )
        # where a line was made, other connections can be; without one nobody knows, but on this machine
        self._by_grpc = self._by_line if is_loopback(self._host) and not channels.access.roots else aligned
        self._address = address
        self._where = f"{task} at {address}, asked for a tensor"
        self._metadata = channels.access.metadata
        self._among = among
        self._threads = ThreadPoolExecutor(_FETCHERS, thread_name_prefix="graphmill fetch")
        self._library: Any = grpc()
        # each channel has a thread of gRPC's that puts together what comes
        stubs = [services.Stub(each, services.WORKER, raw=_RAW, raw_requests=_RAW) for each in channels.every(address)]
        self._calls: Turns[Any] = Turns([stub["RecvTensor"] for stub in stubs])

    def receive(self, step_id: int, key: str, done: Receiver) -> Callable[[], object]:
        """Ask for a tensor; see `Worker.receive`."""
        among = self._among
        request = wire.number(1, step_id) + wire.block(2, key.encode())
        start = time.time_ns()

        def read(data: bytes) -> None:
            value, is_dead = tensors.read_response(data, among.bulk, self._host)
            if among.logs.wants(step_id):
                size = len(data) if is_dead else max(len(data), value.nbytes)
                among.logs.received(step_id, key, size, start, time.time_ns())
            done(value, is_dead, None)

        def arrived(data: bytes, error: OpError | None) -> None:
            if error is not None:
                done(None, False, error)
            elif tensors.is_offer(data):  # not to be waited for in this thread, which serves all calls
                self._told(lambda: self._threads.submit(self._told, lambda: read(data), done), done)
            else:
                self._told(lambda: read(data), done)

        line = among.lines.get(self._address)
        if line is not None:
            try:
                asked = line.start("RecvTensor", (request, self._by_line), self._where)
            except UnavailableError:  # it has just ended
                pass
            else:
                asked.react(arrived)
                return asked.cancel
        # a task that starts later, or anew, is waited for; the step's end ends the waiting
        request += self._by_grpc + wire.number(7, next(among.ids))
        call = self._calls.next().future(request, wait_for_ready=True, metadata=self._metadata)
        call.add_done_callback(lambda finished: arrived(*self._outcome(finished)))
        return call.cancel

    def _outcome(self, call: Any) -> tuple[bytes, OpError | None]:
        try:
            return call.result(), None
        except self._library.FutureCancelledError:
            return b"", CancelledError("the step was cancelled")
        except self._library.RpcError as error:
            return b"", statuses.from_call(error, self._where)

    def close(self) -> None:
        """Fetch no more."""
        self._threads.shutdown(wait=False)

    @staticmethod
    def _told(work: Callable[[], object], done: Receiver) -> None:
        """Do something, and tell the receiver what went wrong."""
        try:
            work()
        except GraphmillError as error:
            done(None, False, error)
        except RuntimeError:  # of the threads: this task is closed
            done(None, False, CancelledError("the task was closed"))
