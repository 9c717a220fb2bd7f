"""Looking inside a run: traces, profiles, dumps, numerics."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from commands.main import run as graphmill
from schemas import config_pb2
from toolkit.formats.arrays.tensor import from_array
from toolkit.formats.models.model import from_graph, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.runtime.probes.trace import TraceProbe
from toolkit.runtime.session import Session

F = dtypes.float32


@pytest.fixture
def model(tmp_path: Path) -> str:
    """x -> log -> relu -> sum, with a scope."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None])})
    log = graph.add("Log", "net/log", [x], attrs={"T": F})
    relu = graph.add("Relu", "net/relu", [log], attrs={"T": F})
    axes = graph.add("Const", "axes", attrs={"dtype": dtypes.int32, "value": from_array(np.array([0], np.int32))})
    graph.add("Sum", "sum", [relu, axes], attrs={"T": F, "Tidx": dtypes.int32, "keep_dims": False})
    path = str(tmp_path / "model.pb")
    write_model(from_graph(graph), path)
    return path


def test_chrome_trace_and_run_metadata(model: str, tmp_path: Path) -> None:
    trace, metadata = tmp_path / "trace.json", tmp_path / "metadata.pb"
    assert graphmill(["run", model, "--feed", "x=[1,2,3]", "--fetch", "sum", "--per-node", "--trace", str(trace)]) == 0
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
    assert [e["args"]["node"] for e in events] == ["net/log", "net/relu", "sum"]
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in events)
    assert events[0]["args"]["outputs"] == ["float32[3]"]
    line = ["run", model, "--feed", "x=[1,2,3]", "--fetch", "sum", "--per-node"]
    assert graphmill([*line, "--trace", str(metadata)]) == 0
    stats = config_pb2.RunMetadata.FromString(metadata.read_bytes()).step_stats
    assert [node.node_name for node in stats.dev_stats[0].node_stats] == ["net/log", "net/relu", "sum"]


@pytest.mark.tensorflow
def test_tensorflow_reads_the_metadata(model: str, tmp_path: Path, tf: object) -> None:
    from tensorflow.core.protobuf import config_pb2 as theirs
    from tensorflow.python.client import timeline

    path = tmp_path / "m.pb"
    assert graphmill(["run", model, "--feed", "x=[1,2]", "--fetch", "sum", "--per-node", "--trace", str(path)]) == 0
    stats = theirs.RunMetadata.FromString(path.read_bytes()).step_stats
    assert "net/log" in timeline.Timeline(stats).generate_chrome_trace_format()


def test_profile(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["run", model, "--feed", "x=[1,2,3]", "--fetch", "sum", "--steps", "3", "--per-node", "--profile"]
    assert graphmill(line) == 0
    text = capsys.readouterr().out
    rows = {row.split()[0]: row.split() for row in text.splitlines() if row.startswith(("Log", "net/log"))}
    assert rows["Log"][1] == rows["net/log"][1] == "3"


def test_dump(model: str, tmp_path: Path) -> None:
    folder = tmp_path / "dump"
    line = ["run", model, "--feed", "x=[1,2,3]", "--fetch", "sum", "--steps", "2", "--dump", "net/*", str(folder)]
    assert graphmill(line) == 0
    names = sorted(p.name for p in folder.iterdir())
    assert names == [f"net%2F{op}_0_{run}.npy" for op in ("log", "relu") for run in (0, 1)]
    np.testing.assert_array_equal(np.load(folder / names[0]), np.log(np.array([1, 2, 3], np.float32)))


def test_dump_of_nothing(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "dump"
    line = ["run", model, "--feed", "x=[1,2,3]", "--fetch", "sum", "--dump"]
    assert graphmill([*line, "net/lug*", str(folder)]) == 2
    shown = capsys.readouterr()
    told = "--dump: the pattern 'net/lug*' matches no node; did you mean 'net/log'"
    assert shown.out == "" and shown.err.count("\n") == 1 and told in shown.err, shown.err
    assert not folder.exists()
    assert graphmill(["run", model, "--feed", "net/log=[1,2,3]", "--fetch", "sum", "--dump", "x", str(folder)]) == 0
    assert "--dump: nothing was written" in capsys.readouterr().err
    assert not folder.exists()


def test_check_numerics_names_the_first_node(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["run", model, "--feed", "x=[1,0,3]", "--fetch", "sum", "--check-numerics"]
    assert graphmill([*line, "--per-node"]) == 3
    message = capsys.readouterr().err
    assert "node 'net/log'" in message and "1 infinite" in message and "input x:0: shape [3], min 0, max 3" in message
    assert graphmill(["run", model, "--feed", "x=[1,2,3]", "--fetch", "sum", "--check-numerics"]) == 0


def test_probes_see_the_same_in_both_executors(model: str) -> None:
    from toolkit.formats.models.model import read_graph

    seen: list[list[str]] = []
    for tokens in (False, True):
        probe = TraceProbe(per_node=True)
        Session(read_graph(model), force_tokens=tokens).run("sum:0", {"x": [1.0]}, probe=probe)
        seen.append([span.node for span in probe.spans])
    assert seen[0] == seen[1]


def test_a_trace_has_a_limit(model: str) -> None:
    from toolkit.formats.models.model import read_graph

    probe = TraceProbe(limit=2, per_node=True)
    Session(read_graph(model)).run("sum:0", {"x": [1.0]}, probe=probe)
    assert len(probe.spans) == 2 and probe.dropped == 1


def test_dumps_are_of_compiled_steps_where_they_can_be(tmp_path: Path) -> None:
    """Behind branches, of references and in functions nodes are looked at one by one; the files are the same."""
    from toolkit import client as gm
    from toolkit.runtime.probes.dump_fetches import dump_fetches
    from toolkit.runtime.sessions.graphs import core_graph

    with gm.Graph().as_default() as made:
        x = gm.placeholder(np.float32, [3], name="x")
        hidden = gm.square(gm.ops.neg(x, name="net/neg"), name="net/square")
        chosen = gm.cond(gm.reduce_sum(x) > 0.0, lambda: gm.exp(hidden), lambda: hidden, name="choice")
        gm.identity(chosen, name="y")
        gm.sqrt(hidden, name="net/aside")
    graph = core_graph(made)

    def wanted(pattern: str) -> list[str] | None:
        found = dump_fetches(graph, pattern, [graph.output("x:0")], [graph.output("y:0")], [])
        return None if found is None else [output.name for output in found]

    assert wanted("net/*") == ["net/neg:0", "net/square:0"]
    assert wanted("choice/*") is None and wanted("y") is None and wanted("x") == []
    write_model(from_graph(graph), str(tmp_path / "model.pb"))
    line = ["run", str(tmp_path / "model.pb"), "--feed", "x=[1,2,3]", "--fetch", "y", "--steps", "2"]
    for name, more in (("compiled", []), ("nodes", ["--per-node"])):
        assert graphmill([*line, *more, "--dump", "net/*", str(tmp_path / name)]) == 0
    files = sorted(each.name for each in (tmp_path / "nodes").iterdir())
    assert files == sorted(each.name for each in (tmp_path / "compiled").iterdir()) and len(files) == 4
    for each in files:
        np.testing.assert_array_equal(np.load(tmp_path / "nodes" / each), np.load(tmp_path / "compiled" / each))
