"""Batch inference over all actors: results once, in order, whatever ends in between."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")

from commands.main import run as graphmill
from tests.cluster.ray.deadly_actor import DeadlyActor
from toolkit import errors
from toolkit import tensorflow as gm
from toolkit.cluster.ray.inference import pool as pools
from toolkit.runtime.shards.files import find_shards, is_pattern, split_feeds

ROWS = (7, 16, 3, 0, 12, 16)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """y = 2 x + b, and the step's number of rows."""
    file = tmp_path_factory.mktemp("model") / "double.pb"
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 4], name="x")
        b = gm.placeholder_with_default(gm.constant(1.0), [], name="b")
        gm.identity(x * 2.0 + b, name="y")
        file.write_bytes(graph.as_graph_def().SerializeToString())
    return str(file)


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A folder of shards with different numbers of rows, in files whose names are in their order."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for number, rows in enumerate(ROWS):
        np.savez(folder / f"part-{number}.npz", x=_rows(number, rows), other=np.zeros(3))
    return folder


def _rows(number: int, rows: int) -> Any:
    return np.arange(rows * 4, dtype=np.float32).reshape(rows, 4) + number


def infer(model: str, folder: Path, out: Path, *more: str) -> int:
    feed = ["--feed", f"x={folder}/*.npz"]
    return graphmill(["run", model, "--engine", "ray", *feed, "--fetch", "y", "--batch", "5", "--out", str(out), *more])


def results(out: Path) -> list[Any]:
    found = json.loads((out / "manifest.json").read_text())
    return [np.load(out / each["output"])["y"] for each in found["shards"]]


def are_right(out: Path, b: float = 1.0) -> None:
    for number, (rows, found) in enumerate(zip(ROWS, results(out), strict=True)):
        np.testing.assert_array_equal(found, _rows(number, rows) * 2 + b)


@pytest.fixture
def two_actors(tmp_path: Path) -> list[str]:
    cluster = tmp_path / "two.yaml"
    cluster.write_text("jobs: {worker: [{}, {}]}")
    return ["--cluster", str(cluster)]


def test_every_shard_has_its_results(
    ray_here: Any, model: str, shards: Path, tmp_path: Path, two_actors: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert infer(model, shards, out, *two_actors, "--feed", "b=3.0") == 0
    are_right(out, 3.0)
    told = json.loads((out / "manifest.json").read_text())
    assert [each["rows"] for each in told["shards"]] == list(ROWS)
    assert [each["name"] for each in told["shards"]] == [f"part-{n}" for n in range(len(ROWS))]
    assert sorted(each.name for each in out.iterdir()) == sorted(
        ["manifest.json", *(f"part-{n}.npz" for n in range(6))]
    )
    error = capsys.readouterr().err
    assert "6 of 6 shards" in error and f"6 shard(s) are in {out}" in error
    # what is complete is not computed again; what was lost, or has changed, is
    times = {each: (out / f"part-{each}.npz").stat().st_mtime_ns for each in range(6)}
    (out / "part-1.npz").unlink()
    (out / ".part-1.npz.0123456789ab.tmp").write_bytes(b"of a process that was ended")
    np.savez(shards / "part-4.npz", x=_rows(4, 12), other=np.ones(5))
    assert infer(model, shards, out, *two_actors, "--feed", "b=3.0") == 0
    assert "4 of 6 shards are complete already" in capsys.readouterr().err
    are_right(out, 3.0)
    assert len(list(out.iterdir())) == 7
    assert [n for n, time in times.items() if (out / f"part-{n}.npz").stat().st_mtime_ns != time] == [1, 4]
    # another run's folder is left alone
    assert infer(model, shards, out, *two_actors, "--feed", "b=4.0") == 2
    assert "the folder holds results of another run (feeds differ)" in capsys.readouterr().err


def test_a_shard_that_fails_is_named_and_the_others_are_there(
    ray_here: Any, model: str, shards: Path, tmp_path: Path, two_actors: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(shards / "part-2.npz", x=np.zeros((3, 5), np.float32))
    (shards / "part-5.npz").write_bytes(b"no archive")
    out = tmp_path / "out"
    assert infer(model, shards, out, *two_actors) == 2
    error = capsys.readouterr().err
    assert "2 of 6 shards failed; the first is part-2: " in error
    assert "shard part-5 failed: " in error and "part-5.npz" in error
    told = {each["name"]: each for each in json.loads((out / "manifest.json").read_text())["shards"]}
    assert "error" in told["part-2"] and "error" in told["part-5"] and "rows" not in told["part-2"]
    assert sorted(path.stem for path in out.glob("*.npz")) == ["part-0", "part-1", "part-3", "part-4"]
    # mended, they are all that is left to do
    for number in (2, 5):
        np.savez(shards / f"part-{number}.npz", x=_rows(number, ROWS[number]))
    assert infer(model, shards, out, *two_actors) == 0
    are_right(out)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--steps", "2"], "--steps has no meaning where --feed names many files"),
        (["--target", "y"], "--target has no meaning where --feed names many files"),
        (["--feed", "x=1"], "--feed: 'x' is fed twice"),
        (["--feed", "b=none/*.npy"], "--feed b: no file fits 'none/*.npy'"),
        (["--feed", "b=none/*.npzz"], "--feed b: no file fits 'none/*.npzz'"),
        (["--fetch", "z"], "--fetch: there is no node 'z' in the graph"),
        (["--feed", "q=1"], "--feed: there is nothing named 'q' to feed"),
    ],
)
def test_what_cannot_be(
    options: list[str], told: str, model: str, shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said before Ray is started, and nothing is written."""
    assert infer(model, shards, tmp_path / "out", *options) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_results_that_are_somebody_elses(
    model: str, shards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "part-1.npz").write_bytes(b"precious")
    assert infer(model, shards, out) == 2
    assert "'part-1.npz' is there and is no result of this run" in capsys.readouterr().err
    assert (out / "part-1.npz").read_bytes() == b"precious"
    assert graphmill(["run", model, "--engine", "ray", "--feed", f"x={shards}/*.npz", "--fetch", "y"]) == 2
    assert "results of many files are written to a folder: add --out DIR" in capsys.readouterr().err


def test_a_process_that_ends_costs_no_result(
    ray_here: Any, model: str, shards: Path, tmp_path: Path, two_actors: list[str], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """kill -9 of each actor once, as soon as it has been heard of."""
    killed: list[int] = []
    original = pools.ShardPool._answered

    def answered(self: Any, actor: Any, now: float) -> None:
        original(self, actor, now)
        if actor.ping is None and len(killed) < 2:
            process = ray_here.get(actor.handle.ping.options(concurrency_group="control").remote())
            killed.append(process)
            os.kill(process, signal.SIGKILL)

    monkeypatch.setattr(pools.ShardPool, "_answered", answered)
    assert infer(model, shards, tmp_path / "out", *two_actors) == 0
    assert len(set(killed)) == 2
    are_right(tmp_path / "out")
    assert "is tried again: " in capsys.readouterr().err


def test_a_shard_that_ends_every_process_has_failed(
    ray_here: Any, model: str, shards: Path, tmp_path: Path, two_actors: list[str], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(pools, "ShardActor", DeadlyActor)
    assert infer(model, shards, tmp_path / "out", *two_actors) == 3
    error = capsys.readouterr().err
    assert "1 of 6 shards failed; the first is part-2: 3 processes have ended while they ran it: " in error
    assert len(list((tmp_path / "out").glob("*.npz"))) == 5


def test_patterns() -> None:
    assert is_pattern("in/*.npz") and is_pattern("in/a?.npy") and is_pattern("in/*.npz:key") and is_pattern("[ab].csv")
    assert is_pattern("*.npzz") and not is_pattern("'*.npz'") and not is_pattern("[1.5, 2")
    assert not is_pattern("[[1, 2]]") and not is_pattern("x.npy") and not is_pattern("*") and not is_pattern("a*b")
    assert split_feeds(["x=*.npy", "b=[1]"]) == ({"x": "*.npy"}, {"b": "[1]"})
    with pytest.raises(errors.UsageError, match="--feed wants NAME=SOURCE"):
        split_feeds(["*.npy"])


def test_shards_of_several_feeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("in/a/x-1.npy", "in/b/x-1.npy", "in/b/x-2.npy", "y/1.npy", "y/2.npy", "y/3.npy", "z/1.npy"):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, np.zeros(1))
    found = find_shards({"x": "in/**/*.npy", "y": "y/*.npy"}, {"k": "0.5"})
    assert [each.name for each in found] == ["a/x-1", "b/x-1", "b/x-2"]
    assert found[1].feeds == {"k": "0.5", "x": "in/b/x-1.npy", "y": "y/2.npy"}
    assert found[1].files == ("in/b/x-1.npy", "y/2.npy")
    with pytest.raises(errors.UsageError, match="different numbers: 3 of 'x', 1 of 'z'"):
        find_shards({"x": "in/**/*.npy", "z": "z/*.npy"}, {})
    np.save("z/1.json.npy", np.zeros(1))
    Path("z/1.json").write_text("[1]")
    (Path("z") / "1.csv").write_text("1")
    with pytest.raises(errors.UsageError, match=r"'z/1.csv' and of 'z/1.json' would both be called '1'"):
        find_shards({"x": "z/1.[cj]s*"}, {})
