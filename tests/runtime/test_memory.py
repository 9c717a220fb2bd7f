"""Tensors die at their last use, and what they take at most is told per device."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import config_pb2
from tests.runtime.oracle import Both
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.runtime.probes.memory import MemoryMeter, owner_of
from toolkit.runtime.probes.profile import profile_lines, profile_report
from toolkit.runtime.probes.trace import TraceProbe
from toolkit.runtime.session import Session

F = dtypes.float32
SIZE = 1000
BYTES = SIZE * 4
X = np.linspace(-1, 1, SIZE, dtype=np.float32)


def placeholder(graph: Graph) -> Node:
    return graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([SIZE])})


def chain(length: int, device: str = "") -> Graph:
    graph = Graph()
    last = placeholder(graph)
    for i in range(length):
        last = graph.add("Tanh", f"t{i}", [last], attrs={"T": F}, device=device)
    return graph


class Deaths:
    """Fails when a tensor outlives the node that uses it last."""

    def __init__(self, graph: Graph, fetches: Sequence[str]):
        self.missing: dict[str, set[str]] = {}  # tensor to the consumers that have not run yet
        kept = {graph.node(name) for name in fetches}
        for node in graph:
            self.missing[node.name] = {"the caller"} if node in kept else set()
        for node in graph:
            for src, _ in node.inputs:
                self.missing[src.name].add(node.name)
        self.alive: dict[str, weakref.ref[Any]] = {}
        self.late: list[tuple[str, str]] = []
        self.died = 0

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        done = [name for name in self.alive if not self.missing[name]]
        for name in done:
            if self.alive.pop(name)() is None:
                self.died += 1
            else:
                self.late.append((name, node.name))
        for waiting in self.missing.values():
            waiting.discard(node.name)
        for value in outputs:
            self.alive[node.name] = weakref.ref(owner_of(value))


@pytest.mark.parametrize("tokens", [False, True], ids=["flat", "tokens"])
@settings(max_examples=25, deadline=None)
@given(edges=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=3, max_size=14))
def test_tensors_die_at_their_last_use(tokens: bool, edges: list[tuple[int, int]]) -> None:
    graph = Graph()
    nodes = [placeholder(graph)]
    for number, (a, b) in enumerate(edges):
        inputs: list[Node | Output] = [nodes[a % len(nodes)], nodes[b % len(nodes)]]
        nodes.append(graph.add("AddV2", f"n{number}", inputs, attrs={"T": F}))
    fetch = nodes[-1].name
    session = Session(graph, force_tokens=tokens)
    needed = Graph.subgraph(graph, _ancestors(nodes[-1]))
    deaths = Deaths(needed, [fetch])
    gc.disable()  # only the counting of references may free them
    try:
        session.run(f"{fetch}:0", {"x:0": X}, probe=deaths)
    finally:
        gc.enable()
    assert deaths.late == []
    held = len(deaths.alive)
    assert deaths.died + held == len(needed) - 1  # all but the placeholder, which is fed


def _ancestors(node: Node) -> list[Node]:
    seen = {node.name: node}
    stack = [node]
    while stack:
        for src, _ in stack.pop().inputs:
            if src.name not in seen:
                seen[src.name] = src
                stack.append(src)
    return list(seen.values())


@pytest.mark.parametrize("tokens", [False, True], ids=["flat", "tokens"])
@pytest.mark.parametrize("length", [2, 3, 20])
def test_a_chain_holds_two_tensors_at_once(tokens: bool, length: int) -> None:
    tracer = TraceProbe(per_node=True)
    Session(chain(length), force_tokens=tokens).run(f"t{length - 1}:0", {"x:0": X}, probe=tracer)
    (usage,) = tracer.memory.by_device.values()
    assert (usage.peak, usage.allocated, usage.at) == (2 * BYTES, length * BYTES, "t1")
    report = profile_report(tracer)
    assert report["memory"] == [
        {"device": "/device:CPU:0", "peak_bytes": 2 * BYTES, "at": "t1", "made_bytes": length * BYTES}
    ]
    assert "peak tensor memory 0.008 MB on /device:CPU:0, at t1" in profile_lines(report)


def test_memory_is_counted_per_device_and_step() -> None:
    graph = chain(3, "/device:CPU:0")
    half = graph.add("StridedSlice", "half", _slice(graph, "t2"), attrs={"T": F, "Index": dtypes.int32})
    half.device = "/device:CPU:1"
    graph.add("Tanh", "end", [half], attrs={"T": F}, device="/device:CPU:1")
    session = Session(graph, devices={"CPU": 2})
    options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
    for _ in range(2):  # nothing of the first step is left in the second
        metadata = config_pb2.RunMetadata()
        session.run("end:0", {"x:0": X}, options, metadata)
        peaks = {
            dev.device[-5:]: max(entry.memory[0].allocator_bytes_in_use for entry in dev.node_stats)
            for dev in metadata.step_stats.dev_stats
        }
        assert peaks["CPU:0"] in (BYTES, 2 * BYTES)  # compiled, a chain may be computed in one place
        assert 0 < peaks["CPU:1"] <= BYTES + BYTES // 2


def _slice(graph: Graph, name: str) -> list[Node]:
    from toolkit.formats.arrays.tensor import from_array

    ends = [
        graph.add("Const", f"c{v}", attrs={"dtype": dtypes.int32, "value": from_array(np.array([v], np.int32))})
        for v in (0, SIZE // 2, 1)
    ]
    return [graph.node(name), *ends]


def test_what_is_passed_on_is_not_counted_twice() -> None:
    graph = Graph()
    meter = MemoryMeter()
    node = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([])})
    given = np.zeros(10)
    assert meter.made(node, "", [given], [given]) == (0, 0)  # Identity
    assert meter.made(node, "", [given], [given[2:]]) == (0, 0)  # a view
    made = np.zeros(5)
    assert meter.made(node, "", [given], [made, made]) == (40, 40)
    assert meter.made(node, "", [given], [made.reshape(5, 1)]) == (0, 40)
    view = made[1:]
    del made
    assert meter.made(node, "", [], [np.float32(1)]) == (0, 40)  # the view keeps it
    del view
    assert meter.made(node, "", [], [])[1] == 0
    assert meter.by_device[""].peak == 40


@pytest.mark.tensorflow
def test_sizes_of_outputs_are_tensorflows(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder("float32", [8, 16], name="x")
        y = v1.matmul(x, v1.ones([16, 4]) * v1.reduce_sum(x), name="y")
        v1.concat([y, v1.tanh(y)], 1, name="out")

    both = Both(tf, build)
    feeds = {"x:0": np.ones((8, 16), np.float32)}
    sizes: list[dict[str, list[int]]] = []
    theirs = both.v1.Session(graph=both.tf_graph)
    wanted = both.v1.RunMetadata()
    theirs.run("out:0", feeds, both.v1.RunOptions(trace_level=both.v1.RunOptions.FULL_TRACE), wanted)
    got = config_pb2.RunMetadata()
    options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
    Session(both.graph).run("out:0", feeds, options, got)
    for metadata in (got, wanted):
        found: dict[str, list[int]] = {}
        for device in metadata.step_stats.dev_stats:
            for entry in device.node_stats:
                found[entry.node_name] = [
                    out.tensor_description.allocation_description.requested_bytes for out in entry.output
                ]
        sizes.append(found)
    for name in ("y", "out"):
        assert sizes[0][name] == sizes[1][name] != []
