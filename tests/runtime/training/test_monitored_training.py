"""The chief and the workers that wait for it, beside TensorFlow's MonitoredTrainingSession on a local server."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.patience import HUNG
from toolkit.errors import DeadlineExceededError, FailedPreconditionError, UsageError
from toolkit.formats import bundle
from toolkit.formats.models.model import Model, read_model
from toolkit.formats.records.events import read_events
from toolkit.runtime.session import Session
from toolkit.runtime.steps.resources import shared_resources
from toolkit.runtime.training.hooks import Hook
from toolkit.runtime.training.monitored_training import MonitoredTrainingSession
from toolkit.runtime.training.scaffold import Scaffold
from toolkit.runtime.training.session_manager import SessionManager

pytestmark = pytest.mark.tensorflow
_targets = (f"local://training{number}" for number in itertools.count())


def graph(tf: ModuleType, *, ready_ops: bool = False) -> Any:
    v1 = tf.compat.v1
    with tf.Graph().as_default() as made:
        step = v1.train.get_or_create_global_step()
        w = v1.get_variable("w", initializer=np.float32(8), use_resource=True)
        local = v1.get_variable("seen", initializer=w * 2.0, collections=[v1.GraphKeys.LOCAL_VARIABLES])
        for name, variable in (("local", local), ("step_now", step), ("w_now", w)):
            v1.identity(variable, name=name)
        v1.summary.merge([v1.summary.scalar("shown", w)], collections=[v1.GraphKeys.SUMMARY_OP])
        with v1.control_dependencies([w.assign(w * 0.5)]):
            v1.group(v1.assign_add(step, 1), name="train")
        v1.add_to_collection(v1.GraphKeys.SAVERS, v1.train.Saver())
        if ready_ops:
            v1.train.Scaffold().finalize()
    return made


def meta_model(tf: ModuleType, made: Any, folder: Path) -> Model:
    with made.as_default():
        saver = made.get_collection("savers")[0]
        tf.compat.v1.train.export_meta_graph(str(folder / "m.meta"), saver_def=saver.as_saver_def(), graph=made)
    return read_model(str(folder / "m.meta"))


@pytest.fixture
def model(tf: ModuleType, tmp_path: Path) -> Model:
    return meta_model(tf, graph(tf), tmp_path)


def play(make: Callable[[bool], Any], step_of: Callable[[Any], int]) -> list[Any]:
    """A worker that comes before its chief; both train; what can be seen of it."""
    seen: list[Any] = []
    made: list[Any] = []
    worker_ready = threading.Event()

    def worker() -> None:
        session = make(False)
        made.append(session)
        worker_ready.set()

    thread = threading.Thread(target=worker, daemon=True)
    thread.start()
    seen.append(("worker alone is ready", worker_ready.wait(0.4)))
    with make(True) as chief:
        seen.append(("worker is ready", worker_ready.wait(HUNG)))
        thread.join(HUNG)
        other = made[0]
        for session in (chief, other, chief):
            session.run("train")
        seen.append(("steps", step_of(other)))
        seen.append(("w", float(other.run("w_now:0"))))
        other.close()
        chief.run("train")  # a worker that ends takes nothing with it
        seen.append(("w after the worker", float(chief.run("w_now:0"))))
    return seen


def test_a_worker_waits_for_its_chief(tf: ModuleType, model: Model) -> None:
    v1 = tf.compat.v1
    theirs_graph = graph(tf)
    server = v1.train.Server.create_local_server()

    with theirs_graph.as_default():
        scaffold = v1.train.Scaffold().finalize()  # once: both creators take the same operations

    def theirs(is_chief: bool) -> Any:
        make: Any = v1.train.ChiefSessionCreator if is_chief else v1.train.WorkerSessionCreator
        creator = make(scaffold, master=server.target)
        if not is_chief:  # its own one looks every 30 seconds
            creator._session_manager = v1.train.SessionManager(
                local_init_op=scaffold.local_init_op,
                ready_op=scaffold.ready_op,
                ready_for_local_init_op=scaffold.ready_for_local_init_op,
                graph=theirs_graph,
                recovery_wait_secs=0.1,
            )
        with theirs_graph.as_default():
            return v1.train.MonitoredSession(creator)

    target = next(_targets)

    def ours(is_chief: bool) -> Any:
        return MonitoredTrainingSession(model.meta, target=target, is_chief=is_chief, max_wait_secs=60)

    wanted = play(theirs, lambda session: int(session.run("step_now:0")))
    got = play(ours, lambda session: int(session.run("step_now:0")))
    assert got == wanted
    assert ("worker alone is ready", False) in got and ("steps", 3) in got


def test_only_the_chief_writes(model: Model, tmp_path: Path) -> None:
    folder, target = tmp_path / "ckpt", next(_targets)
    calls: list[str] = []

    class Tell(Hook):
        def __init__(self, name: str):
            self.name = name

        def begin(self, scaffold: Scaffold) -> None:
            calls.append(self.name)

    def make(is_chief: bool) -> MonitoredTrainingSession:
        return MonitoredTrainingSession(
            model.meta, target=target, is_chief=is_chief, checkpoint_dir=str(folder), save_steps=2, summary_steps=2,
            hooks=[Tell("all")], chief_only_hooks=[Tell("chief")],
        )  # fmt: skip

    with make(True) as chief:
        before = sorted(path.name for path in folder.iterdir())
        with make(False) as worker:
            for _ in range(4):
                worker.run("train")
            assert float(worker.run("local:0")) == 16.0  # local variables come from the worker's own local init
        assert sorted(path.name for path in folder.iterdir()) == before
        chief.run("train")
    assert calls == ["all", "chief", "all"]
    latest = bundle.latest_checkpoint(folder)
    assert latest is not None and latest.endswith("-5")
    events = [event for file in folder.glob("*tfevents*") for event in read_events(str(file))]
    assert any(value.tag == "shown" for event in events for value in event.summary.value)
    shared_resources(target).clear()
    with make(True) as chief:  # a new cluster goes on where the old one was saved
        assert chief.step == 5 and chief.restored == latest


def test_a_worker_waits_only_so_long(model: Model) -> None:
    with pytest.raises(DeadlineExceededError, match=r"waited 0\.2 s for the chief .*: global_step, w"):
        MonitoredTrainingSession(model.meta, target=next(_targets), is_chief=False, max_wait_secs=0.2)


def test_ready_operations_of_the_graph_are_asked(tf: ModuleType, tmp_path: Path) -> None:
    """TensorFlow's Scaffold leaves them in collections."""
    model = meta_model(tf, graph(tf, ready_ops=True), tmp_path)
    scaffold = Scaffold.of(model.meta)
    assert scaffold.ready is not None and scaffold.ready_for_local_init is not None
    session = Session(model)
    assert sorted(scaffold.uninitialized(session)) == ["global_step", "seen", "w"]
    assert sorted(scaffold.uninitialized_for_local_init(session)) == ["global_step", "w"]
    ready, _ = SessionManager(scaffold, lambda: Session(model), print).prepare_session()
    assert scaffold.uninitialized(ready) == [] and float(ready.run("local:0")) == 16.0


def test_mistakes(model: Model, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="either save_steps or save_secs"):
        MonitoredTrainingSession(model.meta, checkpoint_dir=str(tmp_path), save_steps=1, save_secs=1)
    with MonitoredTrainingSession(model.meta, checkpoint_dir=str(tmp_path / "a"), save_steps=0) as session:
        session.run("train")
    assert bundle.latest_checkpoint(tmp_path / "a") is None
    with pytest.raises(FailedPreconditionError), Session(model) as session:
        session.run("train")
