# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.train.Supervisor: the training session of TensorFlow's first years, with threads that save and summarize."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from schemas import event_pb2, summary_pb2
from toolkit.client.construction import context
from toolkit.client.construction.grouping import group
from toolkit.client.train.global_step import get_global_step
from toolkit.client.variables import by_collection
from toolkit.errors import GraphmillError
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.families.train import training
from toolkit.tensorflow.families.train.coordinators import Coordinator, LooperThread
from toolkit.tensorflow.families.train.session_manager import SessionManager


class Supervisor:
    """Initializes or restores a model, runs its queue runners, and saves and summarizes from threads of its own:

        supervisor = tf.train.Supervisor(logdir="log")
        with supervisor.managed_session() as session:
            while not supervisor.should_stop():
                session.run(train)

    What is not given is taken from the graph's collections, or made and put there; None means none. The graph is
    finalized. Summaries are written every `save_summaries_secs`, checkpoints every `save_model_secs` seconds.
    """

    USE_DEFAULT = 0

    def __init__(
        self, graph: Any = None, ready_op: Any = USE_DEFAULT, ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True, init_op: Any = USE_DEFAULT, init_feed_dict: Any = None,
        local_init_op: Any = USE_DEFAULT, logdir: Any = None, summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT, global_step: Any = USE_DEFAULT, save_summaries_secs: Any = 120,
        save_model_secs: Any = 600, recovery_wait_secs: Any = 30, stop_grace_secs: Any = 120,
        checkpoint_basename: str = "model.ckpt", session_manager: Any = None, summary_writer: Any = USE_DEFAULT,
        init_fn: Any = None, local_init_run_options: Any = None,
    ):  # fmt: skip
        self._graph = context.get_default_graph() if graph is None else graph
        with self._graph.as_default():
            self._ready_op = _chosen(ready_op, GraphKeys.READY_OP, by_collection.report_uninitialized_variables)
            self._ready_for_local_init_op = _chosen(
                ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP, lambda: None
            )
            self._init_op = _chosen(init_op, GraphKeys.INIT_OP, by_collection.global_variables_initializer)
            self._local_init_op = _chosen(local_init_op, GraphKeys.LOCAL_INIT_OP, _default_local_init_op)
            self._saver = _chosen(saver, GraphKeys.SAVERS, _default_saver)
            self._summary_op = _chosen(summary_op, GraphKeys.SUMMARY_OP, training.merge_all)
            self._global_step = _chosen(global_step, GraphKeys.GLOBAL_STEP, get_global_step)
        self._init_feed_dict, self._init_fn = init_feed_dict, init_fn
        self._is_chief, self._stop_grace_secs = is_chief, stop_grace_secs
        self._coord = Coordinator()
        self._logdir = logdir if is_chief else None
        self._save_summaries_secs = save_summaries_secs if is_chief else None
        self._save_model_secs = save_model_secs if is_chief else None
        self._save_path = os.path.join(logdir, checkpoint_basename) if self._logdir else None
        self._summary_writer = self._writer(summary_writer) if is_chief else None
        self._graph_is_written = False
        self._session_manager = session_manager or SessionManager(
            self._local_init_op, self._ready_op, self._ready_for_local_init_op, self._graph, recovery_wait_secs,
            local_init_run_options,
        )  # fmt: skip
        if not is_chief:
            for op in self._graph.get_operations():
                if op.type in ("Variable", "VariableV2") and not op.device:
                    raise ValueError(f"the variable '{op.name}' has no device; those of a job with workers need one")
        self._graph.finalize()

    def _writer(self, given: Any) -> Any:
        if given is not Supervisor.USE_DEFAULT:
            return given
        return training.FileWriter(self._logdir) if self._logdir else None

    # -- what it is made of ---------------------------------------------------------------------------------------

    @property
    def is_chief(self) -> bool:
        return self._is_chief

    @property
    def session_manager(self) -> Any:
        return self._session_manager

    @property
    def coord(self) -> Coordinator:
        return self._coord

    @property
    def init_op(self) -> Any:
        return self._init_op

    @property
    def init_feed_dict(self) -> Any:
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        return self._ready_for_local_init_op

    @property
    def summary_writer(self) -> Any:
        return self._summary_writer

    @property
    def summary_op(self) -> Any:
        return self._summary_op

    @property
    def save_summaries_secs(self) -> Any:
        return self._save_summaries_secs

    @property
    def global_step(self) -> Any:
        return self._global_step

    @property
    def saver(self) -> Any:
        return self._saver

    @property
    def save_model_secs(self) -> Any:
        return self._save_model_secs

    @property
    def save_path(self) -> Any:
        return self._save_path

    # -- sessions ---------------------------------------------------------------------------------------------------

    @contextmanager
    def managed_session(
        self, master: str = "", config: Any = None, start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Generator[Any]:  # fmt: skip
        """A ready session; at the end of the block everything stops, and what a thread has raised is raised.

        The end of the input ends the block without an error.
        """
        session: Any = None
        try:
            session = self.prepare_or_wait_for_session(master, config, start_standard_services=start_standard_services)
            yield session
        except Exception as error:
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    with suppress(GraphmillError):
                        session.close()

    def prepare_or_wait_for_session(
        self, master: str = "", config: Any = None, wait_for_checkpoint: bool = False, max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:  # fmt: skip
        """The chief's session, restored or initialized; a worker's once the chief is ready."""
        self._coord.clear_stop()
        if self._summary_writer:
            self._summary_writer.reopen()
        if self._is_chief:
            session = self._session_manager.prepare_session(
                master, init_op=self._init_op, saver=self._saver, checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint, max_wait_secs=max_wait_secs, config=config,
                init_feed_dict=self._init_feed_dict, init_fn=self._init_fn,
            )  # fmt: skip
            self._write_graph()
            if start_standard_services:
                self.start_standard_services(session)
        else:
            session = self._session_manager.wait_for_session(master, config=config, max_wait_secs=max_wait_secs)
        if start_standard_services:
            self.start_queue_runners(session)
        return session

    def _write_graph(self) -> None:
        from toolkit.tensorflow.families.train.saver import export_meta_graph

        if self._logdir:
            training.write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir, "graph.pbtxt")
        if self._summary_writer and not self._graph_is_written:
            self._summary_writer.add_graph(self._graph)
            saver_def = self._saver.saver_def if self._saver else None
            self._summary_writer.add_meta_graph(
                export_meta_graph(saver_def=saver_def, graph=self._graph, collection_list=[])
            )
            self._graph_is_written = True

    def start_standard_services(self, sess: Any) -> list[Any] | None:
        """Start the threads that summarize, count steps and save.

        Raises:
            RuntimeError: this is not the chief.
        """
        if not self._is_chief:
            raise RuntimeError("only the chief writes summaries and checkpoints; this supervisor is a worker's")
        if not self._logdir:
            log().warning("the supervisor has no logdir: it writes neither summaries nor checkpoints")
            return None
        if self._global_step is not None and self._summary_writer:
            self._summary_writer.add_session_log(
                event_pb2.SessionLog(status=event_pb2.SessionLog.START), self._step(sess)
            )
        threads: list[LooperThread] = []
        if self._save_summaries_secs and self._summary_writer:
            if self._summary_op is not None:
                threads.append(LooperThread(self._coord, self._save_summaries_secs, self._summarize, (sess,)))
            if self._global_step is not None:
                threads.append(_StepCounter(self, sess))
        if self._saver and self._save_model_secs:
            threads.append(LooperThread(self._coord, self._save_model_secs, self._save, (sess,)))
        for thread in threads:
            thread.start()
        return threads

    def _step(self, session: Any) -> int:
        return training.global_step(session, self._global_step)

    def _summarize(self, session: Any) -> None:
        if self._global_step is None:
            summary, step = session.run(self._summary_op), None
        else:
            summary, step = session.run([self._summary_op, self._global_step])
        if self._summary_writer:
            self._summary_writer.add_summary(summary, step)

    def _save(self, session: Any) -> None:
        self._saver.save(session, self._save_path, global_step=self._global_step)
        if self._summary_writer and self._global_step is not None:
            saved = event_pb2.SessionLog(status=event_pb2.SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
            self._summary_writer.add_session_log(saved, self._step(session))

    def start_queue_runners(self, sess: Any, queue_runners: Any = None) -> list[Any]:
        if queue_runners is None:
            return training.start_queue_runners(sess, self._coord, collection=GraphKeys.QUEUE_RUNNERS)
        threads: list[Any] = []
        for runner in queue_runners:
            threads += runner.create_threads(sess, coord=self._coord, daemon=True, start=True)
        return threads

    # -- threads -----------------------------------------------------------------------------------------------------

    def loop(self, timer_interval_secs: Any, target: Callable[..., Any], args: Any = None, kwargs: Any = None) -> Any:
        """Call a function every so many seconds, in a thread, until everything stops."""
        return LooperThread.loop(self._coord, timer_interval_secs, target, args, kwargs)

    def stop(self, threads: Any = None, close_summary_writer: bool = True, ignore_live_threads: bool = False) -> None:
        """Stop the threads and raise what one of them has raised."""
        self._coord.request_stop()
        try:
            self._coord.join(threads, self._stop_grace_secs, ignore_live_threads)
        finally:
            if close_summary_writer and self._summary_writer:
                self._summary_writer.add_session_log(event_pb2.SessionLog(status=event_pb2.SessionLog.STOP))
                self._summary_writer.close()
                self._graph_is_written = False

    def request_stop(self, ex: Any = None) -> None:
        self._coord.request_stop(ex)

    def should_stop(self) -> bool:
        return self._coord.should_stop()

    def stop_on_exception(self) -> AbstractContextManager[None]:
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        self._coord.wait_for_stop()

    def summary_computed(self, sess: Any, summary: Any, global_step: Any = None) -> None:
        """Write a summary that the program has computed.

        Raises:
            RuntimeError: there is no writer.
        """
        if not self._summary_writer:
            raise RuntimeError("there is no summary writer; give the supervisor logdir= or summary_writer=")
        if global_step is None and self._global_step is not None:
            global_step = self._step(sess)
        self._summary_writer.add_summary(summary, global_step)

    PrepareSession = prepare_or_wait_for_session
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Stop = stop
    RequestStop = request_stop
    Loop = loop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


class _StepCounter(LooperThread):
    """Writes global steps per second."""

    def __init__(self, supervisor: Supervisor, session: Any):
        super().__init__(supervisor.coord, supervisor.save_summaries_secs)
        self._supervisor, self._session = supervisor, session
        self._tag = f"{supervisor.global_step.op.name}/sec"

    def start_loop(self) -> None:
        self._time, self._step = time.time(), self._supervisor._step(self._session)

    def run_loop(self) -> None:
        now, step = time.time(), self._supervisor._step(self._session)
        rate = (step - self._step) / (now - self._time) if now > self._time else float("inf")
        self._time, self._step = now, step
        if self._supervisor.summary_writer:
            summary = summary_pb2.Summary()
            summary.value.add(tag=self._tag, simple_value=rate)
            self._supervisor.summary_writer.add_summary(summary, step)
        log().info("%s: %g", self._tag, rate)


def _chosen(given: Any, key: str, make: Callable[[], Any]) -> Any:
    """What is given; by default the first of a collection, else what is made, which is put there."""
    if given is not Supervisor.USE_DEFAULT:
        return given
    graph = context.get_default_graph()
    found = graph.get_collection(key)
    if found:
        return found[0]
    made = make()
    if made is not None:
        graph.add_to_collection(key, made)
    return made


def _default_local_init_op() -> Any:
    return group([by_collection.local_variables_initializer(), by_collection.tables_initializer()])


def _default_saver() -> Any:
    from toolkit.tensorflow.families.train.saver import Saver

    return Saver() if by_collection.global_variables() else None
