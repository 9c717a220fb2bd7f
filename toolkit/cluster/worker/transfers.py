"""Asking other workers for tensors: RecvTensor as a client."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from schemas import worker_pb2
from toolkit.cluster.rpc import services, statuses, tensors
from toolkit.cluster.rpc.bulk import BULK, LEAST, BulkReceiver
from toolkit.cluster.rpc.channels import OPEN, Access, Channels
from toolkit.cluster.rpc.library import grpc
from toolkit.cluster.rpc.server import is_loopback
from toolkit.cluster.worker.step_logs import StepLogs
from toolkit.errors import CancelledError, GraphmillError
from toolkit.runtime.rendezvous import Receiver

#: large tensors that come at one time
_FETCHERS = 8


class RequestIds:
    """Numbers of requests that nobody else uses, so that one that comes twice is known."""

    def __init__(self) -> None:
        # the upper half is this process's, the lower half counts
        self._numbers = itertools.count(secrets.randbits(31) << 32 | 1)

    def __next__(self) -> int:
        return next(self._numbers) & (1 << 63) - 1


class Fetching:
    """What large tensors are fetched with: threads, and connections to tasks of this machine."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(_FETCHERS, thread_name_prefix="graphmill fetch")
        self.receiver = BulkReceiver()

    def close(self) -> None:
        """Let go of both."""
        self.threads.shutdown(wait=False)
        self.receiver.close()


class RemoteSender:
    """The worker of a task, as far as it sends tensors.

    Args:
        task: its name, for messages.
        address: host and port.
    """

    def __init__(
        self, task: str, address: str, channels: Channels, ids: RequestIds, logs: StepLogs, fetching: Fetching
    ):
        is_near = is_loopback(address.rpartition(":")[0]) and not channels.access.roots
        self._wanted = BULK if is_near else tensors.ALIGNED
        self._fetching = fetching
        self._task = task
        self._address = address
        self._access = channels.access
        self._ids = ids
        self._logs = logs
        self._library: Any = grpc()
        stub = services.Stub(channels[address], services.WORKER, raw=("RecvTensor",))
        self._call: Any = stub["RecvTensor"]

    def receive(self, step_id: int, key: str, done: Receiver) -> Callable[[], object]:
        """Ask for a tensor; see `Worker.receive`."""
        request = worker_pb2.RecvTensorRequest(step_id=step_id, rendezvous_key=key, request_id=next(self._ids))
        request.transport_options.type_url = self._wanted
        start = time.time_ns()
        # a task that starts later, or anew, is waited for; the step's end ends the waiting
        call = self._call.future(request, wait_for_ready=True, metadata=self._access.metadata)

        def arrived(finished: Any) -> None:
            try:
                data: bytes = finished.result()
                if len(data) < LEAST and BULK.encode() in data:  # not in this thread, which serves all calls
                    self._fetching.threads.submit(self._fetch, step_id, key, data, start, done)
                    return
                value, is_dead = tensors.read_response(data)
            except self._library.FutureCancelledError:
                done(None, False, CancelledError("the step was cancelled"))
            except self._library.RpcError as error:
                done(None, False, statuses.from_call(error, f"{self._task} at {self._address}, asked for a tensor"))
            except GraphmillError as error:
                done(None, False, error)
            else:
                self._log(step_id, key, len(data), start)
                done(value, is_dead, None)

        call.add_done_callback(arrived)
        return call.cancel

    def _fetch(self, step_id: int, key: str, data: bytes, start: int, done: Receiver) -> None:
        """Fetch what is offered beside a response."""
        try:
            value, _ = tensors.read_response(data, self._fetching.receiver)
        except GraphmillError as error:
            done(None, False, error)
            return
        self._log(step_id, key, value.nbytes, start)
        done(value, False, None)

    def _log(self, step_id: int, key: str, size: int, start: int) -> None:
        if self._logs.is_on:
            self._logs.received(step_id, key, size, start, time.time_ns())


class RemoteSenders:
    """The workers of a cluster's other tasks, by name.

    Args:
        addresses: of tasks, by name.
        access: how they let us in.
    """

    def __init__(self, logs: StepLogs, access: Access = OPEN):
        self._channels = Channels(access)
        self._ids = RequestIds()
        self._logs = logs
        self._fetching = Fetching()
        self._made: dict[tuple[str, str], RemoteSender] = {}
        self._lock = threading.Lock()

    def get(self, task: str, address: str) -> RemoteSender:
        """The worker at an address."""
        with self._lock:
            found = self._made.get((task, address))
            if found is None:
                found = self._made[task, address] = RemoteSender(
                    task, address, self._channels, self._ids, self._logs, self._fetching
                )
            return found

    def close(self) -> None:
        """Close the channels."""
        self._channels.close()
        self._fetching.close()
