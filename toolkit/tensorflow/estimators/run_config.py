# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""How an estimator runs: folders, seeds, how often what is written; what TF_CONFIG says about this task."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

from toolkit.tensorflow.estimators.cluster_tasks import read_place

#: what the intervals of checkpoints take "not given" by
NOT_GIVEN = object()
_SAVE_SECS = 600
#: the settings, in the order of the constructor
FIELDS = (
    "model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs",
    "session_config", "keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps",
    "train_distribute", "device_fn", "protocol", "eval_distribute", "experimental_distribute",
    "experimental_max_worker_delay_secs", "session_creation_timeout_secs",
)  # fmt: skip


class ModeKeys:
    """What a model function is called for."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class RunConfig:
    """The settings of a run; every one is a property of the same name.

    A task of a cluster is told so by TF_CONFIG (`cluster_tasks`).

    Raises:
        ValueError: a setting that cannot be, or two that exclude each other; TF_CONFIG has no such task.
    """

    def __init__(
        self, model_dir: Any = None, tf_random_seed: Any = None, save_summary_steps: Any = 100,
        save_checkpoints_steps: Any = NOT_GIVEN, save_checkpoints_secs: Any = NOT_GIVEN, session_config: Any = None,
        keep_checkpoint_max: Any = 5, keep_checkpoint_every_n_hours: Any = 10000, log_step_count_steps: Any = 100,
        train_distribute: Any = None, device_fn: Any = None, protocol: Any = None, eval_distribute: Any = None,
        experimental_distribute: Any = None, experimental_max_worker_delay_secs: Any = None,
        session_creation_timeout_secs: Any = 7200,
    ):  # fmt: skip
        if save_checkpoints_steps is NOT_GIVEN and save_checkpoints_secs is NOT_GIVEN:
            save_checkpoints_steps, save_checkpoints_secs = None, _SAVE_SECS
        elif save_checkpoints_secs is NOT_GIVEN:
            save_checkpoints_secs = None
        elif save_checkpoints_steps is NOT_GIVEN:
            save_checkpoints_steps = None
        elif save_checkpoints_steps is not None and save_checkpoints_secs is not None:
            raise ValueError("give save_checkpoints_steps or save_checkpoints_secs, not both")
        given = locals()
        self._settings = {name: given[name] for name in FIELDS}
        if self._settings["tf_random_seed"] is None:
            self._settings["tf_random_seed"] = 1
        self._read_cluster(json.loads(os.environ.get("TF_CONFIG") or "{}"))
        self._check()

    def _read_cluster(self, found: dict[str, Any]) -> None:
        """What TF_CONFIG says."""
        self._place = read_place(found)
        service = found.get("service")
        if service is not None and not isinstance(service, dict):
            raise TypeError(f'TF_CONFIG: "service" must be an object; got {service!r}')
        self._service = service
        folder = found.get("model_dir")
        if folder is not None:
            if self._settings["model_dir"] not in (None, folder):
                raise ValueError(f"model_dir is {self._settings['model_dir']}, and {folder} in TF_CONFIG")
            self._settings["model_dir"] = folder
        if self._settings["model_dir"] == "":
            raise ValueError("model_dir is empty; give a folder, or None for a temporary one")
        if self._settings["model_dir"] is not None:
            self._settings["model_dir"] = os.fspath(self._settings["model_dir"])

    def _check(self) -> None:
        for name in ("save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs", "keep_checkpoint_max"):
            value = self._settings[name]
            if value is not None and value < 0:
                raise ValueError(f"{name} must be at least 0; got {value}")
        for name in ("keep_checkpoint_every_n_hours", "log_step_count_steps", "session_creation_timeout_secs"):
            value = self._settings[name]
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be above 0; got {value}")
        if not isinstance(self._settings["tf_random_seed"], int):
            raise ValueError(f"tf_random_seed must be an integer; got {self._settings['tf_random_seed']!r}")
        if self._settings["device_fn"] is not None and not callable(self._settings["device_fn"]):
            raise ValueError(f"device_fn must be a function; got {self._settings['device_fn']!r}")

    def __getattr__(self, name: str) -> Any:
        settings = self.__dict__.get("_settings", {})
        if name in settings:
            return settings[name]
        raise AttributeError(f"RunConfig has no setting '{name}'")

    def __deepcopy__(self, memo: Any) -> RunConfig:
        made = copy.copy(self)
        made._settings = dict(self._settings)
        return made

    @property
    def cluster_spec(self) -> Any:
        """The tasks of TF_CONFIG, a ClusterSpec."""
        return self._place.cluster

    @property
    def task_type(self) -> str:
        return self._place.task_type

    @property
    def task_id(self) -> int:
        return self._place.task

    @property
    def global_id_in_cluster(self) -> int | None:
        return self._place.number

    @property
    def master(self) -> str:
        return self._place.master

    @property
    def evaluation_master(self) -> str:
        return self._place.evaluation_master

    @property
    def is_chief(self) -> bool:
        """Whether this task writes checkpoints and summaries."""
        return self._place.is_chief

    @property
    def num_ps_replicas(self) -> int:
        return self._place.servers

    @property
    def num_worker_replicas(self) -> int:
        return self._place.trainers

    @property
    def service(self) -> Any:
        return self._service

    def replace(self, **kwargs: Any) -> RunConfig:
        """The same with other settings.

        Raises:
            ValueError: one cannot be replaced.
        """
        for name in kwargs:
            if name not in FIELDS:
                raise ValueError(f"replace has no setting '{name}'; it takes: {', '.join(FIELDS)}")
        steps, secs = kwargs.get("save_checkpoints_steps"), kwargs.get("save_checkpoints_secs")
        if steps is not None and secs is not None:
            raise ValueError("give save_checkpoints_steps or save_checkpoints_secs, not both")
        made = copy.deepcopy(self)
        made._settings.update(kwargs)
        if steps is not None:
            made._settings["save_checkpoints_secs"] = None
        elif secs is not None:
            made._settings["save_checkpoints_steps"] = None
        made._check()
        return made
