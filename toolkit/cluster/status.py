"""What the tasks of a cluster tell of themselves: TensorFlow's servers their devices, ours more."""

from __future__ import annotations

from typing import Any

from schemas import worker_pb2
from toolkit.cluster.client.kind import access
from toolkit.cluster.rpc import services, statuses
from toolkit.cluster.rpc.channels import Access, channel
from toolkit.cluster.rpc.library import grpc
from toolkit.cluster.server import ask_status
from toolkit.errors import UsageError
from toolkit.formats.settings.cluster import Cluster, Task

_UNIMPLEMENTED = 12


def ask_all(cluster: Cluster, timeout: float) -> list[dict[str, Any]]:
    """A row for each task: `task`, `address`, and `error` or `incarnation`, `devices` and, of our servers, the rest of
    `ClusterServer.status`.

    Args:
        timeout: seconds that each task has to answer.

    Raises:
        UsageError: a task has no address.
    """
    for task in cluster.tasks:
        if not task.address:
            raise UsageError(f"task {task.index} of job '{task.job}' has no address", file=cluster.source or None)
    own = access()
    return [_ask(task, own, timeout) for task in cluster.tasks]


def _ask(task: Task, access: Access, timeout: float) -> dict[str, Any]:
    row: dict[str, Any] = {"task": task.spec.task_name, "address": task.address}
    library = grpc()
    with channel(task.address, access) as made:
        try:
            return row | ask_status(made, access, timeout)
        except library.RpcError as error:
            if error.code().value[0] != _UNIMPLEMENTED:
                return row | {"error": _told(error, task.address)}
        try:
            stub = services.Stub(made, services.WORKER)
            answer = stub["GetStatus"](worker_pb2.GetStatusRequest(), timeout=timeout, metadata=access.metadata or None)
        except library.RpcError as error:
            return row | {"error": _told(error, task.address)}
    devices = [each.name for each in answer.device_attributes]
    return row | {"incarnation": f"{answer.device_attributes[0].incarnation:016x}", "devices": devices}


def _told(error: Any, address: str) -> str:
    return statuses.from_call(error, "GetStatus", address).message.partition("\n")[0]
