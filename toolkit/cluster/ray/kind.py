"""Targets of the form ray and ray://HOST:PORT, as `toolkit.runtime.sessions.targets` asks for them.

The tasks of the cluster are those that `graphmill run --cluster` names, or of `ConfigProto.cluster_def`, or of
TF_CONFIG; else there is one, /job:worker/task:0. Sessions of the process with the same target and cluster share its
actors and their variables, until the process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from collections.abc import Generator, Sequence

from schemas import cluster_pb2, config_pb2
from toolkit.cluster.ray.actor import ActorSettings
from toolkit.cluster.ray.connection import SCHEME, address_of
from toolkit.cluster.ray.engine import RayEngine
from toolkit.cluster.ray.session import RaySession
from toolkit.cluster.specification import from_environment
from toolkit.forks import held_over_forks
from toolkit.formats.settings.cluster import Cluster, Task
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.policy.rules import Policy

_lock = held_over_forks()
_engines: dict[tuple[str, bytes], RayEngine] = {}
#: engines that were made for a target, whatever the session's configuration says
_given: dict[str, RayEngine] = {}


def open(target: str, graph: Graph, config: config_pb2.ConfigProto) -> RaySession:
    """A session at the actors of a target, which are started where they are not there yet.

    Raises:
        UsageError: no such target, Ray is not installed, or it has no room for a task.
        UnavailableError: Ray cannot be reached.
    """
    return RaySession(engine_of(target, config), graph, config)


def reset(target: str, containers: Sequence[str], config: config_pb2.ConfigProto) -> None:
    """Empty these containers, or all, at the tasks of a target; sessions there are closed by that."""
    engine_of(target, config).reset(containers, config.device_filters)


def engine_of(target: str, config: config_pb2.ConfigProto) -> RayEngine:
    """The engine of a target's sessions, started where it is not there yet; see `open`."""
    address = address_of(target)
    with _lock:
        if address in _given:
            return _given[address]
        definition = _definition(config)
        key = address, definition.SerializeToString(deterministic=True)
        if key not in _engines:
            if not _engines:
                atexit.register(close_all)
            settings = ActorSettings(Policy.everything(), folder=os.getcwd())  # noqa: PTH109 -- a text
            _engines[key] = RayEngine(address, _cluster(definition, config), settings)
        return _engines[key]


def _definition(config: config_pb2.ConfigProto) -> cluster_pb2.ClusterDef:
    if config.cluster_def.job:
        return config.cluster_def
    place = from_environment()
    return cluster_pb2.ClusterDef() if place is None else place.cluster.as_cluster_def()


def _cluster(definition: cluster_pb2.ClusterDef, config: config_pb2.ConfigProto) -> Cluster:
    counts = {"CPU": 1} | dict(config.device_count)
    tasks = [
        Task(job.name, index, job.tasks[index], dict(counts)) for job in definition.job for index in sorted(job.tasks)
    ] or [Task("worker", 0, "", dict(counts))]
    return Cluster(tuple(tasks), DeviceSpec(tasks[0].job, 0, tasks[0].index))


@contextlib.contextmanager
def running(target: str, cluster: Cluster, settings: ActorSettings) -> Generator[str]:
    """The actors of a cluster for the sessions of a target, ended behind the block; gives the target.

    Raises:
        UsageError: no such target, Ray is not installed, or it has no room for a task.
        UnavailableError: Ray cannot be reached.
    """
    address = address_of(target)
    engine = RayEngine(address, cluster, settings)
    with _lock:
        _given[address] = engine
    try:
        yield f"{SCHEME}://{address}"
    finally:
        with _lock:
            del _given[address]
        engine.close()


def close_all() -> None:
    """End all engines of the process. Again is fine."""
    with _lock:
        engines = list(_engines.values())
        _engines.clear()
    for engine in engines:
        engine.close()
