"""The actors of batch inference: who has which shards, what is tried again, what is told.

Each actor has one shard under way and one that waits, so that it need not wait for us; no more are in flight. A shard
whose process ends is tried again, at whatever actor is free first; one that fails by its own fault is not. Its results
are there in one piece or not at all, and twice the same where a process ended between writing and saying so.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolkit.cluster.ray import placing
from toolkit.cluster.ray.actor import ActorSettings
from toolkit.cluster.ray.answers import Failure, lost
from toolkit.cluster.ray.connection import Connection
from toolkit.cluster.ray.engine import START_SECONDS
from toolkit.cluster.ray.inference.actor import ShardActor, Work
from toolkit.cluster.ray.library import ray
from toolkit.errors import GraphmillError, UnavailableError, UsageError
from toolkit.formats.settings.cluster import Cluster
from toolkit.runtime.shards.manifest import Entry, Manifest

#: processes that may end at one shard before it has failed
ATTEMPTS = 3
_IN_FLIGHT = 2  # of one actor
_TELL_SECONDS = 5.0
_LOOK_SECONDS = 1.0
#: seconds after which an actor is asked whether it is still there, and that it has to answer
_SILENCE_SECONDS, _ANSWER_SECONDS = 10.0, 30.0


@dataclass(slots=True)
class _Actor:
    """Attributes:
    queue: its shards with Ray's references of their answers; the first is under way.
    ping: an answer that is waited for before it is given shards; None: it is ready.
    heard: when it was last known to be there.
    asked: when it was asked whether it is there; 0.0 while it is not.
    """

    name: str
    handle: Any
    queue: deque[tuple[Any, Entry]] = field(default_factory=deque[tuple[Any, Entry]])
    ping: Any = None
    heard: float = 0.0
    asked: float = 0.0

    @property
    def is_there(self) -> bool:
        """Whether it may be given shards."""
        return bool(self.queue) or (self.ping is None and self.heard > 0)


class ShardPool:
    """Actors that run shards, until `close`.

    Args:
        address: of the Ray cluster's head; "" for one of this process's own.
        cluster: an actor for each task; by default one for each processor that Ray has.
        work: what shards have in common.
        settings: of the actors.
        log: takes lines of progress.
        patience: seconds until the first actor is there.

    Raises:
        UsageError: Ray is not installed, or has no room for a task, ever.
        UnavailableError: Ray cannot be reached, or does not start.
    """

    def __init__(
        self, address: str, cluster: Cluster | None, work: Work, settings: ActorSettings, log: Callable[[str], None],
        patience: float = START_SECONDS,
    ):  # fmt: skip
        self._log = log
        self._patience = patience
        self._actors: list[_Actor] = []
        self._connection = Connection(address, len(cluster.tasks) if cluster is not None else 1)
        try:
            requests = _requests(cluster)
            missing = placing.lacking(requests, placing.nodes())
            if missing:
                raise UsageError(missing, file=cluster.source if cluster is not None else None)
            made = ray().remote(concurrency_groups={"control": 1})(ShardActor)
            for name, request in requests.items():
                options = placing.options_of(request)
                handle = made.options(**options, max_restarts=-1, max_task_retries=0).remote(
                    _threaded(work, request), settings
                )
                self._actors.append(_Actor(name, handle))
        except BaseException:
            self.close()
            raise

    def run(self, manifest: Manifest) -> list[tuple[Entry, GraphmillError]]:
        """Run what is missing.

        Returns:
            the shards that have failed, and why, in their order.

        Raises:
            UnavailableError: no actor is there.
        """
        work = _Work(manifest, self._log)
        for actor in self._actors:
            self._call(actor)
        alive = time.monotonic()
        while work.is_unfinished:
            self._look(work)
            if any(actor.is_there for actor in self._actors):
                alive = time.monotonic()
            elif time.monotonic() - alive > self._patience:
                raise UnavailableError(self._why())
            work.tell()
        manifest.write()
        return sorted(work.failed, key=lambda item: manifest.entries.index(item[0]))

    def _why(self) -> str:
        free = ray().available_resources()
        return (
            f"after {self._patience:g} seconds there is none of {len(self._actors)} actors; free are "
            f"{placing.told({kind: amount for kind, amount in free.items() if ':' not in kind})}"
        )

    def _call(self, actor: _Actor) -> None:
        """Ask whether it is there."""
        actor.ping = actor.handle.ping.options(concurrency_group="control").remote()
        actor.asked = time.monotonic()

    def _look(self, work: _Work) -> None:
        """Give out shards, and wait a moment for what comes."""
        for actor in self._actors:
            while actor.is_there and len(actor.queue) < _IN_FLIGHT and work.waiting:
                entry = work.waiting.popleft()
                reference = actor.handle.run.remote(dict(entry.shard.feeds), str(work.manifest.path(entry)))
                actor.queue.append((reference, entry))
        pending = [actor.queue[0][0] for actor in self._actors if actor.queue]
        pending += [actor.ping for actor in self._actors if actor.ping is not None]
        arrived: set[Any] = set(ray().wait(pending, num_returns=1, timeout=_LOOK_SECONDS)[0]) if pending else set()
        now = time.monotonic()
        for actor in self._actors:
            if actor.ping is not None and actor.ping in arrived:
                self._answered(actor, now)
            elif actor.queue and actor.queue[0][0] in arrived:
                self._ended(actor, work, now)
            elif actor.ping is not None and actor.heard and now - actor.asked > _ANSWER_SECONDS:
                self._log(f"{actor.name} does not answer and is started anew")
                ray().kill(actor.handle, no_restart=False)
                actor.asked = now
            elif actor.ping is None and actor.queue and now - actor.heard > _SILENCE_SECONDS:
                self._call(actor)

    def _answered(self, actor: _Actor, now: float) -> None:
        """Whether it is there has become known."""
        try:
            ray().get(actor.ping)
        except ray().exceptions.RayError:
            time.sleep(0.05)  # it is being started anew
            self._call(actor)
            return
        actor.ping, actor.heard = None, now

    def _ended(self, actor: _Actor, work: _Work, now: float) -> None:
        """The first shard of an actor has ended, or its process has."""
        reference, entry = actor.queue.popleft()
        try:
            answer = ray().get(reference)
        except ray().exceptions.RayError as error:
            given = [entry, *(each for _, each in actor.queue)]
            actor.queue.clear()
            work.lost(given, lost(error, actor.name))
            self._call(actor)
            return
        actor.heard = now
        if isinstance(answer, Failure):
            work.fail(entry, answer.error)
        else:
            work.complete(entry, answer)

    def close(self) -> None:
        """End the actors, and Ray where it was started here. Again is fine."""
        for actor in self._actors:
            try:
                ray().kill(actor.handle)
            except Exception:  # Ray is gone, and the actor with it
                break
        self._actors.clear()
        self._connection.close()


class _Work:
    """Shards that wait, and what became of the others."""

    def __init__(self, manifest: Manifest, log: Callable[[str], None]):
        self.manifest = manifest
        self.waiting = deque(manifest.missing())
        self.failed: list[tuple[Entry, GraphmillError]] = []
        self._log = log
        self._total = len(manifest.entries)
        self._left = len(self.waiting)
        self._attempts: dict[str, int] = {}
        self._rows = 0
        self._began = self._told = time.monotonic()
        if self._left < self._total:
            log(f"{self._total - self._left} of {self._total} shards are complete already")

    @property
    def is_unfinished(self) -> bool:
        return self._left > 0

    def complete(self, entry: Entry, rows: int | None) -> None:
        entry.is_complete, entry.rows = True, rows
        self._rows += rows or 0
        self._left -= 1

    def fail(self, entry: Entry, error: GraphmillError) -> None:
        entry.error = str(error)
        self.failed.append((entry, error))
        self._left -= 1
        self._log(f"shard {entry.shard.name} failed: {error}")

    def lost(self, given: Sequence[Entry], error: GraphmillError) -> None:
        """A process has ended with a shard under way, and others that waited, or whose answers were lost with it."""
        unfinished = [entry for entry in given if not self.manifest.path(entry).exists()]
        for entry in given:
            if entry not in unfinished:  # its results are there, in one piece
                self.complete(entry, None)
        if not unfinished:
            return
        entry, *left = unfinished
        self.waiting.extendleft(reversed(left))
        count = self._attempts[entry.shard.name] = self._attempts.get(entry.shard.name, 0) + 1
        if count < ATTEMPTS:
            self._log(f"shard {entry.shard.name} is tried again: {error.message}")
            self.waiting.appendleft(entry)
            return
        self.fail(entry, UnavailableError(f"{count} processes have ended while they ran it: {error.message}"))

    def tell(self) -> None:
        """Say how far it is, now and then."""
        now = time.monotonic()
        if now - self._told < _TELL_SECONDS and self._left:
            return
        self._told = now
        speed = self._rows / max(now - self._began, 1e-9)
        self._log(f"{self._total - self._left} of {self._total} shards, {speed:,.0f} examples/s")
        self.manifest.write()


def _threaded(work: Work, request: Mapping[str, float]) -> Work:
    """The work of one actor: it has as many threads as it asks for processors."""
    threads = work.options.threads or max(1, int(request.get("CPU", 1)))
    return replace(work, options=replace(work.options, threads=threads))


def _requests(cluster: Cluster | None) -> dict[str, dict[str, float]]:
    """What each actor asks for, by its name."""
    if cluster is not None:
        return {task.spec.task_name: placing.request_of(task) for task in cluster.tasks}
    processors = int(sum(host.get("CPU", 0) for host in placing.nodes()))
    return {f"actor {number}": {"CPU": 1.0} for number in range(max(1, processors))}
