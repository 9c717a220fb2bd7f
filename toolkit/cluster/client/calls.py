"""Calls of a master's methods: what goes wrong on the way becomes an error that says where."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import EncodeError, Message

from schemas import master_pb2
from toolkit.cluster.rpc import services
from toolkit.cluster.rpc.channels import PLAIN, Access, ChannelSettings, channel
from toolkit.cluster.rpc.health import NAME as HEALTH
from toolkit.cluster.rpc.library import grpc
from toolkit.cluster.rpc.statuses import from_call
from toolkit.cluster.rpc.unreachable import is_lasting, reason
from toolkit.errors import CancelledError, DeadlineExceededError, OpError, UnavailableError, UsageError

_LOG = logging.getLogger("graphmill")
#: how long a master that does not listen yet is waited for when a session is made: tasks start in any order
CONNECT_SECS = 5.0
#: how often it is asked meanwhile why there is no connection
_LOOK_SECS = 0.5
#: how long a session's end may take; a master that is gone has no session left
_CLOSE_SECS = 5.0
#: how often it is said that a session still waits for tasks
_SAY_SECS = 10.0
#: messages of these are written and read without the protobuf library where tensors are large
_RAW = ("RunStep", "RunCallable")


class MasterCalls:
    """One channel to a master.

    Args:
        target: as messages call it.
        address: host:port.
        settings: of the channel.
    """

    def __init__(self, target: str, address: str, access: Access, settings: ChannelSettings = PLAIN):
        self.target = target
        self._address = address
        self._metadata = access.metadata
        self._channel = channel(address, access, settings)
        self._stub = services.Stub(self._channel, services.MASTER, raw=_RAW, raw_requests=_RAW)
        self._errors: Any = grpc()

    def call(self, method: str, request: Message | bytes, timeout_ms: float | None = None) -> Any:
        """Call a method and wait for its response; an interruption cancels it.

        Args:
            request: bytes for RunStep and RunCallable, whose responses are bytes too.

        Raises:
            DeadlineExceededError: it took longer than `timeout_ms`.
            UnavailableError: the master cannot be reached, or was lost on the way.
            OpError: what the master answers instead.
        """
        timeout = None if timeout_ms is None else timeout_ms / 1e3
        try:
            return self._stub[method](request, timeout=timeout, metadata=self._metadata)
        except self._errors.RpcError as error:
            raise self._told(error, method, timeout_ms) from None
        except (EncodeError, ValueError) as error:
            raise _too_large(method, self.target, error) from None

    def create(self, request: master_pb2.CreateSessionRequest, timeout_ms: float | None) -> Any:
        """CreateSession, at a master that may still be starting.

        Raises:
            UnavailableError: nobody listens there.
        """
        self._wait_until_connected()
        began = time.monotonic()
        call = self._stub["CreateSession"].future(
            request, timeout=None if timeout_ms is None else timeout_ms / 1e3, metadata=self._metadata
        )
        try:
            while True:
                try:
                    return call.result(timeout=_SAY_SECS)
                except self._errors.FutureTimeoutError:
                    _LOG.warning(
                        "%s waits for tasks of its cluster, for %.0f seconds: start what is missing (see: graphmill "
                        "cluster status), or name the tasks that the session needs (device_filters)",
                        self.target, time.monotonic() - began,
                    )  # fmt: skip
        except self._errors.FutureCancelledError:
            raise CancelledError("the session was closed") from None
        except self._errors.RpcError as error:
            raise self._told(error, "CreateSession", timeout_ms) from None
        except (EncodeError, ValueError) as error:
            raise _too_large("CreateSession", self.target, error) from None
        finally:
            call.cancel()

    def reset(self, containers: Sequence[str], device_filters: Sequence[str], timeout_ms: float | None) -> None:
        """Empty containers of the master's tasks."""
        self._wait_until_connected()
        request = master_pb2.ResetRequest(container=containers, device_filters=device_filters)
        self.call("Reset", request, timeout_ms)

    def close_session(self, handle: str) -> None:
        """CloseSession; whatever comes of it, the session is over."""
        try:
            self.call("CloseSession", master_pb2.CloseSessionRequest(session_handle=handle), _CLOSE_SECS * 1e3)
        except OpError:
            return

    def close(self) -> None:
        """Close the channel; calls that are under way are cancelled."""
        self._channel.close()

    def _wait_until_connected(self) -> None:
        until = time.monotonic() + CONNECT_SECS
        ready = self._errors.channel_ready_future(self._channel)
        try:
            while True:
                try:
                    return ready.result(timeout=min(_LOOK_SECS, max(until - time.monotonic(), 0)))
                except self._errors.FutureTimeoutError:
                    why = self._why_not_connected()
                if why and is_lasting(why):
                    raise UnavailableError(f"no connection to {self.target}: {reason(why, self._address)}") from None
                if time.monotonic() >= until:
                    why = f" ({reason(why, self._address)})" if why else ""
                    raise UnavailableError(
                        f"there is no server at {self.target}: nobody has answered for {CONNECT_SECS:g} s{why}; start "
                        "it, or give the address of a task that runs"
                    ) from None
        finally:
            ready.cancel()

    def _why_not_connected(self) -> str:
        """In gRPC's words; "" where it does not know (yet)."""
        check = self._channel.unary_unary(f"/{HEALTH}/Check")  # takes no token, and does nothing
        try:
            check(b"", timeout=_LOOK_SECS, wait_for_ready=False)
        except self._errors.RpcError as error:
            if error.code().value[0] == UnavailableError.code:
                return error.details() or ""
        return ""

    def _told(self, error: Any, method: str, timeout_ms: float | None) -> OpError:
        found = from_call(error, f"{method} at {self.target}", self._address)
        if isinstance(found, UnavailableError):
            return UnavailableError(f"the master at {self.target} cannot be reached: {found.message}", node=found.node)
        if isinstance(found, DeadlineExceededError) and timeout_ms is not None:
            what = "the step" if method in _RAW else method
            return DeadlineExceededError(f"{what} took longer than {timeout_ms:g} ms")
        return found


def _too_large(method: str, target: str, error: Exception) -> UsageError:
    return UsageError(f"{method} cannot be sent to {target}: {error}; a message has 2 GB at most")
