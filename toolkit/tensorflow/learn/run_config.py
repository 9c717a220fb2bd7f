# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.learn.RunConfig: how an estimator runs, with the session's settings and the task of TF_CONFIG."""

from __future__ import annotations

import json
import os
from typing import Any

from schemas import config_pb2
from toolkit.cluster.specification import ClusterSpec
from toolkit.tensorflow.estimators.run_config import FIELDS, RunConfig
from toolkit.tensorflow.learn.keys import Environment, TaskType

_SAVE_SECS = 600
#: settings that a run may change without becoming another one
UNCHECKED_SETTINGS = [
    "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs", "session_config",
    "keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps",
]  # fmt: skip


def _environment() -> dict[str, Any]:
    return json.loads(os.environ.get("TF_CONFIG") or "{}")


class LearnRunConfig(RunConfig):
    """The settings of a run; every one is a property of the same name.

    Args:
        num_cores: threads of a session; 0: as many as there are cores.
        save_checkpoints_secs: 0 stands for "not given": every 600 seconds, unless steps are given.

    Raises:
        ValueError: TF_CONFIG names a task that its cluster lacks, or another folder.
    """

    def __init__(
        self, master: Any = None, num_cores: Any = 0, log_device_placement: Any = False, gpu_memory_fraction: Any = 1,
        tf_random_seed: Any = None, save_summary_steps: Any = 100, save_checkpoints_secs: Any = 0,
        save_checkpoints_steps: Any = None, keep_checkpoint_max: Any = 5, keep_checkpoint_every_n_hours: Any = 10000,
        log_step_count_steps: Any = 100, protocol: Any = None, evaluation_master: Any = "", model_dir: Any = None,
        session_config: Any = None, session_creation_timeout_secs: Any = 7200,
    ):  # fmt: skip
        if save_checkpoints_secs == 0:
            save_checkpoints_secs = _SAVE_SECS if save_checkpoints_steps is None else None
        given = locals()
        self._settings = {name: given.get(name) for name in FIELDS}
        self._tf_config = config_pb2.ConfigProto(
            log_device_placement=log_device_placement, inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=config_pb2.GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )  # fmt: skip
        self._evaluation_master = evaluation_master or ""
        self._read_task(master)

    def _read_task(self, master: Any) -> None:
        """What TF_CONFIG says."""
        found = _environment()
        task, folder = found.get("task", {}), found.get("model_dir")
        if folder is not None:
            if self._settings["model_dir"] not in (None, folder):
                raise ValueError(f"model_dir is {self._settings['model_dir']}, and {folder} in TF_CONFIG")
            self._settings["model_dir"] = folder
        self._task_type: Any = task.get("type")
        self._task_id = self.get_task_id()
        self._cluster_spec = ClusterSpec(found.get("cluster", {}))
        self._environment = found.get("environment", Environment.LOCAL)
        self._master = _master(self._cluster_spec, self._task_type, self._task_id) if master is None else master

    @staticmethod
    def get_task_id() -> int:
        """The number of this task in TF_CONFIG; 0 where there is none."""
        return int(_environment().get("task", {}).get("index") or 0)

    @property
    def cluster_spec(self) -> Any:
        return self._cluster_spec

    @property
    def environment(self) -> Any:
        return self._environment

    @property
    def evaluation_master(self) -> str:
        return self._evaluation_master

    @property
    def is_chief(self) -> bool:
        """Whether this task writes checkpoints and summaries."""
        if self._task_id != 0 or self._task_type is None:
            return self._task_id == 0
        chief = TaskType.MASTER if self._environment == Environment.CLOUD else TaskType.WORKER
        return self._task_type == chief

    @property
    def master(self) -> str:
        return self._master

    @property
    def num_ps_replicas(self) -> int:
        return self._count(TaskType.PS)

    @property
    def num_worker_replicas(self) -> int:
        return self._count(TaskType.WORKER) + self._count(TaskType.MASTER)

    def _count(self, job: str) -> int:
        return len(self._cluster_spec.as_dict().get(job, ()))

    @property
    def task_id(self) -> int:
        return self._task_id

    @property
    def task_type(self) -> Any:
        return self._task_type

    @property
    def tf_config(self) -> Any:
        """The settings of a session that the arguments say, for servers."""
        return self._tf_config

    def uid(self, whitelist: Any = None) -> str:
        """A text that differs from those of other runs.

        Args:
            whitelist: settings that do not matter; default: those that may change in between.
        """
        left_out = UNCHECKED_SETTINGS if whitelist is None else whitelist
        facts = {
            **self._settings, "cluster_spec": sorted(self._cluster_spec.as_dict().items()),
            "environment": self._environment,
            "evaluation_master": self._evaluation_master, "master": self._master, "task_id": self._task_id,
            "task_type": self._task_type, "tf_config": str(self._tf_config),
        }  # fmt: skip
        return ", ".join(f"_{key}={facts[key]!r}" for key in sorted(facts) if key not in left_out)

    def _check(self) -> None:
        """As 1.15 does: nothing is refused before it is used."""


def _master(spec: Any, kind: Any, index: int) -> str:
    """The address of this task, where it is one of several."""
    jobs = spec.as_dict()
    if sum(len(tasks) for tasks in jobs.values()) <= 1 or not kind:
        return ""
    if kind not in jobs:
        raise ValueError(f'TF_CONFIG: the cluster has no "{kind}"; it has: {", ".join(jobs)}')
    addresses = list(jobs[kind].values()) if isinstance(jobs[kind], dict) else list(jobs[kind])
    if not 0 <= index < len(addresses):
        raise ValueError(f'TF_CONFIG: the cluster has {len(addresses)} tasks of "{kind}", and none of number {index}')
    return f"grpc://{addresses[index]}"
