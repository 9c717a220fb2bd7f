"""Every checkpoint command on an object store; fsspec's store in memory stands for one."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import fsspec
import numpy as np
import pytest

from commands.checkpoint import COMMANDS
from commands.main import run
from tests.commands.checkpoint_cli import Cli
from tests.formats.bundle_cases import equal, small_checkpoint
from toolkit.errors import UsageError
from toolkit.formats.bundle import BundleReader, latest_checkpoint, open_checkpoint, save, write_state
from toolkit.formats.bundle.compare import EQUAL, compare
from toolkit.formats.bundle.locate import open_tensors
from toolkit.formats.bundle.object_graph import KEY
from toolkit.formats.bundle.transfer import convert
from toolkit.formats.models.model import read_model
from toolkit.runtime.saving.saver import Saver
from toolkit.runtime.session import Session

RUN = "memory://bucket/run"
NEW = "memory://bucket/new"


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A store with three checkpoints and a state file; nothing may be left in the folder for temporary files."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    system = fsspec.filesystem("memory")
    system.store.clear()
    small_checkpoint(tmp_path / "m-1", 2)
    for step in (1, 2, 3):
        convert(tmp_path / "m-1", f"{RUN}/m-{step}")
    write_state(RUN, f"{RUN}/m-3", [f"{RUN}/m-1", f"{RUN}/m-2"], relative=True)
    yield system
    system.store.clear()
    assert list(scratch.iterdir()) == []


def names(system: Any, stem: str) -> list[str]:
    return sorted(name.removeprefix("/bucket/") for name in system.store if name.startswith(f"/bucket/{stem}"))


def test_looking(cli: Cli, tmp_path: Path) -> None:
    assert f"6 tensors, 21 elements, 86 bytes (86 B) in 1 data file: {RUN}/m-3" in cli("inspect", RUN)
    assert "1.5" in cli("inspect", f"{RUN}/m-1", "--stats", "--only", "bias")
    assert "[ 1.5 -2. ]" in cli("inspect", f"{RUN}/m-1.index", "--values", "bias")
    assert "(all)" in cli("inspect", f"{RUN}/m-1", "--scopes")
    assert f"{RUN}/m-3: no findings in 6 tensors" in cli("verify", RUN)
    assert "6 tensors equal" in cli("diff", f"{RUN}/m-1", tmp_path / "m-1")
    assert cli("latest", RUN) == f"{RUN}/m-3\n"
    listed = json.loads(cli("list", RUN, "--json"))["checkpoints"]
    assert [item["prefix"] for item in listed] == [f"{RUN}/m-{step}" for step in (1, 2, 3)]
    assert [item["latest"] for item in listed] == [False, False, True] and listed[0]["bytes"] > 86
    assert listed[0]["time"] > 1e9


def test_findings(cli: Cli, store: Any) -> None:
    data = "/bucket/run/m-3.data-00000-of-00001"
    store.pipe_file(data, b"\1" + store.cat_file(data)[1:])
    assert "tensor 'bias' at offset 0: crc" in cli("verify", RUN, code=1)
    store.rm_file(data)
    assert f"missing data file: {RUN}/m-3.data-00000-of-00001" in cli("inspect", RUN, code=1)
    assert "is missing; it holds" in cli("verify", RUN, code=1)


@pytest.mark.parametrize("suffix", ["", ".npz", ".safetensors"])
def test_convert_there_and_back(cli: Cli, store: Any, tmp_path: Path, suffix: str) -> None:
    cli("convert", RUN, f"{NEW}/c{suffix}")
    assert names(store, "new/c") == ([f"new/c{suffix}"] if suffix else ["new/c.data-00000-of-00001", "new/c.index"])
    assert "6 tensors equal" in cli("diff", f"{NEW}/c{suffix}", f"{RUN}/m-1")
    cli("convert", f"{NEW}/c{suffix}", tmp_path / "back", "--shards", 3)
    assert "6 tensors equal" in cli("diff", tmp_path / "back", f"{RUN}/m-1")


def test_convert_to_v1(cli: Cli, store: Any) -> None:
    cli("convert", RUN, f"{NEW}/old", "--v1")
    assert names(store, "new") == ["new/old"]
    assert "no findings in 6 tensors" in cli("verify", f"{NEW}/old")
    assert f"{NEW}/old  V1" in cli("list", NEW)
    assert cli("latest", NEW) == f"{NEW}/old\n"
    assert open_checkpoint(f"{NEW}/old").read("step") == 7


def test_surgery(cli: Cli, store: Any, tmp_path: Path) -> None:
    prefix = f"{RUN}/m-1"
    cli("prune", prefix, "-o", f"{NEW}/pruned", "--drop", "step")
    assert "step" not in BundleReader(f"{NEW}/pruned")
    cli("rename", prefix, "bias=b", "-o", f"{NEW}/renamed")
    assert "b" in BundleReader(f"{NEW}/renamed")
    cli("rename", prefix, "--to-objects", "-o", f"{NEW}/objects")
    assert KEY in BundleReader(f"{NEW}/objects")
    cli("rename", f"{NEW}/objects", "--to-names", "-o", f"{NEW}/names")
    cli("rename", f"{NEW}/names", "--to-objects", "--like", f"{NEW}/objects", "-o", f"{NEW}/again")
    assert "7 tensors equal" in cli("diff", f"{NEW}/objects", f"{NEW}/again")
    cli("cast", prefix, "--to", "float16", "-o", f"{NEW}/half")
    assert BundleReader(f"{NEW}/half").entry("bias").dtype.name == "float16"
    cli("average", RUN, "--last", 2, "-o", f"{NEW}/averaged")
    cli("average", f"{RUN}/m-1", f"{RUN}/m-2", "-o", tmp_path / "averaged")
    assert "6 tensors equal" in cli("diff", f"{NEW}/averaged", tmp_path / "averaged")
    cli("slice", prefix, "part=1,2:-", "-o", f"{NEW}/sliced")
    assert BundleReader(f"{NEW}/sliced").read("part").shape == (2, 3)
    cli("slice", f"{NEW}/sliced", "--partition", "part", "--axis", 1, "--parts", 3, "-o", f"{NEW}/cut")
    assert len(BundleReader(f"{NEW}/cut").entry("part").slices) == 3
    cli("merge", prefix, "--shards", 3, "--join-parts", "-o", f"{NEW}/three")
    assert len(names(store, "new/three")) == 4
    assert "6 tensors equal" in cli("diff", f"{NEW}/three", prefix)


def test_import(cli: Cli, store: Any) -> None:
    stream = io.BytesIO()
    np.save(stream, np.array([5.0, 6.0]))
    store.pipe_file("/bucket/in/b.npy", stream.getvalue())
    stream = io.BytesIO()
    np.savez(stream, kernel=np.ones((4, 3), np.float32))
    store.pipe_file("/bucket/in/k.npz", stream.getvalue())
    sources = ["bias=memory://bucket/in/b.npy", "part=memory://bucket/in/k.npz:kernel", f"step={RUN}/m-2:step"]
    cli("import", f"{RUN}/m-1", *sources, "-o", f"{NEW}/m")
    with BundleReader(f"{NEW}/m") as reader:
        assert reader.read("bias").tolist() == [5, 6] and reader.read("part").sum() == 12
    assert "no such file" in cli("import", f"{RUN}/m-1", "bias=memory://bucket/none.npy", "-o", f"{NEW}/x", code=2)


@pytest.fixture
def trained(tf: ModuleType, tmp_path: Path) -> str:
    """A checkpoint of TensorFlow's with its .meta, in two data files."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", [3, 2], use_resource=False)
        v1.train.AdamOptimizer().minimize(tf.reduce_sum(w))
        session.run(v1.global_variables_initializer())
        return str(v1.train.Saver(sharded=True).save(session, str(tmp_path / "model")))


@pytest.mark.tensorflow
def test_with_a_graph(cli: Cli, trained: str) -> None:
    cli("convert", trained, f"{NEW}/model")
    assert "restores into" in cli("restore-check", f"{trained}.meta", f"{NEW}/model")
    assert "no findings" in cli("verify", f"{NEW}/model", "--graph", f"{trained}.meta")
    cli("prune", f"{NEW}/model", "--for", f"{trained}.meta", "-o", f"{NEW}/pruned")
    assert "5 tensors equal" in cli("diff", f"{NEW}/pruned", trained)
    cli("prune", f"{NEW}/model", "--slots", "-o", f"{NEW}/pruned")
    assert list(BundleReader(f"{NEW}/pruned")) == ["w"]
    assert "missing" in cli("restore-check", f"{trained}.meta", f"{NEW}/pruned", code=1)


def test_clean_and_relocate(cli: Cli, store: Any) -> None:
    assert cli("clean", RUN, "--max-to-keep", 1).splitlines()[:2] == [f"{RUN}/m-1", f"{RUN}/m-2"]
    assert len(names(store, "run/m-")) == 6
    assert "deleted 2 checkpoints" in cli("clean", RUN, "--max-to-keep", 1, "--yes")
    assert names(store, "run") == ["run/checkpoint", "run/m-3.data-00000-of-00001", "run/m-3.index"]
    assert b"m-2" not in store.cat_file("/bucket/run/checkpoint")
    store.pipe_file("/bucket/run/checkpoint", b'model_checkpoint_path: "/elsewhere/m-3"\n')
    assert cli("relocate", RUN) == "/elsewhere/m-3 -> m-3\n"
    assert latest_checkpoint(RUN) == f"{RUN}/m-3"
    assert cli("relocate", RUN, "--absolute") == f"m-3 -> {RUN}/m-3\n"
    assert latest_checkpoint(RUN) == f"{RUN}/m-3"


def test_errors(cli: Cli, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "did you mean 'm-3'" in cli("inspect", f"{RUN}/m-33", code=2)
    assert "there is no such folder" in cli("list", "memory://bucket/rum", code=2)
    assert "is a folder; give the checkpoint a name in it" in cli("convert", RUN, RUN, code=2)
    assert "pip install 'graphmill[remote]'" in cli("inspect", "s3://bucket/m", code=2)
    assert "no such kind of path" in cli("inspect", "nonsense://bucket/m", code=2)

    def fail(*args: Any, **options: Any) -> None:
        raise RuntimeError("network is down")

    before = names(store, "")
    for target in ("c", "c.npz", "c.safetensors"):
        with monkeypatch.context() as patch:
            patch.setattr(type(store), "put_file", fail)
            error = cli("convert", RUN, f"{NEW}/{target}", code=3)  # not the user's mistake
        assert error == f"graphmill: error: {error.split(': ')[2]}: the store failed: RuntimeError: network is down\n"
        assert names(store, "") == before


@pytest.mark.tensorflow
def test_saver_of_a_session(store: Any, trained: str) -> None:
    """A sharded Saver's data files, index, graph and state file, all in the store, rotated there."""
    meta = read_model(f"{trained}.meta").meta
    with Session(meta.graph) as session:
        saver = Saver(meta, max_to_keep=2)
        saver.restore(session, trained)
        for step in (1, 2, 3):
            saver.save(session, f"{NEW}/m", step)
        assert names(store, "new") == [
            "new/checkpoint",
            *(f"new/m-{step}{end}" for step in (2, 3) for end in (".data-00000-of-00001", ".index", ".meta")),
        ]
        assert saver.restore(session, NEW) == f"{NEW}/m-3"
        with pytest.raises(UsageError, match="the latest in"):
            saver.restore(session, f"{NEW}/m-9")
    assert not list(compare_unequal(trained, f"{NEW}/m-3"))


def test_training_goes_on_from_a_store(store: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs with a URL as their folder: what they save is rotated there, the next goes on from it, past a damaged one
    too, and the numbers are those of runs with a local folder."""
    spec = tmp_path / "net.yaml"
    spec.write_text(
        "seed: 3\n"
        "inputs: {x: {shape: [2, 2], default: [[1, 2], [3, 4]]}, y: {shape: [2, 1], default: [[1], [0]]}}\n"
        "nodes: [{layer: dense, name: d, units: 1, input: x}]\n"
        "loss: {type: mean_squared_error, name: loss, labels: y, predictions: d}\n"
        "optimizer: {type: adam, name: train, learning_rate: 0.1}\n"
        "saver: {max_to_keep: 2}\n"
    )
    model = str(tmp_path / "net.meta")
    assert run(["build", str(spec), "-o", model]) == 0

    def train(folder: str, steps: int) -> str:
        capsys.readouterr()
        line = ["run", model, "--target", "train", "--save-steps", "2", "--steps", str(steps)]
        assert run([*line, "--checkpoint-dir", folder]) == 0
        return capsys.readouterr().err

    for steps in (4, 8):
        told = train(NEW, steps)
        train(str(tmp_path / "local"), steps)
    assert f"restored {NEW}/model.ckpt-4 at step 4" in told and f"saved {NEW}/model.ckpt-8" in told
    assert [name for name in names(store, "new") if name.endswith(".index")] == [
        "new/model.ckpt-6.index",
        "new/model.ckpt-8.index",
    ]
    assert not list(compare_unequal(f"{NEW}/model.ckpt-8", str(tmp_path / "local" / "model.ckpt-8")))
    store.pipe_file("/bucket/new/model.ckpt-8.index", b"damaged")
    told = train(NEW, 10)
    assert f"cannot use the checkpoint {NEW}/model.ckpt-8" in told and f"restored {NEW}/model.ckpt-6" in told
    train(str(tmp_path / "local"), 10)
    assert not list(compare_unequal(f"{NEW}/model.ckpt-10", str(tmp_path / "local" / "model.ckpt-10")))


def compare_unequal(a: str, b: str) -> Iterator[str]:
    with BundleReader(a) as old, BundleReader(b) as new:
        yield from (d.name for d in compare(old, new) if d.status != EQUAL)


def test_all_commands_are_here() -> None:
    text = Path(__file__).read_text()
    assert all(f'"{name}"' in text for name in COMMANDS)


def test_v1_and_tensor_files_are_read_by_range(store: Any) -> None:
    save(f"{NEW}/m", {"w": np.arange(4, dtype="f4")})
    convert(f"{NEW}/m", f"{NEW}/m.npz")
    with open_tensors(f"{NEW}/m.npz") as reader:
        assert equal(reader.read("w"), np.arange(4, dtype="f4"))
