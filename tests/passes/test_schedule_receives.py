"""partition --schedule-recvs: later receives, the same results, no longer step, no larger peak on paper."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.passes.graphs import F, from_tensorflow, plain_config, random_dag, random_state_graph, structure
from tests.passes.test_passes_partition import loops_and_more
from tests.passes.test_passes_placement import SUM, cluster, layers, trained
from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.passes.base import run_pass
from toolkit.passes.partitioning.partition import MARK, RECV_OPS, SEND_OPS, Partitioned, PartitionGraph, join
from toolkit.passes.partitioning.receive_schedule import ReceiveSchedule
from toolkit.passes.partitioning.schedule_receives import IN_LOOP, ScheduleReceives
from toolkit.passes.placement.place import Place
from toolkit.runtime.devices import make_device
from toolkit.runtime.session import Session

DEVICES = [DeviceSpec("localhost", 0, 0, "CPU", index) for index in range(3)]
NAMES = list(map(str, DEVICES))


def split(graph: Graph, costs: ScheduleReceives | None = None) -> tuple[Partitioned, ReceiveSchedule]:
    parts = PartitionGraph("device", share_controls=True, schedule=costs or ScheduleReceives()).split(graph)
    assert parts.schedule is not None
    return parts, parts.schedule


def waits(parts: Partitioned) -> dict[str, list[Node]]:
    """What receives wait for, by their names."""
    recvs = [node for part in parts.graphs.values() for node in part if node.op in RECV_OPS]
    return {node.name: list(node.control_inputs) for node in recvs if node.control_inputs}


def compute(graph: Graph, fetches: list[str], feeds: dict[str, Any]) -> list[Any]:
    """By the graph's own sends and receives, if it has any."""
    sends = [node.name for node in graph if node.op in SEND_OPS]
    with Session(graph, devices=list(map(make_device, DEVICES)), force_tokens=True) as session:
        return session.run([fetches, sends], feeds)[0]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_neither_time_nor_memory_grow(seed: int) -> None:
    """And the same is computed, on one device and by the scheduled parts; without a schedule the graph comes back."""
    rng = random.Random(seed)
    if rng.random() < 0.5:
        graph = random_dag(rng, 40, NAMES)
    else:
        strategy = rng.choice(["round-robin", "stages"])
        graph = run_pass(Place(DEVICES, strategy=strategy, stages=3), random_state_graph(rng, 40)).graph
    described = cluster(f"local: {{CPU: 3}}\nlinks: {{local: {{latency: {rng.choice(['0us', '1us', '100us'])}}}}}")
    parts, schedule = split(graph, ScheduleReceives(described.speeds))
    assert schedule.seconds[1] <= schedule.seconds[0] * (1 + SUM)
    assert all(after <= before for before, after in schedule.peaks.values())
    assert schedule.scheduled + sum(schedule.left.values()) == len(parts.transfers)
    assert structure(join(parts.graphs)) == structure(graph)
    fetches = [f"{n.name}:0" for n in graph if n.op in ("AddV2", "Mul", "Tanh", "Neg", "Sub", "ReadVariableOp")]
    feeds = {"x:0": np.float32([0.5, -2]), "y:0": np.float32([3, 0.25])}
    together = (
        PartitionGraph("device", share_controls=True, schedule=ScheduleReceives(described.speeds)).apply(graph).graph
    )
    for mine, theirs in zip(
        compute(together, fetches, feeds), compute(join(parts.graphs), fetches, feeds), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


def test_weights_come_one_after_another() -> None:
    """A worker that had all weights of a parameter server at once has two, as each comes while the one before works."""
    graph = layers(12)
    for node in graph:
        node.device = NAMES[node.op == "Const"]
    parts, schedule = split(graph)
    weight = 256 * 256 * 4
    (before, after), server = (schedule.peaks[name] for name in NAMES[:2])
    assert before > 11 * weight and after < 3 * weight and server == (12 * weight, 12 * weight)
    assert schedule.seconds[1] == pytest.approx(schedule.seconds[0], rel=SUM)
    found = {name: [node.name for node in nodes] for name, nodes in waits(parts).items()}
    assert len(found) == schedule.scheduled >= 9
    numbers = {int(name.split("/")[0][5:]): int(nodes[0].split("/")[0][5:]) for name, nodes in found.items()}
    assert all(waited < number for number, waited in numbers.items())
    plain = PartitionGraph("device", share_controls=True).split(graph)
    assert not waits(plain) and plain.schedule is None


def test_by_task_a_receive_waits_for_a_node_of_its_own_device() -> None:
    graph = layers(12)
    for index, node in enumerate(graph):
        server, device = node.op == "Const", index % 2
        node.device = f"/job:{'ps' if server else 'worker'}/replica:0/task:0/device:CPU:{0 if server else device}"
    parts = PartitionGraph("task", share_controls=True, schedule=ScheduleReceives()).split(graph)
    assert waits(parts)
    for part in parts.graphs.values():
        for node in part:
            if node.op in RECV_OPS:
                assert all(each.device == node.device for each in node.control_inputs)


def branches() -> Graph:
    """On one device a branch, long enough that weights of another device are waited for with its nodes."""
    graph = Graph()
    choose = graph.add("Placeholder", "choose", attrs={"dtype": dtypes.bool_, "shape": Shape([])}, device=NAMES[0])
    last = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([64, 64])}, device=NAMES[0])
    switch = graph.add("Switch", "switch", [last, choose], attrs={"T": F}, device=NAMES[0])
    taken = switch.output(1)
    for index in range(6):
        taken = graph.add("MatMul", f"then{index}", [taken, taken], attrs={"T": F}, device=NAMES[0]).output()
    other = graph.add("Neg", "else", [switch.output(0)], attrs={"T": F}, device=NAMES[0])
    merge = graph.add("Merge", "merge", [other.output(), taken], attrs={"T": F, "N": 2}, device=NAMES[0])
    last = merge.output()
    for index in range(4):
        given = graph.add("Placeholder", f"w{index}", attrs={"dtype": F, "shape": Shape([64, 64])}, device=NAMES[1])
        last = graph.add("AddV2", f"sum{index}", [last, given], attrs={"T": F}, device=NAMES[0]).output()
    return graph


@pytest.mark.parametrize("choose", [False, True])
def test_a_node_that_may_be_dead_is_waited_for_through_a_trigger(choose: bool) -> None:
    graph = branches()
    described = cluster("local: {CPU: 2}\nlinks: {local: {latency: 1us}}")
    parts, schedule = split(graph, ScheduleReceives(described.speeds))
    triggers = [node for part in parts.graphs.values() for node in part if node.op == "ControlTrigger"]
    assert schedule.scheduled and triggers and all(node.attr(MARK) == b"schedule" for node in triggers)
    assert {node.op for nodes in waits(parts).values() for node in nodes} == {"ControlTrigger"}
    rng = np.random.default_rng(5)
    feeds: dict[str, Any] = {"x:0": (rng.random((64, 64)) / 64).astype(np.float32), "choose:0": np.bool_(choose)}
    feeds |= {f"w{index}:0": rng.random((64, 64), np.float32) for index in range(4)}
    together = PartitionGraph("device", schedule=ScheduleReceives(described.speeds)).apply(graph).graph
    for mine, theirs in zip(compute(together, ["sum3:0"], feeds), compute(graph, ["sum3:0"], feeds), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert structure(join(parts.graphs)) == structure(graph)


@pytest.mark.tensorflow
def test_in_tensorflow_with_loops_and_variables(tf: Any) -> None:
    """TensorFlow runs the scheduled parts; what is received in loops is left as it was."""
    made = loops_and_more(tf)
    v1 = tf.compat.v1
    graph = from_tensorflow(made)
    placed = run_pass(Place(DEVICES[:2]), graph).graph
    parts, schedule = split(placed)
    assert schedule.left[IN_LOOP]
    with v1.Session(graph=made, config=plain_config(tf, device_count={"CPU": 2})) as session:
        session.run("w/Assign")
        expected = session.run("y:0", {"x:0": [1.0, 2.0, 3.0]})
    found = in_tensorflow(tf, parts, ["y:0"], {"x:0": np.float32([1, 2, 3])}, ["w/Assign"])
    np.testing.assert_array_equal(found, [expected])


@pytest.mark.tensorflow
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_in_tensorflow_on_random_graphs(tf: Any, seed: int) -> None:
    graph = random_dag(random.Random(seed), 40, NAMES)
    fetches = [f"{n.name}:0" for n in graph if n.op in ("AddV2", "Mul", "Tanh", "Neg", "Sub")]
    feeds = {"x:0": np.float32([0.5, -2]), "y:0": np.float32([3, 0.25])}
    parts, _ = split(graph)
    found = in_tensorflow(tf, parts, fetches, feeds)
    with tf.Graph().as_default() as plain:
        tf.import_graph_def(tf.compat.v1.GraphDef.FromString(graph.to_proto().SerializeToString()), name="")
    with tf.compat.v1.Session(graph=plain, config=plain_config(tf, device_count={"CPU": 3})) as session:
        for mine, theirs in zip(found, session.run(fetches, feeds), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def in_tensorflow(
    tf: Any, parts: Partitioned, fetches: list[str], feeds: dict[str, Any], first: list[str] | None = None
) -> list[Any]:
    """What TensorFlow computes from all partitions in one graph, by their own sends and receives.

    Args:
        first: run before, alone.
    """
    together = Graph()
    copies: dict[Node, Node] = {}
    for part in parts.graphs.values():
        for node in part:
            copies[node] = together.add_copy(node)
    for node, copy in copies.items():
        copy.inputs = [copies[src].output(index) for src, index in node.inputs]
        copy.control_inputs = [copies[src] for src in node.control_inputs]
    sends = [node.name for node in together if node.op in SEND_OPS]
    with tf.Graph().as_default() as made:
        tf.import_graph_def(tf.compat.v1.GraphDef.FromString(together.to_proto().SerializeToString()), name="")
    with tf.compat.v1.Session(graph=made, config=plain_config(tf, device_count={"CPU": 3})) as session:
        for name in first or ():
            session.run(name)
        return session.run([fetches, sends], feeds)[0]


def test_links_decide() -> None:
    """What takes longer on its way than the rest of the step cannot be later."""
    graph = trained(6, size=256)
    for node in graph:
        of_server = node.op in ("VarHandleOp", "ReadVariableOp") or node.name.startswith("apply")
        node.device = NAMES[of_server]
    slow = cluster("local: {CPU: 2}\nlinks: {local: {latency: 1s}}")
    assert not any("read" in name for name in split(graph, ScheduleReceives(slow.speeds))[1].waits)
    fast = cluster("local: {CPU: 2}\nlinks: {local: {latency: 1us}}")
    waited = split(graph, ScheduleReceives(fast.speeds))[1].waits
    assert {name.partition("/")[0]: node for name, node in waited.items() if "read" in name} == {
        f"v{index}": f"layer{index - 2}"
        for index in range(2, 6)  # used again by gradients, so only this once
    }
