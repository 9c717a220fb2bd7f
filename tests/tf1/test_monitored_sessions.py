"""Monitored sessions and hooks are called, stop, save, write and recover as TensorFlow's do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tf1 import node_oracle
from tests.tf1.calls import separated
from toolkit import tensorflow as ours
from toolkit.formats.records.events import read_events

pytestmark = pytest.mark.tensorflow


def recorder(tf: Any, told: list[Any], **requests: Any) -> Any:
    """A hook that writes down how it is called."""

    class Recorder(tf.train.SessionRunHook):
        def begin(self) -> None:
            told.append(("begin", tf.get_default_graph().finalized))

        def after_create_session(self, session: Any, coord: Any) -> None:
            told.append(("created", session.graph.finalized, coord.should_stop(), sorted(_kept(tf))))

        def before_run(self, run_context: Any) -> Any:
            args = run_context.original_args
            told.append(("before", isinstance(args.fetches, dict), args.feed_dict is None, run_context.stop_requested))
            return tf.train.SessionRunArgs(**requests) if requests else None

        def after_run(self, run_context: Any, run_values: Any) -> None:
            results = run_values.results
            told.append(("after", None if results is None else int(results), type(run_values.options).__name__))

        def end(self, session: Any) -> None:
            told.append(("end", None if session is None else session.graph.finalized))

    return Recorder()


def _kept(tf: Any) -> list[str]:
    """The names of the default graph's collections that have members, but for those that only TensorFlow has."""
    graph = tf.get_default_graph()
    return [key for key in graph.get_all_collection_keys() if not key.startswith("__") and graph.get_collection(key)]


def counting(tf: Any) -> tuple[Any, Any]:
    """A graph that counts its steps and trains a variable."""
    step = tf.train.get_or_create_global_step()
    v = tf.get_variable("v", [2], initializer=tf.constant_initializer(0.5))
    loss = tf.reduce_sum(v * v)
    tf.summary.scalar("loss", loss)
    with tf.control_dependencies([loss]):  # else TensorFlow may compute it of the variable as it is afterwards
        return tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step), loss


def both(scenario: Any, tmp_path: Path) -> tuple[Any, Any]:
    """What a scenario gives in TensorFlow and here, each in a folder of its own."""
    found: list[Any] = []
    for name, tf in (("theirs", node_oracle.theirs()), ("ours", ours)):
        folder = tmp_path / name
        folder.mkdir()
        with node_oracle.semantics(), tf.Graph().as_default():
            found.append(scenario(tf, str(folder)))
    return found[0], found[1]


SCENARIOS = separated("""
with tf.train.MonitoredSession(hooks=[recorder(tf, told), tf.train.StopAtStepHook(num_steps=3)]) as session:
    while not session.should_stop():
        told.append(session.run({'train': train_op})['train'])
told.append((session.should_stop(), tf.get_default_graph().finalized))
---
hook = recorder(tf, told, fetches=tf.train.get_global_step())
with tf.train.SingularMonitoredSession(hooks=[tf.train.StopAtStepHook(last_step=2), hook]) as session:
    told.append(session.raw_session().run(loss).item())
    while not session.should_stop():
        told.append(round(float(session.run([loss, train_op])[0]), 5))
---
x = tf.placeholder(tf.float32, [])
hooks = [tf.train.FeedFnHook(lambda: {x: 3.0}), recorder(tf, told), tf.train.FinalOpsHook(loss * 2)]
y = x + 1
session = tf.train.MonitoredSession(hooks=hooks)
told.append(float(session.run(y)))
session.close()
told.append(float(hooks[2].final_ops_values))
---
with tf.train.MonitoredSession(hooks=[recorder(tf, told)]) as session:
    raise tf.errors.OutOfRangeError(None, None, 'the end')
---
try:
    with tf.train.MonitoredSession(hooks=[recorder(tf, told)]) as session:
        raise KeyError('mine')
except KeyError:
    told.append('raised')
---
with tf.train.MonitoredSession(hooks=[recorder(tf, told)]) as session:
    def step(step_context):
        told.append(float(step_context.session.run(loss)))
        step_context.run_with_hooks(train_op)
        step_context.request_stop()
    session.run_step_fn(step)
---
failures = [tf.errors.AbortedError(None, None, 'lost'), tf.errors.UnavailableError(None, None, 'lost')]
class Fails(tf.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        if failures:
            raise failures.pop()
session = tf.train.MonitoredTrainingSession(
    checkpoint_dir=folder, hooks=[recorder(tf, told), Fails(), tf.train.StopAtStepHook(2)],
    save_checkpoint_steps=1, save_summaries_steps=None, log_step_count_steps=None)
with session:
    while not session.should_stop():
        session.run(train_op)
        told.append('a step')
---
nan = tf.Variable(float('nan'))
hooks = [tf.train.NanTensorHook(nan, fail_on_nan_loss=False)]
with tf.train.MonitoredSession(hooks=hooks) as session:
    session.run(nan)
    told.append(session.should_stop())
---
q = tf.FIFOQueue(10, tf.int32)
tf.train.add_queue_runner(tf.train.QueueRunner(q, [q.enqueue_many([[1, 2, 3]]), ]))
x = q.dequeue()
with tf.train.MonitoredSession(hooks=[recorder(tf, told)]) as session:
    told.append(int(session.run(x)))
---
def initialize(scaffold, session):
    told.append(float(session.run(loss)))
scaffold = tf.train.Scaffold(init_fn=initialize, local_init_op=tf.no_op())
with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(scaffold)) as session:
    told.append(sorted(kept(tf)))
told.append([scaffold.init_op.name, scaffold.ready_op.name, scaffold.ready_for_local_init_op.name,
             scaffold.local_init_op.name, scaffold.summary_op.name])
told.append(tf.train.Scaffold(copy_from_scaffold=scaffold).summary_op is scaffold.summary_op)
---
timer = tf.train.SecondOrStepTimer(every_steps=3)
told += [(n, timer.should_trigger_for_step(n), timer.last_triggered_step()) for n in range(2)]
told.append(timer.update_last_triggered_step(1))
told += [(n, timer.should_trigger_for_step(n), timer.last_triggered_step()) for n in range(1, 6)]
told.append(timer.update_last_triggered_step(5)[1])
""")


@pytest.mark.parametrize("code", SCENARIOS)
def test_hooks_are_called_as_in_tensorflow(code: str, tmp_path: Path) -> None:
    def scenario(tf: Any, folder: str) -> list[Any]:
        told: list[Any] = []
        train_op, loss = counting(tf)
        names = {
            "tf": tf,
            "told": told,
            "recorder": recorder,
            "train_op": train_op,
            "loss": loss,
            "folder": folder,
            "kept": _kept,
        }
        exec(compile(code, "<scenario>", "exec"), names)
        return told

    theirs, here = both(scenario, tmp_path)
    assert here == theirs


def _kept_checkpoints(tf: Any, folder: str) -> list[str]:
    return [Path(path).name for path in tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths]


def events(folder: str) -> list[Any]:
    """What the event files of a folder hold, which go: kinds, steps, tags and values."""
    found: list[Any] = []
    for path in sorted(Path(folder).glob("events.*")):
        for event in read_events(str(path)):
            kind = event.WhichOneof("what")
            if kind == "summary":
                found += [
                    (event.step, v.tag, "" if "/sec" in v.tag else round(v.simple_value, 5))
                    for v in event.summary.value
                ]
            elif kind == "session_log":
                found.append((event.step, event.session_log.status, Path(event.session_log.checkpoint_path).name))
            else:
                found.append((event.step, kind))
        path.unlink()  # in the same second TensorFlow would write another one of this name
    return found


def test_an_interrupted_training_goes_on_and_writes_what_tensorflow_writes(tmp_path: Path) -> None:
    def scenario(tf: Any, folder: str) -> Any:
        told: list[Any] = []

        class Listener(tf.train.CheckpointSaverListener):
            def begin(self) -> None:
                told.append("begin")

            def before_save(self, session: Any, global_step_value: int) -> None:
                told.append(("before", int(global_step_value)))

            def after_save(self, session: Any, global_step_value: int) -> bool:
                told.append(("after", int(global_step_value)))
                return global_step_value == 8

            def end(self, session: Any, global_step_value: int) -> None:
                told.append(("end", int(global_step_value)))

        for last in (5, 12):
            with tf.Graph().as_default():
                train_op, loss = counting(tf)
                scaffold = tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=2))
                saves = tf.train.CheckpointSaverHook(
                    folder, save_steps=2, scaffold=scaffold, listeners=[Listener()], checkpoint_basename="m"
                )
                with tf.train.MonitoredTrainingSession(
                    checkpoint_dir=folder, scaffold=scaffold, hooks=[tf.train.StopAtStepHook(last_step=last)],
                    chief_only_hooks=[saves], save_checkpoint_secs=None, save_summaries_steps=2,
                    log_step_count_steps=3,
                ) as session:  # fmt: skip
                    while not session.should_stop():
                        told.append(round(float(session.run([train_op, loss])[1]), 5))
            tf.summary.FileWriterCache.clear()
            told.append(events(folder))
        return told, sorted(path.name for path in Path(folder).iterdir()), _kept_checkpoints(tf, folder)

    theirs, here = both(scenario, tmp_path)
    assert here[0] == theirs[0]
    assert here[1] == theirs[1]
    assert here[2] == theirs[2]


def test_profiles_are_traces(tmp_path: Path) -> None:
    import json

    with ours.Graph().as_default():
        train_op, _ = counting(ours)
        hook = ours.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path), show_memory=True)
        with ours.train.MonitoredSession(hooks=[hook]) as session:
            for _ in range(5):
                session.run(train_op)
    ours.summary.FileWriterCache.clear()
    made = sorted(path.name for path in tmp_path.glob("timeline-*"))
    assert made == ["timeline-2.json", "timeline-4.json"]
    events = json.loads((tmp_path / made[0]).read_text())["traceEvents"]
    assert {"M", "X", "s", "t", "C"} == {event["ph"] for event in events}
    assert any(event["args"].get("name") == "GradientDescent" for event in events if event["ph"] == "X")


def test_tensors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    import logging

    with ours.Graph().as_default(), caplog.at_level(logging.INFO, "tensorflow"):
        train_op, loss = counting(ours)
        named = ours.train.LoggingTensorHook({"b": loss, "a": loss.op.name}, every_n_iter=2)
        formatted = ours.train.LoggingTensorHook([loss], at_end=True, formatter=lambda _: "at the end")
        with ours.train.MonitoredSession(hooks=[named, formatted]) as session:
            for _ in range(3):
                session.run(train_op)
    lines = [
        record.getMessage()
        for record in caplog.records
        if "a = " in record.getMessage() or "end" in record.getMessage()
    ]
    assert lines[0] == "a = 0.5, b = 0.5"
    assert lines[1].startswith("a = 0.2048, b = 0.2048 (")
    assert lines[2:] == ["at the end"]


@pytest.mark.parametrize(
    ("code", "error", "line"),
    [
        ("tf.train.StopAtStepHook()", ValueError, "give one of num_steps and last_step, not none of them"),
        ("tf.train.SecondOrStepTimer(1, 1)", ValueError, "give one of every_secs and every_steps, not both of them"),
        ("tf.train.LoggingTensorHook([], 0)", ValueError, "every_n_iter must be positive, not 0"),
        ("tf.train.LoggingTensorHook([])", ValueError, "give every_n_iter or every_n_secs"),
        ("tf.train.SummarySaverHook(1)", ValueError, "give one of scaffold and summary_op, not none of them"),
        ("tf.train.StopAtStepHook(1).begin()", RuntimeError, "make it with tf.train.get_or_create_global_step()"),
        ("tf.train.Scaffold(copy_from_scaffold=1)", TypeError, "copy_from_scaffold is a Scaffold, not int"),
        ("tf.train.assert_global_step(tf.Variable(1.0))", TypeError, "has type"),
        ("tf.train.assert_global_step(tf.Variable([1]))", TypeError, "a scalar is needed"),
        ("tf.train.assert_global_step(1)", TypeError, "a global step is a variable or tensor, not int"),
        ("tf.train.MonitoredSession().run_step_fn(lambda x: 1)", ValueError, "takes one argument, step_context"),
        ("s = tf.train.MonitoredSession(); s.close(); s.run(1)", RuntimeError, "the monitored session is closed"),
        ("s = tf.train.MonitoredSession(); s.close(); s.close()", RuntimeError, "is closed already"),
        ("tf.train.SessionManager().prepare_session('')", RuntimeError, "give init_op, init_fn or local_init_op"),
        ("tf.train.SessionManager(ready_op=tf.constant(['v'])).prepare_session('', tf.no_op())", RuntimeError,
         "variables have no value after the init op"),
    ],
)  # fmt: skip
def test_mistakes_are_told(code: str, error: type[Exception], line: str) -> None:
    with ours.Graph().as_default(), pytest.raises(error, match=".*".join(line.split("*"))) as caught:
        exec(compile(code, "<mistake>", "exec"), {"tf": ours})
    assert "\n" not in str(caught.value)


def test_workers_wait_for_the_chief() -> None:
    tf = ours
    with tf.Graph().as_default():
        train_op, _ = counting(tf)
        worker = tf.train.SessionManager(
            ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=0, graph=tf.get_default_graph()
        )
        with pytest.raises(tf.errors.DeadlineExceededError, match="these variables have no value: global_step, v"):
            worker.wait_for_session("local://waits", max_wait_secs=-1)
        with tf.Session("local://waits") as chief:
            chief.run(tf.global_variables_initializer())
            chief.run(train_op)
            with worker.wait_for_session("local://waits") as session:
                assert session.run(tf.train.get_global_step()) == 1
        tf.Session.reset("local://waits")


def hooked(tf: Any, folder: Path) -> Any:
    from importlib import import_module

    home = tf.python.training if tf is ours else import_module("tensorflow.python.training")
    module = home.monitored_session if tf is ours else import_module(home.__name__ + ".monitored_session")
    told: list[Any] = []
    step, loss = counting(tf)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        inner = module._HookedSession(session, [recorder(tf, told, fetches=tf.train.get_global_step())])
        found = [round(float(inner.run(loss)), 5), inner.graph is session.graph, inner.should_stop()]
        inner.run(step)
    return found, told


def test_hooks_around_a_session_of_the_callers(tmp_path: Path) -> None:
    theirs, here = both(hooked, tmp_path)
    assert here == theirs
    assert [each[0] for each in here[1]] == ["before", "after"] * 2
