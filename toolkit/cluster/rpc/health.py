"""The health service of gRPC (grpc.health.v1), which probes of schedulers and load balancers ask.

Its two messages have one field each, so they are written by hand: the package grpcio-health-checking can only be
installed beside a grpcio of its own release.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from toolkit.cluster.rpc import wire
from toolkit.cluster.rpc.library import grpc
from toolkit.formats.models import protoscan
from toolkit.formats.models.protoscan import LENGTH

NAME = "grpc.health.v1.Health"
SERVING, NOT_SERVING, UNKNOWN = 1, 2, 3


class Health:
    """What services of a server are ready.

    Args:
        names: of the services; the server as a whole is "".
    """

    def __init__(self, names: Iterable[str]):
        self._lock = threading.Lock()
        self._statuses = dict.fromkeys(["", NAME, *names], SERVING)
        self._watchers: dict[object, tuple[str, Callable[[Any], None]]] = {}

    def set_serving(self, is_serving: bool) -> None:
        """Say of all services whether they serve; who watches one is told."""
        status = SERVING if is_serving else NOT_SERVING
        with self._lock:
            self._statuses = dict.fromkeys(self._statuses, status)
            watchers = list(self._watchers.values())
        for name, send in watchers:
            send(wire.number(1, self._statuses.get(name, UNKNOWN)))

    def handler(self) -> Any:
        """What a `grpc.Server` is given."""
        library = grpc()

        def check(request: bytes, context: Any) -> bytes:
            name = _service(request, context)
            status = self._statuses.get(name)
            if status is None:
                context.abort(library.StatusCode.NOT_FOUND, f"there is no service '{name}' here")
            return wire.number(1, status or UNKNOWN)

        def watch(request: bytes, context: Any, send: Callable[[Any], None]) -> None:
            name, key = _service(request, context), object()

            def over() -> None:
                with self._lock:
                    self._watchers.pop(key, None)

            with self._lock:
                self._watchers[key] = (name, send)
                status = self._statuses.get(name, UNKNOWN)
            send(wire.number(1, status))
            if not context.add_callback(over):
                over()

        watch.experimental_non_blocking = True  # type: ignore[attr-defined]  # no thread waits for a change
        rows = {
            "Check": library.unary_unary_rpc_method_handler(check),
            "Watch": library.unary_stream_rpc_method_handler(watch),
        }
        return library.method_handlers_generic_handler(NAME, rows)


def _service(request: bytes, context: Any) -> str:
    """The name that a request asks for; it ends the call where that is none."""
    try:
        found = [each for each in protoscan.fields(request, 0, len(request)) if each.number == 1]
        named = [request[each.value : each.end].decode() for each in found if each.wire_type == LENGTH]
    except (protoscan.WireError, UnicodeDecodeError):
        named, found = [], [None]
    if len(named) != len(found):
        context.abort(grpc().StatusCode.INVALID_ARGUMENT, "the request is no HealthCheckRequest")
    return named[-1] if named else ""
