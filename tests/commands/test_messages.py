"""What new users are told: ranges, formats, who reads what, and the mistake that was made, not those after it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from commands.main import run
from tests.passes.graphs import random_dag
from tests.passes.test_passes_placement import cluster, place
from toolkit.formats.models.model import from_graph, from_meta_graph, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph, Signature, TensorInfo
from toolkit.graph.shape import Shape

F = dtypes.float32
LONG = "a" * 900


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """x, tower/dense/h = tanh(x), y = h * h; signatures serving_default and other."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 2])})
    h = graph.add("Tanh", "tower/dense/h", [x], attrs={"T": F})
    y = graph.add("Mul", "y", [h, h], attrs={"T": F})
    infos = {node.name: TensorInfo(f"{node.name}:0", F, Shape([None, 2])) for node in (x, h, y)}
    method = "tensorflow/serving/predict"
    signatures = {
        "other": Signature({"x": infos["x"]}, {"h": infos["tower/dense/h"]}, method),
        "serving_default": Signature({"x": infos["x"]}, {"y": infos["y"]}, method),
    }
    monkeypatch.chdir(tmp_path)
    write_model(from_meta_graph(MetaGraph(graph, signatures)), "m.meta")
    Path("c.yaml").write_text("local: {CPU: 2}\n")
    Path("costs.json").write_text('{"a": 1}')
    Path("zeros.tar").write_bytes(bytes(10240))
    return Path("m.meta")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (
            ["edit", "m.meta", "--batch-size", "-1", "-o", "o.pb"],
            ["--batch-size: expected a size, or any; found '-1' (sizes go from 1 to 9,"],
        ),
        (
            ["edit", "m.meta", "--set-shape", f"x={10**23},2", "-o", "o.pb"],
            [f"--set-shape: expected a size, or any; found '{10**23}' (sizes go from 0"],
        ),
        (
            ["optimize", "m.meta", "--rounds", str(10**9), "-o", "o.pb"],
            [f"--rounds: {10**9} is not in the range 1<=x<=1000"],
        ),
        (
            ["place", "m.meta", "--cluster", "c.yaml", "--batch", str(10**23), "-o", "o.pb"],
            [f"--batch: {10**23} is not in the range 1<=x<="],
        ),
        (
            ["place", "m.meta", "--cluster", "c.yaml", "--costs", "costs.json", "-o", "o.pb"],
            ["--costs: costs.json: is neither a cost file (graphmill run --measure FILE) nor a trace"],
        ),
        (["inspect", "zeros.tar"], ["zeros.tar: begins with zeros alone, as a tar archive without members does"]),
        (
            ["edit", "m.meta", "--rename", "h=g", "-o", "o.pb"],
            ["--rename: no node matches 'h'; did you mean 'tower/dense/h'?"],
        ),
        (
            ["edit", "m.meta", "--rename", "q=g", "--set-device", "g=/cpu:0", "--remove", "g", "-o", "o.pb"],
            ["--rename: no node matches 'q'"],
        ),
        (
            ["edit", "m.meta", "--rename", "q=g", "--remove", "r", "-o", "o.pb"],
            ["--rename: no node matches 'q'", "--remove: no node matches 'r'"],
        ),
        (
            ["edit", "m.meta", "--rename", f"{LONG}=b", "-o", "o.pb"],
            [f"--rename: no node matches '{LONG[:100]}...(700 characters)...{LONG[:100]}'"],
        ),
    ],
)
def test_mistakes(model: Path, args: list[str], told: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(args) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == len(told)
    for line, start in zip(lines, told, strict=True):
        assert line.startswith(f"graphmill: error: {start}")
    assert not Path("o.pb").exists()


def test_what_cannot_go_alone_names_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    cast = graph.add("Cast", "c", [x], attrs={"SrcT": F, "DstT": dtypes.int32})
    graph.add("Neg", "y", [cast], attrs={"T": dtypes.int32})
    write_model(from_graph(graph), "m.pb")
    assert run(["edit", "m.pb", "--remove", "c", "-o", "o.pb"]) == 2
    assert (
        "--remove-cascade (in a list of edits, cascade: true) removes what needs it as well" in capfd.readouterr().err
    )


@pytest.mark.parametrize("command", [["run", "--feed", "x=[[1,2]]", "--out", "o.npz"], ["prune", "-o", "o.meta"]])
def test_the_default_signature_is_meant_everywhere(
    model: Path, command: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([command[0], str(model), *command[1:]]) == 0
    if command[0] == "run":
        assert np.load("o.npz").files == ["y"]
    else:
        assert "signature 'other'" not in capfd.readouterr().err.replace("signature 'other': without", "")


def test_feeds_to_verify_may_lie_beside_results(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["optimize", str(model), "--preset", "inference", "-o", "o.meta", "--verify", "f.npz"]
    x = np.ones([1, 2], np.float32)
    np.savez("f.npz", x=x, expected=x)
    assert run(command) == 0
    np.savez("f.npz", X=x, expected=x)
    capfd.readouterr()
    assert run(command) == 2
    assert "f.npz: the array 'X' is no tensor of the model" in capfd.readouterr().err


def test_split_models_say_who_reads_them(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", str(model), "--as", "savedmodel.split", "-o", "o"]) == 0
    assert "TensorFlow's C++ loader and Serving read it, Python's loaders do not" in capfd.readouterr().err
    assert run(["convert", str(model), "--as", "savedmodel", "-o", "p"]) == 0
    assert "loader" not in capfd.readouterr().err


def test_what_only_waits_is_where_most_of_what_it_waits_for_is() -> None:
    found = 0
    for seed in range(12):
        graph = random_dag(random.Random(seed), 60)
        graph.add("NoOp", "all_done", control_inputs=[node for node in graph if node.op != "NoOp"][5:40])
        result = place(
            graph,
            cluster("local: {CPU: 3}\nspeeds: {CPU: {flops: 1M, startup: 0us}}\nlinks: {local: {latency: 1us}}"),
            strategy="greedy",
        )
        done = result.graph.node("all_done")
        devices = [source.device for source in done.control_inputs]
        if result.report["chosen"] in ("greedy", "longest way first"):
            found += len(set(devices)) > 1
            assert devices.count(done.device) == max(map(devices.count, devices))
    assert found
