# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What estimators of tf.contrib.learn share: training, evaluation and prediction in graphs of their own."""

from __future__ import annotations

import abc
import copy
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from schemas import config_pb2
from toolkit.client.construction.grouping import group
from toolkit.client.construction.scopes import device
from toolkit.client.random import seeds
from toolkit.client.train.global_step import create_global_step, global_step_read
from toolkit.errors import GraphmillError
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.estimators.cluster_tasks import device_function
from toolkit.tensorflow.estimators.evaluation import StopAfterEvals, evaluate_once, write_values
from toolkit.tensorflow.families.framework.graph import Graph
from toolkit.tensorflow.families.train import saver as savers
from toolkit.tensorflow.families.train.monitored import ChiefSessionCreator, MonitoredSession, MonitoredTrainingSession
from toolkit.tensorflow.families.train.saving_hooks import CheckpointSaverHook
from toolkit.tensorflow.families.train.scaffold import Scaffold
from toolkit.tensorflow.families.train.session_hooks import FeedFnHook, LoggingTensorHook, NanTensorHook, StopAtStepHook
from toolkit.tensorflow.learn import tensor_signature
from toolkit.tensorflow.learn.feeding import check_inputs, input_fn_of
from toolkit.tensorflow.learn.model_fn_ops import ModelFnOps
from toolkit.tensorflow.learn.monitors import replace_monitors_with_hooks
from toolkit.tensorflow.learn.run_config import LearnRunConfig
from toolkit.tensorflow.learn.scikit import NotFittedError, ParameterHolder

#: operations that parameter servers have
_LOG_EVERY = 100


class Evaluable(abc.ABC):
    """What can be evaluated."""

    @property
    @abc.abstractmethod
    def model_dir(self) -> Any:
        """Where checkpoints are."""

    @abc.abstractmethod
    def evaluate(
        self, x: Any = None, y: Any = None, input_fn: Any = None, feed_fn: Any = None, batch_size: Any = None,
        steps: Any = None, metrics: Any = None, name: Any = None, checkpoint_path: Any = None, hooks: Any = None,
    ) -> Any:  # fmt: skip
        """The values of metrics, by name."""


class Trainable(abc.ABC):
    """What can be trained."""

    @abc.abstractmethod
    def fit(
        self, x: Any = None, y: Any = None, input_fn: Any = None, steps: Any = None, batch_size: Any = None,
        monitors: Any = None, max_steps: Any = None,
    ) -> Any:  # fmt: skip
        """Train; returns the object itself."""


class BaseEstimator(ParameterHolder, Evaluable, Trainable):
    """What estimators share: a subclass says what its graphs are for training, evaluation and prediction.

    Args:
        model_dir: where checkpoints and summaries go; default: the config's, else a temporary folder.

    Raises:
        ValueError: two folders are named.
    """

    def __init__(self, model_dir: Any = None, config: Any = None):
        self._config = LearnRunConfig() if config is None else config
        session = self._config.session_config
        self._session_config = config_pb2.ConfigProto(allow_soft_placement=True) if session is None else session
        folder = None if model_dir is None else os.fspath(model_dir)
        if folder is not None and self._config.model_dir not in (None, folder):
            raise ValueError(f"model_dir is {folder}, and {self._config.model_dir} in the RunConfig")
        self._model_dir: Any = folder or self._config.model_dir
        if self._model_dir is None:
            self._model_dir = tempfile.mkdtemp()
            log().warning("no model_dir is given; the model goes to %s", self._model_dir)
        if self._config.model_dir is None:
            self._config = self._config.replace(model_dir=self._model_dir)
        self._device_fn = device_function(self._config)
        self._features_info: Any = None
        self._labels_info: Any = None
        self._graph: Any = None

    @property
    def config(self) -> Any:
        return copy.deepcopy(self._config)

    @property
    def model_dir(self) -> Any:
        return self._model_dir

    @property
    def model_fn(self) -> Any:
        """The model as a function of features, labels, mode and config."""

        def public_model_fn(features: Any, labels: Any, mode: Any, config: Any) -> Any:
            return self._call_model_fn(features, labels, mode, config=config)

        return public_model_fn

    def get_variable_value(self, name: str) -> Any:
        """The value that a variable has in the latest checkpoint."""
        return savers.load_variable(self._model_dir, name)

    def get_variable_names(self) -> list[str]:
        """The names of what the latest checkpoint holds."""
        return [name for name, _ in savers.list_variables(self._model_dir)]

    # -- what subclasses say ------------------------------------------------------------------------------------

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, metrics: Any = None, config: Any = None
    ) -> ModelFnOps:
        raise NotImplementedError(f"{type(self).__name__} has no model function")

    @abc.abstractmethod
    def _get_train_ops(self, features: Any, labels: Any) -> ModelFnOps:
        """The graph for training."""

    @abc.abstractmethod
    def _get_predict_ops(self, features: Any) -> ModelFnOps:
        """The graph for prediction."""

    def _get_eval_ops(self, features: Any, labels: Any, metrics: Any) -> ModelFnOps:
        raise NotImplementedError(f"{type(self).__name__} cannot be evaluated")

    # -- training -----------------------------------------------------------------------------------------------

    def fit(
        self, x: Any = None, y: Any = None, input_fn: Any = None, steps: Any = None, batch_size: Any = None,
        monitors: Any = None, max_steps: Any = None,
    ) -> Any:  # fmt: skip
        """Train from the latest checkpoint on, until the input ends.

        Args:
            x, y: arrays, data frames or iterators, in place of an input_fn.
            steps: that many steps more; max_steps: up to this global step.
            monitors: monitors and hooks.

        Raises:
            ValueError: data and a function are given, or two counts of steps.
        """
        if steps is not None and max_steps is not None:
            raise ValueError("give steps or max_steps, not both")
        check_inputs(x, y, input_fn, None, batch_size)
        monitors = list(monitors or [])
        if x is not None:
            input_fn, feed = input_fn_of(x, y, None, None, batch_size, shuffle=True, epochs=None)
            monitors.insert(0, FeedFnHook(feed))
        if max_steps is not None and max_steps <= self._trained_steps():
            log().info("the model has been trained for %d steps already", max_steps)
            return self
        hooks = replace_monitors_with_hooks(monitors, self)
        if steps is not None or max_steps is not None:
            hooks.append(StopAtStepHook(steps, max_steps))
        log().info("the loss of the last step was %s", self._train_model(input_fn, hooks))
        return self

    def partial_fit(
        self, x: Any = None, y: Any = None, input_fn: Any = None, steps: Any = 1, batch_size: Any = None,
        monitors: Any = None,
    ) -> Any:  # fmt: skip
        """As `fit`, one step by default."""
        return self.fit(x, y, input_fn, steps, batch_size, monitors)

    def _trained_steps(self) -> int:
        try:
            return int(savers.load_variable(self._model_dir, GraphKeys.GLOBAL_STEP))
        except (GraphmillError, ValueError):
            return -1  # there is no checkpoint yet

    def _check_inputs(self, features: Any, labels: Any) -> None:
        """Raises ValueError: features or labels are of other types or shapes than those before."""
        for name, given in (("_features_info", features), ("_labels_info", labels)):
            known = getattr(self, name)
            if given is None and name == "_labels_info":
                continue
            if known is None:
                setattr(self, name, tensor_signature.create_signatures(given))
            elif not tensor_signature.tensors_compatible(given, known):
                what = "features" if name == "_features_info" else "labels"
                raise ValueError(f"the {what} are {given}, which are not like those before: {known}")

    def _train_model(self, input_fn: Any, hooks: list[Any]) -> Any:
        self._graph = Graph()
        config = self._config
        with self._graph.as_default() as graph, device(self._device_fn):
            seeds.set_random_seed(config.tf_random_seed)
            step = create_global_step(graph)
            features, labels = input_fn()
            self._check_inputs(features, labels)
            global_step_read(graph)
            ops = self._get_train_ops(features, labels)
            graph.add_to_collection(GraphKeys.LOSSES, ops.loss)
            shown = LoggingTensorHook({"loss": ops.loss, "step": step}, every_n_iter=_LOG_EVERY)
            everyone = [*hooks, NanTensorHook(ops.loss), shown, *ops.training_hooks]
            scaffold = ops.scaffold or Scaffold()
            if not (scaffold.saver or graph.get_collection(GraphKeys.SAVERS)):
                saver = savers.Saver(
                    sharded=True, max_to_keep=config.keep_checkpoint_max, defer_build=True, save_relative_paths=True,
                    keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
                )  # fmt: skip
                graph.add_to_collection(GraphKeys.SAVERS, saver)
            chief = list(ops.training_chief_hooks)
            saves = config.save_checkpoints_secs or config.save_checkpoints_steps
            if saves and not any(isinstance(hook, CheckpointSaverHook) for hook in (*everyone, *chief)):
                chief.insert(0, CheckpointSaverHook(
                    self._model_dir, config.save_checkpoints_secs, config.save_checkpoints_steps, scaffold=scaffold
                ))  # fmt: skip
            loss = None
            with MonitoredTrainingSession(
                master=config.master, is_chief=config.is_chief, checkpoint_dir=self._model_dir, scaffold=scaffold,
                hooks=everyone, chief_only_hooks=chief, save_checkpoint_secs=0, config=self._session_config,
                save_summaries_steps=config.save_summary_steps, max_wait_secs=config.session_creation_timeout_secs,
            ) as session:  # fmt: skip
                while not session.should_stop():
                    _, loss = session.run([ops.train_op, ops.loss])
            return loss

    # -- evaluation ---------------------------------------------------------------------------------------------

    def evaluate(
        self, x: Any = None, y: Any = None, input_fn: Any = None, feed_fn: Any = None, batch_size: Any = None,
        steps: Any = None, metrics: Any = None, name: Any = None, checkpoint_path: Any = None, hooks: Any = None,
        log_progress: Any = True,
    ) -> Any:  # fmt: skip
        """The metrics of the model, its loss and its global step, over the whole input or so many batches.

        Args:
            metrics: MetricSpecs by name, besides those of the model.

        Raises:
            ValueError: data and a function are given, or metrics that are no dict.
            NotFittedError: there is no checkpoint.
        """
        check_inputs(x, y, input_fn, feed_fn, batch_size)
        if metrics is not None and not isinstance(metrics, dict):
            raise ValueError(f"metrics must be a dict of MetricSpecs by name; got {metrics!r}")
        if x is not None:
            input_fn, feed_fn = input_fn_of(x, y, None, None, batch_size)
        found, step = self._evaluate_model(
            input_fn, steps, feed_fn, metrics, name, checkpoint_path, hooks, log_progress
        )
        if found is not None:
            found["global_step"] = step
        return found

    def _checkpoint(self, path: Any = None) -> str:
        found = path or savers.latest_checkpoint(self._model_dir)
        if not found:
            raise NotFittedError(f"{self._model_dir}: there is no checkpoint in model_dir; train the model first")
        return found

    def _evaluate_model(
        self, input_fn: Any, steps: Any, feed_fn: Any = None, metrics: Any = None, name: Any = "",
        checkpoint_path: Any = None, hooks: Any = None, log_progress: Any = True,
    ) -> tuple[Any, Any]:  # fmt: skip
        del log_progress
        checkpoint = self._checkpoint(checkpoint_path)
        folder = os.path.join(self._model_dir, f"eval_{name}" if name else "eval")
        with Graph().as_default() as graph:
            seeds.set_random_seed(self._config.tf_random_seed)
            step = create_global_step(graph)
            features, labels = input_fn()
            self._check_inputs(features, labels)
            ops = self._get_eval_ops(features, labels, metrics)
            update, values = _split(ops.eval_metric_ops)
            hooks = list(hooks or [])
            if feed_fn:
                hooks.append(FeedFnHook(feed_fn))
            if steps:
                hooks.append(StopAfterEvals(steps))
            key = GraphKeys.GLOBAL_STEP
            while key in values:
                key = "_" + key
            values[key] = step
            found = evaluate_once(checkpoint, ops.scaffold, update, values, hooks, self._session_config)
            write_values(folder, found, found[key], None)
        return found, found[key]

    # -- prediction ---------------------------------------------------------------------------------------------

    def predict(
        self, x: Any = None, input_fn: Any = None, batch_size: Any = None, outputs: Any = None, as_iterable: Any = True,
        iterate_batches: Any = False,
    ) -> Any:  # fmt: skip
        """The predictions for each example, one after the other.

        Args:
            outputs: which of the predictions; default: all.
            as_iterable: False: an array, or arrays by name, of the whole input, or of the first batch of a function.
            iterate_batches: whole batches in place of examples.

        Raises:
            ValueError: data and a function are given, or there are no such predictions.
            NotFittedError: there is no checkpoint.
        """
        check_inputs(x, None, input_fn, None, batch_size)
        if x is not None and not as_iterable:
            from toolkit.tensorflow.learn.sklearn_compat import SKCompat

            return SKCompat(self).predict(x, batch_size)
        input_fn, feed_fn = input_fn_of(x, None, input_fn, None, batch_size)
        return self._infer_model(input_fn, feed_fn, outputs, as_iterable, iterate_batches)

    def _infer_model(
        self, input_fn: Any, feed_fn: Any = None, outputs: Any = None, as_iterable: Any = True,
        iterate_batches: Any = False,
    ) -> Any:  # fmt: skip
        checkpoint = self._checkpoint()
        with Graph().as_default() as graph:
            seeds.set_random_seed(self._config.tf_random_seed)
            create_global_step(graph)
            found = input_fn()
            ops = self._get_predict_ops(found[0] if isinstance(found, list | tuple) else found)
            predictions = _chosen(ops.predictions, outputs)
            creator = ChiefSessionCreator(
                ops.scaffold, config=self._session_config, checkpoint_filename_with_path=checkpoint
            )
            session = MonitoredSession(creator)
            if as_iterable:
                has_an_end = feed_fn is not None or bool(graph.get_collection(GraphKeys.QUEUE_RUNNERS))
                return _predicted(session, predictions, feed_fn, iterate_batches, has_an_end)
            with session:
                return session.run(predictions, feed_fn() if feed_fn else None)

    def export(self, export_dir: Any, *arguments: Any, **more: Any) -> Any:
        """Session bundles, which no release reads any more.

        Raises:
            NotImplementedError: always; says what to call.
        """
        raise NotImplementedError(
            f"export writes session bundles, which nothing reads now; export_savedmodel({export_dir!r}, "
            "serving_input_fn) writes a SavedModel"
        )


def _split(metrics: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """One operation that updates all metrics, and their values."""
    updates: list[Any] = []
    values: dict[str, Any] = {}
    for name, each in metrics.items():
        is_pair = isinstance(each, list | tuple) and len(each) == 2
        values[name] = each[0] if is_pair else each
        if is_pair:
            updates.append(each[1])
    return group([getattr(each, "op", each) for each in updates]) if updates else None, values


def _chosen(predictions: Any, keys: Any) -> Any:
    if not keys:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("outputs choose from predictions by name, and the model has one prediction alone")
    found = {key: value for key, value in predictions.items() if key in keys}
    if not found:
        raise ValueError(f"no prediction is called {keys}; there are: {', '.join(map(str, predictions))}")
    return found


def _predicted(session: Any, predictions: Any, feed_fn: Any, by_batch: Any, has_an_end: bool) -> Iterator[Any]:
    with session:
        while not session.should_stop():
            batch = session.run(predictions, feed_fn() if feed_fn else None)
            if by_batch:
                yield batch
            elif not isinstance(predictions, dict):
                yield from batch
            else:
                first = next(iter(batch.values()))
                count = first.dense_shape[0] if hasattr(first, "dense_shape") else len(first)
                for row in range(count):
                    yield {key: value[row] for key, value in batch.items()}
            if not has_an_end:
                return
