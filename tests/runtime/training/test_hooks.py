"""Hooks and monitored sessions against TensorFlow's: when they act, on which steps, in which order."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from toolkit.errors import (
    AbortedError,
    GraphmillError,
    InvalidArgumentError,
    OutOfRangeError,
    UnavailableError,
    UsageError,
)
from toolkit.formats.models.model import Model, read_model
from toolkit.formats.records.events import EventWriter, read_events
from toolkit.runtime.saving.saver import Saver
from toolkit.runtime.session import Session
from toolkit.runtime.training.hooks import Hook, RunArgs, RunContext
from toolkit.runtime.training.hooks.checkpoint import CheckpointSaverHook
from toolkit.runtime.training.hooks.feed import FeedFnHook, FinalOpsHook
from toolkit.runtime.training.hooks.logging import LoggingHook
from toolkit.runtime.training.hooks.profiler import ProfilerHook
from toolkit.runtime.training.hooks.stop import EarlyStoppingHook, NanGuardHook, StopAtStepHook
from toolkit.runtime.training.hooks.summary import StepCounterHook, SummarySaverHook
from toolkit.runtime.training.monitored import MonitoredSession
from toolkit.runtime.training.scaffold import Scaffold
from toolkit.runtime.training.session_manager import SessionManager

pytestmark = pytest.mark.tensorflow


class Twins:
    """`train` counts global_step up; `loss` is 10 - step, `root` the square root of 3 - step; `x` is fed."""

    def __init__(self, tf: ModuleType, folder: Path):
        from tensorflow.python.training import training_util

        self.v1 = v1 = tf.compat.v1
        self.tf = tf
        with tf.Graph().as_default() as self.graph:
            step = v1.train.get_or_create_global_step()
            x = v1.placeholder_with_default(np.float32(0), [], name="x")
            v1.identity(x * 2.0, name="twice")
            value = v1.cast(step, "float32")
            read = [v1.subtract(10.0, value, name="loss"), v1.sqrt(3.0 - value, name="root")]
            read += [v1.summary.merge([v1.summary.scalar("seen", value)], collections=[v1.GraphKeys.SUMMARY_OP])]
            # TensorFlow's hooks read the step in the step itself: before it is counted, not while
            read += [training_util._get_or_create_global_step_read(self.graph)]
            with v1.control_dependencies(read):  # what a step sees is the count before it
                v1.group(v1.assign_add(step, 1), name="train")
            v1.global_variables_initializer()
            saver = v1.train.Saver(max_to_keep=1000)
            v1.train.export_meta_graph(str(folder / "m.meta"), saver_def=saver.as_saver_def())
            v1.add_to_collection(v1.GraphKeys.SAVERS, saver)
        self.model: Model = read_model(str(folder / "m.meta"))

    def theirs(self, hooks: list[Any], steps: int, feed: Any = None) -> list[Any]:
        """Run `train` in TensorFlow's monitored session; the values of `loss`."""
        got: list[Any] = []
        with self.graph.as_default(), self.v1.train.SingularMonitoredSession(hooks=hooks) as session:
            while not session.should_stop() and len(got) < steps:
                got.append(session.run(["loss:0", "train"], feed)[0])
        return got

    def ours(self, hooks: list[Hook], steps: int, feed: Any = None) -> list[Any]:
        got: list[Any] = []
        scaffold = Scaffold.of(self.model.meta, Saver(self.model.meta, max_to_keep=0))
        manager = SessionManager(scaffold, lambda: Session(self.model), print)
        with MonitoredSession(scaffold, manager.prepare_session, hooks) as session:
            while not session.should_stop() and len(got) < steps:
                got.append(session.run(["loss:0", "train"], feed)[0])
        return got


@pytest.fixture(scope="module")
def twins(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Twins:
    return Twins(tf, tmp_path_factory.mktemp("twins"))


def numbers(folder: Path, pattern: str) -> list[int]:
    found = (re.fullmatch(pattern, path.name) for path in folder.iterdir())
    return sorted(int(match[1]) for match in found if match)


@pytest.mark.parametrize("steps", [1, 4, 7])
@pytest.mark.parametrize("every", [1, 2, 3, 10])
def test_checkpoints_are_saved_at_the_same_steps(twins: Twins, tmp_path: Path, every: int, steps: int) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    with twins.graph.as_default():
        hook = twins.v1.train.CheckpointSaverHook(str(a), save_steps=every)
    twins.theirs([hook], steps)
    twins.ours([CheckpointSaverHook(str(b), every_steps=every)], steps)
    pattern = r"model\.ckpt-(\d+)\.index"
    assert numbers(b, pattern) == numbers(a, pattern) != []


@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_timelines_are_written_at_the_same_steps(twins: Twins, tmp_path: Path, every: int) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.mkdir()
    with twins.graph.as_default():
        hook = twins.v1.train.ProfilerHook(save_steps=every, output_dir=str(a))
    twins.theirs([hook], 9)
    written: list[str] = []
    twins.ours([ProfilerHook(str(b), every_steps=every, written=written.append)], 9)
    assert numbers(b, r"timeline-(\d+)\.json") == numbers(a, r"timeline-(\d+)\.json") != []
    assert numbers(b, r"run_metadata-(\d+)\.pb") == numbers(b, r"timeline-(\d+)\.json")
    assert [Path(path).name for path in written] == [f"timeline-{n}.json" for n in numbers(b, r"timeline-(\d+)\.json")]
    metadata = twins.v1.RunMetadata()
    metadata.ParseFromString(next(b.glob("run_metadata-*.pb")).read_bytes())
    names = {node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats}
    assert "loss" in names


def event_steps(folder: Path, tag: str) -> list[int]:
    return [
        event.step
        for file in folder.iterdir()
        for event in read_events(str(file))
        if any(value.tag == tag for value in event.summary.value)
    ]


@pytest.mark.parametrize("every", [1, 2, 3, 10])
def test_summaries_and_speeds_are_written_at_the_same_steps(twins: Twins, tmp_path: Path, every: int) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    with twins.graph.as_default():
        theirs = [
            twins.v1.train.SummarySaverHook(
                save_steps=every, output_dir=str(a), summary_op=twins.graph.get_collection("summary_op")[0]
            ),
            twins.v1.train.StepCounterHook(every_n_steps=every, output_dir=str(a)),
        ]
    twins.theirs(theirs, 7)
    twins.v1.summary.FileWriterCache.clear()
    writer = EventWriter(str(b))
    twins.ours([SummarySaverHook(writer, every_steps=every), StepCounterHook(writer, every_steps=every)], 7)
    writer.close()
    assert event_steps(b, "seen") == event_steps(a, "seen") != []
    assert event_steps(b, "global_step/sec") == event_steps(a, "global_step/sec")


@pytest.mark.parametrize("limit", [{"num_steps": 3}, {"last_step": 4}])
def test_stopping_at_a_step(twins: Twins, limit: dict[str, int]) -> None:
    theirs = twins.theirs([twins.v1.train.StopAtStepHook(**limit)], 100)
    ours = twins.ours([StopAtStepHook(**limit)], 100)
    assert ours == theirs != []
    for wrong in ({}, {"num_steps": 1, "last_step": 1}):
        with pytest.raises(UsageError, match="either the step to stop at or a number"):
            StopAtStepHook(**wrong)


@pytest.mark.parametrize("fail", [True, False])
def test_nan_guard(twins: Twins, fail: bool) -> None:
    """root is NaN from step 4 on."""
    hook = twins.v1.train.NanTensorHook("root:0", fail_on_nan_loss=fail)
    if not fail:
        assert twins.ours([NanGuardHook("root:0", fail=False)], 20) == twins.theirs([hook], 20)
        return
    with pytest.raises(twins.v1.train.NanLossDuringTrainingError):
        twins.theirs([hook], 20)
    with pytest.raises(InvalidArgumentError, match="'root:0' is not finite at step 5"):
        twins.ours([NanGuardHook("root:0")], 20)


def test_feeding_and_final_operations(twins: Twins) -> None:
    fed = iter(range(1, 100))
    theirs_final = twins.v1.train.FinalOpsHook("twice:0", {"x:0": 4.0})
    theirs_seen: list[float] = []
    ours_seen: list[float] = []

    class TheirRecord(twins.v1.train.SessionRunHook):
        def before_run(self, run_context: Any) -> Any:
            return twins.v1.train.SessionRunArgs("twice:0")

        def after_run(self, run_context: Any, run_values: Any) -> None:
            theirs_seen.append(float(run_values.results))

    class Record(Hook):
        def before_run(self, run: RunContext) -> RunArgs:
            return RunArgs("twice:0")

        def after_run(self, run: RunContext, values: Any) -> None:
            ours_seen.append(float(values))

    twins.theirs([twins.v1.train.FeedFnHook(lambda: {"x:0": next(fed)}), TheirRecord(), theirs_final], 3)
    fed = iter(range(1, 100))
    final = FinalOpsHook("twice:0", {"x:0": 4.0})
    twins.ours([FeedFnHook(lambda: {"x:0": next(fed)}), Record(), final], 3)
    assert ours_seen == theirs_seen == [2.0, 4.0, 6.0]
    assert final.values == theirs_final.final_ops_values == 8.0


def test_two_feeds_of_one_tensor_are_refused(twins: Twins) -> None:
    hook = twins.v1.train.FeedFnHook(lambda: {"x:0": 1.0})
    with pytest.raises(RuntimeError):
        twins.theirs([hook], 1, {"x:0": 2.0})
    with pytest.raises(UsageError, match="a hook feeds 'x:0', which is fed already"):
        twins.ours([FeedFnHook(lambda: {"x:0": 1.0})], 1, {"x:0": 2.0})


# -- the order of calls, and what errors do ----------------------------------------------------------------


def their_recorder(twins: Twins, calls: list[str], trouble: Callable[[int], None]) -> Any:
    class Recorder(twins.v1.train.SessionRunHook):
        runs = 0

        def begin(self) -> None:
            calls.append("begin")

        def after_create_session(self, session: Any, coord: Any) -> None:
            calls.append("session")

        def before_run(self, run_context: Any) -> None:
            calls.append("before")

        def after_run(self, run_context: Any, run_values: Any) -> None:
            calls.append("after")
            self.runs += 1
            if self.runs == 5:
                run_context.request_stop()
            trouble(self.runs)

        def end(self, session: Any) -> None:
            calls.append("end")

    return Recorder()


def our_recorder(calls: list[str], trouble: Callable[[int], None]) -> Hook:
    class Recorder(Hook):
        runs = 0

        def begin(self, scaffold: Scaffold) -> None:
            calls.append("begin")

        def after_create_session(self, session: Session, step: int) -> None:
            calls.append("session")

        def before_run(self, run: RunContext) -> None:
            calls.append("before")

        def after_run(self, run: RunContext, values: Any) -> None:
            calls.append("after")
            self.runs += 1
            if self.runs == 5:
                run.request_stop()
            trouble(self.runs)

        def end(self, session: Session, step: int) -> None:
            calls.append("end")

    return Recorder()


@pytest.mark.parametrize("kind", ["none", "OutOfRange", "InvalidArgument", "Aborted", "Unavailable"])
def test_the_order_of_calls(twins: Twins, kind: str) -> None:
    """Trouble in the third step. OutOfRange is the normal end, Aborted and Unavailable make a new session."""
    errors = twins.tf.errors
    makes: dict[str, tuple[Callable[[], Exception], Callable[[], Exception]]] = {
        "OutOfRange": (lambda: errors.OutOfRangeError(None, None, "over"), lambda: OutOfRangeError("over")),
        "InvalidArgument": (
            lambda: errors.InvalidArgumentError(None, None, "bad"),
            lambda: InvalidArgumentError("bad"),
        ),
        "Aborted": (lambda: errors.AbortedError(None, None, "gone"), lambda: AbortedError("gone")),
        "Unavailable": (lambda: errors.UnavailableError(None, None, "gone"), lambda: UnavailableError("gone")),
    }

    def trouble(which: int) -> Callable[[int], None]:
        def at(run: int) -> None:
            if run == 3 and kind != "none":
                raise makes[kind][which]()

        return at

    outcomes: list[tuple[list[str], str, int]] = []
    for which in (0, 1):
        calls: list[str] = []
        done: list[Any] = []
        raised = ""
        try:
            if which == 0:
                hook = their_recorder(twins, calls, trouble(0))
                # SingularMonitoredSession does not recover; this one does
                with twins.graph.as_default(), twins.v1.train.MonitoredSession(hooks=[hook]) as session:
                    while not session.should_stop() and len(done) < 20:
                        done.append(session.run("train"))
            else:
                scaffold = Scaffold.of(twins.model.meta)
                manager = SessionManager(scaffold, lambda: Session(twins.model), print)
                ours = our_recorder(calls, trouble(1))
                with MonitoredSession(scaffold, manager.prepare_session, [ours]) as mine:
                    while not mine.should_stop() and len(done) < 20:
                        done.append(mine.run("train"))
        except (errors.OpError, GraphmillError) as error:
            raised = type(error).__name__
        outcomes.append((calls, raised, len(done)))
    assert outcomes[1] == outcomes[0]


# -- ours alone ------------------------------------------------------------------------------------------


def test_lines_of_the_logging_hook(twins: Twins) -> None:
    lines: list[str] = []
    twins.ours([LoggingHook({"loss": "loss:0"}, lines.append, every_steps=2, at_end=True)], 5)
    assert [line.split(",")[0] for line in lines] == ["step 2", "step 4", "step 5"]
    assert all(re.fullmatch(r"step \d, loss = \d+, \d+\.\d steps/s", line) for line in lines), lines
    lines.clear()
    twins.ours([LoggingHook({"loss": "loss:0"}, lines.append, every_steps=2)], 5)
    assert [line.split(",")[0] for line in lines] == ["step 2", "step 4"]


@pytest.mark.parametrize(
    ("values", "patience", "minimize", "steps"),
    [
        ([5, 4, 3, 3, 3, 3, 3], 2, True, 5),
        ([5, 4, 5, 3, 4, 5, 6], 2, True, 6),
        ([1, 2, 3, 2, 1, 0, 0], 3, False, 6),
        ([1, 2, 3, 4, 5, 6, 7], 1, False, 7),
    ],
)
def test_early_stopping(twins: Twins, values: list[float], patience: int, minimize: bool, steps: int) -> None:
    given = iter(values)
    hooks = [
        FeedFnHook(lambda: {"x:0": next(given)}),
        EarlyStoppingHook("twice:0", patience, minimize=minimize),
        StopAtStepHook(len(values)),
    ]
    assert len(twins.ours(hooks, 100)) == steps


def test_a_restored_session_is_not_saved_again(twins: Twins, tmp_path: Path) -> None:
    folder = str(tmp_path / "ckpt")
    written: list[str] = []

    def run(steps: int) -> None:
        scaffold = Scaffold.of(twins.model.meta)
        manager = SessionManager(scaffold, lambda: Session(twins.model), print)
        hook = CheckpointSaverHook(folder, every_steps=2, written=written.append)
        with MonitoredSession(scaffold, lambda: manager.prepare_session(folder), [hook]) as session:
            for _ in range(steps):
                session.run("train")

    run(3)
    assert [path.rpartition("-")[2] for path in written] == ["0", "2", "3"]
    written.clear()
    run(0)
    assert written == []
    run(3)
    assert [path.rpartition("-")[2] for path in written] == ["5", "6"]
