"""A master of this very process: a session there goes through no gRPC, and its tensors are no messages.

What a server of this process listens at is noted here when it starts (`toolkit.cluster.server`); a session whose
target is that address asks its master directly, as TensorFlow's sessions do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from schemas import config_pb2, master_pb2
from toolkit.cluster.rpc.statuses import status_of, to_error
from toolkit.errors import AbortedError, DeadlineExceededError, GraphmillError, OpError


class Service(Protocol):
    """A master's service (`toolkit.cluster.master.service`)."""

    def methods(self) -> dict[str, Callable[[Any, Any], Any]]:
        """Its methods, by name."""
        ...

    def step(
        self, handle: str, wanted: Sequence[str], feeds: Mapping[str, Any], options: config_pb2.RunOptions | None,
        metadata: config_pb2.RunMetadata | None, context: Any, partial_run: str = "",
    ) -> Sequence[Any]:  # fmt: skip
        """Run a step."""
        ...

    def step_of_callable(
        self, handle: str, number: int, arguments: Sequence[Any], metadata: config_pb2.RunMetadata | None, context: Any
    ) -> Sequence[Any]:
        """Run a callable."""
        ...


#: the services of this process, by target
_here: dict[str, Service] = {}


def listens(target: str, service: Service) -> None:
    """A server of this process has begun to serve."""
    _here[target] = service


def ended(target: str, service: Service) -> None:
    """It serves no longer."""
    if _here.get(target) is service:
        del _here[target]


def service_at(target: str) -> Service | None:
    """The master that listens there, where that is in this process."""
    return _here.get(target)


class _Context:
    """What a method asks of the call that it answers: who asks waits here, until its time is over."""

    def __init__(self, seconds: float | None):
        self._until = None if seconds is None else time.monotonic() + seconds

    def is_active(self) -> bool:
        return self._until is None or time.monotonic() < self._until

    def add_callback(self, react: Callable[[], None]) -> bool:
        return True  # the call ends when the step does

    def abort(self, code: Any, details: str) -> None:
        raise to_error(code.value[0], details)


class OwnMaster:
    """The calls of a session; see `MasterCalls`.

    Args:
        target: of the server.
    """

    def __init__(self, target: str, service: Service):
        self.target = target
        self._service = service
        self._methods = service.methods()

    def call(self, method: str, request: Any, timeout_ms: float | None = None) -> Any:
        """Call a method.

        Raises:
            DeadlineExceededError: nobody has answered within that time.
            OpError: what the master answers instead.
        """
        context = _Context(None if timeout_ms is None else timeout_ms / 1e3)
        try:
            return self._methods[method](request, context)
        except AbortedError as error:
            if context.is_active():
                raise
            raise DeadlineExceededError(f"{method} took longer than {timeout_ms:g} ms") from error

    def create(self, request: master_pb2.CreateSessionRequest, timeout_ms: float | None) -> Any:
        """CreateSession."""
        return self.call("CreateSession", request, timeout_ms)

    def close_session(self, handle: str) -> None:
        """CloseSession; whatever comes of it, the session is over."""
        try:
            self.call("CloseSession", master_pb2.CloseSessionRequest(session_handle=handle))
        except OpError:
            return

    def close(self) -> None:
        """There is no connection."""

    def step(
        self, handle: str, wanted: Sequence[str], feeds: Mapping[str, Any], options: config_pb2.RunOptions | None,
        metadata: config_pb2.RunMetadata | None, partial_run: str = "",
    ) -> Sequence[Any]:  # fmt: skip
        """Run a step; values of what is wanted.

        Raises:
            OpError: it failed.
        """
        try:
            return self._service.step(handle, wanted, feeds, options, metadata, _Context(None), partial_run)
        except GraphmillError as error:
            raise _told(error) from error

    def step_of_callable(self, handle: str, number: int, arguments: Sequence[Any]) -> Sequence[Any]:
        """Run a callable.

        Raises:
            OpError: it failed.
        """
        try:
            return self._service.step_of_callable(handle, number, arguments, None, _Context(None))
        except GraphmillError as error:
            raise _told(error) from error


def _told(error: GraphmillError) -> OpError:
    """The error as it comes over the wire."""
    return error if isinstance(error, OpError) else to_error(*status_of(error))
