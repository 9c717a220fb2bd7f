# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.training: loops that train, and that evaluate each new checkpoint."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction import context
from toolkit.client.train import global_step as steps
from toolkit.client.variables import initializers
from toolkit.client.variables.store import AUTO_REUSE, get_variable, variable_scope
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.families.train import checkpoint_files, monitored, training
from toolkit.tensorflow.families.train.saving_hooks import FileWriterCache
from toolkit.tensorflow.families.train.session_hooks import FinalOpsHook, SessionRunArgs, SessionRunHook

#: the collection of the variable that counts evaluated batches
EVAL_STEP = "eval_step"


def get_or_create_eval_step() -> Any:
    """The variable that counts evaluated batches: int64, local.

    Raises:
        ValueError: the collection `eval_step` holds several.
    """
    found = context.get_default_graph().get_collection(EVAL_STEP)
    if len(found) > 1:
        raise ValueError(f"the collection '{EVAL_STEP}' holds {len(found)} members, where one is looked for")
    if found:
        return found[0]
    with variable_scope("", reuse=AUTO_REUSE):
        return get_variable(
            "eval_step", [], dtypes.int64, initializers.Zeros(), trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES, EVAL_STEP],
        )  # fmt: skip


class StopAfterNEvalsHook(SessionRunHook):
    """Ends an evaluation after so many batches; None: at the end of the input."""

    def __init__(self, num_evals: Any, log_progress: bool = True):
        self._num_evals, self._log = num_evals, log_progress
        self._counted: Any = None

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._counted = updated_eval_step

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs({"evals_completed": self._counted})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        done = run_values.results["evals_completed"]
        if self._log:
            log().info("evaluation %d of %s", done, self._num_evals or "all")
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()


class SummaryAtEndHook(SessionRunHook):
    """Writes the summaries once, at the end.

    Raises:
        ValueError: neither `log_dir` nor `summary_writer` is given.
    """

    def __init__(self, log_dir: Any = None, summary_writer: Any = None, summary_op: Any = None, feed_dict: Any = None):
        if log_dir is None and summary_writer is None:
            raise ValueError("give log_dir or summary_writer")
        self._log_dir, self._writer, self._feeds = log_dir, summary_writer, feed_dict
        self._summary_op, self._is_default = summary_op, summary_op is None

    def begin(self) -> None:
        if self._is_default:
            self._summary_op = training.merge_all()
        self._global_step = steps.get_or_create_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._writer is None and self._log_dir is not None:
            self._writer = FileWriterCache.get(self._log_dir)

    def end(self, session: Any) -> None:
        if self._summary_op is not None:
            step = training.global_step(session, self._global_step)
            self._writer.add_summary(session.run(self._summary_op, self._feeds), step)
        self._writer.flush()


def _counted(eval_ops: Any, hooks: list[Any]) -> Any:
    """What each batch runs, with the counter of batches."""
    if eval_ops is None:
        return None
    count = get_or_create_eval_step().assign_add(1)
    for hook in hooks:
        if isinstance(hook, StopAfterNEvalsHook):
            hook._set_evals_completed_tensor(count)
    if isinstance(eval_ops, dict):
        return {**eval_ops, "update_eval_step": count}
    return [*(eval_ops if isinstance(eval_ops, list | tuple) else [eval_ops]), count]


def _evaluate(checkpoint: str, master: str, scaffold: Any, ops: Any, feeds: Any, hooks: list[Any], config: Any) -> None:
    creator = monitored.ChiefSessionCreator(scaffold, master, config, checkpoint_filename_with_path=checkpoint)
    with monitored.MonitoredSession(creator, hooks) as session:
        while ops is not None and not session.should_stop():
            session.run(ops, feeds)


def evaluate_once(
    checkpoint_path: str, master: str = "", scaffold: Any = None, eval_ops: Any = None, feed_dict: Any = None,
    final_ops: Any = None, final_ops_feed_dict: Any = None, hooks: Any = None, config: Any = None,
) -> Any:  # fmt: skip
    """Run `eval_ops` on a checkpoint until a hook stops, or the input ends; returns the values of `final_ops`."""
    get_or_create_eval_step()
    hooks = list(hooks or [])
    ops = _counted(eval_ops, hooks)
    last = FinalOpsHook(final_ops, final_ops_feed_dict)
    _evaluate(checkpoint_path, master, scaffold, ops, feed_dict, [*hooks, last], config)
    return last.final_ops_values


def evaluate_repeatedly(
    checkpoint_dir: str, master: str = "", scaffold: Any = None, eval_ops: Any = None, feed_dict: Any = None,
    final_ops: Any = None, final_ops_feed_dict: Any = None, eval_interval_secs: float = 60, hooks: Any = None,
    config: Any = None, max_number_of_evaluations: Any = None, timeout: Any = None, timeout_fn: Any = None,
) -> Any:  # fmt: skip
    """`evaluate_once` of each new checkpoint of a folder; returns the last values of `final_ops`."""
    get_or_create_eval_step()
    hooks = list(hooks or [])
    ops = _counted(eval_ops, hooks)
    last = FinalOpsHook(final_ops, final_ops_feed_dict)
    found = checkpoint_files.checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn)
    for number, checkpoint in enumerate(found, 1):
        _evaluate(checkpoint, master, scaffold, ops, feed_dict, [*hooks, last], config)
        if max_number_of_evaluations is not None and number >= max_number_of_evaluations:
            break
    return last.final_ops_values


def train(
    train_op: Any, logdir: Any, master: str = "", is_chief: bool = True, scaffold: Any = None, hooks: Any = None,
    chief_only_hooks: Any = None, save_checkpoint_secs: Any = 600, save_summaries_steps: Any = 100, config: Any = None,
    max_wait_secs: float = 7200, run_metadata: Any = None,
) -> Any:  # fmt: skip
    """Run `train_op` in a monitored training session until it stops; returns its last value.

    Raises:
        ValueError: summaries or checkpoints are to be written, and there is no folder.
    """
    if logdir is None and is_chief and (save_summaries_steps or save_checkpoint_secs):
        raise ValueError("logdir is None: set save_summaries_steps and save_checkpoint_secs to None, too")
    value: Any = None
    with monitored.MonitoredTrainingSession(
        master, is_chief, logdir, scaffold, hooks, chief_only_hooks, save_checkpoint_secs, save_summaries_steps,
        config=config, max_wait_secs=max_wait_secs,
    ) as session:  # fmt: skip
        while not session.should_stop():
            value = session.run(train_op, run_metadata=run_metadata)
    return value
