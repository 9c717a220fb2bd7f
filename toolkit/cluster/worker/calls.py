"""Calls of a worker's service that have a life of their own: tensors that are waited for, steps that are given up."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from schemas import worker_pb2
from toolkit.cluster.rpc import services, statuses, tensors
from toolkit.cluster.rpc.bulk import BULK, BulkSender
from toolkit.cluster.rpc.line_server import LineAnswer
from toolkit.cluster.worker.session import WorkerSession
from toolkit.errors import AbortedError, CancelledError

#: how statuses say that they follow from another one, which TensorFlow's masters then look for: a GrpcPayloadContainer
_KIND = b"type.googleapis.com/tensorflow.DerivedStatus"
_ENTRY = bytes((1 << 3 | 2, len(_KIND))) + _KIND + bytes((2 << 3 | 2, 0))
_DERIVED = bytes((1 << 3 | 2, len(_ENTRY))) + _ENTRY


class AskedTensor:
    """A tensor that another worker waits for.

    What is there at once is sent by the thread of the call; what comes later, by another one, since the thread that
    made it goes on with its step.

    Args:
        senders: the others; None where sending takes no time (`rpc.lines`).
    """

    def __init__(
        self,
        request: worker_pb2.RecvTensorRequest,
        answer: services.Answer | LineAnswer,
        senders: ThreadPoolExecutor | None,
        bulk: BulkSender,
    ):
        wanted = request.transport_options.type_url
        self._aligned = wanted == tensors.ALIGNED
        self._bulk = bulk if wanted == BULK else None
        self._narrow = request.transport_options.value.decode(errors="replace") if wanted in tensors.OURS else ""
        self._answer = answer
        self._senders = senders
        self._lock = threading.Lock()
        self._has_begun = False
        self._is_waiting = False
        self._ready: tuple[Any, bool, BaseException | None] | None = None

    def begun(self, *, is_waiting: bool) -> None:
        """The thread of the call has nothing else to do.

        Args:
            is_waiting: the tensor was asked for, so that an error is the step's.
        """
        self._is_waiting = is_waiting
        with self._lock:
            self._has_begun = True
            ready = self._ready
        if ready is not None:
            self._send(*ready)

    def arrived(self, value: Any, is_dead: bool, error: BaseException | None) -> None:
        """See `Receiver`."""
        with self._lock:
            if not self._has_begun:
                self._ready = (value, is_dead, error)
                return
        if self._senders is None:
            self._send(value, is_dead, error)
            return
        try:
            self._senders.submit(self._send, value, is_dead, error)
        except RuntimeError:  # the server stops
            self._send(None, False, CancelledError("the server stops"))

    def _send(self, value: Any, is_dead: bool, error: BaseException | None) -> None:
        try:
            if error is not None:
                raise error
            response = tensors.write_response(
                value, is_dead, aligned=self._aligned, bulk=self._bulk, narrow=self._narrow
            )
        except Exception as failure:
            code, message = statuses.status_of(failure)
            self._answer.fail(code, message, _DERIVED if failure is error and self._is_waiting else b"")
            return
        self._answer.give(response)


class StepEnding:
    """Cancels a step when its call ends before it does: the master has given it up."""

    def __init__(self, session: WorkerSession, step_id: int):
        self._session = session
        self._step_id = step_id
        self._lock = threading.Lock()
        self._is_over = False

    def call_is_over(self) -> None:
        """The call has ended, answered or not."""
        with self._lock:  # what is cancelled after its end would be a step anew
            if not self._is_over:
                self._session.worker.cancel(self._step_id)

    def step_is_over(self) -> None:
        """The step has ended, so that nothing is left to cancel."""
        with self._lock:
            self._is_over = True


class RecentRequests:
    """The numbers of requests that have come, so that one that is sent twice is not served twice."""

    def __init__(self, size: int = 100_000):
        self._size = size
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, request_id: int) -> None:
        """Note a request; 0 is no number.

        Raises:
            AbortedError: it has come before.
        """
        if not request_id:
            return
        with self._lock:
            if request_id in self._seen:
                raise AbortedError(f"the request {request_id} has come before")
            self._seen[request_id] = None
            if len(self._seen) > self._size:
                self._seen.popitem(last=False)
