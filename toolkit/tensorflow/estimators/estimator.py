# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Estimator: a model function in graphs of its own, for training, evaluation, prediction and export."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from toolkit.client.construction import context
from toolkit.client.construction.grouping import group
from toolkit.client.construction.scopes import device
from toolkit.client.data.dataset import Dataset
from toolkit.client.random import seeds
from toolkit.client.summaries import summary
from toolkit.client.train import warm_start as starting
from toolkit.client.train.global_step import create_global_step, get_global_step, global_step_read
from toolkit.errors import GraphmillError
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.estimators import cluster_tasks
from toolkit.tensorflow.estimators.evaluation import (
    Evaluation,
    checked_items,
    eval_step,
    evaluate_once,
    evaluation_hooks,
    with_loss,
    write_values,
)
from toolkit.tensorflow.estimators.export_folders import copy_extra, timestamped
from toolkit.tensorflow.estimators.exporting import TAGS, add_graph
from toolkit.tensorflow.estimators.model_functions import arguments_of, check_arguments
from toolkit.tensorflow.estimators.model_inputs import IteratorHook, chosen, has_an_end, rows_of
from toolkit.tensorflow.estimators.run_config import ModeKeys, RunConfig
from toolkit.tensorflow.estimators.spec import EstimatorSpec
from toolkit.tensorflow.estimators.warm_starts import warm_start_settings
from toolkit.tensorflow.families.framework.graph import Graph
from toolkit.tensorflow.families.framework.saved_model import SavedModelBuilder
from toolkit.tensorflow.families.train import saver as savers
from toolkit.tensorflow.families.train.monitored import ChiefSessionCreator, MonitoredSession, MonitoredTrainingSession
from toolkit.tensorflow.families.train.saving_hooks import CheckpointSaverHook, CheckpointSaverListener
from toolkit.tensorflow.families.train.scaffold import Scaffold
from toolkit.tensorflow.families.train.session_hooks import (
    LoggingTensorHook,
    NanTensorHook,
    SessionRunHook,
    StopAtStepHook,
)


class Estimator:
    """A model that is trained, evaluated, asked and exported.

    Args:
        model_fn: a function of features and of any of labels, mode, params and config; returns an EstimatorSpec.
        model_dir: where checkpoints and summaries go; default: the config's, else a temporary folder.
        params: handed to `model_fn`.
        warm_start_from: a checkpoint, a SavedModel's folder, or WarmStartSettings.

    Raises:
        ValueError: the function takes other arguments, or two folders are named.
    """

    def __init__(
        self, model_fn: Any, model_dir: Any = None, config: Any = None, params: Any = None,
        warm_start_from: Any = None,
    ):  # fmt: skip
        _refuse_overridden(type(self))
        self._config = _with_folder(config, model_dir)
        self._model_dir = self._config.model_dir
        if model_fn is None:
            raise ValueError("an Estimator needs a model_fn; it is missing")
        check_arguments(model_fn, params)
        self._model_fn = model_fn
        self._params = copy.deepcopy(params or {})
        self._warm_start = warm_start_settings(warm_start_from)

    @property
    def model_dir(self) -> Any:
        return self._model_dir

    @property
    def config(self) -> Any:
        return copy.deepcopy(self._config)

    @property
    def params(self) -> Any:
        return copy.deepcopy(self._params)

    def _params_of(self, mode: str) -> Any:
        """The params that the functions are given."""
        return self.params

    def _spec_of(self, found: Any) -> Any:
        """What the model function returned, as an EstimatorSpec where it is another form of one."""
        return found

    @property
    def model_fn(self) -> Any:
        """The model as a function of features, labels, mode and config."""

        def public_model_fn(features: Any, labels: Any, mode: Any, config: Any) -> Any:
            return self._call_model_fn(features, labels, mode, config)

        return public_model_fn

    def get_variable_value(self, name: str) -> Any:
        """The value that a variable has in the latest checkpoint."""
        return savers.load_variable(self._trained(), name)

    def get_variable_names(self) -> list[str]:
        """The names of what the latest checkpoint holds."""
        return [name for name, _ in savers.list_variables(self._trained())]

    def latest_checkpoint(self) -> str | None:
        return savers.latest_checkpoint(self._model_dir)

    def _trained(self) -> str:
        if not self.latest_checkpoint():
            raise ValueError(f"{self._model_dir}: there is no checkpoint in model_dir; train the model first")
        return self._model_dir

    def eval_dir(self, name: Any = None) -> str:
        """Where the summaries of evaluations go."""
        return os.path.join(self._model_dir, f"eval_{name}" if name else "eval")

    # -- training -------------------------------------------------------------------------------------------

    def train(
        self, input_fn: Any, hooks: Any = None, steps: Any = None, max_steps: Any = None,
        saving_listeners: Any = None,
    ) -> Estimator:  # fmt: skip
        """Train from the latest checkpoint on, until the input ends.

        Args:
            steps: that many steps more; max_steps: up to this global step.

        Raises:
            ValueError: both are given, or a number below 1.
        """
        if self._config.task_type in ("evaluator", "ps"):
            raise ValueError(f"a task of the type '{self._config.task_type}' does not train; call train_and_evaluate")
        if steps is not None and max_steps is not None:
            raise ValueError("give steps or max_steps, not both")
        for name, value in (("steps", steps), ("max_steps", max_steps)):
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be above 0; got {value}")
        if max_steps is not None and max_steps <= self.trained_steps():
            log().info("the model has been trained for %d steps already", max_steps)
            return self
        hooks = checked_items(hooks, SessionRunHook, "hooks")
        listeners = checked_items(saving_listeners, CheckpointSaverListener, "saving_listeners")
        if steps is not None or max_steps is not None:
            hooks.append(StopAtStepHook(steps, max_steps))
        loss = self._train(input_fn, hooks, listeners)
        log().info("the loss of the last step was %s", loss)
        return self

    def trained_steps(self) -> int:
        """The global step of the latest checkpoint; 0 where there is none."""
        found = self.latest_checkpoint()
        try:
            return int(savers.load_variable(found, GraphKeys.GLOBAL_STEP)) if found else 0
        except GraphmillError:
            return 0

    def _train(self, input_fn: Any, hooks: list[Any], listeners: list[Any]) -> Any:
        graph = Graph()
        place = self._config.device_fn or cluster_tasks.device_function(self._config)
        with graph.as_default(), device(place):
            seeds.set_random_seed(self._config.tf_random_seed)
            self._create_and_assert_global_step(graph)
            global_step_read(graph)
            features, labels, input_hooks = self._inputs(input_fn, ModeKeys.TRAIN)
            spec = self._call_model_fn(features, labels, ModeKeys.TRAIN, self.config)
            return self._run_training(spec, [*input_hooks, *hooks], listeners)

    def _run_training(self, spec: EstimatorSpec, hooks: list[Any], listeners: list[Any]) -> Any:
        self._start_warm(None, always=True)
        graph, config = context.get_default_graph(), self._config
        if not any(each.op.name == "loss" for each in graph.get_collection(GraphKeys.SUMMARIES)):
            summary.scalar("loss", spec.loss)
        graph.add_to_collection(GraphKeys.LOSSES, spec.loss)
        hooks.append(NanTensorHook(spec.loss))
        if config.log_step_count_steps is not None:
            shown = {"loss": spec.loss, "step": get_global_step(graph)}
            hooks.append(LoggingTensorHook(shown, every_n_iter=config.log_step_count_steps))
        hooks += spec.training_hooks
        if spec.scaffold.saver is None and not graph.get_collection(GraphKeys.SAVERS):
            saver = savers.Saver(
                sharded=True, max_to_keep=config.keep_checkpoint_max, defer_build=True, save_relative_paths=True,
                keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
            )  # fmt: skip
            graph.add_to_collection(GraphKeys.SAVERS, saver)
        chief = list(spec.training_chief_hooks)
        saving = [each for each in (*hooks, *chief) if isinstance(each, CheckpointSaverHook)]
        if (config.save_checkpoints_secs or config.save_checkpoints_steps) and not saving:
            saving = [CheckpointSaverHook(
                self._model_dir, config.save_checkpoints_secs, config.save_checkpoints_steps, scaffold=spec.scaffold
            )]  # fmt: skip
            chief.insert(0, saving[0])
        if listeners and not saving:
            raise ValueError(
                "saving_listeners need a CheckpointSaverHook; set save_checkpoints_steps or save_checkpoints_secs"
            )
        for listener in listeners:
            if listener not in saving[0]._listeners:
                saving[0]._listeners.append(listener)
        loss = None
        with MonitoredTrainingSession(
            config.master, checkpoint_dir=self._model_dir, is_chief=config.is_chief, scaffold=spec.scaffold,
            hooks=hooks, chief_only_hooks=chief, save_checkpoint_secs=0, save_summaries_steps=config.save_summary_steps,
            config=cluster_tasks.session_config(config), max_wait_secs=config.session_creation_timeout_secs,
            log_step_count_steps=config.log_step_count_steps,
        ) as session:  # fmt: skip
            while not session.should_stop():
                _, loss = session.run([spec.train_op, spec.loss])
        if loss is None:
            log().warning("no step was trained: the input is empty, or has ended")
        return loss

    # -- evaluation -----------------------------------------------------------------------------------------

    def evaluate(
        self, input_fn: Any, steps: Any = None, hooks: Any = None, checkpoint_path: Any = None, name: Any = None
    ) -> dict[str, Any]:
        """The metrics of the model, its loss and its global step, over the whole input or so many batches.

        Raises:
            ValueError: fewer than one step; a metric is called "loss" or "global_step".
        """
        hooks = evaluation_hooks(steps, hooks)
        checkpoint = checkpoint_path or self.latest_checkpoint()
        if not checkpoint:
            log().info("%s has no checkpoint; the initial values are evaluated", self._model_dir)
        with Graph().as_default():
            return self.run_evaluation(self._evaluation(input_fn, hooks, checkpoint), checkpoint, name)

    def evaluation(self, input_fn: Any, steps: Any = None, hooks: Any = None) -> Evaluation:
        """An evaluation in the default graph, to be run with whatever values its variables are given."""
        return self._evaluation(input_fn, evaluation_hooks(steps, hooks), None)

    def _evaluation(self, input_fn: Any, hooks: list[Any], checkpoint: Any) -> Evaluation:
        graph = context.get_default_graph()
        seeds.set_random_seed(self._config.tf_random_seed)
        step = self._create_and_assert_global_step(graph)
        features, labels, input_hooks = self._inputs(input_fn, ModeKeys.EVAL)
        spec = self._call_model_fn(features, labels, ModeKeys.EVAL, self.config)
        update_op, values = with_loss(spec)
        self._start_warm(checkpoint)
        values[GraphKeys.GLOBAL_STEP] = step
        scaffold = spec.scaffold
        if scaffold.local_init_op is not None:
            eval_step()
            both = group([scaffold.local_init_op, Scaffold.default_local_init_op()])
            scaffold = Scaffold(local_init_op=both, copy_from_scaffold=scaffold)
        return Evaluation(scaffold, update_op, values, [*input_hooks, *hooks, *spec.evaluation_hooks])

    def run_evaluation(self, evaluation: Evaluation, checkpoint: Any, name: Any = None) -> dict[str, Any]:
        """Run an evaluation of the default graph, from a checkpoint (None: initial values), and write its values."""
        found = evaluate_once(checkpoint, *evaluation, self._config.session_config)
        write_values(self.eval_dir(name), found, found[GraphKeys.GLOBAL_STEP], checkpoint)
        log().info("global step %s: %s", found[GraphKeys.GLOBAL_STEP], found)
        return found

    # -- prediction -----------------------------------------------------------------------------------------

    def predict(
        self, input_fn: Any, predict_keys: Any = None, hooks: Any = None, checkpoint_path: Any = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:  # fmt: skip
        """The predictions for each example, or for each batch.

        Args:
            predict_keys: which of the predictions; default: all.

        Raises:
            ValueError: there are no such predictions, or they are not of one number of examples.
        """
        hooks = checked_items(hooks, SessionRunHook, "hooks")
        checkpoint = checkpoint_path or self.latest_checkpoint()
        if not checkpoint:
            log().info("%s has no checkpoint; the initial values predict", self._model_dir)
        graph = Graph()
        with graph.as_default():
            seeds.set_random_seed(self._config.tf_random_seed)
            self._create_and_assert_global_step(graph)
            features, _, input_hooks = self._inputs(input_fn, ModeKeys.PREDICT)
            if not has_an_end(features):
                log().warning("the input is neither of tf.data nor of a queue, so predict never ends")
            spec = self._call_model_fn(features, None, ModeKeys.PREDICT, self.config)
            self._start_warm(checkpoint)
            predictions = chosen(spec.predictions, predict_keys)
            creator = ChiefSessionCreator(
                spec.scaffold, config=self._config.session_config, checkpoint_filename_with_path=checkpoint
            )
            everyone = [*input_hooks, *hooks, *spec.prediction_hooks]
            with MonitoredSession(creator, everyone) as session:
                while not session.should_stop():
                    batch = session.run(predictions)
                    if not yield_single_examples:
                        yield batch
                    elif not isinstance(predictions, dict):
                        yield from batch
                    else:
                        for row in range(rows_of(batch)):
                            yield {key: value[row] for key, value in batch.items()}

    # -- export ---------------------------------------------------------------------------------------------

    def export_saved_model(
        self, export_dir_base: Any, serving_input_receiver_fn: Any, assets_extra: Any = None, as_text: bool = False,
        checkpoint_path: Any = None, experimental_mode: Any = ModeKeys.PREDICT,
    ) -> bytes:  # fmt: skip
        """Write a SavedModel into a new folder, named by the time; returns its path."""
        receivers = {experimental_mode: serving_input_receiver_fn}
        return self._export_all_saved_models(export_dir_base, receivers, assets_extra, as_text, checkpoint_path)

    def export_savedmodel(
        self, export_dir_base: Any, serving_input_receiver_fn: Any, assets_extra: Any = None, as_text: bool = False,
        checkpoint_path: Any = None, strip_default_attrs: bool = False,
    ) -> bytes:  # fmt: skip
        """As `export_saved_model`, under its older name."""
        receivers = {ModeKeys.PREDICT: serving_input_receiver_fn}
        return self._export_all_saved_models(
            export_dir_base, receivers, assets_extra, as_text, checkpoint_path, strip_default_attrs
        )

    def experimental_export_all_saved_models(
        self, export_dir_base: Any, input_receiver_fn_map: Any, assets_extra: Any = None, as_text: bool = False,
        checkpoint_path: Any = None,
    ) -> bytes:  # fmt: skip
        """Write one SavedModel with a graph for each mode."""
        return self._export_all_saved_models(
            export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
        )

    def _export_all_saved_models(
        self, export_dir_base: Any, input_receiver_fn_map: Any, assets_extra: Any = None, as_text: bool = False,
        checkpoint_path: Any = None, strip_default_attrs: bool = True,
    ) -> bytes:  # fmt: skip
        wanted = {mode: fn for mode, fn in input_receiver_fn_map.items() if fn is not None}
        if not wanted or not set(wanted) <= set(TAGS):
            raise ValueError(f"an export needs a function that makes its inputs, of a mode; got {wanted or 'none'}")
        checkpoint = checkpoint_path or self.latest_checkpoint()
        if not checkpoint and self._warm_start is not None:
            start = self._warm_start.ckpt_to_initialize_from
            checkpoint = savers.latest_checkpoint(start) if os.path.isdir(start) else start
        if not checkpoint:
            raise ValueError(f"{self._model_dir}: there is no checkpoint in model_dir to export; train the model first")
        target = timestamped(os.fsdecode(export_dir_base))
        parent, name = os.path.split(target)
        scratch = os.path.join(parent, f"temp-{name}")
        builder = SavedModelBuilder(scratch)
        is_first = True
        for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
            if mode in wanted:
                self._add_graph(builder, wanted[mode], checkpoint, is_first, mode, strip_default_attrs)
                is_first = False
        builder.save(as_text)
        copy_extra(scratch, assets_extra)
        os.rename(scratch, target)
        return target.encode()

    def _add_graph(
        self, builder: Any, receiver_fn: Any, checkpoint: str, is_first: bool, mode: str, strip: bool
    ) -> None:
        graph = Graph()
        with graph.as_default():
            self._create_and_assert_global_step(graph)
            seeds.set_random_seed(self._config.tf_random_seed)
            receiver = receiver_fn()
            spec = self._call_model_fn(receiver.features, getattr(receiver, "labels", None), mode, self.config)
            add_graph(
                builder, graph, receiver, spec, checkpoint, mode, is_first=is_first, strip_default_attrs=strip,
                session_config=self._config.session_config,
            )  # fmt: skip

    # -- calls ----------------------------------------------------------------------------------------------

    def _create_and_assert_global_step(self, graph: Any) -> Any:
        return create_global_step(graph)

    def _inputs(self, input_fn: Any, mode: str) -> tuple[Any, Any, list[Any]]:
        """Features, labels or None, and the hooks that start the input."""
        offered = {"mode": mode, "params": self._params_of(mode), "config": self.config}
        with device("/cpu:0"):
            found = input_fn(**{name: value for name, value in offered.items() if name in arguments_of(input_fn)})
        hooks: list[Any] = []
        if isinstance(found, Dataset):
            iterator = found.make_initializable_iterator()
            hooks.append(IteratorHook(iterator))
            found = iterator.get_next()
        if isinstance(found, list | tuple):
            if len(found) != 2:
                raise ValueError(f"input_fn returns {len(found)} things; expected features and labels")
            features, labels = found
        else:
            features, labels = found, None
        return features, None if mode == ModeKeys.PREDICT else labels, hooks

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        takes = arguments_of(self._model_fn)
        if "labels" not in takes and labels is not None:
            raise ValueError("input_fn returns labels, and model_fn takes none")
        offered = {"labels": labels, "mode": mode, "params": self._params_of(mode), "config": config}
        found = self._spec_of(
            self._model_fn(features, **{name: value for name, value in offered.items() if name in takes})
        )
        if not isinstance(found, EstimatorSpec):
            raise ValueError(f"model_fn must return an EstimatorSpec; got {found!r}")
        return found

    def _start_warm(self, checkpoint: Any, always: bool = False) -> None:
        if self._warm_start is not None and (always or not checkpoint):
            starting.warm_start(*self._warm_start)


def _with_folder(config: Any, model_dir: Any) -> RunConfig:
    config = RunConfig() if config is None else config
    if not isinstance(config, RunConfig):
        raise ValueError(f"config must be a RunConfig; got {config!r}")
    folder = None if model_dir is None else os.fspath(model_dir)
    if folder is not None and config.model_dir not in (None, folder):
        raise ValueError(f"model_dir is {folder}, and {config.model_dir} in the RunConfig")
    folder = folder or config.model_dir
    if not folder:
        folder = tempfile.mkdtemp()
        log().warning("no model_dir is given; the model goes to %s", folder)
    return config.replace(model_dir=folder)


def _refuse_overridden(cls: type) -> None:
    """Raises ValueError where a subclass changes what an Estimator does."""
    allowed = {"model_fn", "_create_and_assert_global_step", "_export_all_saved_models", "_params_of", "_spec_of"}
    for base in cls.__mro__[: cls.__mro__.index(Estimator)]:
        changed = [name for name in vars(base) if name in vars(Estimator) and not name.startswith("__")]
        strange = sorted(set(changed) - allowed)
        if strange:
            raise ValueError(f"{base.__name__} overrides {', '.join(strange)} of Estimator, which it must not")
