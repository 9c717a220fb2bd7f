"""Channels to the tasks of a cluster, by address."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from schemas import rpc_options_pb2
from toolkit.cluster.rpc.library import grpc
from toolkit.errors import UsageError

T = TypeVar("T")

_LOG = logging.getLogger("graphmill")

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

#: the numbers that gRPC has for them
_COMPRESSIONS = {"deflate": 1, "gzip": 2}
#: so many channels to one task are made at most: each has a connection and, while calls are under way, a thread
MOST_CHANNELS = 64


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """How messages travel.

    Attributes:
        count: channels to each address, each over a connection of its own where there are several.
        compression: of requests, "deflate" or "gzip"; "" for none.
        level: of that, 1 to 3; 0 for what gRPC takes by itself.
        is_apart: connections are shared with no other channel of this process.

    Raises:
        UsageError: it is out of range.
    """

    count: int = 1
    compression: str = ""
    level: int = 0
    is_apart: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_CHANNELS:
            raise UsageError(f"{self.count} channels to each task cannot be had; ask for 1 to {MOST_CHANNELS}")
        if self.compression not in ("", *_COMPRESSIONS):
            raise UsageError(f"'{self.compression}' is no compression of messages; take {' or '.join(_COMPRESSIONS)}")

    @staticmethod
    def of(options: rpc_options_pb2.RPCOptions) -> ChannelSettings:
        """What a `ConfigProto.rpc_options` asks for, read as TensorFlow reads it.

        No number is one channel; a compression that there is not is none, with a warning.

        Raises:
            UsageError: there would be too many channels.
        """
        compression = options.compression_algorithm
        if compression not in ("", *_COMPRESSIONS):
            _LOG.warning(
                "rpc_options.compression_algorithm: '%s' is neither %s; messages are not compressed",
                compression, " nor ".join(_COMPRESSIONS),
            )  # fmt: skip
            compression = ""
        return ChannelSettings(
            max(options.num_channels_per_target, 1),
            compression,
            min(max(options.compression_level, 0), 3),
            options.disable_session_connection_sharing,
        )


PLAIN = ChannelSettings()


def channel(address: str, access: Access = OPEN, settings: ChannelSettings = PLAIN) -> Any:
    """A new `grpc.Channel` to host:port, one of those that `settings` asks for; the caller closes it.

    Raises:
        UsageError: gRPC is not installed.
    """
    library = grpc()
    options = list(_OPTIONS)
    if settings.count > 1 or settings.is_apart:  # channels to one address are else over one connection
        options.append(("grpc.use_local_subchannel_pool", 1))
    if settings.compression:
        options.append(("grpc.default_compression_algorithm", _COMPRESSIONS[settings.compression]))
        if settings.level:
            options.append(("grpc.default_compression_level", settings.level))
    if access.roots:
        return library.secure_channel(address, library.ssl_channel_credentials(access.roots), options)
    return library.insecure_channel(address, options)


class Channels:
    """The channels that a server or a client keeps open, made when they are asked for."""

    def __init__(self, access: Access = OPEN, settings: ChannelSettings = PLAIN):
        self.access = access
        self.settings = settings
        self._lock = threading.Lock()
        self._made: dict[str, list[Any]] = {}

    def __getitem__(self, address: str) -> Any:
        """The first channel to an address."""
        return self._get(address, 1)[0]

    def every(self, address: str) -> Sequence[Any]:
        """All channels to an address, for who takes them in turns (`Turns`)."""
        return self._get(address, self.settings.count)

    def _get(self, address: str, count: int) -> list[Any]:
        with self._lock:
            found = self._made.setdefault(address, [])
            while len(found) < count:
                found.append(channel(address, self.access, self.settings))
            return list(found)

    def close(self) -> None:
        """Close all of them; calls that are under way are cancelled."""
        with self._lock:
            channels = [each for found in self._made.values() for each in found]
            self._made.clear()
        for each in channels:
            each.close()


class Turns(Generic[T]):
    """Things that are taken one after the other, from any thread."""

    def __init__(self, things: Sequence[T]):
        self._things = tuple(things)
        self._numbers = itertools.count()

    def next(self) -> T:
        """The next one; after the last the first."""
        things = self._things
        return things[0] if len(things) == 1 else things[next(self._numbers) % len(things)]
