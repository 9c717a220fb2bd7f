# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Hooks that write: checkpoints, summaries, steps per second, traces; one event file for each folder."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from schemas import config_pb2, event_pb2, summary_pb2
from toolkit.client.construction import context
from toolkit.client.train.global_step import get_global_step
from toolkit.forks import held_over_forks
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.families.train.session_hooks import (
    SecondOrStepTimer,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    read_step_of,
)
from toolkit.tensorflow.families.train.training import FileWriter, write_graph

#: more than one step counts
_ANY_STEP = 1_000_000


class FileWriterCache:
    """The writer of each folder, made when it is first asked for."""

    _cache: ClassVar[dict[str, FileWriter]] = {}
    _lock = held_over_forks()

    @staticmethod
    def clear() -> None:
        """Close and forget all writers."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._cache.values():
                writer.close()
            FileWriterCache._cache.clear()

    @staticmethod
    def get(logdir: str) -> FileWriter:
        with FileWriterCache._lock:
            found = FileWriterCache._cache.get(logdir)
            if found is None:
                found = FileWriterCache._cache[logdir] = FileWriter(logdir, graph=context.get_default_graph())
            return found


class CheckpointSaverListener:
    """What is told of the checkpoints that a CheckpointSaverHook writes; a subclass overrides what it needs."""

    def begin(self) -> None:
        """Before the graph is finalized."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """A checkpoint will be written."""

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        """A checkpoint was written; True ends the training."""

    def end(self, session: Any, global_step_value: int) -> None:
        """The session will be closed."""


class CheckpointSaverHook(SessionRunHook):
    """Saves when a session is made, every so many steps or seconds, and at the end.

    Raises:
        ValueError: both `saver` and `scaffold` are given, or not one of `save_secs` and `save_steps`.
    """

    def __init__(
        self, checkpoint_dir: str, save_secs: Any = None, save_steps: Any = None, saver: Any = None,
        checkpoint_basename: str = "model.ckpt", scaffold: Any = None, listeners: Any = None,
        save_graph_def: bool = True,
    ):  # fmt: skip
        if saver is not None and scaffold is not None:
            raise ValueError("give one of saver and scaffold, not both")
        self._saver, self._scaffold = saver, scaffold
        self._checkpoint_dir = checkpoint_dir
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._listeners = listeners or []
        self._save_graph_def = save_graph_def

    def begin(self) -> None:
        self._summary_writer = FileWriterCache.get(self._checkpoint_dir)
        self._global_step_tensor = read_step_of(self)
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        from toolkit.tensorflow.families.train.saver import export_meta_graph

        global_step = session.run(self._global_step_tensor)
        graph = context.get_default_graph()
        if self._save_graph_def:
            write_graph(graph.as_graph_def(add_shapes=True), self._checkpoint_dir, "graph.pbtxt")
        saver = self._get_saver()
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(
            export_meta_graph(saver_def=saver.saver_def if saver else None, graph=graph, collection_list=[])
        )
        self._save(session, global_step)
        self._timer.update_last_triggered_step(global_step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        # A step may count by any number: only where no step at all would trigger is the new value not asked for.
        if not self._timer.should_trigger_for_step(run_values.results + _ANY_STEP):
            return
        step = run_context.session.run(self._global_step_tensor)
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        last_step = session.run(self._global_step_tensor)
        if last_step != self._timer.last_triggered_step():
            self._save(session, last_step)
        for listener in self._listeners:
            listener.end(session, last_step)

    def _save(self, session: Any, step: Any) -> bool:
        """Save; returns whether a listener wants the training to end."""
        for listener in self._listeners:
            listener.before_save(session, step)
        log().info("saving the checkpoint of step %d as %s", step, self._save_path)
        self._get_saver().save(session, self._save_path, global_step=int(step), write_meta_graph=self._save_graph_def)
        self._summary_writer.add_session_log(
            event_pb2.SessionLog(status=event_pb2.SessionLog.CHECKPOINT, checkpoint_path=self._save_path), step
        )
        said = [listener.after_save(session, step) for listener in self._listeners]
        return any(said)  # every listener has been told, whatever the first one says

    def _get_saver(self) -> Any:
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        found = context.get_default_graph().get_collection("savers")
        if len(found) != 1:
            raise RuntimeError(
                f"the collection 'savers' holds {len(found)} savers, where CheckpointSaverHook looks for one; give it "
                "saver= or scaffold="
            )
        self._saver = found[0]
        return self._saver


class StepCounterHook(SessionRunHook):
    """Writes and logs global steps per second.

    Raises:
        ValueError: not one of `every_n_steps` and `every_n_secs` is given.
    """

    def __init__(
        self, every_n_steps: Any = 100, every_n_secs: Any = None, output_dir: Any = None, summary_writer: Any = None
    ):
        self._timer = SecondOrStepTimer(every_n_secs, every_n_steps)
        self._summary_writer, self._output_dir = summary_writer, output_dir
        self._before: Any = None
        self._warnings = 0

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._global_step_tensor = read_step_of(self)
        self._summary_tag = get_global_step().op.name + "/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        stale = run_values.results
        if self._timer.should_trigger_for_step(stale + 1):
            step = run_context.session.run(self._global_step_tensor)
            if self._timer.should_trigger_for_step(step):
                seconds, steps = self._timer.update_last_triggered_step(step)
                if seconds:
                    self._log_and_record(steps, seconds, step)
        if stale == self._before and self._warnings < 5:
            self._warnings += 1
            log().warning(
                "the global step is %s, as in the step before: unless something else counts it (SyncReplicasOptimizer "
                "does, when enough gradients are there), pass global_step=tf.train.get_global_step() to minimize or "
                "apply_gradients", stale,
            )  # fmt: skip
        self._before = stale

    def _log_and_record(self, elapsed_steps: Any, elapsed_time: Any, global_step: Any) -> None:
        rate = elapsed_steps / elapsed_time
        if self._summary_writer is not None:
            summary = summary_pb2.Summary()
            summary.value.add(tag=self._summary_tag, simple_value=rate)
            self._summary_writer.add_summary(summary, global_step)
        log().info("%s: %g", self._summary_tag, rate)


class SummarySaverHook(SessionRunHook):
    """Writes summaries every so many steps or seconds, those of the first step among them.

    Raises:
        ValueError: not one of `scaffold` and `summary_op` is given, or not one of `save_steps` and `save_secs`.
    """

    def __init__(
        self, save_steps: Any = None, save_secs: Any = None, output_dir: Any = None, summary_writer: Any = None,
        scaffold: Any = None, summary_op: Any = None,
    ):  # fmt: skip
        if (scaffold is None) == (summary_op is None):
            raise ValueError(
                f"give one of scaffold and summary_op, not {'none' if scaffold is None else 'both'} of them"
            )
        self._summary_op, self._scaffold = summary_op, scaffold
        self._summary_writer, self._output_dir = summary_writer, output_dir
        self._timer = SecondOrStepTimer(save_secs, save_steps)

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._next_step: Any = None
        self._global_step_tensor = read_step_of(self)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._due = self._next_step is None or self._timer.should_trigger_for_step(self._next_step)
        requests = {"global_step": self._global_step_tensor}
        summaries = self._summaries()
        if self._due and summaries is not None:
            requests["summary"] = summaries
        return SessionRunArgs(requests)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if not self._summary_writer:
            return
        step = run_values.results["global_step"] + 1
        if self._due:
            step = run_context.session.run(self._global_step_tensor)
        if self._next_step is None:
            self._summary_writer.add_session_log(event_pb2.SessionLog(status=event_pb2.SessionLog.START), step)
        if self._due:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results.get("summary", ()):
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: Any = None) -> None:
        if self._summary_writer:
            self._summary_writer.flush()

    def _summaries(self) -> list[Any] | None:
        found = self._summary_op if self._summary_op is not None else self._scaffold.summary_op
        return found if found is None or isinstance(found, list) else [found]


class ProfilerHook(SessionRunHook):
    """Traces a step every so many steps or seconds, and writes it as `timeline-STEP.json` for chrome://tracing."""

    def __init__(
        self, save_steps: Any = None, save_secs: Any = None, output_dir: str = "", show_dataflow: bool = True,
        show_memory: bool = False,
    ):  # fmt: skip
        self._output_file = os.path.join(output_dir, "timeline-{}.json")
        self._file_writer = FileWriterCache.get(output_dir)
        self._show_dataflow, self._show_memory = show_dataflow, show_memory
        self._timer = SecondOrStepTimer(save_secs, save_steps)

    def begin(self) -> None:
        self._next_step: Any = None
        self._global_step_tensor = read_step_of(self)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._due = self._next_step is not None and self._timer.should_trigger_for_step(self._next_step)
        options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE) if self._due else None
        return SessionRunArgs({"global_step": self._global_step_tensor}, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        from toolkit.tensorflow.families.platform.timeline import Timeline

        stale = run_values.results["global_step"]
        if self._next_step is None:
            self._timer.update_last_triggered_step(stale)
        step = stale + 1
        if self._due:
            step = run_context.session.run(self._global_step_tensor)
            self._timer.update_last_triggered_step(step)
            trace = Timeline(run_values.run_metadata.step_stats)
            with open(self._output_file.format(step), "w", encoding="utf-8") as file:
                file.write(trace.generate_chrome_trace_format(self._show_dataflow, self._show_memory))
            self._file_writer.add_run_metadata(run_values.run_metadata, f"step_{step}")
        self._next_step = step + 1
