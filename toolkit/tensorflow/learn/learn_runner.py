# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Runs experiments: by a schedule, or by what this task of a cluster is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client.hyperparameters import HParams
from toolkit.tensorflow.learn.experiment import Experiment
from toolkit.tensorflow.learn.keys import TaskType
from toolkit.tensorflow.learn.run_config import LearnRunConfig


def run(
    experiment_fn: Any, output_dir: Any = None, schedule: Any = None, run_config: Any = None, hparams: Any = None
) -> Any:
    """Make an experiment and run one of its methods.

    Args:
        experiment_fn: of run_config and hparams, or of output_dir.
        schedule: the method; default: what the task of TF_CONFIG does.

    Raises:
        ValueError: a folder and a config are given, or neither; there is no such method.
        TypeError: the function makes no experiment.
    """
    if (output_dir is None) == (run_config is None):
        raise ValueError("give output_dir or run_config, one of them")
    if not callable(experiment_fn):
        raise TypeError(f"experiment_fn must be a function; got {experiment_fn!r}")
    if run_config is not None:
        experiment = _checked(experiment_fn)(run_config=run_config, hparams=hparams)
    else:
        if not output_dir:
            raise ValueError("output_dir is empty; give a folder")
        if hparams is not None:
            raise ValueError("hparams go with run_config; leave output_dir out")
        experiment = _an_experiment(experiment_fn(output_dir=output_dir))
    chosen = schedule or _default_schedule(run_config or experiment.estimator.config)
    task = getattr(experiment, chosen, None)
    if not callable(task):
        there = [name for name in dir(experiment) if not name.startswith("_") and callable(getattr(experiment, name))]
        kind = ValueError if task is None else TypeError
        raise kind(f"there is no schedule '{chosen}'; there are: {', '.join(there)}")
    return task()


def tune(experiment_fn: Any, tuner: Any) -> None:
    """Run the experiments that a tuner asks for, with its hyperparameters."""
    while tuner.next_trial():
        tuner.run_experiment(_checked(experiment_fn, needs_hparams=True))


def _an_experiment(found: Any) -> Experiment:
    if not isinstance(found, Experiment):
        raise TypeError(f"experiment_fn must return an Experiment; got {found!r}")
    return found


def _checked(experiment_fn: Any, needs_hparams: bool = False) -> Callable[..., Experiment]:
    """The function, with a look at what it is given and whether its estimator has the config."""

    def make(run_config: Any, hparams: Any) -> Experiment:
        if not isinstance(run_config, LearnRunConfig):
            raise ValueError(f"run_config must be a tf.contrib.learn.RunConfig; got {run_config!r}")
        if not run_config.model_dir:
            raise ValueError("run_config has no model_dir; give it one")
        if hparams is not None and not isinstance(hparams, HParams):
            raise ValueError(f"hparams must be tf.contrib.training.HParams; got {hparams!r}")
        if needs_hparams and hparams is None:
            raise ValueError("a tuner gives hparams; got None")
        wanted = run_config.uid()
        experiment = _an_experiment(experiment_fn(run_config, hparams))
        config = experiment.estimator.config
        if not hasattr(config, "uid") or config.uid() != wanted:
            raise RuntimeError("the estimator of the experiment has another config; pass it run_config as config")
        return experiment

    return make


def _default_schedule(config: Any) -> str:
    cluster: Any = getattr(config, "cluster_spec", None)
    jobs = cluster.as_dict() if hasattr(cluster, "as_dict") else (cluster or {})
    if sum(len(tasks) for tasks in jobs.values()) <= 1:
        return "train_and_evaluate"
    found = {
        TaskType.MASTER: "train_and_evaluate", TaskType.PS: "run_std_server", TaskType.WORKER: "train"
    }.get(config.task_type)  # fmt: skip
    if found is None:
        raise ValueError(f"a task of the type '{config.task_type}' has no default schedule; give schedule=")
    return found
