# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Jobs and tasks, servers of this process, and devices by their parts."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from schemas import tensorflow_server_pb2
from toolkit.client.train import replicas
from toolkit.cluster.specification import ClusterSpec
from toolkit.errors import UsageError
from toolkit.graph import device as graph_device
from toolkit.tensorflow.deprecation import log

_numbers = itertools.count()


class Server:
    """A server of this process: its sessions share their variables, queues and tables.

    A cluster's task is served over gRPC, as TensorFlow's servers do, so that its other tasks may be theirs or ours. One
    task with a port that anybody may choose (`create_local_server`) is for this process alone and needs no gRPC.

    Raises:
        UsageError: there is no such task, its port is taken, its address is another machine's and no token or TLS
            key is in the environment, or GRAPHMILL_CLUSTER_ALLOW has what is no policy (`toolkit.cluster.server`).
    """

    def __init__(
        self, server_or_cluster_def: Any, job_name: Any = None, task_index: Any = None, protocol: Any = None,
        config: Any = None, start: bool = True,
    ):  # fmt: skip
        self._server_def = _server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        self._served: Any = None
        addresses = [address for job in self._server_def.cluster.job for address in job.tasks.values()]
        if len(addresses) == 1 and addresses[0].endswith(":0") and not self._server_def.port:
            self._target = f"local://server-{next(_numbers)}"
        else:
            from toolkit.cluster.server import ClusterServer, policy_of_environment

            self._served = ClusterServer(self._server_def, policy=policy_of_environment())
            self._target = self._served.target
        self._stopped = threading.Event()
        if start:
            self.start()

    @classmethod
    def _in_process(cls, server_def: tensorflow_server_pb2.ServerDef, target: str) -> Server:
        """A task of a cluster that is all in this process."""
        made = cls.__new__(cls)
        made._server_def, made._target = server_def, target
        made._served, made._stopped = None, threading.Event()
        return made

    def start(self) -> None:
        """Begin to serve; again is fine."""
        if self._served is not None:
            self._served.start()

    def join(self) -> None:
        """Wait until it is shut down, which never happens by itself."""
        if self._served is not None:
            self._served.join()
        else:
            self._stopped.wait()

    @property
    def server_def(self) -> tensorflow_server_pb2.ServerDef:
        return self._server_def

    @property
    def target(self) -> str:
        """For `tf.Session`."""
        return self._target

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        return Server({"localhost": ["localhost:0"]}, protocol="grpc", config=config, start=start)


def local_servers(cluster: ClusterSpec, counts: dict[str, int], configs: dict[str, Any]) -> dict[str, list[Server]]:
    """The servers of a cluster whose tasks all run in this process, by job; they share one target."""
    target = f"local://server-{next(_numbers)}"
    return {
        job: [
            Server._in_process(_server_def(cluster, job, number, "grpc", configs.get(job)), target)
            for number in range(count)
        ]
        for job, count in counts.items()
    }


def _server_def(given: Any, job: Any, task: Any, protocol: Any, config: Any) -> tensorflow_server_pb2.ServerDef:
    message = tensorflow_server_pb2.ServerDef()
    if hasattr(given, "default_session_config"):
        message.MergeFromString(given.SerializeToString())
    else:
        cluster = ClusterSpec(given)
        if job is None and len(cluster.jobs) != 1:
            raise ValueError(f"the cluster has the jobs {sorted(cluster.jobs)}; say which with job_name=")
        job = cluster.jobs[0] if job is None else job
        if task is None and cluster.num_tasks(job) != 1:
            raise ValueError(f"the job '{job}' has the tasks {cluster.task_indices(job)}; say which with task_index=")
        task = cluster.task_indices(job)[0] if task is None else task
        message.cluster.CopyFrom(cluster.as_cluster_def())
    if job is not None:
        message.job_name = job
    if task is not None:
        message.task_index = task
    message.protocol = protocol or message.protocol or "grpc"
    if config is not None:
        message.default_session_config.MergeFromString(config.SerializeToString())
    return message


def replica_device_setter(
    ps_tasks: int = 0, ps_device: str = "/job:ps", worker_device: str = "/job:worker", merge_devices: bool = True,
    cluster: Any = None, ps_ops: Any = None, ps_strategy: Any = None,
) -> Callable[[Any], str] | None:  # fmt: skip
    """A function for tf.device that puts variables on parameter servers; None where there are none."""
    if cluster is not None:
        jobs = ClusterSpec(cluster).as_dict()
        ps_tasks = len(jobs.get(graph_device.DeviceSpec.parse(ps_device).job or "", ()))
    if not ps_tasks:
        return None
    if ps_strategy is not None and not callable(ps_strategy):
        raise TypeError(f"ps_strategy is a function from an operation to a task, not {ps_strategy!r}")
    if not merge_devices:
        log().warning("merge_devices=False is deprecated: devices that operations have themselves are kept as they are")
    chosen: Any = ps_strategy
    return replicas.replica_device_setter(ps_tasks, ps_device, worker_device, merge_devices, ps_ops, chosen)


class DeviceSpec:
    """A device name by its parts, each of which may be unknown."""

    def __init__(
        self, job: Any = None, replica: Any = None, task: Any = None, device_type: Any = None, device_index: Any = None
    ):
        self.job = None if job is None else str(job)
        self.replica = None if replica is None else int(replica)
        self.task = None if task is None else int(task)
        kind = None if device_type is None else str(device_type)
        self.device_type = kind.upper() if kind is not None and kind.lower() in ("cpu", "gpu") else kind
        self.device_index = None if device_index is None else int(device_index)

    def _parts(self) -> tuple[Any, ...]:
        return self.job, self.replica, self.task, self.device_type, self.device_index

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """The parts of a name such as "/job:worker/task:1/device:GPU:0".

        Raises:
            ValueError: it is no device name.
        """
        return cls(*_parsed(spec))

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Take over the parts of a name."""
        self.job, self.replica, self.task, self.device_type, self.device_index = _parsed(spec)
        return self

    def merge_from(self, dev: Any) -> None:
        """Take over what another one says."""
        merged = self.make_merged_spec(dev)
        self.job, self.replica, self.task, self.device_type, self.device_index = merged._parts()

    def make_merged_spec(self, dev: Any) -> DeviceSpec:
        """This one, with what another one says in front."""
        pairs = zip((dev.job, dev.replica, dev.task, dev.device_type, dev.device_index), self._parts(), strict=True)
        return type(self)(*(own if theirs is None else theirs for theirs, own in pairs))

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """This one with other parts."""
        names = ("job", "replica", "task", "device_type", "device_index")
        return type(self)(**{**dict(zip(names, self._parts(), strict=True)), **kwargs})

    def to_string(self) -> str:
        text = "" if self.job is None else f"/job:{self.job}"
        text += "" if self.replica is None else f"/replica:{self.replica}"
        text += "" if self.task is None else f"/task:{self.task}"
        if self.device_type is not None:
            text += f"/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}"
        return text

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        names = ("job", "replica", "task", "device_type", "device_index")
        return f"<DeviceSpec({', '.join(f'{n}={p}' for n, p in zip(names, self._parts(), strict=True))})>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self.to_string() == other.to_string()

    def __hash__(self) -> int:
        return hash(self.to_string())


def _parsed(spec: str) -> tuple[Any, ...]:
    try:
        found = graph_device.DeviceSpec.parse(spec or "")
    except UsageError as error:
        raise ValueError(error.message) from None
    return found.job, found.replica, found.task, found.device_type, found.device_index
