"""The reflection service of gRPC (grpc.reflection.v1 and v1alpha): which services there are, and their messages.

Tools such as grpcurl ask it. What it tells is our own descriptors with TensorFlow's package, as on the wire. Of its
messages a few fields are used, which are read and written by hand: the package grpcio-reflection would want its own
release of grpcio, and a pool of descriptors that has TensorFlow's names in this process.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from google.protobuf.descriptor import FileDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from toolkit.cluster.rpc import wire
from toolkit.cluster.rpc.library import grpc
from toolkit.cluster.rpc.services import PACKAGE, service_name
from toolkit.formats.models import protoscan
from toolkit.formats.models.protoscan import LENGTH

NAMES = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
#: fields of a ServerReflectionRequest
_BY_NAME, _BY_SYMBOL, _EXTENSION, _EXTENSIONS, _SERVICES = 3, 4, 5, 6, 7
#: and of a response
_REQUEST, _FILES, _LIST, _ERROR = 2, 4, 6, 7
_NOT_FOUND, _INVALID = 5, 3


class Reflection:
    """Tells of services.

    Args:
        services: by their descriptors.
        others: names of services without any.
    """

    def __init__(self, services: Sequence[ServiceDescriptor], others: Iterable[str] = ()):
        self._names = sorted([*map(service_name, services), *others, *NAMES])
        self._roots = [service.file for service in services]

    @functools.cached_property
    def _files(self) -> dict[str, FileDescriptorProto]:
        """All files by name; of ours the package is TensorFlow's."""
        found: dict[str, FileDescriptorProto] = {}
        waiting: list[FileDescriptor] = list(self._roots)
        while waiting:
            file = waiting.pop()
            if file.name not in found:
                found[file.name] = _renamed(file)
                waiting += file.dependencies
        return found

    @functools.cached_property
    def _symbols(self) -> dict[str, str]:
        """The file of each message, enum, service and method."""
        found: dict[str, str] = {}
        for name, file in self._files.items():
            for kind in (file.message_type, file.enum_type, file.service):
                for each in kind:
                    found[f"{file.package}.{each.name}"] = name
            for service in file.service:
                found.update({f"{file.package}.{service.name}.{method.name}": name for method in service.method})
        return found

    def answer(self, request: bytes) -> bytes:
        """The response to a request, both as bytes."""
        try:
            found = {each.number: each for each in protoscan.fields(request, 0, len(request))}
        except protoscan.WireError:
            return self._error(request, _INVALID, "the request is no ServerReflectionRequest")
        if _SERVICES in found:
            names = b"".join(wire.block(1, wire.block(1, name.encode())) for name in self._names)
            return wire.block(_REQUEST, request) + wire.block(_LIST, names)
        for number in (_BY_NAME, _BY_SYMBOL):
            field = found.get(number)
            if field is not None and field.wire_type == LENGTH:
                text = request[field.value : field.end].decode(errors="replace")
                name = text if number == _BY_NAME else self._file_of(text)
                if name not in self._files:
                    return self._error(request, _NOT_FOUND, f"there is no '{text[:200]}' here")
                files = b"".join(wire.block(1, each) for each in self._with_dependencies(name))
                return wire.block(_REQUEST, request) + wire.block(_FILES, files)
        if _EXTENSION in found or _EXTENSIONS in found:
            return self._error(request, _NOT_FOUND, "messages have no extensions here")
        return self._error(request, _INVALID, "the request asks for nothing")

    def _file_of(self, symbol: str) -> str:
        """The file of a symbol, or of the message or enum that it is in; "" where there is none."""
        while symbol:
            if symbol in self._symbols:
                return self._symbols[symbol]
            symbol = symbol.rpartition(".")[0]
        return ""

    def _with_dependencies(self, name: str) -> list[bytes]:
        seen: dict[str, bytes] = {}
        waiting = [name]
        while waiting:
            each = waiting.pop()
            if each not in seen:
                seen[each] = self._files[each].SerializeToString()
                waiting += self._files[each].dependency
        return list(seen.values())

    @staticmethod
    def _error(request: bytes, code: int, message: str) -> bytes:
        told = wire.number(1, code) + wire.block(2, message.encode())
        return wire.block(_REQUEST, request) + wire.block(_ERROR, told)

    def handlers(self) -> list[Any]:
        """What a `grpc.Server` is given."""
        library = grpc()

        def tell(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
            return map(self.answer, requests)

        row = {"ServerReflectionInfo": library.stream_stream_rpc_method_handler(tell)}
        return [library.method_handlers_generic_handler(name, row) for name in NAMES]


def _renamed(file: FileDescriptor) -> FileDescriptorProto:
    """A file whose package is TensorFlow's if it is ours."""
    made = FileDescriptorProto()
    file.CopyToProto(made)
    ours = file.package
    if ours.partition(".")[0] == "google":
        return made
    made.package = PACKAGE + ours[len("graphmill") :]
    for message in made.message_type:
        _rename(message)
    for service in made.service:
        for method in service.method:
            method.input_type, method.output_type = _type(method.input_type), _type(method.output_type)
    return made


def _rename(message: Any) -> None:
    for field in message.field:
        if field.type_name:
            field.type_name = _type(field.type_name)
    for inner in message.nested_type:
        _rename(inner)


def _type(name: str) -> str:
    own = ".graphmill."
    return f".{PACKAGE}.{name[len(own) :]}" if name.startswith(own) else name
