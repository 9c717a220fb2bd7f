"""Channels to the tasks of a cluster, by address."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.cluster.rpc.library import grpc
from toolkit.errors import UsageError

#: no message is larger: what a protocol buffer may have
MESSAGE_BYTES = (1 << 31) - 1
_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.enable_http_proxy", 0),  # tasks are addressed as they are
    ("grpc.enable_retries", 0),  # a step that ran half must not run again by itself
    # a task that starts anew is found within a second or two
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
)


@dataclass(frozen=True, slots=True)
class Access:
    """How a server lets clients in.

    Attributes:
        token: sent with every call, as `authorization: Bearer TOKEN`; "" for none.
        roots: the certificates (PEM) that the server's is checked against, for TLS; b"" for a plain connection.

    Raises:
        UsageError: the token has what no header may have.
    """

    token: str = ""
    roots: bytes = b""

    def __post_init__(self) -> None:
        if self.token and (not self.token.isascii() or not self.token.isprintable()):
            raise UsageError("a token goes into a header: it has printable ASCII characters only")

    @property
    def metadata(self) -> Sequence[tuple[str, str]]:
        """What every call carries."""
        return (("authorization", f"Bearer {self.token}"),) if self.token else ()


OPEN = Access()


def channel(address: str, access: Access = OPEN) -> Any:
    """A new `grpc.Channel` to host:port; the caller closes it.

    Raises:
        UsageError: gRPC is not installed.
    """
    library = grpc()
    if access.roots:
        return library.secure_channel(address, library.ssl_channel_credentials(access.roots), _OPTIONS)
    return library.insecure_channel(address, _OPTIONS)


class Channels:
    """The channels that a server or a client keeps open, made when they are asked for."""

    def __init__(self, access: Access = OPEN):
        self.access = access
        self._lock = threading.Lock()
        self._made: dict[str, Any] = {}

    def __getitem__(self, address: str) -> Any:
        with self._lock:
            found = self._made.get(address)
            if found is None:
                found = self._made[address] = channel(address, self.access)
            return found

    def close(self) -> None:
        """Close all of them; calls that are under way are cancelled."""
        with self._lock:
            channels = list(self._made.values())
            self._made.clear()
        for each in channels:
            each.close()
