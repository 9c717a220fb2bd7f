"""A task: its devices, the sessions that masters have at it, and the steps that run here."""

from __future__ import annotations

import dataclasses
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from schemas import cluster_pb2, device_attributes_pb2
from toolkit.cluster.rpc.channels import OPEN, PLAIN, ChannelSettings
from toolkit.cluster.rpc.channels import Access as Admission
from toolkit.cluster.worker.session import WorkerSession
from toolkit.cluster.worker.step_logs import StepLogs
from toolkit.cluster.worker.steps import Steps
from toolkit.cluster.worker.transfers import RemoteSenders
from toolkit.compiler.settings import Settings
from toolkit.errors import (
    AbortedError,
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
    UsageError,
)
from toolkit.graph.device import DeviceSpec
from toolkit.kernels import device_types
from toolkit.limits.allowance import Allowance
from toolkit.limits.limits import Limits
from toolkit.limits.process import physical_memory
from toolkit.policy.access import Access
from toolkit.policy.rules import Policy
from toolkit.runtime.devices import Device, local_devices, require_devices
from toolkit.runtime.executors.inter_op import InterOpPool
from toolkit.runtime.steps.cancellation import CancellationManager
from toolkit.runtime.steps.rendezvous import Receiver
from toolkit.runtime.steps.resources import DEFAULT_CONTAINER, ResourceManager
from toolkit.runtime.workers.peers import Sender


def task_addresses(cluster: cluster_pb2.ClusterDef) -> dict[str, str]:
    """The addresses of a cluster's tasks, by their names."""
    return {str(DeviceSpec(job.name, 0, index)): address for job in cluster.job for index, address in job.tasks.items()}


class Senders(Protocol):
    """The workers of a cluster's other tasks, as far as they send tensors."""

    def get(self, task: str, address: str) -> Sender:
        """The worker of a task."""
        ...

    def close(self) -> None:
        """The end."""
        ...


class WorkerTask:
    """What there is of a task in this process. Safe to use from many threads.

    Args:
        task: which task of its cluster it is.
        addresses: of the other tasks, by name (`task_addresses`).
        counts: how many devices of each type it has: {"CPU": 2}.
        policy: what graphs may touch outside of the process; by default nothing but print.
        settings: of the compiler.
        inter_op_threads: see `Session`.
        admission: how other tasks let this one in.
        limits: what all steps of all sessions together may use of memory; what wants more fails alone.
        compress_transfers: the 16-bit type that float32 tensors of other tasks come in; see `RemoteSenders`.
        channels: to the other tasks.
        senders: of what other tasks send; by default they are asked over gRPC.

    Attributes:
        name: /job:worker/replica:0/task:0.
        devices: with incarnations that no other start of this task has had.
        resources: variables, queues and tables that sessions share which are not isolated.
        steps: that are under way.
        is_shut_down: it runs no steps any more.
        logs: of transfers.
    """

    def __init__(
        self,
        task: DeviceSpec,
        addresses: Mapping[str, str] | None = None,
        counts: Mapping[str, int] | None = None,
        *,
        policy: Policy | None = None,
        settings: Settings | None = None,
        inter_op_threads: int = 0,
        admission: Admission = OPEN,
        limits: Limits | None = None,
        compress_transfers: str = "",
        channels: ChannelSettings = PLAIN,
        senders: Senders | None = None,
    ):
        if limits is not None and limits.time is not None:
            raise UsageError("a task serves until it is ended; it takes no limit of time (steps have timeout_in_ms)")
        self.name = task.task_name
        self.devices = [
            dataclasses.replace(device, incarnation=secrets.randbits(63) | 1) for device in local_devices(counts, task)
        ]
        require_devices(self.devices)
        self.resources = ResourceManager()
        self._allowance = None if limits is None else Allowance(limits)
        self.access = Access(Policy() if policy is None else policy)
        self.steps = Steps()
        self.logs = StepLogs()
        self._addresses = dict(addresses or {})
        self._settings = settings or Settings.current()
        self._pool = InterOpPool(inter_op_threads) if inter_op_threads else None
        self._senders: Senders = senders or RemoteSenders(self.logs, admission, compress_transfers, channels)
        self._cancellation = CancellationManager()
        self.is_shut_down = False
        self._lock = threading.Lock()
        self._sessions: dict[str, WorkerSession] = {}
        #: who has made sessions here: its incarnation, and their handles
        self._masters: dict[str, tuple[int, set[str]]] = {}
        #: by the name of a device in any session's cluster
        self._incarnations: dict[str, int] = {}
        self._sessions[""] = self._make_session("", self.name, self._addresses, is_isolated=False)

    def within(self) -> AbstractContextManager[None]:
        """Around whatever this thread does for a session: the limits."""
        return nullcontext() if self._allowance is None else self._allowance.running()

    # -- devices -----------------------------------------------------------------------------------------

    def device_attributes(self) -> list[device_attributes_pb2.DeviceAttributes]:
        """What a master is told of the devices."""
        found: list[device_attributes_pb2.DeviceAttributes] = []
        for device in self.devices:
            memory = device_types.memory(device.device_type, device.spec.device_index or 0)
            limit = physical_memory() if memory is None else memory.statistics().limit
            found.append(
                device_attributes_pb2.DeviceAttributes(
                    name=device.name,
                    device_type=device.device_type,
                    memory_limit=limit or 0,
                    incarnation=device.incarnation,
                    xla_global_id=-1,
                )
            )
        return found

    # -- sessions ----------------------------------------------------------------------------------------

    def create_session(
        self,
        handle: str,
        cluster: cluster_pb2.ClusterDef | None = None,
        task: DeviceSpec | None = None,
        *,
        is_isolated: bool = False,
        master: str = "",
        master_incarnation: int = 0,
    ) -> WorkerSession:
        """Make a session.

        Args:
            handle: the master's name of it.
            cluster: the session's own, whose tasks may have other names; the server's by default.
            task: what this task is called in that.
            is_isolated: its variables and queues are its own.
            master: the task that asks. When it has started anew since it asked before, its older sessions are over.

        Raises:
            AlreadyExistsError: there is one of this handle.
            InvalidArgumentError: it has no handle.
        """
        if not handle:
            raise InvalidArgumentError("a session at a worker needs a handle")
        over: list[WorkerSession] = []
        with self._lock:
            if handle in self._sessions:
                raise AlreadyExistsError(f"the session '{handle}' exists at {self.name} already")
            if master:
                incarnation, handles = self._masters.get(master, (master_incarnation, set[str]()))
                if incarnation != master_incarnation:
                    over = [self._sessions.pop(each) for each in handles if each in self._sessions]
                    handles = set[str]()
                self._masters[master] = (master_incarnation, handles)
            if cluster is not None and cluster.job and task is not None:
                made = self._make_session(handle, task.task_name, task_addresses(cluster), is_isolated=is_isolated)
            else:
                made = self._make_session(handle, self.name, self._addresses, is_isolated=is_isolated)
            self._sessions[handle] = made
            if master:
                self._masters[master][1].add(handle)
        for each in over:
            self._end(each)
        return made

    def _make_session(
        self, handle: str, task: str, addresses: Mapping[str, str], *, is_isolated: bool
    ) -> WorkerSession:
        devices = [_renamed(device, task) for device in self.devices]
        self._incarnations.update({device.name: device.incarnation for device in devices})
        return WorkerSession(
            handle,
            task,
            devices,
            ResourceManager() if is_isolated else self.resources,
            parent=self._cancellation,
            sender=self._sender(addresses),
            steps=self.steps,
            access=self.access,
            settings=self._settings,
            pool=self._pool,
            within=self.within,
            is_isolated=is_isolated,
        )

    def _sender(self, addresses: Mapping[str, str]) -> Callable[[str], Sender]:
        def find(task: str) -> Sender:
            address = addresses.get(task)
            if address is None:
                raise NotFoundError(f"{self.name} knows no address of {task}; its cluster does not have that task")
            return self._senders.get(task, address)

        return find

    def session(self, handle: str) -> WorkerSession:
        """A session that was made here.

        Raises:
            AbortedError: there is none of this handle.
        """
        found = self._sessions.get(handle)
        if found is None:
            raise AbortedError(
                f"there is no session '{handle}' at {self.name}; it was closed, or the task has started anew since"
            )
        return found

    def sessions(self) -> Sequence[WorkerSession]:
        """Those that masters have made."""
        return [session for handle, session in list(self._sessions.items()) if handle]

    def delete_session(self, handle: str) -> None:
        """End a session and its steps.

        Raises:
            AbortedError: there is none of this handle.
        """
        session = self.session(handle)
        with self._lock:
            self._sessions.pop(handle, None)
            for _, handles in self._masters.values():
                handles.discard(handle)
        self._end(session)

    def _end(self, session: WorkerSession) -> None:
        for step_id in self.steps.of_session(session):
            self.steps.finish(step_id, AbortedError(f"the session '{session.handle}' was closed"))
        session.close()

    # -- tensors and containers --------------------------------------------------------------------------

    def receive(self, step_id: int, key: str, done: Receiver) -> Callable[[], None]:
        """Ask for what a step sends from here; see `Steps.receive`.

        Raises:
            InvalidArgumentError: the key is malformed.
            AbortedError: it is a tensor of a device before that has started anew, or the step is over.
            NotFoundError: no device here is its sender.
        """
        parts = key.split(";")
        if len(parts) != 5 or len(parts[1]) != 16:
            raise InvalidArgumentError(f"'{key[:200]}' is no key of a tensor: sender;incarnation;receiver;name;frame")
        try:
            incarnation = int(parts[1], 16)
        except ValueError:
            raise InvalidArgumentError(f"'{parts[1]}' in the key of a tensor is no incarnation") from None
        present = self._incarnations.get(parts[0])
        if present is None:
            raise NotFoundError(f"{self.name} has no device '{parts[0][:200]}' that could send a tensor")
        if present != incarnation:
            raise AbortedError(
                f"the device {parts[0]} is asked for a tensor by the incarnation {incarnation:016x}, but is "
                f"{present:016x}: its task has started anew, and what it had is gone"
            )
        return self.steps.receive(step_id, key, done)

    def clear_containers(self, containers: Iterable[str]) -> None:
        """Drop the variables, queues and tables of some containers, or of the default one."""
        self.resources.clear(list(containers) or [DEFAULT_CONTAINER])

    def shut_down(self) -> None:
        """End all steps; whoever takes part in one is told that this task is gone. Again is fine."""
        self.is_shut_down = True
        self.steps.finish_all(UnavailableError(f"{self.name} was shut down"))
        self._cancellation.cancel()

    def close(self) -> None:
        """End everything: steps, sessions, connections."""
        self.shut_down()
        for session in list(self._sessions.values()):
            self._end(session)
        self._sessions.clear()
        self._senders.close()
        if self._pool is not None:
            self._pool.close()
        if self._allowance is not None:
            self._allowance.close()
        self.resources.clear()


def _renamed(device: Device, task: str) -> Device:
    """A device as a session's cluster calls it."""
    spec = DeviceSpec.parse(task)
    own = dataclasses.replace(device.spec, job=spec.job, replica=spec.replica, task=spec.task)
    return dataclasses.replace(device, spec=own)
