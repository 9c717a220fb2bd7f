"""A service on loopback, asked by its stub."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from schemas import master_pb2
from toolkit.cluster.rpc import services, statuses
from toolkit.errors import BY_CODE, AbortedError, GraphError, OpError


@pytest.fixture
def channel() -> Iterator[Any]:
    def reset(request: Any, context: Any) -> Any:
        code = int(request.container[0])
        if code:
            statuses.abort(context, BY_CODE[code]("as asked", node="n"))
        return master_pb2.ResetResponse()

    def list_devices(request: Any, context: Any) -> bytes:
        return master_pb2.ListDevicesResponse(local_device=[{"name": request.session_handle}]).SerializeToString()

    server = grpc.server(ThreadPoolExecutor(2))
    found = {"Reset": reset, "ListDevices": list_devices}
    server.add_generic_rpc_handlers((services.handler(services.MASTER, found, raw=["ListDevices"]),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as made:
        yield made
    server.stop(None).wait()


def test_paths_are_tensorflows() -> None:
    paths = [
        method.path for service in (services.MASTER, services.WORKER) for method in services.methods(service).values()
    ]
    assert "/tensorflow.MasterService/RunStep" in paths
    assert "/tensorflow.WorkerService/RecvTensor" in paths
    assert len(paths) == len(set(paths)) == 26


def test_calls(channel: Any) -> None:
    for raw in ((), ("ListDevices",)):
        stub = services.Stub(channel, services.MASTER, raw=raw)
        answer = stub["ListDevices"](master_pb2.ListDevicesRequest(session_handle="h"))
        message = master_pb2.ListDevicesResponse.FromString(answer) if raw else answer
        assert message.local_device[0].name == "h"
    with pytest.raises(grpc.RpcError) as error:
        stub["RunStep"](master_pb2.RunStepRequest())
    assert isinstance(statuses.from_call(error.value, "RunStep"), BY_CODE[12])


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_a_status_arrives_as_the_error_it_was(channel: Any, code: int) -> None:
    stub = services.Stub(channel, services.MASTER)
    with pytest.raises(grpc.RpcError) as raised:
        stub["Reset"](master_pb2.ResetRequest(container=[str(code)]))
    error = statuses.from_call(raised.value, "Reset")
    assert type(error) is BY_CODE[code] and (error.message, error.node) == ("as asked", "n")


@pytest.mark.parametrize(
    ("message", "node"),
    [
        ("From /job:ps:\nno value\n\t [[{{node w/read}}]]", "w/read"),
        ("no value\n\t [[{{node a}}]]\n\t [[b]]", "a"),
        ("no value [[Node: w/read = Identity[T=DT_FLOAT](w)]]", "w/read"),
        ("no value [[1, 2]]", None),
        ("no value\nRecent warning and error logs:\n  W0 x\n\t [[{{node a}}]]\n\t [[{{node b}}]]", "b"),
        ("no value\n\t [[{{node a}}]]\nRecent warning and error logs:\n  W0000 x\n\t [[{{node b}}]]\n\t [[c_S1]]", "a"),
        ("no value\nAdditional GRPC error information from remote target /job:ps:\n:UNKNOWN:{{x}}", None),
    ],
)
def test_a_node_is_found_in_tensorflows_messages(message: str, node: str | None) -> None:
    error = statuses.to_error(3, message)
    assert error.node == node and "no value" in error.message
    assert "{{" not in error.message and "Recent" not in error.message


LOST = "CANCELLED: From /job:worker/replica:0/task:0:\nRecv is cancelled.\n"


@pytest.mark.parametrize(
    ("code", "message", "told"),
    [
        (1, f"\n===\n{LOST}ABORTED: From /job:ps/replica:0/task:0:\nno session\n===\n", 10),
        (1, f"\n===\n{LOST}{LOST}UNAVAILABLE: From /job:ps/replica:0/task:0:\nno route\n===\n", 14),
        (1, f"\n===\n{LOST}===\n", 1),
        (1, f"\n===\n{LOST}NO_CODE: From /job:ps/replica:0/task:0:\n===\n", 1),
        (1, "ABORTED: it says", 1),
        (3, f"\n===\n{LOST}ABORTED: From /job:ps/replica:0/task:0:\nno session\n===\n", 3),
    ],
)
def test_a_summary_of_several_ends_is_of_their_cause(code: int, message: str, told: int) -> None:
    assert statuses.to_error(code, message).code == told


@pytest.mark.parametrize(
    ("raised", "code"), [(AbortedError("x"), 10), (GraphError("x"), 3), (OpError("x"), 2), (KeyError("x"), 13)]
)
def test_what_is_raised_has_a_status(raised: Exception, code: int) -> None:
    assert statuses.status_of(raised)[0] == code


def test_what_ran_out_is_told_as_that() -> None:
    for error in (MemoryError("a lot"), RecursionError()):
        assert statuses.status_of(error)[0] == 8  # RESOURCE_EXHAUSTED: no mistake of the server's
