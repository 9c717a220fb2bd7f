"""graphmill partition."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
import yaml

from commands.main import run
from tests.passes.graphs import random_dag, structure
from toolkit.formats.model import from_graph, from_meta_graph, read_model, write_model
from toolkit.formats.partitions import read_partitions
from toolkit.graph import dtypes
from toolkit.graph.metagraph import MetaGraph, Signature, TensorInfo
from toolkit.graph.shape import Shape
from toolkit.passes.partition import join

DEVICES = [f"/job:worker/replica:0/task:{t}/device:CPU:{i}" for t in range(2) for i in range(2)]


@pytest.fixture
def model(tmp_path: Path) -> str:
    graph = random_dag(random.Random(7), 20, DEVICES)
    info = TensorInfo("x:0", dtypes.float32, Shape([2]))
    meta = MetaGraph(graph, {"s": Signature({"in": info}, {"out": info})}, {"train_op": ["x"]})
    write_model(from_meta_graph(meta), tmp_path / "m.meta")
    return str(tmp_path / "m.meta")


@pytest.mark.parametrize(("by", "count"), [("task", 2), ("device", 4)])
def test_folder(model: str, tmp_path: Path, by: str, count: int, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "parts"
    assert run(["partition", model, "--by", by, "-o", str(folder), "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    listing = yaml.safe_load((folder / "partitions.yaml").read_text())
    assert len(listing["partitions"]) == count == len(report["partitions"])
    assert {p.name for p in folder.iterdir()} == {
        "partitions.yaml",
        "meta.pb",
        *(r["file"] for r in listing["partitions"]),
    }
    where = listing["signatures"]["s"]["inputs"]["in"]
    assert where["tensor"] == "x:0" and where["partition"] in report["partitions"]
    assert sum(row["sends"] for row in listing["partitions"]) == len(report["transfers"])
    parts = read_partitions(str(folder))
    assert structure(join(parts.graphs)) == structure(read_model(model).graph)
    assert list(parts.meta.signatures) == ["s"] and parts.meta.collections == {"train_op": ["x"]}
    assert (parts.by, parts.kind.value) == (by, "metagraph")
    assert run(["partition", model, "-o", str(folder)]) == 0  # an older partition folder is replaced
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.meta", "parts"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "name it with -o DIR"),
        (["-o", "-"], "name it with -o DIR"),
        (["-o", "full"], "the folder is not empty and not a partition folder"),
        (["-o", "m.meta"], "there is a file of that name"),
        (["-o", "new", "--by", "node"], "graphs are not partitioned by 'node'"),
    ],
)
def test_refused(
    model: str, tmp_path: Path, args: list[str], message: str, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("precious")
    assert run(["partition", model, *args]) == 2
    captured = capfd.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["full", "m.meta"]
    assert (tmp_path / "full" / "mine.txt").read_text() == "precious"


def test_unplaced(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_model(from_graph(random_dag(random.Random(0), 3)), tmp_path / "m.pb")
    assert run(["partition", str(tmp_path / "m.pb"), "-o", str(tmp_path / "parts")]) == 2
    assert "node 'x': it has no device; run graphmill place first" in capfd.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["m.pb"]


@pytest.mark.parametrize(
    ("row", "top", "told"),
    [
        ({"file": "../m.meta"}, {}, "'../m.meta' is not a plain file name"),
        ({"file": "/etc/passwd"}, {}, "'/etc/passwd' is not a plain file name"),
        ({"file": ".."}, {}, "'..' is not a plain file name"),
        ({"file": ""}, {}, "'' is not a plain file name"),
        ({"file": "a\0b"}, {}, "is not a plain file name"),
        ({"file": "pipe"}, {}, "is a pipe, a socket or a device"),
        ({"file": 3}, {}, "'partitions' must be a list of entries with 'name' and 'file'"),
        ({"name": "/job:worker/replica:0/task:1"}, {}, "the name '/job:worker/replica:0/task:1' is listed twice"),
        ({"file": "job_worker_replica_0_task_1.pb"}, {}, "the file 'job_worker_replica_0_task_1.pb' is listed twice"),
        ({}, {"signatures": 3}, "'signatures' must be a mapping"),
        ({}, {"by": ["task"]}, "'by' must be device or task"),
        ({}, {"kind": {}}, "'by' must be device or task, and 'kind' the kind of a model file"),
        ({}, {"version": -1}, "version -1 is not supported; expected 1"),
        ({}, {"partitions": {}}, "'partitions' must be a list of entries with 'name' and 'file'"),
    ],
)
def test_a_hostile_listing(
    model: str,
    tmp_path: Path,
    row: dict[str, object],
    top: dict[str, object],
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every reader of the folder says the same."""
    folder = tmp_path / "parts"
    assert run(["partition", model, "--by", "task", "-o", str(folder), "-q"]) == 0
    os.mkfifo(folder / "pipe")
    assert run(["inspect", str(folder)]) == 0
    file = folder / "partitions.yaml"
    listing = yaml.safe_load(file.read_text())
    next(each for each in listing["partitions"] if each["name"].endswith("task:0")).update(row)
    file.write_text(yaml.safe_dump({**listing, **top}))
    for command in (["inspect"], ["run", "--fetch", "x"], ["visualize"]):
        capsys.readouterr()
        assert run([command[0], str(folder), *command[1:]]) == 2
        error = capsys.readouterr().err
        assert told in error and error.count("\n") == 1, error
