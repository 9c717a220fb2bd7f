"""Traces of what runs: compiled functions, told by the nodes that they do the work of."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run as graphmill
from schemas import config_pb2
from toolkit import client as gm
from toolkit.compiler.pipeline.cpu import PASSES
from toolkit.errors import InvalidArgumentError
from toolkit.formats.models.model import from_graph, write_model
from toolkit.formats.records.timeline import read_trace
from toolkit.runtime.probes.profile import profile_lines, profile_report
from toolkit.runtime.probes.trace import COMPILER, TraceProbe, chrome_trace
from toolkit.runtime.session import Session
from toolkit.runtime.sessions.graphs import core_graph

X = np.linspace(-1, 1, 2 * 16 * 16 * 8, dtype=np.float32).reshape(2, 16, 16, 8)


def convolution() -> Any:
    """x float32[2, 16, 16, 8] to y: a convolution with bias and activation, and a sum."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(np.float32, X.shape, name="x")
        filters = gm.constant(np.ones([3, 3, 8, 16], np.float32) / 72, name="filters")
        made = gm.ops.conv2d(x, filters, [1, 1, 1, 1], "SAME", name="conv")
        biased = gm.ops.bias_add(made, gm.constant(np.ones(16, np.float32), name="bias"), name="biased")
        gm.reduce_sum(gm.ops.relu(biased, name="active"), name="y")
    return graph


def traced(graph: Any, fetches: Any, feeds: Any, **settings: Any) -> tuple[Any, TraceProbe, TraceProbe]:
    """What a step computes, and the probes of the first step and the next."""
    with Session(graph, **settings) as session:
        first, second = TraceProbe(), TraceProbe()
        session.run(fetches, feeds, probe=first)
        found = session.run(fetches, feeds, probe=second)
        np.testing.assert_array_equal(found, session.run(fetches, feeds))
    return found, first, second


def test_what_is_fused_is_named_for_its_output() -> None:
    _, first, probe = traced(convolution(), "y:0", {"x:0": X})
    nodes = {span.node: span for span in probe.spans}
    assert {"conv", "biased", "active", "y"} == {*nodes, *(name for span in probe.spans for name in span.others)}
    assert len(nodes) == len(probe.spans) and "y" in nodes
    (convolved,) = (span for span in probe.spans if "Conv2D" in span.op)
    assert {"filters", "_arg_x_0_0"} <= {*convolved.inputs}
    ends = [span.start_us + span.duration_us for span in probe.spans]
    assert all(end == span.start_us for end, span in zip(ends, probe.spans[1:], strict=False))
    assert not probe.compilations and first.compilations
    known = {each.name for each in PASSES} | {"import", "plan_arena", "emit", "make_arena"}
    assert {span.node for span in first.compilations} <= known
    assert max(span.in_use_bytes for span in probe.spans) >= X.nbytes


def test_node_by_node_every_node_is_seen() -> None:
    with Session(convolution()) as session:
        probe = TraceProbe(per_node=True)
        session.run("y:0", {"x:0": X}, probe=probe)
    assert [span.node for span in probe.spans] == ["conv", "biased", "active", "y"]


@pytest.mark.parametrize("taken", [True, False])
def test_branches_that_are_not_taken_are_not_seen(taken: bool) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(np.float32, [8], name="x")
        p = gm.placeholder(np.bool_, [], name="p")
        y = gm.cond(p, lambda: gm.tanh(x, name="yes"), lambda: gm.exp(x, name="no"))
        gm.identity(y + 1.0, name="y")
    _, _, probe = traced(graph, "y:0", {"x:0": np.ones(8, np.float32), "p:0": np.bool_(taken)})
    seen = {span.node for span in probe.spans}
    assert ("cond/yes" in seen, "cond/no" in seen) == (taken, not taken), seen


def test_loops_name_what_is_in_them() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(np.float32, [8], name="x")
        y = gm.while_loop(lambda i, _: i < 5, lambda i, y: (i + 1, gm.tanh(y, name="inner")), [0, x], name="loop")[1]
        gm.identity(y * 2.0, name="y")
    _, _, probe = traced(graph, "y:0", {"x:0": np.ones(8, np.float32)})
    (loop,) = (span for span in probe.spans if span.op == "Loop")
    assert "loop/inner" in loop.others and "loop/inner" in loop.label


@pytest.mark.parametrize("beside", [False, True])
def test_devices_and_threads_are_rows(beside: bool) -> None:
    """Devices that have something to do at the same time have threads of their own; else one thread runs both."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(np.float32, [64], name="x")
        found = [x]
        for number in (0, 1):
            with gm.device(f"/device:CPU:{number}"):
                found.append(gm.sqrt(gm.abs(gm.tanh(found[0] if beside else found[-1]) * 2.0 + 1.0)))
        gm.identity(gm.add_n(found[1:]), name="y")
    _, _, probe = traced(graph, "y:0", {"x:0": np.ones(64, np.float32)}, devices={"CPU": 2})
    lanes = {(span.device[-5:], span.thread) for span in probe.spans}
    assert {device for device, _ in lanes} == {"CPU:0", "CPU:1"}
    assert len({thread for _, thread in lanes}) == 1 + beside
    assert {"_Send", "_Recv"} <= {span.op for span in probe.spans}
    events = json.loads(chrome_trace(probe.timeline()))["traceEvents"]
    assert len({(each["pid"], each["tid"]) for each in events if each["ph"] == "X"}) == 2


def test_a_limit_holds_for_plans() -> None:
    with Session(convolution()) as session:
        whole = TraceProbe()
        session.run("y:0", {"x:0": X}, probe=whole)
        probe = TraceProbe(limit=1)
        for _ in range(2):
            session.run("y:0", {"x:0": X}, probe=probe)
    assert len(probe.spans) == 1 and probe.dropped == 2 * len(whole.spans) - 1


def test_errors_name_their_node() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(np.float32, [None], name="x")
        i = gm.placeholder(np.int32, [], name="i")
        gm.identity(gm.gather(gm.tanh(x), i, name="pick") * 2.0, name="y")
    with Session(graph) as session:
        with pytest.raises(InvalidArgumentError) as plain:
            session.run("y:0", {"x:0": np.ones(3, np.float32), "i:0": 7})
        with pytest.raises(InvalidArgumentError) as watched:
            session.run("y:0", {"x:0": np.ones(3, np.float32), "i:0": 7}, probe=TraceProbe())
    assert watched.value.node == plain.value.node == "pick" and watched.value.message == plain.value.message


def test_profiles_say_what_compiling_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(from_graph(core_graph(convolution())), str(tmp_path / "model.pb"))
    np.save(tmp_path / "x.npy", X)
    line = ["run", str(tmp_path / "model.pb"), "--feed", f"x={tmp_path}/x.npy", "--fetch", "y", "--profile"]
    assert graphmill(line) == 0
    text = capsys.readouterr().out
    assert "compiling took" in text and "Conv2D" in text
    assert graphmill([*line, "--per-node"]) == 0
    assert "compiling took" not in capsys.readouterr().out
    _, first, second = traced(convolution(), "y:0", {"x:0": X})
    assert profile_report(first)["compile_us"] > 0 and not profile_report(second)["compile_us"]
    assert profile_lines(profile_report(second))[1].startswith("peak tensor memory")


def test_timelines_are_read_again_and_drawn(tmp_path: Path) -> None:
    write_model(from_graph(core_graph(convolution())), str(tmp_path / "model.pb"))
    np.save(tmp_path / "x.npy", X)
    for name in ("trace.json", "trace.pb"):
        trace, picture = str(tmp_path / name), str(tmp_path / f"{name}.svg")
        line = ["run", str(tmp_path / "model.pb"), "--feed", f"x={tmp_path}/x.npy", "--fetch", "y", "--trace", trace]
        assert graphmill(line) == 0
        spans = read_trace(trace).spans
        assert any("Conv2D" in span.op and "CPU:0" in span.device for span in spans)
        assert {span.device for span in spans if span.name == "emit"} == {COMPILER}
        assert graphmill(["visualize", trace, "-o", picture]) == 0
        assert COMPILER in Path(picture).read_text()


@pytest.mark.tensorflow
def test_tensorflow_draws_the_timeline(tf: object) -> None:
    from tensorflow.core.protobuf import config_pb2 as theirs
    from tensorflow.python.client import timeline

    options, metadata = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE), config_pb2.RunMetadata()
    with Session(convolution()) as session:
        session.run("y:0", {"x:0": X}, options, metadata)
    stats = theirs.RunMetadata.FromString(metadata.SerializeToString()).step_stats
    drawn = json.loads(timeline.Timeline(stats).generate_chrome_trace_format(show_memory=True))
    ops = {each["name"]: each["args"] for each in drawn["traceEvents"] if each.get("cat") == "Op"}
    fused = next(op for op in ops if "Conv2D" in op)
    assert {ops[fused][key] for key in ops[fused] if key.startswith("input")} >= {"filters", "_arg_x_0_0"}
