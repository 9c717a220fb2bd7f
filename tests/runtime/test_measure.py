"""run --measure: what nodes take, and what place makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from commands.main import run
from tests import tolerance
from toolkit.errors import GraphmillError
from toolkit.formats.models.model import from_graph, read_model, write_model
from toolkit.formats.settings.cluster import parse_cluster
from toolkit.formats.settings.cost_file import read_cost_file
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.passes.placement.costs import NodeCosts
from toolkit.runtime.probes.base import Manner, Probes
from toolkit.runtime.probes.calibration import measure_host
from toolkit.runtime.probes.measure import MeasureProbe
from toolkit.runtime.probes.trace import TraceProbe
from toolkit.runtime.session import Session

F = dtypes.float32


def product(graph: Graph) -> Node:
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 4])})
    y = graph.add("MatMul", "y", [x, x], attrs={"T": F, "transpose_b": True})
    graph.add("Identity", "same", [y], attrs={"T": F})
    return y


def test_a_run_writes_what_place_reads(tmp_path: Path) -> None:
    graph = Graph()
    product(graph)
    model, costs, report = (str(tmp_path / name) for name in ("m.pb", "costs.json", "r.json"))
    write_model(from_graph(graph), model)
    np.savez(tmp_path / "x.npz", x=np.ones((24, 4), np.float32))
    feed = f"x={tmp_path}/x.npz:x"
    assert run(["run", model, "--feed", feed, "--fetch", "same", "--batch", "3", "--measure", costs]) == 0
    found = read_cost_file(costs)
    assert found.steps == 3  # of eight: two run by tokens, two compiled, and the first one is not looked at
    assert found.compiled is not None and found.cores and found.threads and found.startup is not None
    assert found.latency is not None and found.bandwidth is not None and found.slowdown >= 1
    assert found.nodes["y"].op == "MatMul" and found.nodes["y"].count == 1 and found.nodes["y"].seconds > 0
    key = "CPU MatMul(float32[3,4], float32[3,4])"
    assert json.loads(Path(costs).read_text())["signatures"][key]["count"] == 3
    assert found.step is not None and found.memory
    cluster = tmp_path / "c.yaml"
    cluster.write_text("local: {CPU: 2}\n")
    placed = ["place", model, "--cluster", str(cluster), "--strategy", "greedy", "--costs", costs]
    assert run([*placed, "--report", report, "-o", str(tmp_path / "p.pb")]) == 0
    described = parse_cluster("local: {CPU: 2}", "c.yaml")
    read = read_model(model).graph
    times = NodeCosts(read, described.speeds, found).times(described.devices[0])
    overhead = found.overhead or 0.0
    one_by_one = sum(cost.seconds + overhead * cost.count for cost in found.nodes.values())
    expected = (found.nodes["y"].seconds + overhead) * min(1.0, found.compiled / one_by_one)  # it runs compiled
    assert times[read.node("y").id] == pytest.approx(expected, rel=tolerance.gamma(10, np.float64))


def test_how_far_an_estimate_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """run --estimate beside the steps that it times; a file that is no report of place is told."""
    graph = Graph()
    product(graph)
    model, report = str(tmp_path / "m.pb"), str(tmp_path / "r.json")
    write_model(from_graph(graph), model)
    (tmp_path / "c.yaml").write_text("local: {CPU: 2}\n")
    placed = str(tmp_path / "p.pb")
    assert run(["place", model, "--cluster", str(tmp_path / "c.yaml"), "--report", report, "-o", placed]) == 0
    timed = ["run", placed, "--devices", "CPU=2", "--feed", "x=[[1,2,3,4]]", "--fetch", "same", "--repeat", "3"]
    capsys.readouterr()
    assert run([*timed, "--estimate", report, "--stats", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = json.loads(Path(report).read_text())["simulated"]["seconds"] * 1e3
    assert found["estimate"]["step_ms"] == expected
    assert found["estimate"]["ratio"] == expected / found["step_ms"]["median"]
    assert run([*timed, "--estimate", report]) == 0
    assert f"estimated {expected:.3f} ms, " in capsys.readouterr().err
    for content, told in (
        ("{}", "it has no simulated step"),
        ('{"simulated": {"seconds": -1}}', "is no report"),
        ("[", ""),
    ):
        Path(report).write_text(content)
        assert run([*timed, "--estimate", report]) == 2
        error = capsys.readouterr().err
        assert "--estimate" in error and told in error and error.count("\n") == 1


def test_medians_of_steps_but_the_first(tmp_path: Path) -> None:
    node = product(Graph())
    probe = MeasureProbe()
    value = np.ones((2, 4), np.float32)
    for step, (micros, columns) in enumerate([(900, 4), (10, 4), (30, 5), (20, 5)]):
        for _ in range(2):
            given = np.ones((2, columns), np.float32)
            probe.ran(node, "", 0, micros * 500, [given, given], [value])
        probe.executed(1e-6 * (micros + 8) if step else 1.0)
    out = str(tmp_path / "c.json")
    probe.write(out)
    found = read_cost_file(out)
    assert found.steps == 3 and found.nodes["y"].count == 2
    assert found.nodes["y"].seconds == pytest.approx(20e-6, rel=tolerance.gamma(8, np.float64))
    assert found.signatures == {
        "CPU MatMul(float32[2,4], float32[2,4])": pytest.approx(5e-6, rel=tolerance.gamma(8, np.float64)),
        "CPU MatMul(float32[2,5], float32[2,5])": pytest.approx(12.5e-6, rel=tolerance.gamma(8, np.float64)),
    }
    assert found.step == pytest.approx(28e-6, rel=tolerance.gamma(8, np.float64)) and found.overhead == pytest.approx(
        4e-6, rel=tolerance.gamma(8, np.float64)
    )
    assert "signature" not in json.loads(Path(out).read_text())["nodes"]["y"]  # its shapes change


def test_a_few_steps_of_a_kind_one_after_the_other(tmp_path: Path) -> None:
    """Short runs have all kinds; the first of a few is not counted, for it finds what the kind before it left."""
    probe = MeasureProbe()
    node, value = product(Graph()), np.ones((2, 4), np.float32)
    kinds: list[str] = []
    for _ in range(30):
        probe.begin_step()
        is_first = not kinds or kinds[-1] != probe.manner.name
        kinds.append(probe.manner.name)
        if probe.manner is Manner.LOOKED_AT:
            probe.ran(node, "", 0, 20_000, [value, value], [value])
            probe.executed(1.0)  # looking takes time
        else:
            least = 30e-6 if probe.manner is Manner.BY_TOKENS else 10e-6
            probe.executed(least * (5 if is_first else 1))
    assert [kind for kind, before in zip(kinds, ["", *kinds[:-1]], strict=True) if kind != before] == [
        "LOOKED_AT", "BY_TOKENS", "COMPILED",
    ] * 3  # fmt: skip
    assert len(kinds[:6]) == 2 * len(set(kinds[:6])) and kinds[6:18] == [kind for kind in kinds[:6:2] for _ in range(4)]
    probe.write(str(tmp_path / "c.json"))
    found = read_cost_file(str(tmp_path / "c.json"))
    assert (found.step, found.compiled) == (30e-6, 10e-6)
    assert found.overhead == pytest.approx(10e-6, rel=tolerance.gamma(8, np.float64))  # 30 without the kernel's 20


def test_the_session_says_what_executing_takes() -> None:
    """To those of several probes that listen, with or without a deadline of the step."""
    graph = Graph()
    product(graph)
    heard: list[float] = []

    class Listening(MeasureProbe):
        def executed(self, seconds: float) -> None:
            heard.append(seconds)

    feeds = {"x:0": np.ones((3, 4), np.float32)}
    with Session(graph) as session:
        session.run("y:0", feeds, probe=Probes([Listening(), TraceProbe()]))
        session.run("y:0", feeds, probe=TraceProbe())
        session.run("y:0", feeds, probe=Listening(), timeout_ms=600_000)
        with pytest.raises(GraphmillError):
            session.run("y:0", {"x:0": np.ones((3,), np.float32)}, probe=Listening())
    assert len(heard) == 2 and min(heard) > 0


def test_what_holds_of_the_machine() -> None:
    """Whatever else it does, no number is below what it can be."""
    host = measure_host(1)
    assert host.cores >= 1 and host.threads == 1 and host.slowdown >= 1
    assert min(host.contention, host.startup, host.latency) >= 0 < host.bandwidth


def test_one_step_is_all_there_is(tmp_path: Path) -> None:
    probe = MeasureProbe()
    probe.ran(product(Graph()), "", 0, 5000, [], [])
    probe.executed(1e-5)
    probe.write(str(tmp_path / "c.json"))
    assert read_cost_file(str(tmp_path / "c.json")).nodes["y"].seconds > 0


def test_places_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "m.pb")
    graph = Graph()
    product(graph)
    write_model(from_graph(graph), model)
    for where, told in ((tmp_path, "is a folder"), (tmp_path / "no" / "c.json", "no")):
        assert run(["run", model, "--feed", "x=[[1,2,3,4]]", "--fetch", "y", "--measure", str(where)]) == 2
        assert told in capsys.readouterr().err
