"""A gRPC server of this process: where it may listen, who is let in, how much it takes.

It listens at loopback unless it is told otherwise, and anywhere else only with TLS or a token, for whoever reaches a
task can run graphs there. Each call runs in a thread, and threads are made as calls need them: a step may wait for
another one for as long as it likes. When there are too many, a call is refused rather than kept waiting, since what
the others wait for may be in it.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import socket
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import ServiceDescriptor

from toolkit.cluster.rpc.channels import MESSAGE_BYTES, Access
from toolkit.cluster.rpc.health import NAME as HEALTH
from toolkit.cluster.rpc.health import Health
from toolkit.cluster.rpc.library import grpc
from toolkit.cluster.rpc.reflection import Reflection
from toolkit.cluster.rpc.services import service_name
from toolkit.errors import UsageError

LOOPBACK = "127.0.0.1"
#: calls at one time, which is threads: a thousand clients that wait in a queue, and those that fill it
CALLS = 2000
_SCHEME = "Bearer "


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a server listens, and whom it lets in.

    Attributes:
        host: an address of this machine; loopback by default. "0.0.0.0" is all of them.
        port: 0 for one that is free.
        token: what callers must send, as `authorization: Bearer TOKEN`; "" for none.
        key, certificates: of the server (PEM), for TLS; both or neither.
        message_bytes: the largest message that is taken.
        calls: how many calls may be under way; more are refused.
    """

    host: str = LOOPBACK
    port: int = 0
    token: str = field(default="", repr=False)
    key: bytes = field(default=b"", repr=False)
    certificates: bytes = b""
    message_bytes: int = MESSAGE_BYTES
    calls: int = CALLS

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def check(self) -> None:
        """Refuse what would let anybody in.

        Raises:
            UsageError: so, or only one of key and certificates is there.
        """
        if bool(self.key) != bool(self.certificates):
            raise UsageError(
                "TLS takes a key and certificates (GRAPHMILL_CLUSTER_KEY, GRAPHMILL_CLUSTER_CERT); only one of them "
                "was given"
            )
        if not self.is_local and not self.token and not self.key:
            raise UsageError(
                f"a server at {self.host} could be used by anybody who reaches it; give it a token or a TLS key with "
                "certificates (GRAPHMILL_CLUSTER_TOKEN, or GRAPHMILL_CLUSTER_KEY and GRAPHMILL_CLUSTER_CERT), or let "
                f"it listen at {LOOPBACK}"
            )
        Access(self.token)  # which looks at it


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own, as seen from nowhere else."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_own(host: str) -> bool:
    """Whether an address or a name is this machine's: whether one could listen there."""
    if is_loopback(host):
        return True
    try:
        found = socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, _, _, address in found:
        with contextlib.suppress(OSError), socket.socket(family, kind) as tried:
            tried.bind(address)
            return True
    return False


class Server:
    """Serves services.

    Args:
        handlers: of `services.handler`.
        services: which these are, for who asks what there is (reflection).

    Attributes:
        port: where it listens.
        health: what is told to who asks whether it serves; that takes no token.

    Raises:
        UsageError: it may not listen there, the port is taken, or gRPC is not installed.
    """

    def __init__(self, listening: Listening, handlers: Sequence[Any], services: Sequence[ServiceDescriptor] = ()):
        listening.check()
        self.health = Health(map(service_name, services))
        reflection = Reflection(services, [HEALTH])
        library = grpc()
        self._pool = ThreadPoolExecutor(listening.calls, thread_name_prefix="graphmill call")
        self._server = library.server(
            self._pool,
            interceptors=[_door(listening.token)] if listening.token else [],
            options=[
                ("grpc.max_send_message_length", MESSAGE_BYTES),
                ("grpc.max_receive_message_length", listening.message_bytes),
                ("grpc.so_reuseport", 0),  # a port that is somebody's is an error
            ],
            maximum_concurrent_rpcs=listening.calls,
        )
        self._server.add_generic_rpc_handlers((*handlers, self.health.handler(), *reflection.handlers()))
        host = f"[{listening.host}]" if ":" in listening.host.strip("[]") else listening.host
        address = f"{host}:{listening.port}"
        try:
            if listening.key:
                pairs = [(listening.key, listening.certificates)]
                self.port: int = self._server.add_secure_port(address, library.ssl_server_credentials(pairs))
            else:
                self.port = self._server.add_insecure_port(address)
        except RuntimeError:
            self.port = 0
        if not self.port:
            self._pool.shutdown(wait=False)
            raise UsageError(f"cannot listen at {address}: is the port taken, or the address another machine's?")
        self._host = listening.host

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{self._host}:{self.port}"

    def start(self) -> None:
        """Begin to serve."""
        self._server.start()

    def stop(self, grace: float | None = None) -> None:
        """Refuse new calls and wait until those that are under way have ended.

        Args:
            grace: seconds after which these are cancelled; None to cancel them at once.
        """
        self.health.set_serving(False)
        self._server.stop(grace).wait()
        self._pool.shutdown(wait=False)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is stopped; whether it still serves after so many seconds."""
        return bool(self._server.wait_for_termination(seconds))


def _door(token: str) -> Any:
    """An interceptor that lets those in who send the token."""
    library = grpc()
    wanted = (_SCHEME + token).encode()

    def refusing(message: str) -> Any:
        def refuse(_request: Any, context: Any) -> Any:
            context.abort(library.StatusCode.UNAUTHENTICATED, message)

        return library.unary_unary_rpc_method_handler(refuse)

    nothing_given = refusing("this server asks for its token: set GRAPHMILL_CLUSTER_TOKEN")
    wrong = refusing("the token (GRAPHMILL_CLUSTER_TOKEN) is not this server's")

    class Door(library.ServerInterceptor):
        """Its base comes from gRPC, so it is made when that is there."""

        def intercept_service(self, continuation: Callable[[Any], Any], handler_call_details: Any) -> Any:
            if handler_call_details.method.startswith(f"/{HEALTH}/"):
                return continuation(handler_call_details)
            metadata: Iterable[tuple[str, str | bytes]] = handler_call_details.invocation_metadata or ()
            for name, value in metadata:
                if name == "authorization":
                    given = value if isinstance(value, bytes) else value.encode()
                    if hmac.compare_digest(given, wanted):  # takes as long whatever is wrong
                        return continuation(handler_call_details)
                    return wrong
            return nothing_given

    return Door()
