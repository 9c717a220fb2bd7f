"""A task of a cluster in this process: its master and its worker behind one port (TensorFlow's train.Server).

    from toolkit.cluster.server import ClusterServer

    server = ClusterServer(server_def)      # a ServerDef: the cluster, the job, the task
    server.start()
    Session(server.target)

Its own port is the one that the cluster names. It listens at loopback where the cluster's address of it is this
machine's own; elsewhere it asks for a token or for TLS (`Keys`).
"""

from __future__ import annotations

import hashlib
import os
import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import empty_pb2, struct_pb2

from schemas import cluster_pb2, config_pb2, device_attributes_pb2, tensorflow_server_pb2
from toolkit.cluster.client import own_master
from toolkit.cluster.limits import ServerLimits
from toolkit.cluster.master.health import Heartbeats
from toolkit.cluster.master.master import IDLE_SECONDS, Master
from toolkit.cluster.master.own_task import OwnWorker
from toolkit.cluster.master.service import MasterService
from toolkit.cluster.rpc import services
from toolkit.cluster.rpc.certificates import check_pair, read_pem, read_roots
from toolkit.cluster.rpc.channels import Access, Channels, ChannelSettings
from toolkit.cluster.rpc.library import grpc
from toolkit.cluster.rpc.server import LOOPBACK, Listening, Server, is_loopback
from toolkit.cluster.worker.service import WorkerService
from toolkit.cluster.worker.task import WorkerTask, task_addresses
from toolkit.errors import AbortedError, UsageError
from toolkit.formats.settings.cluster import Cluster
from toolkit.graph.device import DeviceSpec
from toolkit.kernels import device_types
from toolkit.limits.process import resident_memory
from toolkit.policy.rules import Policy
from toolkit.runtime.devices import Device
from toolkit.runtime.workers.base import Environment, Worker

#: what `graphmill cluster status` asks
STATUS_SERVICE = "graphmill.TaskStatus"
STATUS_METHOD = "Get"
ANYWHERE = "0.0.0.0"
#: environment variables: files with the key and the certificates (PEM) that a server proves itself with
KEY, CERTIFICATES = "GRAPHMILL_CLUSTER_KEY", "GRAPHMILL_CLUSTER_CERT"
#: and what it asks of others, and checks theirs by (`toolkit.cluster.client.kind`)
TOKEN, ROOTS = "GRAPHMILL_CLUSTER_TOKEN", "GRAPHMILL_CLUSTER_CA"
#: and what graphs may touch at a program's own server (`policy_of_environment`)
ALLOW = "GRAPHMILL_CLUSTER_ALLOW"
#: seconds that steps have to end when a server is asked to
DRAIN_SECONDS = 30.0
#: for what is under way to be answered that a server ends
_ANSWER_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Keys:
    """How the tasks of a cluster know each other.

    Attributes:
        token: all of them send it, and ask for it; "" for none.
        key, certificates: of this server (PEM), for TLS.
        roots: what the certificates of the others are checked by (PEM).
    """

    token: str = field(default="", repr=False)
    key: bytes = field(default=b"", repr=False)
    certificates: bytes = b""
    roots: bytes = b""

    @staticmethod
    def of_environment() -> Keys:
        """What the environment says.

        Raises:
            UsageError: a file cannot be read, or a server could not prove itself with what is in it.
        """
        roots = read_roots(ROOTS, os.environ.get(ROOTS, ""))
        key, certificates = os.environ.get(KEY, ""), os.environ.get(CERTIFICATES, "")
        found = Keys(os.environ.get(TOKEN, ""), read_pem(KEY, key), read_pem(CERTIFICATES, certificates), roots)
        if found.key and found.certificates:
            check_pair(key, certificates, roots)
        return found


def _counts(config: config_pb2.ConfigProto) -> dict[str, int]:
    """Devices by type, of a ConfigProto: of GPUs at most those that there are."""
    counts = dict(config.device_count)
    if "GPU" in counts:
        counts["GPU"] = min(counts["GPU"], device_types.there("GPU"))
    return counts


class ClusterServer:
    """One task.

    Args:
        server_def: the cluster, which of its tasks this is, and how the others are called (`rpc_options` of the
            default session's ConfigProto).
        policy: what graphs may touch outside of the process; by default everything: the server is its program's own.
        host: where to listen; by default at loopback or, where the cluster has another address for the task, anywhere.
        keys: how the tasks know each other; default: what the environment says.
        counts: devices by type, {"CPU": 2}; by default those of the default session's `device_count`.
        idle: seconds after which a session that nobody uses is closed; 0 for never.
        heartbeats: watches the other tasks.
        limits: what it takes at most.
        compress_transfers: the 16-bit type that float32 tensors come in from other tasks of ours, "bfloat16" or
            "half"; "" for none.

    Attributes:
        name: /job:worker/replica:0/task:0.
        target: for sessions: grpc://HOST:PORT.

    Raises:
        UsageError: the cluster has no such task, it has no address, the port is taken, or the address asks for keys.
    """

    def __init__(
        self,
        server_def: tensorflow_server_pb2.ServerDef,
        *,
        policy: Policy | None = None,
        host: str = "",
        keys: Keys | None = None,
        counts: Mapping[str, int] | None = None,
        idle: float = IDLE_SECONDS,
        heartbeats: Heartbeats | None = None,
        limits: ServerLimits | None = None,
        compress_transfers: str = "",
    ):
        grpc()
        limits = limits or ServerLimits()
        spec = DeviceSpec(server_def.job_name, server_def.replica, server_def.task_index)
        self.name = spec.task_name
        addresses = task_addresses(server_def.cluster)
        self.addresses = addresses
        own_host, port = _own_address(addresses, self.name, server_def.port)
        keys = Keys.of_environment() if keys is None else keys
        config = server_def.default_session_config
        settings = ChannelSettings.of(config.rpc_options)
        self._task = WorkerTask(
            spec,
            addresses,
            counts or _counts(config),
            policy=Policy.everything() if policy is None else policy,
            inter_op_threads=config.inter_op_parallelism_threads if config.inter_op_parallelism_threads > 1 else 0,
            admission=Access(keys.token, keys.roots),
            limits=limits.of_steps,
            compress_transfers=compress_transfers,
            channels=settings,
        )
        self._channels = Channels(Access(keys.token, keys.roots), settings)
        self._own = _Own(self._task)
        self.master = Master(self._own, addresses, self._channels, heartbeats, idle, limits)
        self._own.incarnation = self.master.incarnation
        self._masters = MasterService(self.master)
        host = host or (LOOPBACK if is_loopback(own_host) else ANYWHERE)
        listening = Listening(host, port, keys.token, keys.key, keys.certificates, limits.message)
        self._workers = WorkerService(
            self._task, graph_bytes=limits.graph, line_host="" if keys.key else host, message_bytes=limits.message
        )
        self._server = Server(
            listening,
            [
                self._masters.handler(),
                *self._workers.handlers(),
                _status_handler(self.status),
            ],
            [services.MASTER, services.WORKER],
        )
        self.target = f"grpc://{own_host}:{self._server.port}"
        self._began = time.monotonic()
        self._state = threading.Lock()
        self._started = False
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin to serve. Again is fine."""
        with self._state:
            if not self._started:
                self._started = True
                self._server.start()
                own_master.listens(self.target, self._masters)

    def join(self, seconds: float | None = None) -> bool:
        """Wait until it is stopped, or for so long; whether it is stopped."""
        return self._stopped.wait(seconds)

    def drain(self, seconds: float = DRAIN_SECONDS) -> bool:
        """Refuse new sessions and steps, let those that run end, and stop.

        Returns:
            whether all have ended within that time; what had not was cancelled.
        """
        until = time.monotonic() + seconds
        all_ended = self._masters.drain(seconds)
        self._task.steps.refuse_new()
        while len(self._task.steps) and time.monotonic() < until:
            self._stopped.wait(0.02)
        all_ended = all_ended and not len(self._task.steps)
        self.stop()
        return all_ended

    def stop(self) -> None:
        """End sessions and steps, and close the port. Again is fine."""
        with self._state:
            if self._stopped.is_set():
                return
            self._stopped.set()
        own_master.ended(self.target, self._masters)
        self.master.close()
        self._task.shut_down()
        self._server.stop(_ANSWER_SECONDS)
        self._workers.close()
        self._task.close()
        self._channels.close()

    def status(self) -> dict[str, Any]:
        """What `graphmill cluster status` shows of it."""
        sessions = self.master.sessions()
        now = time.monotonic()
        return {
            "task": self.name,
            "incarnation": f"{self._task.devices[0].incarnation:016x}",
            "devices": [device.name for device in self._task.devices],
            "uptime_seconds": round(now - self._began, 1),
            "memory_bytes": resident_memory(),
            "sessions": [
                {
                    # who knows a handle can run steps in its session: here it is only told from others
                    "handle": hashlib.sha256(each.handle.encode()).hexdigest()[:8],
                    "steps": each.steps,
                    "running": each.running,
                    "idle_seconds": round(now - each.last_used, 1),
                    "nodes": each.nodes,
                }
                for each in sessions
            ],
            "worker_sessions": len(self._task.sessions()),
            "steps_running": len(self._task.steps),
        }


class _Own:
    """The server's task, as its master sees it; see `master.OwnTask`."""

    def __init__(self, task: WorkerTask):
        self._task = task
        self.name = task.name
        self.attributes: Sequence[device_attributes_pb2.DeviceAttributes] = task.device_attributes()
        self.incarnation = 0

    def open_session(self, handle: str, isolate: bool) -> None:
        self._task.create_session(handle, is_isolated=isolate, master=self.name, master_incarnation=self.incarnation)

    def worker(self, handle: str, devices: Sequence[Device], environment: Environment) -> Worker:
        session = self._task.session(handle)
        environment.cancellation.register(session.cancellation.cancel)
        return OwnWorker(session.worker, devices[0].name, self._task.access, self._task.within)

    def close_session(self, handle: str) -> None:
        try:
            self._task.delete_session(handle)
        except AbortedError:  # it never began
            return

    def reset(self, containers: Sequence[str]) -> None:
        self._task.clear_containers(containers)


def policy_of_environment() -> Policy | None:
    """What graphs may touch at a program's own server, where the environment says that (as `--allow`, with blanks).

    Without it, None: everything, as at TensorFlow's servers, for the server may do what its program may. Whoever
    reaches the server may then read and write files through it.

    Raises:
        UsageError: it has what is no policy.
    """
    text = os.environ.get(ALLOW)
    if text is None:
        return None
    try:
        return Policy().allowing(*shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{ALLOW}: {error}") from None


def server_def(
    cluster: cluster_pb2.ClusterDef, job: str, task: int, config: config_pb2.ConfigProto | None = None
) -> tensorflow_server_pb2.ServerDef:
    """The ServerDef of one task."""
    message = tensorflow_server_pb2.ServerDef(job_name=job, task_index=task, protocol="grpc", cluster=cluster)
    if config is not None:
        message.default_session_config.CopyFrom(config)
    return message


def cluster_def(cluster: Cluster) -> cluster_pb2.ClusterDef:
    """The tasks of a cluster file.

    Raises:
        UsageError: one has no address.
    """
    message = cluster_pb2.ClusterDef()
    jobs: dict[str, cluster_pb2.JobDef] = {}
    for task in cluster.tasks:
        if not task.address:
            raise UsageError(
                f"task {task.index} of job '{task.job}' has no address; a server needs host:port of every task",
                file=cluster.source or None,
            )
        if task.job not in jobs:
            jobs[task.job] = message.job.add(name=task.job)
        jobs[task.job].tasks[task.index] = task.address
    return message


def _own_address(addresses: Mapping[str, str], name: str, port: int) -> tuple[str, int]:
    address = addresses.get(name)
    if address is None:
        raise UsageError(f"the cluster has no {name}; it has {', '.join(sorted(addresses)) or 'no tasks'}")
    host, colon, own = address.rpartition(":")
    if not colon or not own.isdecimal() or int(own) > 65535:
        raise UsageError(f"the address of {name} is '{address}'; expected host:port")
    return host, port or int(own)


def _status_handler(status: Any) -> Any:
    library = grpc()

    def get(_request: Any, _context: Any) -> struct_pb2.Struct:
        answer = struct_pb2.Struct()
        answer.update(status())
        return answer

    row = library.unary_unary_rpc_method_handler(
        get,
        request_deserializer=empty_pb2.Empty.FromString,
        response_serializer=struct_pb2.Struct.SerializeToString,
    )
    return library.method_handlers_generic_handler(STATUS_SERVICE, {STATUS_METHOD: row})


def ask_status(channel: Any, access: Access, timeout: float) -> dict[str, Any]:
    """The status of a server of ours.

    Raises:
        grpc.RpcError: it does not answer, or is none of ours (UNIMPLEMENTED).
    """
    from google.protobuf import json_format

    call = channel.unary_unary(
        f"/{STATUS_SERVICE}/{STATUS_METHOD}",
        request_serializer=empty_pb2.Empty.SerializeToString,
        response_deserializer=struct_pb2.Struct.FromString,
    )
    answer = call(empty_pb2.Empty(), timeout=timeout, metadata=access.metadata or None, wait_for_ready=False)
    return json_format.MessageToDict(answer)
