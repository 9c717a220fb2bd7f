"""The state file and the Saver's policies, as TensorFlow's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from toolkit.errors import FormatError, GraphmillError, NotFoundError
from toolkit.formats.bundle import latest_checkpoint, read_state, save, write_state
from toolkit.formats.bundle.folder import clean, plan_cleanup, relocate
from toolkit.formats.bundle.locate import find_prefix
from toolkit.formats.bundle.saver_policy import RetentionPolicy


def touch(prefix: Path, at: float = 0) -> str:
    save(prefix, {"step": np.array(1)})
    if at:
        os.utime(f"{prefix}.index", (at, at))
    return str(prefix)


@pytest.mark.tensorflow
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("times", [(), (1.5, 1700000000.1234567)])
def test_the_text_is_tensorflows(tf: ModuleType, tmp_path: Path, relative: bool, times: tuple[float, ...]) -> None:
    from tensorflow.python.checkpoint import checkpoint_management as management

    for folder in ("tf", "us"):
        (tmp_path / folder).mkdir()
    last = 3.25 if times else None
    paths = [str(tmp_path / "tf" / f"model-{i}") for i in (1, 2)]
    management.update_checkpoint_state_internal(
        str(tmp_path / "tf"), paths[-1], paths, None, relative, list(times) or None, last
    )
    ours = [path.replace("/tf/", "/us/") for path in paths]
    write_state(tmp_path / "us", ours[-1], ours, times, last, relative=relative)
    expected = (tmp_path / "tf" / "checkpoint").read_text().replace("/tf/", "/us/")
    assert (tmp_path / "us" / "checkpoint").read_text() == expected
    state = read_state(tmp_path / "us")
    assert state is not None
    assert state.latest == ours[-1] and state.all_paths == ours
    assert state.timestamps == list(times) and state.last_preserved == last


@pytest.mark.tensorflow
def test_relative_prefixes_are_relative_to_the_folder(
    tf: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("tf", "us"):
        touch(Path(folder) / "model-1")
    tf.compat.v1.train.update_checkpoint_state("tf", "tf/model-1")
    write_state("us", "us/model-1")
    assert Path("us/checkpoint").read_text() == Path("tf/checkpoint").read_text()
    assert latest_checkpoint("us") == "us/model-1" == tf.train.latest_checkpoint("us")
    monkeypatch.chdir("us")
    assert latest_checkpoint(".") == "model-1"


def test_state_files_that_are_no_state(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None and latest_checkpoint(tmp_path) is None
    (tmp_path / "checkpoint").write_text('modle_checkpoint_path: "x"')
    with pytest.raises(FormatError, match=r"checkpoint:1:1: not a checkpoint state file: .*modle_checkpoint_path"):
        read_state(tmp_path)
    (tmp_path / "checkpoint").write_bytes(b"\xff\xfe")
    with pytest.raises(FormatError):
        read_state(tmp_path)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "gone"')
    assert latest_checkpoint(tmp_path) is None
    with pytest.raises(NotFoundError, match=r"names '.*gone' as the latest"):
        find_prefix(tmp_path)
    (tmp_path / "checkpoint").write_text("")
    assert read_state(tmp_path) is None
    with pytest.raises(GraphmillError, match="2 timestamps for 1 checkpoint"):
        write_state(tmp_path, str(tmp_path / "a"), timestamps=[1, 2])
    with pytest.raises(GraphmillError, match="has the name of the state file"):
        write_state(tmp_path, str(tmp_path / "checkpoint"), relative=True)


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


@pytest.mark.tensorflow
@pytest.mark.parametrize("keep", [0, 1, 3])
@pytest.mark.parametrize("hours", [1.0, 2.5, 10000.0])
def test_policy_is_the_savers(
    tf: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: int, hours: float
) -> None:
    """Twelve saves, 40 minutes apart: the same checkpoints are left, and the same state file."""
    v1 = tf.compat.v1
    from tensorflow.python.training import saver as tf_saver

    clock = Clock()
    # Both the Saver and its bookkeeping of files look at the clock and at file times.
    monkeypatch.setattr(tf_saver.time, "time", clock)
    ours = RetentionPolicy(keep, hours, clock=clock)
    with tf.Graph().as_default(), v1.Session() as session:
        v1.get_variable("v", [], use_resource=False)
        session.run(v1.global_variables_initializer())
        theirs = v1.train.Saver(max_to_keep=keep, keep_checkpoint_every_n_hours=hours)
        for step in range(12):
            clock.now += 2400
            prefix = theirs.save(
                session, str(tmp_path / "tf" / "model"), global_step=step, write_meta_graph=step % 2 == 0
            )
            mine = tmp_path / "us" / f"model-{step}"
            mine.parent.mkdir(exist_ok=True)
            for file in Path(prefix).parent.glob(f"model-{step}.*"):
                shutil.copy(file, mine.parent / file.name)
            ours.saved(str(mine))
            names = [Path(path).name for path in ours.last_checkpoints]
            assert names == [Path(path).name for path in theirs.last_checkpoints]
            left, theirs_left = ({path.name for path in folder.iterdir()} for folder in (mine.parent, tmp_path / "tf"))
            assert left == theirs_left
            text = (tmp_path / "tf" / "checkpoint").read_text().replace("/tf/", "/us/")
            assert (mine.parent / "checkpoint").read_text() == text


@pytest.mark.tensorflow
def test_policy_is_the_checkpoint_managers(tf: ModuleType, tmp_path: Path) -> None:
    """What TensorFlow 2 writes, with timestamps, and reads back."""
    policy = RetentionPolicy(2, timestamps=True, relative=True)
    for step in range(4):
        policy.saved(touch(tmp_path / f"ckpt-{step}"))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(), str(tmp_path), max_to_keep=2)
    assert [Path(path).name for path in manager.checkpoints] == ["ckpt-2", "ckpt-3"]
    text = (tmp_path / "checkpoint").read_text()
    assert text.count("all_model_checkpoint_timestamps") == 2 and "last_preserved_timestamp" in text


def test_recovering(tmp_path: Path) -> None:
    policy = RetentionPolicy(2)
    policy.recover([touch(tmp_path / "m-1"), str(tmp_path / "m-2"), touch(tmp_path / "m-3")])
    assert [Path(p).name for p in policy.last_checkpoints] == ["m-1", "m-3"]
    assert policy.saved(touch(tmp_path / "m-4")) == [str(tmp_path / "m-1")]
    assert not list(tmp_path.glob("m-1*"))


def folder_of(tmp_path: Path, count: int) -> list[str]:
    hour = 3600
    prefixes = [touch(tmp_path / f"m-{i}", 1e9 + i * hour / 2) for i in range(count)]
    write_state(tmp_path, prefixes[-1], prefixes)
    return prefixes


def test_cleaning(tmp_path: Path) -> None:
    prefixes = folder_of(tmp_path, 10)
    plan = plan_cleanup(tmp_path, 3)
    assert plan.removed == prefixes[:7] and plan.kept == prefixes[7:] and plan.freed > 0
    assert len(list(tmp_path.glob("*.index"))) == 10
    clean(tmp_path, plan)
    assert sorted(path.name for path in tmp_path.glob("*.index")) == ["m-7.index", "m-8.index", "m-9.index"]
    state = read_state(tmp_path)
    assert state is not None and state.all_paths == prefixes[7:]


def test_cleaning_keeps_one_for_every_so_many_hours(tmp_path: Path) -> None:
    prefixes = folder_of(tmp_path, 10)
    plan = plan_cleanup(tmp_path, 2, keep_every_n_hours=2)
    assert plan.kept == [prefixes[0], prefixes[4], *prefixes[8:]]


def test_cleaning_spares_the_latest_and_other_names(tmp_path: Path) -> None:
    prefixes = folder_of(tmp_path, 4)
    write_state(tmp_path, prefixes[0], prefixes)
    other = touch(tmp_path / "best")
    plan = plan_cleanup(tmp_path, 1, name="m")
    assert plan.removed == prefixes[1:3] and other not in plan.removed
    with pytest.raises(GraphmillError, match="at least one checkpoint must stay"):
        plan_cleanup(tmp_path, 0)
    with pytest.raises(GraphmillError, match="no such folder"):
        plan_cleanup(tmp_path / "none", 1)


def test_cleaning_up_after_killed_writers(tmp_path: Path) -> None:
    folder_of(tmp_path, 2)
    old, new = (tmp_path / f"m-9.index.tempstate{i}-ab" for i in (1, 2))
    for path in (old, new):
        path.write_bytes(b"12345")
    os.utime(old, (1e9, 1e9))
    plan = plan_cleanup(tmp_path, 5)
    assert (plan.removed, plan.leftovers, plan.freed) == ([], [str(old)], 5)
    clean(tmp_path, plan)
    assert not old.exists() and new.exists()


def test_relocating(tmp_path: Path) -> None:
    old = tmp_path / "old"
    prefixes = folder_of(old, 2)
    touch(old / "sub" / "deep")
    write_state(old, prefixes[-1], [str(old / "sub" / "deep"), str(old / "gone"), *prefixes])
    new = tmp_path / "new"
    old.rename(new)
    assert latest_checkpoint(new) is None
    # What people want works all the same: the name beside the state file.
    assert find_prefix(new) == str(new / "m-1")
    moved = relocate(new)
    assert moved[0] == (prefixes[-1], "m-1")
    assert latest_checkpoint(new) == str(new / "m-1")
    state = read_state(new)
    assert state is not None and [Path(p).name for p in state.all_paths] == ["deep", "m-0", "m-1"]
    relocate(new, relative=False)
    assert str(new / "m-1") in (new / "checkpoint").read_text()
    shutil.rmtree(new / "sub")
    for path in new.glob("m-1*"):
        path.unlink()
    with pytest.raises(GraphmillError, match="is not in the folder"):
        relocate(new)
    with pytest.raises(GraphmillError, match="no checkpoint state file"):
        relocate(tmp_path)
