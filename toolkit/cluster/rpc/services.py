"""The methods of TensorFlow's services, by the descriptors of our own messages.

A method's path has TensorFlow's package, whose messages ours equal on the wire. Requests and responses that travel as
bytes (`Stub(raw=...)`, `handler(raw=...)`) are written and read by whoever makes them, which spares large tensors
their copies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message

from schemas import master_pb2, worker_pb2
from toolkit.cluster.rpc.library import grpc

PACKAGE = "tensorflow"
MASTER: ServiceDescriptor = master_pb2.DESCRIPTOR.services_by_name["MasterService"]
WORKER: ServiceDescriptor = worker_pb2.DESCRIPTOR.services_by_name["WorkerService"]


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a service: unary, as all of TensorFlow's are."""

    name: str
    path: str
    request: type[Message]
    response: type[Message]


def service_name(service: ServiceDescriptor) -> str:
    """What the wire calls a service: "tensorflow.MasterService"."""
    return f"{PACKAGE}.{service.name}"


def methods(service: ServiceDescriptor) -> dict[str, Method]:
    """The methods of a service, by name."""
    return {
        method.name: Method(
            method.name,
            f"/{service_name(service)}/{method.name}",
            message_factory.GetMessageClass(method.input_type),
            message_factory.GetMessageClass(method.output_type),
        )
        for method in service.methods
    }


class Stub:
    """The calls of a service over a channel, by the names of its methods.

    Args:
        channel: a `grpc.Channel`.
        raw: methods whose responses are given as bytes.
        raw_requests: methods whose requests are bytes already.
    """

    def __init__(
        self, channel: Any, service: ServiceDescriptor, raw: Collection[str] = (), raw_requests: Collection[str] = ()
    ):
        self._calls = {
            name: channel.unary_unary(
                method.path,
                request_serializer=None if name in raw_requests else method.request.SerializeToString,
                response_deserializer=None if name in raw else method.response.FromString,
            )
            for name, method in methods(service).items()
        }

    def __getitem__(self, name: str) -> Any:
        """The `grpc.UnaryUnaryMultiCallable` of a method."""
        return self._calls[name]


class Answer:
    """The response of a call that is given later, once, from any thread; no thread waits meanwhile.

    Args:
        send: of gRPC: a response, then None for the end. It returns when the response is on its way.
    """

    def __init__(self, context: Any, send: Callable[[Any], None]):
        self._context = context
        self._send = send

    def when_over(self, react: Callable[[], None]) -> bool:
        """Call this when the call ends, answered or not; False where it has ended already."""
        return bool(self._context.add_callback(react))

    def give(self, response: Any) -> None:
        """Send a response."""
        self._send(response)
        self._send(None)

    def fail(self, code: int, message: str, details: bytes = b"") -> None:
        """Send a status.

        Args:
            details: what else is known of it, as programs read it.
        """
        known = {each.value[0]: each for each in grpc().StatusCode}
        self._context.set_code(known[code])
        self._context.set_details(message)
        if details:
            self._context.set_trailing_metadata((("grpc-status-details-bin", details),))
        self._send(None)


def handler(
    service: ServiceDescriptor,
    implementation: Mapping[str, Callable[[Any, Any], Any]],
    raw: Collection[str] = (),
    later: Mapping[str, Callable[[Any, Answer], None]] | None = None,
    raw_requests: Collection[str] = (),
) -> Any:
    """What a `grpc.Server` is given to serve a service.

    Args:
        implementation: by method, a function of request and `grpc.ServicerContext` that returns the response; what is
            not in it is answered by UNIMPLEMENTED.
        raw: methods whose responses are bytes already.
        later: by method, a function of request and `Answer`. On the wire one response of many is a response, so
            gRPC's server is told that there may be many: it then offers to be answered later.
        raw_requests: methods whose requests are taken as bytes.
    """
    library = grpc()
    rows = {
        name: library.unary_unary_rpc_method_handler(
            implementation[name],
            request_deserializer=None if name in raw_requests else method.request.FromString,
            response_serializer=None if name in raw else method.response.SerializeToString,
        )
        for name, method in methods(service).items()
        if name in implementation
    }
    for name, begin in (later or {}).items():
        method = methods(service)[name]
        rows[name] = library.unary_stream_rpc_method_handler(
            _answered_later(begin),
            request_deserializer=None if name in raw_requests else method.request.FromString,
            response_serializer=None if name in raw else method.response.SerializeToString,
        )
    return library.method_handlers_generic_handler(service_name(service), rows)


def _answered_later(begin: Callable[[Any, Answer], None]) -> Any:
    def behavior(request: Any, context: Any, send: Callable[[Any], None]) -> None:
        begin(request, Answer(context, send))

    behavior.experimental_non_blocking = True  # type: ignore[attr-defined]
    return behavior
