"""Checkpoints in an object store; fsspec's store in memory stands for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import fsspec
import numpy as np
import pytest

from commands.main import run
from tests.formats.bundle_cases import equal, small_checkpoint
from toolkit.errors import DataLossError, NotFoundError, UnavailableError, UsageError
from toolkit.formats.bundle import BundleReader, BundleWriter, latest_checkpoint, restore, save, write_state
from toolkit.formats.bundle.check import check
from toolkit.formats.bundle.locate import find_prefix, in_folder, open_tensors
from toolkit.formats.bundle.transfer import convert

FOLDER = "memory://bucket/run"


@pytest.fixture(autouse=True)
def store() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


def test_there_and_back(tmp_path: Path, store: Any) -> None:
    tensors = small_checkpoint(tmp_path / "local", 2)
    convert(tmp_path / "local", f"{FOLDER}/m-1")
    assert sorted(store.store) == ["/bucket/run/m-1.data-00000-of-00001", "/bucket/run/m-1.index"]
    with BundleReader(f"{FOLDER}/m-1") as reader:
        for name, array in tensors.items():
            assert equal(reader.read(name), array), name
    assert check(f"{FOLDER}/m-1").findings == []
    convert(f"{FOLDER}/m-1", tmp_path / "back")
    assert restore(tmp_path / "back", ["step"])[0] == 7


def test_folders_and_states(store: Any) -> None:
    for step in (1, 2):
        save(f"{FOLDER}/m-{step}", {"w": np.float32(step)})
    assert in_folder(FOLDER) == ["m-1", "m-2"]
    assert latest_checkpoint(FOLDER) is None
    write_state(FOLDER, f"{FOLDER}/m-2", [f"{FOLDER}/m-1"], relative=True)
    assert b'model_checkpoint_path: "m-2"' in store.cat_file("/bucket/run/checkpoint")
    assert latest_checkpoint(FOLDER) == f"{FOLDER}/m-2" == find_prefix(FOLDER)
    write_state(FOLDER, f"{FOLDER}/m-1", ["memory://bucket/other/m-0"])
    assert latest_checkpoint(FOLDER) == f"{FOLDER}/m-1"
    text = store.cat_file("/bucket/run/checkpoint").decode()
    assert 'model_checkpoint_path: "m-1"' in text and '"memory://bucket/other/m-0"' in text


@pytest.mark.tensorflow
def test_tensorflow_reads_states_of_urls(tf: ModuleType, tmp_path: Path) -> None:
    """Folders of file:// URLs are created, and what is written there TensorFlow finds by the same URL."""
    folder = f"file://{tmp_path}/new/deep"
    save(f"{folder}/m-1", {"w": np.arange(3, dtype="f4")})
    write_state(folder, f"{folder}/m-1")
    latest = tf.train.latest_checkpoint(folder)
    assert latest == f"{folder}/m-1" == latest_checkpoint(folder)
    assert tf.train.load_checkpoint(latest).get_tensor("w").tolist() == [0, 1, 2]
    convert(f"{folder}/m-1", f"file://{tmp_path}/other/w.npz")
    assert np.load(tmp_path / "other" / "w.npz")["w"].tolist() == [0, 1, 2]


def test_nothing_is_uploaded_when_a_block_raises(store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(KeyError), BundleWriter(f"{FOLDER}/m") as writer:
        writer.add("a", np.zeros(3))
        raise KeyError
    assert not store.store and not list(tmp_path.iterdir())
    save(f"{FOLDER}/m", {"a": np.zeros(3)})
    assert not list(tmp_path.iterdir())


def test_a_failing_upload_leaves_no_index(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    save(f"{FOLDER}/m", {"a": np.zeros(3)})

    def fail(*args: Any, **options: Any) -> None:
        raise RuntimeError("network is down")

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "put_file", fail)
        with pytest.raises(UnavailableError, match="the store failed: RuntimeError: network is down"):
            save(f"{FOLDER}/m", {"a": np.ones(3)})
    with pytest.raises(NotFoundError):
        BundleReader(f"{FOLDER}/m")


def test_errors(store: Any) -> None:
    save(f"{FOLDER}/m-1", {"a": np.zeros(3)})
    with pytest.raises(NotFoundError, match="did you mean 'm-1'"):
        BundleReader(f"{FOLDER}/m-2")
    data = "/bucket/run/m-1.data-00000-of-00001"
    store.pipe_file(data, b"\1" + bytes(23))
    assert [finding.kind for finding in check(f"{FOLDER}/m-1").findings] == ["crc"]
    store.pipe_file(data, bytes(5))
    with pytest.raises(DataLossError, match="truncated"):
        BundleReader(f"{FOLDER}/m-1").read("a")
    with pytest.raises(UsageError, match="no such kind of path"):
        BundleReader("nonsense://x/y")
    with pytest.raises(UsageError, match=r"need fsspec and its package for s3: pip install 'graphmill\[remote\]'"):
        BundleReader("s3://bucket/x")
    for name in ("a.npz", "a.safetensors", "v1"):
        with pytest.raises(NotFoundError):
            open_tensors(f"{FOLDER}/{name}")


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_checkpoint(tmp_path / "local")
    assert run(["checkpoint", "prune", str(tmp_path / "local"), "-o", f"{FOLDER}/p", "--drop", "step"]) == 0
    assert run(["checkpoint", "verify", FOLDER]) == 0
    assert "no findings in 5 tensors" in capsys.readouterr().out
