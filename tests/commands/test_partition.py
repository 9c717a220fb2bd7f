"""graphmill partition."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from commands.main import run
from tests.passes.graphs import random_dag, structure
from toolkit.formats.folders.partitions import read_partitions
from toolkit.formats.models.model import from_graph, from_meta_graph, read_model, write_model
from toolkit.graph import dtypes
from toolkit.graph.metagraph import MetaGraph, Signature, TensorInfo
from toolkit.graph.shape import Shape
from toolkit.passes.partitioning.partition import join

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
        (["-o", "-", "--json"], "--json and the partitions would both go to standard output"),
        (["-o", "new", "--as", "graphdef"], "--as says what --join writes"),
        (["-o", "new", "--report", "r.json"], "--report is without effect here: add --schedule-recvs"),
        (["-o", "new", "--costs", "c.json"], "--costs is without effect here: add --schedule-recvs"),
        (["-o", "-", "--schedule-recvs", "--report", "-"], "would both go to standard output"),
        (["-o", "new", "--schedule-recvs", "--cluster", "missing.yaml"], "--cluster"),
        (["-o", "new", "--compress-transfers", "float8"], "transfers are not compressed to 'float8'"),
        (["--join", "full"], "--join DIR names what is joined"),
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


def feeds(tmp_path: Path) -> list[str]:
    np.savez(tmp_path / "in.npz", x=np.float32([0.5, -1.25]), y=np.float32([2, 0.125]))
    return ["--feeds", str(tmp_path / "in.npz")]


def test_join_gives_the_graph_back(model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder, out = str(tmp_path / "parts"), str(tmp_path / "joined.meta")
    assert run(["partition", model, "-o", folder, "--compress-transfers", "bfloat16"]) == 0
    assert run(["partition", "--join", folder, "-o", out]) == 0
    before, after = read_model(model), read_model(out)
    assert structure(after.graph) == structure(before.graph)
    assert {n.name: n.device for n in after.graph} == {n.name: n.device for n in before.graph}
    assert after.kind is before.kind and list(after.meta.signatures) == ["s"]
    assert run(["partition", "--join", model, "-o", out]) == 2
    assert "this is no partition folder or stream" in capfd.readouterr().err


def test_scheduled_receives_are_listed(model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In partitions.yaml, in the report, in --json; the folder is still the graph that was split."""
    (tmp_path / "c.yaml").write_text("local: {CPU: 1}\nlinks: {remote: {latency: 1us}}\n")
    folder, report = tmp_path / "parts", tmp_path / "r.json"
    command = ["partition", model, "--by", "device", "--schedule-recvs", "--cluster", str(tmp_path / "c.yaml")]
    assert run([*command, "--report", str(report), "-o", str(folder), "--json"]) == 0
    schedule = yaml.safe_load((folder / "partitions.yaml").read_text())["schedule"]
    printed, written = json.loads(capfd.readouterr().out), json.loads(report.read_text())
    assert printed["schedule"] == written["schedule"] == schedule
    assert set(schedule) == {"scheduled", "left", "seconds", "peak_bytes"} and set(schedule["peak_bytes"]) == set(
        DEVICES
    )
    assert schedule["scheduled"] == len(written["waits"]) > 0
    assert schedule["scheduled"] + sum(schedule["left"].values()) == len(printed["transfers"])
    parts = read_partitions(str(folder))
    held = {n.name for part in parts.graphs.values() for n in part if n.op == "_Recv" and n.control_inputs}
    assert held == set(written["waits"])
    assert structure(join(parts.graphs)) == structure(read_model(model).graph)
    assert run([*command, "-o", str(folder)]) == 0
    said = capfd.readouterr().err
    assert f"{schedule['scheduled']} receives scheduled; the simulated step takes" in said
    assert said.count("peak memory") == len(DEVICES)


def test_every_command_takes_a_folder(model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """prune, place, diff, inspect, visualize and run work on what the partitions add up to."""
    folder, out = str(tmp_path / "parts"), str(tmp_path / "out.meta")
    assert run(["partition", model, "-o", folder, "-q"]) == 0
    (tmp_path / "c.yaml").write_text("jobs: {worker: [{devices: {CPU: 2}}, {devices: {CPU: 2}}]}")
    assert run(["diff", model, folder]) == 0
    fetch = next(n.name for n in reversed(read_model(model).graph.nodes) if n.op == "Tanh")
    assert run(["prune", folder, "--fetch", fetch, "-o", out]) == 0
    assert run(["place", folder, "--cluster", str(tmp_path / "c.yaml"), "-o", out]) == 0
    assert structure(read_model(out).graph) == structure(read_model(model).graph)
    assert run(["validate", folder, "--fail-on", "error"]) in (0, 1)
    assert run(["inspect", folder]) == 0 and run(["visualize", folder, "-o", str(tmp_path / "p.svg")]) == 0
    capfd.readouterr()
    wanted = ["--fetch", fetch, *feeds(tmp_path)]
    assert run(["run", model, *wanted]) == 0
    first = capfd.readouterr().out
    assert run(["run", folder, *wanted]) == 0
    assert capfd.readouterr().out == first


def test_a_stream_is_a_graph_that_readers_join(model: str, tmp_path: Path, capfdbinary: Any) -> None:
    assert run(["partition", model, "-o", "-", "--by", "device"]) == 0
    data = capfdbinary.readouterr().out
    (tmp_path / "stream").write_bytes(data)
    found = read_model(tmp_path / "stream")
    assert structure(found.graph) == structure(read_model(model).graph) and found.split_by == "device"
    assert list(found.meta.collections) == ["train_op"]
    assert run(["partition", "--join", str(tmp_path / "stream"), "-o", str(tmp_path / "again.meta")]) == 0
    assert structure(read_model(tmp_path / "again.meta").graph) == structure(found.graph)


def test_the_listing_says_what_crosses_and_what_is_where(model: str, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    assert run(["partition", model, "-o", str(folder), "-q"]) == 0
    listing = yaml.safe_load((folder / "partitions.yaml").read_text())
    assert len(listing["crossings"]) == sum(row["sends"] for row in listing["partitions"])
    for row in listing["crossings"]:
        assert row["bytes"] == (0 if row["tensor"].startswith("^") else 8)
    assert sorted(feed for row in listing["partitions"] for feed in row["feeds"]) == ["x:0", "y:0"]
    assert [name for row in listing["partitions"] for name in row["fetches"]] == ["x:0"]
    assert {device for row in listing["partitions"] for device in row["devices"]} <= set(DEVICES)


def test_variables_and_assets_travel(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A SavedModel that was split runs with the values of its variables, and is a SavedModel again when joined."""
    program = """
inputs: {x: {shape: [null, 2]}}
variables: {w: {shape: [2, 2], value: [[1, 2], [3, 4]], resource: true}}
nodes: [{op: MatMul, name: y, inputs: [x, w]}]
"""
    (tmp_path / "s.yaml").write_text(program)
    saved = tmp_path / "saved"
    made = ["build", str(tmp_path / "s.yaml"), "-o", str(tmp_path / "m.meta")]
    if run(made) != 0:
        pytest.fail(capfd.readouterr().err)
    wanted = ["--fetch", "y", "--feed", "x=[[1,1]]"]
    assert run(["run", str(tmp_path / "m.meta"), "--init", *wanted, "--save", str(tmp_path / "m")]) == 0
    place = ["place", str(tmp_path / "m.meta"), "--cluster", str(tmp_path / "c.yaml"), "--strategy", "round-robin"]
    (tmp_path / "c.yaml").write_text("local: {CPU: 2}")
    assert run([*place, "--as", "savedmodel", "-o", str(saved)]) == 0
    assert (saved / "variables").is_dir()
    folder, again = tmp_path / "parts", tmp_path / "again"
    assert run(["partition", str(saved), "--by", "device", "-o", str(folder)]) == 0
    assert (folder / "variables" / "variables.index").read_bytes() == (
        saved / "variables" / "variables.index"
    ).read_bytes()
    assert run(["partition", "--join", str(folder), "-o", str(again)]) == 0
    capfd.readouterr()
    for path in (saved, folder, again):
        assert run(["run", str(path), *wanted]) == 0
        assert "[[4., 6.]]" in capfd.readouterr().out


@pytest.mark.tensorflow
def test_functions_that_only_objects_call_travel(tf: Any, tmp_path: Path) -> None:
    """TensorFlow 2 loads a SavedModel with a table again: what makes the table is a function of its objects alone."""
    module = tf.Module()
    keys = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([3.0, 4.0]))
    module.table = tf.lookup.StaticHashTable(keys, 0.0)
    module.weight = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(text: Any) -> Any:
        return {"y": module.table.lookup(text) * module.weight}

    module.serve = serve
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=serve)
    (tmp_path / "c.yaml").write_text("local: {CPU: 2}")
    for args in (
        ["place", str(tmp_path / "saved"), "--cluster", str(tmp_path / "c.yaml"), "-o", str(tmp_path / "placed")],
        ["partition", str(tmp_path / "placed"), "-o", str(tmp_path / "parts")],
        ["partition", "--join", str(tmp_path / "parts"), "-o", str(tmp_path / "joined")],
        ["edit", str(tmp_path / "joined"), "--clear-devices", "-o", str(tmp_path / "again")],
    ):
        assert run([*args, "-q"]) == 0
    loaded = tf.saved_model.load(str(tmp_path / "again"))
    for call in (loaded.serve, loaded.signatures["serving_default"]):
        assert call(text=tf.constant(["b", "c"]))["y"].numpy().tolist() == [8.0, 0.0]


def test_one_part_alone_does_not_wait_for_the_others(
    model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "parts"
    assert run(["partition", model, "--by", "device", "-o", str(folder)]) == 0
    parts = {path: read_model(path).graph for path in sorted(folder.glob("*.pb")) if path.name != "meta.pb"}
    waiting = [(path, node) for path, graph in parts.items() for node in graph if node.op in ("_Recv", "_HostRecv")]
    assert waiting
    path, node = waiting[0]
    assert run(["run", str(path), "--fetch", node.name]) == 2
    assert "which another part of the graph sends; run the folder of the parts" in capfd.readouterr().err
