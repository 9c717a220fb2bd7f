# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.slim: training from a loss to a folder of checkpoints, evaluation of what is in one."""

from __future__ import annotations

import os
import time
from typing import Any

from toolkit.client import ops
from toolkit.client.construction import context
from toolkit.client.construction.convert import constant
from toolkit.client.construction.grouping import group
from toolkit.client.construction.scopes import name_scope
from toolkit.client.math import math_ops
from toolkit.client.summaries import summary
from toolkit.client.train import training_operation as training
from toolkit.client.train.global_step import get_or_create_global_step
from toolkit.client.variables import by_collection
from toolkit.errors import AbortedError, OutOfRangeError
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.families.train import saver as savers
from toolkit.tensorflow.families.train.coordinators import Coordinator
from toolkit.tensorflow.families.train.session_manager import SessionManager
from toolkit.tensorflow.families.train.training import FileWriter, start_queue_runners

#: what an argument has where the default is meant, for None means none
_DEFAULT = 0

clip_gradient_norms = training.clip_gradient_norms
multiply_gradients = training.multiply_gradients


def add_gradients_summaries(grads_and_vars: Any) -> list[Any]:
    return training.gradient_summaries(grads_and_vars, "/")


def create_train_op(
    total_loss: Any, optimizer: Any, global_step: Any = 0, update_ops: Any = None, variables_to_train: Any = None,
    clip_gradient_norm: Any = 0, summarize_gradients: bool = False, gate_gradients: Any = 1,
    aggregation_method: Any = None, colocate_gradients_with_ops: bool = False, gradient_multipliers: Any = None,
    check_numerics: bool = True,
) -> Any:  # fmt: skip
    def transformed(pairs: Any) -> Any:
        if gradient_multipliers:
            with name_scope("multiply_grads"):
                pairs = multiply_gradients(pairs, gradient_multipliers)
        if clip_gradient_norm > 0:
            with name_scope("clip_grads"):
                pairs = clip_gradient_norms(pairs, clip_gradient_norm)
        return pairs

    return training.create_train_op(
        total_loss, optimizer, global_step, update_ops, variables_to_train, transformed, summarize_gradients,
        gate_gradients, aggregation_method, colocate_gradients_with_ops, check_numerics,
    )  # fmt: skip


def train_step(sess: Any, train_op: Any, global_step: Any, train_step_kwargs: Any) -> Any:
    """One step: the loss, and whether to stop; tensors should_log and should_stop say what to do."""
    start = time.perf_counter()
    loss, step = sess.run([train_op, global_step])
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        seconds = time.perf_counter() - start
        log().info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, seconds)
    return loss, bool(sess.run(train_step_kwargs["should_stop"])) if "should_stop" in train_step_kwargs else False


def train(
    train_op: Any, logdir: Any, train_step_fn: Any = train_step, train_step_kwargs: Any = _DEFAULT,
    log_every_n_steps: Any = 1, graph: Any = None, master: str = "", is_chief: bool = True, global_step: Any = None,
    number_of_steps: Any = None, init_op: Any = _DEFAULT, init_feed_dict: Any = None, local_init_op: Any = _DEFAULT,
    init_fn: Any = None, ready_op: Any = _DEFAULT, summary_op: Any = _DEFAULT, save_summaries_secs: Any = 600,
    summary_writer: Any = _DEFAULT, startup_delay_steps: Any = 0, saver: Any = None, save_interval_secs: Any = 600,
    sync_optimizer: Any = None, session_config: Any = None, session_wrapper: Any = None,
    trace_every_n_steps: Any = None, ignore_live_threads: bool = False,
) -> Any:  # fmt: skip
    """Steps until the step function says to stop, or the input ends; returns the last loss.

    Checkpoints (every `save_interval_secs`, and at the end) and summaries go to `logdir`; training goes on from what is
    there.

    Raises:
        ValueError: there is no train_op, no step is wanted, or something is to be written and there is no logdir.
        NotImplementedError: optimizers that wait for other workers.
    """
    if train_op is None:
        raise ValueError("train_op: expected an operation or a tensor, got None")
    if sync_optimizer is not None:
        raise NotImplementedError("sync_optimizer: give its hook to tf.train.MonitoredTrainingSession")
    if number_of_steps is not None and number_of_steps <= 0:
        raise ValueError(f"number_of_steps: expected a number above 0 or None, got {number_of_steps}")
    if logdir is None:
        for given, unset, what in ((summary_op, _DEFAULT, "summary_op"), (saver, None, "saver"),
                                   (trace_every_n_steps, None, "trace_every_n_steps")):  # fmt: skip
            if given is not unset:
                raise ValueError(f"{what}: what it writes goes to logdir, which is None")
    graph = graph or context.get_default_graph()
    with graph.as_default():
        step = get_or_create_global_step() if global_step is None else global_step
        saver = saver or savers.Saver()
        with name_scope("init_ops"):
            init_op = by_collection.global_variables_initializer() if init_op is _DEFAULT else init_op
            ready_op = by_collection.report_uninitialized_variables() if ready_op is _DEFAULT else ready_op
            if local_init_op is _DEFAULT:
                local_init_op = group([by_collection.local_variables_initializer(), by_collection.tables_initializer()])
        summary_op = summary.merge_all() if summary_op is _DEFAULT else summary_op
        if train_step_kwargs is _DEFAULT:
            train_step_kwargs = _step_arguments(step, number_of_steps, log_every_n_steps)
    if summary_writer is _DEFAULT:
        summary_writer = FileWriter(logdir, graph) if logdir and is_chief else None
    if summary_writer is not None:
        train_step_kwargs["summary_writer"] = summary_writer
    graph.finalize()
    manager = SessionManager(local_init_op, ready_op, None, graph)
    run = _Training(logdir if is_chief else None, saver, step, summary_op, summary_writer)
    run.every(save_interval_secs, save_summaries_secs)
    while True:
        session = manager.prepare_session(
            master, init_op, saver, logdir, config=session_config, init_feed_dict=init_feed_dict, init_fn=init_fn
        )
        try:
            with session:
                wrapped = session if session_wrapper is None else session_wrapper(session)
                return run.steps(wrapped, session, lambda s: train_step_fn(s, train_op, step, train_step_kwargs))
        except AbortedError:
            log().info("a step was aborted; training goes on from the last checkpoint")


def _step_arguments(step: Any, number_of_steps: Any, log_every: Any) -> dict[str, Any]:
    """Tensors that say when to stop and when to log."""
    with name_scope("train_step"):
        stops = ops.greater_equal(step, number_of_steps) if number_of_steps else constant(False)
        found: dict[str, Any] = {"should_stop": stops}
        if log_every > 0:
            found["should_log"] = math_ops.equal(step % log_every, 0)
    return found


class _Training:
    """The loop of `train`: what it writes, and when."""

    def __init__(self, logdir: Any, saver: Any, step: Any, summary_op: Any, writer: Any):
        self._logdir, self._saver, self._step = logdir, saver, step
        self._summary_op, self._writer = summary_op, writer
        self._due: dict[str, tuple[float, float]] = {}

    def every(self, save_secs: Any, summary_secs: Any) -> None:
        now = time.monotonic()
        pairs = (("save", save_secs), ("summary", summary_secs))
        self._due = {what: (now + seconds, seconds) for what, seconds in pairs if seconds}

    def steps(self, wrapped: Any, session: Any, one: Any) -> Any:
        loss = None
        coord = Coordinator()
        threads = start_queue_runners(session, coord)
        self._summarize(session)
        try:
            while not coord.should_stop():
                try:
                    loss, stops = one(wrapped)
                except OutOfRangeError:
                    log().info("the input has ended, and training with it")
                    break
                self._write_what_is_due(session)
                if stops:
                    break
            if self._logdir:
                self._save(session)
        finally:
            coord.request_stop()
            coord.join(threads)
            if self._writer is not None:
                self._writer.close()
        return loss

    def _write_what_is_due(self, session: Any) -> None:
        now = time.monotonic()
        for what, (when, seconds) in self._due.items():
            if now >= when and self._logdir:
                self._due[what] = (now + seconds, seconds)
                (self._save if what == "save" else self._summarize)(session)

    def _save(self, session: Any) -> None:
        self._saver.save(session, os.path.join(self._logdir, "model.ckpt"), global_step=self._step)

    def _summarize(self, session: Any) -> None:
        if self._summary_op is not None and self._writer is not None and self._logdir:
            text, step = session.run([self._summary_op, self._step])
            self._writer.add_summary(text, int(step))
