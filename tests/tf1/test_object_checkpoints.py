"""tf.train.Checkpoint: files that TensorFlow reads, and its files read here; folders that a manager keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from schemas.trackable_object_graph_pb2 import TrackableObjectGraph
from tests.client.client_programs import tf1_semantics
from toolkit import tensorflow as ours
from toolkit.formats import bundle
from toolkit.formats.bundle.object_graph import KEY


def objects(tf: Any, optimizer: str = "AdamOptimizer") -> tuple[Any, Any]:
    """A checkpoint of a module with variables of both kinds, a list, a mapping, an optimizer; its training step."""

    class Model(tf.Module):
        def __init__(self) -> None:
            super().__init__(name="m")  # pyright: ignore[reportUnknownMemberType]  # TensorFlow's, or ours
            self.w = tf.Variable([1.0, 2.0], use_resource=True, name="w")
            self._list = [tf.Variable(1.0, name="q"), 3]
            self.named = {"a/b.c": tf.Variable(2.0, use_resource=True, name="a")}

    model = Model()
    loss = tf.reduce_sum(model.w**2) * model._list[0] * model.named["a/b.c"]  # type: ignore[operator]
    chosen = getattr(tf.train, optimizer)(0.1)
    step = tf.train.get_or_create_global_step()
    train = chosen.minimize(loss, global_step=step)
    return tf.train.Checkpoint(model=model, optimizer=chosen, step=step), train


def saved(tf: Any, folder: Path, optimizer: str = "AdamOptimizer") -> tuple[str, dict[str, Any]]:
    """The prefix of a checkpoint after two steps, and what the variables held."""
    with tf.Graph().as_default(), tf.Session() as session:
        checkpoint, train = objects(tf, optimizer)
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(train)
        prefix = checkpoint.save(str(folder / "ck"), session=session)
        return prefix, {variable.op.name: session.run(variable) for variable in tf.global_variables()}


def restored(tf: Any, prefix: str, optimizer: str = "AdamOptimizer") -> dict[str, Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        checkpoint, _ = objects(tf, optimizer)
        status = checkpoint.restore(prefix)
        status.assert_consumed()
        status.initialize_or_restore(session)
        return {variable.op.name: session.run(variable) for variable in tf.global_variables()}


def message(prefix: str) -> TrackableObjectGraph:
    with bundle.open_checkpoint(prefix) as source:
        return TrackableObjectGraph.FromString(source.read(KEY).item())


@pytest.mark.tensorflow
@pytest.mark.parametrize("optimizer", ["AdamOptimizer", "RMSPropOptimizer", "GradientDescentOptimizer"])
def test_files_of_tensorflow_and_ours(tf: ModuleType, tmp_path: Path, optimizer: str) -> None:
    with tf1_semantics(tf):
        theirs, values = saved(tf.compat.v1, tmp_path / "theirs", optimizer)
    mine, own = saved(ours, tmp_path / "mine", optimizer)
    assert message(mine) == message(theirs)
    assert (tmp_path / "mine/checkpoint").read_text() == (tmp_path / "theirs/checkpoint").read_text()
    with tf1_semantics(tf):
        assert_same(restored(tf.compat.v1, mine, optimizer), own)
    assert_same(restored(ours, theirs, optimizer), values)


def assert_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_what_is_made_after_restore_is_restored_too(tmp_path: Path) -> None:
    tf = ours
    prefix, values = saved(tf, tmp_path)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        checkpoint = tf.train.Checkpoint()
        status = checkpoint.restore(prefix)
        other, _ = objects(tf)
        checkpoint.model, checkpoint.optimizer, checkpoint.step = other.model, other.optimizer, other.step
        graph.finalize()
        status.assert_consumed().expect_partial().run_restore_ops(session)
        assert_same({v.op.name: session.run(v) for v in tf.global_variables()}, values)


def test_layers_and_parts(tmp_path: Path) -> None:
    """A layer is restored into another program's, under the name that the checkpoint gives it; the rest starts anew."""
    tf = ours
    with tf.Graph().as_default(), tf.Session() as session:
        layer = tf.layers.Dense(2)
        layer(tf.ones([1, 3]))
        session.run(tf.global_variables_initializer())
        prefix = tf.train.Checkpoint(layers=[layer]).save(str(tmp_path / "ck"), session=session)
        wanted = session.run(layer.kernel)
    with bundle.open_checkpoint(prefix) as source:
        assert [name for name in source if name != KEY] == [
            f"{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in ("layers/0/bias", "layers/0/kernel", "save_counter")
        ]
    with tf.Graph().as_default(), tf.Session():
        layer, more = tf.layers.Dense(2, name="other"), tf.Variable(3.0)
        layer(tf.ones([1, 3]))
        status = tf.train.Checkpoint(layers=[layer], more=more).restore(prefix)
        with pytest.raises(AssertionError, match="has no values for 'Variable'"):
            status.assert_consumed()
        with pytest.raises(AssertionError, match="has no values for 'Variable'"):
            status.assert_existing_objects_matched()
        status.assert_nontrivial_match().initialize_or_restore()
        np.testing.assert_array_equal(layer.kernel.eval(), wanted)
        assert more.eval() == 3.0
        status = tf.train.Checkpoint(layers=[]).restore(prefix)
        with pytest.raises(AssertionError, match="values that no object takes: 'layers/0/"):
            status.assert_consumed()
        alone = tf.train.Checkpoint(other=layer).write(str(tmp_path / "alone"))
        with pytest.raises(AssertionError, match=r"nothing of .* fits"):
            tf.train.Checkpoint(layers=[layer]).restore(alone).assert_nontrivial_match()


def test_checkpoints_by_name(tmp_path: Path) -> None:
    tf = ours
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0], name="v")
        session.run(v.initializer)
        prefix = tf.train.Saver().save(session, str(tmp_path / "named"))
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([0.0, 0.0], name="v")
        checkpoint = tf.train.Checkpoint(anything=v)
        checkpoint.restore(prefix).initialize_or_restore(session)
        np.testing.assert_array_equal(session.run(v), [1.0, 2.0])


def test_without_slots_and_callbacks(tmp_path: Path) -> None:
    tf = ours
    prefix, values = saved(tf, tmp_path)
    seen: list[Any] = []
    with tf.Graph().as_default(), tf.Session() as session:
        checkpoint, _ = objects(tf)
        options = tf.train.CheckpointOptions(
            experimental_skip_slot_variables=True, experimental_write_callbacks=[seen.append, lambda: seen.append(1)]
        )
        checkpoint._loading(prefix, options).initialize_or_restore(session)
        found = {v.op.name: session.run(v) for v in tf.global_variables()}
        assert found["w"].tolist() == values["w"].tolist()
        assert found["w/Adam"].tolist() == [0.0, 0.0]
        checkpoint.write(str(tmp_path / "again"), session, options)
    assert seen == [str(tmp_path / "again"), 1]
    with pytest.raises(AssertionError, match="a callback is a function of the path"):
        tf.train.CheckpointOptions(experimental_write_callbacks=[3])


def test_python_state(tmp_path: Path) -> None:
    tf = ours

    class Count(tf.train.experimental.PythonState):
        value = 7

        def serialize(self) -> str:
            return str(self.value)

        def deserialize(self, string_value: bytes) -> None:
            self.value = int(string_value)

    with tf.Graph().as_default(), tf.Session() as session:
        count, v = Count(), tf.Variable(1.0)
        session.run(v.initializer)
        checkpoint = tf.train.Checkpoint(count=count, v=v)
        prefix = checkpoint.write(str(tmp_path / "ck"), session)
        count.value = 0
        checkpoint.restore(prefix).run_restore_ops(session)
        assert count.value == 7


def managed(tf: Any, folder: Path) -> list[Any]:
    """What a manager says, and what is in its folder, as it goes."""
    seen: list[Any] = []

    def look(what: Any, manager: Any) -> None:
        named = [Path(each).name for each in manager.checkpoints]
        state = tf.train.get_checkpoint_state(str(folder))
        listed = [] if state is None else [Path(each).name for each in state.all_model_checkpoint_paths]
        files = sorted(path.name for path in folder.glob("*")) if folder.exists() else []
        seen.append([what and Path(what).name, named, listed, files])

    for _ in range(2):  # the second takes over what the first has left
        with tf.Graph().as_default(), tf.Session() as session:
            checkpoint, train = objects(tf)
            manager = tf.train.CheckpointManager(
                checkpoint, str(folder), 2, checkpoint_name="model", step_counter=checkpoint.step, checkpoint_interval=2
            )
            session.run(tf.global_variables_initializer())
            if manager.latest_checkpoint:
                checkpoint.restore(manager.latest_checkpoint).run_restore_ops(session)
            look(None, manager)
            for number in (None, None, None, 9):
                session.run(train)
                look(manager.save(number), manager)
            look(manager.save(check_interval=False), manager)
            seen.append(session.run(checkpoint.save_counter))
            seen.append([Path(manager.directory).name, manager.checkpoint_interval, manager.checkpoint is checkpoint])
    return seen


@pytest.mark.tensorflow
def test_managers_keep_the_same_files(tf: ModuleType, tmp_path: Path) -> None:
    with tf1_semantics(tf):
        wanted = managed(tf.compat.v1, tmp_path / "theirs" / "ck")
    assert managed(ours, tmp_path / "ours" / "ck") == wanted


def test_managers_restore_or_initialize(tmp_path: Path) -> None:
    tf, called = ours, list[int]()
    with tf.Graph().as_default(), tf.Session() as session:
        checkpoint, train = objects(tf)
        manager = tf.train.CheckpointManager(checkpoint, tmp_path, None, init_fn=lambda: called.append(1))
        assert manager.restore_or_initialize() is None
        assert called == [1]
        session.run(tf.global_variables_initializer())
        session.run(train)
        prefix = manager.save()
        manager.sync()
        session.run(train)
        assert manager.restore_or_initialize() == prefix
        assert session.run(checkpoint.step) == 1


def test_one_for_every_so_many_hours_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tf = ours
    from toolkit.tensorflow.families.train import object_checkpoints

    now = iter(range(0, 100_000, 2000))
    monkeypatch.setattr(object_checkpoints.time, "time", lambda: float(next(now)))
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(1.0)
        session.run(v.initializer)
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), tmp_path, 1, keep_checkpoint_every_n_hours=1)
        for _ in range(5):
            manager.save()
        assert [Path(each).name for each in manager.checkpoints] == ["ckpt-5"]
    # saved at 2000, 4000, ... seconds: the second and the fourth come an hour behind the last that stayed
    assert sorted(path.stem for path in tmp_path.glob("*.index")) == ["ckpt-2", "ckpt-4", "ckpt-5"]


def _restore(tf: Any, folder: Path, value: Any) -> None:
    with tf.Session() as session:
        v = tf.Variable([1.0])
        session.run(v.initializer)
        prefix = tf.train.Checkpoint(v=v).write(str(folder / "ck"), session)
        tf.train.Checkpoint(v=tf.Variable(value)).restore(prefix).run_restore_ops(session)


MISTAKES: dict[str, tuple[Callable[[Any, Path], Any], type[Exception], str]] = {
    "number": (lambda tf, _: tf.train.Checkpoint(v=3), ValueError, "v: expected a variable, module.* got 3"),
    "object": (lambda tf, _: tf.train.Checkpoint(v=object()), ValueError, "v: expected a variable"),
    "no session": (lambda tf, f: tf.train.Checkpoint(v=tf.Variable(1.0)).save(str(f)), ValueError, "needs a session"),
    "absent": (lambda tf, f: tf.train.Checkpoint().restore(str(f / "x")), Exception, "there is no such checkpoint"),
    "none": (lambda tf, _: tf.train.Checkpoint().restore(None).assert_consumed(), AssertionError, "save_path is None"),
    "none, run": (lambda tf, _: tf.train.Checkpoint().restore(None).run_restore_ops(), AssertionError, "is None"),
    "type": (lambda tf, f: _restore(tf, f, [1]), Exception, "'Variable_1' is int32 of shape .1., but 'v/.* is float32"),
    "shape": (lambda tf, f: _restore(tf, f, [1.0, 2.0]), Exception, r"float32 of shape \[2\], but .* of shape \[1\]"),
    "to keep": (
        lambda tf, f: tf.train.CheckpointManager(tf.train.Checkpoint(), f, 0), ValueError, "max_to_keep: expected",
    ),
    "interval": (
        lambda tf, f: tf.train.CheckpointManager(tf.train.Checkpoint(), f, 1, checkpoint_interval=2),
        ValueError, "needs step_counter",
    ),
    "manager without a session": (
        lambda tf, f: tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), f, 1).save(),
        ValueError, "save needs a session",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str, tmp_path: Path) -> None:
    make, kind, text = MISTAKES[name]
    with ours.Graph().as_default(), pytest.raises(kind, match=text):
        make(ours, tmp_path)
