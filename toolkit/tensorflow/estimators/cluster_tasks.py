# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Estimators over a cluster: which task TF_CONFIG says that this process is, and what follows for its sessions.

Variables are at the parameter servers, each trainer runs its own copy of the model ("between-graph replication"), the
chief writes checkpoints, and an evaluator, which is no part of the cluster, reads them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from schemas import config_pb2, rewriter_config_pb2
from toolkit.cluster.specification import ClusterSpec
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.families.train.cluster import Server, replica_device_setter

CHIEF, MASTER, WORKER, PS, EVALUATOR = "chief", "master", "worker", "ps", "evaluator"
_TYPES = (CHIEF, MASTER, WORKER, PS, EVALUATOR)
#: who trains
TRAINERS = (CHIEF, MASTER, WORKER)
#: what goes to parameter servers: variables of both kinds and tables
PARAMETER_OPS = [
    "Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2",
    "VarHandleOp",
]  # fmt: skip
#: workers start one after the other: seconds for each, and at most
_DELAY_SECS, _MOST_SECS = 5, 60


class Place(NamedTuple):
    """A task, and its cluster; an evaluator has none.

    Attributes:
        cluster: its `ClusterSpec`, empty where there is one process alone.
        master: the target of its sessions that train.
        evaluation_master: of those that evaluate.
        number: among all tasks, the chief first and parameter servers last; None for an evaluator.
    """

    cluster: Any
    task_type: str
    task: int
    master: str
    evaluation_master: str
    is_chief: bool
    servers: int
    trainers: int
    number: int | None


def read_place(found: dict[str, Any]) -> Place:
    """What TF_CONFIG says.

    Raises:
        ValueError: it has no chief, no task, or a task that the cluster has not.
    """
    task: Any = found.get("task") or {}
    try:
        cluster = ClusterSpec(found.get("cluster") or {})
    except TypeError as error:
        raise ValueError(f"TF_CONFIG: {error}") from None
    evaluation = found.get("eval_session_master", "")
    if not cluster:
        kind, number = str(task.get("type", WORKER)), int(task.get("index", 0))
        if kind != WORKER or number:
            raise ValueError(f'TF_CONFIG has the task {kind} {number}, and no "cluster" that this would be a task of')
        return Place(cluster, kind, 0, found.get("session_master", ""), evaluation, True, 0, 1, 0)
    chief = MASTER if MASTER in cluster.jobs else CHIEF
    if chief == MASTER and CHIEF in cluster.jobs:
        raise ValueError("TF_CONFIG: the cluster has a chief and a master; it takes one of them")
    if chief not in cluster.jobs or cluster.num_tasks(chief) != 1:
        raise ValueError(f"TF_CONFIG: the cluster must have one task of the job '{CHIEF}'; it has: {_jobs(cluster)}")
    for key in ("type", "index"):
        if task.get(key) in (None, ""):
            raise ValueError(f'TF_CONFIG has a cluster, and no "{key}" of this task')
    kind, number = str(task["type"]), int(task["index"])
    if kind == EVALUATOR and chief == CHIEF:
        return Place(ClusterSpec({}), kind, number, "", evaluation, False, 0, 0, None)
    if kind not in cluster.jobs:
        raise ValueError(f'TF_CONFIG: the cluster has no "{kind}"; it has: {_jobs(cluster)}')
    if number not in cluster.task_indices(kind):
        raise ValueError(f"TF_CONFIG: the job '{kind}' has no task {number}; it has {cluster.num_tasks(kind)} tasks")
    target = found.get("session_master")
    if target is None:
        is_alone = len(cluster.jobs) == 1 and cluster.num_tasks(kind) == 1
        target = "" if is_alone else f"grpc://{cluster.task_address(kind, number)}"
    servers = cluster.num_tasks(PS) if PS in cluster.jobs else 0
    trainers = 1 + (cluster.num_tasks(WORKER) if WORKER in cluster.jobs else 0)
    order = [chief, *sorted(set(cluster.jobs) - {chief, PS}), PS]
    before = sum(cluster.num_tasks(job) for job in order[: order.index(kind)])
    return Place(cluster, kind, number, target, evaluation, kind == chief, servers, trainers, before + number)


def _jobs(cluster: ClusterSpec) -> str:
    return ", ".join(f"{job} ({cluster.num_tasks(job)})" for job in cluster.jobs)


def device_function(config: Any) -> Any:
    """Variables to parameter servers, all else to this task; None where there are no servers."""
    if not config.num_ps_replicas:
        return None
    worker = f"/job:{config.task_type}/task:{config.task_id}" if config.task_type else "/job:worker"
    return replica_device_setter(
        config.num_ps_replicas, worker_device=worker, merge_devices=True, ps_ops=PARAMETER_OPS,
        cluster=config.cluster_spec,
    )  # fmt: skip


def session_config(config: Any) -> Any:
    """Of sessions that train; by default a trainer sees itself and the parameter servers, and waits for nobody else."""
    own = f"/job:{config.task_type}" + (f"/task:{config.task_id}" if config.task_type == WORKER else "")
    if config.session_config is not None or not config.cluster_spec or config.task_type not in TRAINERS:
        return config.session_config
    made = config_pb2.ConfigProto(allow_soft_placement=True, device_filters=["/job:ps", own])
    made.graph_options.rewrite_options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    return made


def start_server(config: Any) -> Any:
    """Serve this task; None where it is the only one.

    Raises:
        ValueError: it is a task of a type that nothing is known of.
    """
    if config.task_type not in _TYPES:
        raise ValueError(f"nothing is known of tasks of the type '{config.task_type}'; types are {', '.join(_TYPES)}")
    if not config.master:
        return None
    own = None
    if config.session_config is not None:
        own = config_pb2.ConfigProto(gpu_options=config.session_config.gpu_options)
    server = Server(
        config.cluster_spec, job_name=config.task_type, task_index=config.task_id, protocol=config.protocol, config=own
    )
    log().info("this is %s %d of the cluster, at %s", config.task_type, config.task_id, config.master)
    return server


def delay(config: Any) -> int:
    """Seconds that a task waits before it trains: the chief makes the variables, and workers come one by one."""
    if config.task_type != WORKER:
        return 0
    most = config.experimental_max_worker_delay_secs
    return min(_MOST_SECS if most is None else int(most), (config.task_id + 1) * _DELAY_SECS)
