"""A task as an actor: what its master and the other tasks ask of it. It runs in a process that Ray gives it.

All methods are coroutines: whoever waits for a tensor takes no thread, and a cancellation is heard while steps run.
What runs steps, or takes long, has a thread. Answers are values, or a `Failure`.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from schemas import graph_pb2
from toolkit.cluster.master.own_task import OwnWorker
from toolkit.cluster.ray.answers import Failure
from toolkit.cluster.ray.transfers import ActorSenders, sendable
from toolkit.cluster.worker.task import WorkerTask
from toolkit.compiler.settings import Settings
from toolkit.errors import AbortedError
from toolkit.formats.models import graphdef
from toolkit.graph import plugins
from toolkit.graph.device import DeviceSpec
from toolkit.graph.garbage import no_collection
from toolkit.kernels.context import DEAD
from toolkit.policy.rules import Policy
from toolkit.runtime.probes.trace import TraceProbe, step_stats

#: steps and calls of one actor at the same time; more wait
MOST_STEPS = 1000
MOST_CALLS = 20_000


@dataclass(frozen=True, slots=True)
class ActorSettings:
    """What all tasks of an engine are told.

    Attributes:
        policy: what graphs may touch.
        precision, threads: see `Session`.
        inter_op: likewise.
        plugins: names or files of the plugins that the graphs need.
        folder: where relative paths begin.
    """

    policy: Policy
    precision: str = "f32"
    threads: int | None = None
    inter_op: int = 0
    plugins: tuple[str, ...] = ()
    folder: str = ""


class TaskActor:
    """One task.

    Args:
        counts: its devices, by type.
        tasks: the names of all tasks.
        settings: of the engine.
    """

    def __init__(self, job: str, index: int, counts: Mapping[str, int], tasks: Sequence[str], settings: ActorSettings):
        enter(settings)
        self._senders = ActorSenders()
        self._task = WorkerTask(
            DeviceSpec(job, 0, index),
            {name: name for name in tasks},
            counts,
            policy=settings.policy,
            settings=Settings.current(settings.precision, settings.threads),
            inter_op_threads=settings.inter_op,
            senders=self._senders,
        )
        self._workers: dict[str, OwnWorker] = {}
        self._threads = ThreadPoolExecutor(MOST_STEPS, thread_name_prefix="graphmill step")

    async def _told(self, call: Callable[[], Any]) -> Any:
        """What a call returns, made in a thread."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except Exception as error:
            return Failure.of(error)

    # -- the task and its sessions -----------------------------------------------------------------------

    async def status(self) -> tuple[int, list[bytes]]:
        """The process, and its devices (DeviceAttributes)."""
        return os.getpid(), [each.SerializeToString() for each in self._task.device_attributes()]

    async def open_session(self, session: str, actors: dict[str, Any], is_isolated: bool) -> Any:
        """Begin a session.

        Args:
            actors: of the other tasks, by name.
        """
        self._senders.meet(actors)

        def make() -> None:
            made = self._task.create_session(session, is_isolated=is_isolated)
            self._workers[session] = OwnWorker(made.worker, made.devices[0].name, self._task.access)

        return await self._told(make)

    async def close_session(self, session: str) -> Any:
        """End a session and its steps."""
        self._workers.pop(session, None)
        return await self._told(functools.partial(self._task.delete_session, session))

    async def reset(self, containers: Sequence[str]) -> Any:
        """Drop what is in containers; in the default one, where none is named."""
        return await self._told(functools.partial(self._task.clear_containers, containers))

    def _worker(self, session: str) -> OwnWorker:
        found = self._workers.get(session)
        if found is None:
            raise AbortedError(f"there is no session at {self._task.name}: it was closed, or the task has started anew")
        return found

    # -- graphs and steps: the methods of `Worker` -------------------------------------------------------

    async def register(self, session: str, definition: bytes) -> Any:
        """See `Worker.register`; handle, inputs and outputs."""

        @no_collection()
        def register() -> tuple[int, tuple[str, ...], tuple[str, ...]]:
            graph = graphdef.from_proto(graph_pb2.GraphDef.FromString(definition))
            made = self._worker(session).register(graph)
            return made.handle, made.inputs, made.outputs

        return await self._told(register)

    async def run(self, session: str, handle: int, step_id: int, inputs: Sequence[Any], is_traced: bool) -> Any:
        """See `Worker.run`; the values, which of them are dead, and StepStats where they are wanted."""

        def run() -> tuple[list[Any], list[int], bytes]:
            probe = TraceProbe() if is_traced else None
            values = self._worker(session).run(handle, step_id, inputs, probe)
            stats = (
                b"" if probe is None else step_stats(probe.on_device(self._task.devices[0].name)).SerializeToString()
            )
            dead = [index for index, value in enumerate(values) if value is DEAD]
            return [None if value is DEAD else sendable(value) for value in values], dead, stats

        return await self._told(run)

    async def call(self, session: str, method: str, *arguments: Any) -> Any:
        """Any other method of `Worker` that waits for nothing."""
        return await self._told(lambda: getattr(self._worker(session), method)(*arguments))

    async def send(self, session: str, step_id: int, key: str, value: Any) -> Any:
        """See `Worker.send`."""
        return await self._told(lambda: self._worker(session).send(step_id, key, value))

    async def fetch(self, session: str, step_id: int, key: str) -> Any:
        """See `Worker.receive`, of a partial run: the value, and whether it is dead."""
        return await self._awaited(lambda done: self._worker(session).receive(step_id, key, done))

    async def receive(self, step_id: int, key: str) -> Any:
        """What a step sends to another task: the value, and whether it is dead."""
        return await self._awaited(lambda done: self._task.receive(step_id, key, done))

    async def _awaited(self, ask: Callable[[Callable[[Any, bool, BaseException | None], None]], object]) -> Any:
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[Any] = loop.create_future()

        def done(value: Any, is_dead: bool, error: BaseException | None) -> None:
            try:
                answer = Failure.of(error) if error is not None else (None if is_dead else sendable(value), is_dead)
            except Exception as failure:
                answer = Failure.of(failure)
            loop.call_soon_threadsafe(lambda: arrived.done() or arrived.set_result(answer))

        try:
            ask(done)
        except Exception as error:
            return Failure.of(error)
        return await arrived


def enter(settings: ActorSettings) -> None:
    """Begin a process of an actor: where relative paths lead, and plugins."""
    if settings.folder and os.path.isdir(settings.folder):  # noqa: PTH112 -- another host may not have it
        os.chdir(settings.folder)
    for name in settings.plugins:
        if os.path.isdir(name) and not plugins.is_installed(name):  # noqa: PTH112
            plugins.allow(name)
        else:
            plugins.load(name)
