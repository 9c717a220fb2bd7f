"""Services that say what a server is: health and reflection."""

from __future__ import annotations

from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from schemas import worker_pb2
from tests import patience
from tests.cluster.small_master import status_of
from toolkit.cluster.rpc import health, reflection, wire
from toolkit.cluster.rpc.channels import channel
from toolkit.cluster.rpc.server import Listening, Server
from toolkit.cluster.rpc.services import MASTER, WORKER
from toolkit.formats.models import protoscan


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server(Listening(token="t"), [], [MASTER, WORKER])
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def wires(server: Server) -> Iterator[Any]:
    with channel(server.address) as made:
        yield made


def _fields(data: bytes) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for field in protoscan.fields(data, 0, len(data)):
        found.setdefault(field.number, []).append(data[field.value : field.end])
    return found


def test_health(server: Server, wires: Any) -> None:
    check = wires.unary_unary(f"/{health.NAME}/Check")  # without the token
    for name in ("", "tensorflow.WorkerService", health.NAME):
        assert check(wire.block(1, name.encode()) if name else b"") == b"\x08\x01"
    assert status_of(lambda: check(wire.block(1, b"other")))[0] == 5
    for bad in (b"\x0a\xff", b"\x08\x01", wire.block(1, b"\xff\xfe")):
        assert status_of(lambda: check(bad))[0] == 3  # noqa: B023 -- called at once
    answers = wires.unary_stream(f"/{health.NAME}/Watch")(b"", timeout=patience.HUNG)
    unknown = wires.unary_stream(f"/{health.NAME}/Watch")(wire.block(1, b"other"), timeout=patience.HUNG)
    assert next(answers) == b"\x08\x01" and next(unknown) == b"\x08\x03"
    server.health.set_serving(False)
    assert next(answers) == b"\x08\x02" and check(b"") == b"\x08\x02"
    server.health.set_serving(True)
    assert next(answers) == b"\x08\x01"
    answers.cancel()
    unknown.cancel()
    watchers: Any = server.health._watchers  # pyright: ignore[reportPrivateUsage]
    patience.until(lambda: not watchers, "nobody watches")


@pytest.mark.parametrize("name", reflection.NAMES)
def test_reflection(wires: Any, name: str) -> None:
    questions: SimpleQueue[bytes | None] = SimpleQueue()
    path = f"/{name}/ServerReflectionInfo"
    answers = wires.stream_stream(path)(
        iter(questions.get, None), timeout=patience.HUNG, metadata=(("authorization", "Bearer t"),)
    )

    def ask(request: bytes) -> dict[int, list[bytes]]:
        questions.put(request)
        return _fields(next(answers))

    listed = [_fields(each)[1][0].decode() for each in _fields(ask(wire.block(7, b"*"))[6][0])[1]]
    assert {"tensorflow.MasterService", "tensorflow.WorkerService", health.NAME, name} <= set(listed)
    found = _fields(ask(wire.block(4, b"tensorflow.WorkerService"))[4][0])[1]
    pool = DescriptorPool()
    waiting = [FileDescriptorProto.FromString(each) for each in found]
    known: set[str] = set()
    while waiting:  # files after those that they need
        ready = next(file for file in waiting if set(file.dependency) <= known)
        waiting.remove(ready)
        known.add(ready.name)
        pool.Add(ready)
    service = pool.FindServiceByName("tensorflow.WorkerService")
    assert {method.name for method in service.methods} == {method.name for method in WORKER.methods}
    assert service.methods_by_name["RunGraph"].input_type.full_name == "tensorflow.RunGraphRequest"
    method = ask(wire.block(4, b"tensorflow.RunGraphRequest.step_id"))[4][0]
    assert len(_fields(method)[1]) == len(found)
    file = ask(wire.block(3, worker_pb2.DESCRIPTOR.name.encode()))[4][0]
    assert len(_fields(file)[1]) == len(found)
    for request, code in ((wire.block(4, b"no.such"), 5), (wire.block(6, b"x"), 5), (b"", 3), (b"\xff", 3)):
        assert _fields(ask(request)[7][0])[1] == [bytes([code])]
    questions.put(None)


def test_reflection_asks_for_the_token(wires: Any) -> None:
    call = wires.stream_stream(f"/{reflection.NAMES[0]}/ServerReflectionInfo")
    with pytest.raises(grpc.RpcError):
        list(call(iter([wire.block(7, b"*")]), timeout=patience.HUNG))
