"""Placement: constraints and choices, beside TensorFlow's placer."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.passes.graphs import (
    F,
    plain_config,
    random_dag,
    random_state_graph,
    structure,
    to_tensorflow,
    variable,
)
from toolkit.errors import GraphError, GraphmillError
from toolkit.formats.arrays.tensor import from_array
from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.kernels.facts import input_in_host_memory, output_in_host_memory
from toolkit.passes.base import run_pass
from toolkit.passes.placement.devices import DeviceSet
from toolkit.passes.placement.moved import Moved, moved_lines
from toolkit.passes.placement.place import Place

CPUS = [DeviceSpec("localhost", 0, 0, "CPU", i) for i in range(2)]
CLUSTER = DeviceSet(
    [
        DeviceSpec("ps", 0, 0, "CPU", 0),
        *(DeviceSpec("worker", 0, t, kind, 0) for t in (0, 1) for kind in ("CPU", "GPU")),
    ],
    DeviceSpec("worker", 0, 0),
)


def placed(graph: Graph, devices: Any = CLUSTER, **options: Any) -> dict[str, str]:
    return {node.name: node.device for node in run_pass(Place(devices, **options), graph).graph}


def tensorflow_placement(tf: Any, graph: Graph, *, soft: bool) -> dict[str, str] | None:
    """Where TensorFlow's session puts the nodes on two CPU devices; None when it refuses."""
    config = plain_config(tf, device_count={"CPU": 2}, allow_soft_placement=soft)
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(to_tensorflow(tf, graph), name="")
        for op in imported.get_operations():  # the importer writes the device of a colocated node over its own
            op._set_device(graph.node(op.name).device)
        fetches = [op for op in imported.get_operations() if op.type != "Placeholder"]
        options = tf.compat.v1.RunOptions(output_partition_graphs=True)
        metadata = tf.compat.v1.RunMetadata()
        feeds = {op.outputs[0]: [1.0, 2.0] for op in imported.get_operations() if op.type == "Placeholder"}
        try:
            with tf.compat.v1.Session(graph=imported, config=config) as session:
                session.run(fetches, feeds, options, metadata)
        except tf.errors.InvalidArgumentError:
            return None
        return {node.name: node.device for part in metadata.partition_graphs for node in part.node}


@pytest.mark.tensorflow
@pytest.mark.parametrize("soft", [False, True])
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_like_tensorflow(tf: Any, soft: bool, seed: int) -> None:
    """Partial device names and colocation on random graphs."""
    rng = random.Random(seed)
    graph = random_dag(rng, 12)
    for node in graph:
        node.device = rng.choice(
            ["", "", "/cpu:0", "/cpu:1", "/device:CPU:1", "/job:localhost", "/gpu:0" if soft else ""]
        )
        if rng.random() < 0.2:
            node.attrs["_class"] = [f"loc:@{rng.choice(graph.nodes).name}"]
    theirs = tensorflow_placement(tf, graph, soft=soft)
    try:
        ours = placed(graph, CPUS, allow_soft_placement=soft)
    except GraphmillError as error:
        assert theirs is None, str(error)
        return
    assert theirs is not None
    for node in graph:
        if node.op != "Placeholder" and node.name in theirs:  # placeholders are replaced by arguments there
            assert ours[node.name] == theirs[node.name], (node.name, node.device)


@pytest.mark.tensorflow
@pytest.mark.parametrize("soft", [False, True])
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6))
def test_like_tensorflow_with_state(tf: Any, soft: bool, seed: int) -> None:
    """References and resources bind what uses them, beside device names and colocation."""
    rng = random.Random(seed)
    graph = random_state_graph(rng, 16)
    for node in graph:
        node.device = rng.choice(["", "", "", "", "/cpu:0", "/cpu:1", "/device:CPU:1"])
        if rng.random() < 0.1 and "_class" not in node.attrs:
            node.attrs["_class"] = [f"loc:@{rng.choice(graph.nodes).name}"]
    theirs = tensorflow_placement(tf, graph, soft=soft)
    try:
        ours = placed(graph, CPUS, allow_soft_placement=soft)
    except GraphmillError as error:
        assert theirs is None, str(error)
        return
    assert theirs is not None
    for node in graph:
        if node.op != "Placeholder" and node.name in theirs:
            assert ours[node.name] == theirs[node.name], (node.name, node.device)


def test_defaults_and_constraints() -> None:
    graph = Graph()
    var, value, assign = variable(graph, "v", device="/job:ps")
    read = graph.add("Identity", "read", [var], attrs={"T": F})
    size = graph.add("Size", "size", [read], attrs={"T": F}, device="")
    text = graph.add("Placeholder", "text", attrs={"dtype": dtypes.string, "shape": Shape(())})
    upper = graph.add("StringUpper", "upper", [text])
    pinned = graph.add("Neg", "pinned", [read], attrs={"T": F}, device="/task:1/device:CPU:*")
    found = placed(graph)
    ps, gpu = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:GPU:0"
    assert found[var.name] == found[assign.name] == ps  # a reference stays with its variable
    assert found[value.name] == ps  # a generator goes to its only consumer
    assert found[read.name] == found[size.name] == gpu  # metadata follows its input
    assert found[upper.name] == "/job:worker/replica:0/task:0/device:CPU:0"  # strings have no GPU kernel
    assert found[pinned.name] == "/job:worker/replica:0/task:1/device:CPU:0"


def test_iterators_are_not_put_on_gpus_unasked() -> None:
    """Their kernels for CPUs have the higher priority; what asks for a GPU gets it all the same."""

    def graph(device: str) -> Graph:
        made = Graph()
        types = {"output_types": [F], "output_shapes": [Shape([2])]}
        handle = made.add("IteratorV2", "it", attrs={**types, "shared_name": b"", "container": b""}, device=device)
        item = made.add("IteratorGetNext", "item", [handle], attrs=types, device=device)
        made.add("Neg", "y", [item], attrs={"T": F})
        return made

    cpu, gpu = (f"/job:worker/replica:0/task:0/device:{kind}:0" for kind in ("CPU", "GPU"))
    assert placed(graph("")) == {"it": cpu, "item": cpu, "y": gpu}
    assert placed(graph("/gpu:0")) == {"it": gpu, "item": gpu, "y": gpu}


def test_small_integers_are_on_the_gpu_and_stay_in_host_memory() -> None:
    """A node of int32 has a kernel for GPUs, whose arguments and results are in host memory."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.int32, "shape": Shape([2])})
    y = graph.add("AddV2", "y", [x, x], attrs={"T": dtypes.int32})
    z = graph.add("Cast", "z", [y], attrs={"SrcT": dtypes.int32, "DstT": F})
    found = placed(graph)
    assert set(found.values()) == {"/job:worker/replica:0/task:0/device:GPU:0"}
    assert input_in_host_memory(y, "GPU", 0) and output_in_host_memory(y, "GPU", 0)
    assert not input_in_host_memory(z, "GPU", 0) and not output_in_host_memory(z, "GPU", 0)


def test_report_gives_reasons_and_groups() -> None:
    graph = Graph()
    var, _, _ = variable(graph, "v", device="/job:ps")
    report = Place(CLUSTER).apply(graph).report
    assert report["nodes"]["v"] == {
        "device": "/job:ps/replica:0/task:0/device:CPU:0", "reason": "asks for /job:ps", "group": "v",
    }  # fmt: skip
    assert report["nodes"]["v/Assign"]["reason"] == "asks for /job:ps; takes a reference to 'v'"
    assert report["nodes"]["v/value"]["reason"] == "a generator, next to its consumer 'v/Assign'"
    assert sum(report["devices"].values()) == 3 and var.device == "/job:ps"


def test_resources_stay_with_their_handles() -> None:
    graph = Graph()
    handle = graph.add("VarHandleOp", "v", attrs={"dtype": F, "shape": Shape([2])}, device="/job:ps")
    graph.add("ReadVariableOp", "read", [handle], attrs={"dtype": F})
    assert set(placed(graph).values()) == {"/job:ps/replica:0/task:0/device:CPU:0"}


def bad(device_a: str, device_b: str = "", op: str = "Neg", colocate: bool = True) -> Graph:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])}, device=device_a)
    dtype = dtypes.string if op == "StringUpper" else F
    if op == "StringUpper":
        x = graph.add("Placeholder", "s", attrs={"dtype": dtype, "shape": Shape([2])})
    attrs = {} if op == "StringUpper" else {"T": dtype}
    graph.add(op, "y", [x], attrs=attrs | ({"_class": ["loc:@x"]} if colocate else {}), device=device_b)
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            bad("/job:ps", "/job:worker"),
            "node 'y': it must be on one device with 'x' (colocated with 'x'), but asks for",
        ),
        (bad("/task:0", "/task:1"), "asks for /task:1 while 'x' asks for /task:0"),
        (bad("/task:0", "/task:1"), "; soft placement (place --soft-placement) leaves open what they disagree on"),
        (bad("/job:pss"), "no device fits /job:pss; the cluster has /job:ps/replica:0/task:0/device:CPU:0, "),
        (bad("", "/device:CPU:7", colocate=False), "node 'y': no device fits /device:CPU:7"),
        (
            bad("", "/gpu:0", "StringUpper", colocate=False),
            "StringUpper (string) has no kernel for GPU, which it is bound to (/device:GPU:0); soft placement would",
        ),
    ],
)
def test_impossible(graph: Graph, message: str) -> None:
    with pytest.raises(GraphmillError) as caught:
        placed(graph)
    assert message in str(caught.value)


def test_what_was_moved_and_why() -> None:
    """By a device that is not there, by a kernel that is not, by company; nodes without a wish are never moved."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    s = graph.add("Placeholder", "s", attrs={"dtype": dtypes.string, "shape": Shape([2])})
    there, gpu = "/device:CPU:7", "/job:worker/task:1/device:GPU:0"
    graph.add("Neg", "a", [x], attrs={"T": F}, device=there)
    graph.add("StringUpper", "b", [s], device=gpu)
    graph.add("Neg", "c", [x], attrs={"T": F, "_class": ["loc:@b"]}, device=gpu)
    graph.add("Neg", "d", [x], attrs={"T": F})
    report = run_pass(Place(CLUSTER, allow_soft_placement=True), graph).report
    moved = [Moved(**each) for each in report["moved"]]
    assert [(each.node, each.op, each.asked, each.why) for each in moved] == [
        ("a", "Neg", there, "there is no such device"),
        ("b", "StringUpper", gpu, "there is no GPU kernel for StringUpper (string)"),
        ("c", "Neg", gpu, "colocated with 'b'"),
    ]
    assert all(each.device == report["nodes"][each.node]["device"] for each in moved)
    assert moved_lines([*moved, moved[0]]) == [
        (
            "Neg 'a' and 1 more asked for /device:CPU:7 and run on /job:worker/replica:0/task:0/device:GPU:0: "
            "there is no such device"
        ),
        (
            f"StringUpper 'b' asked for {gpu} and runs on /job:worker/replica:0/task:1/device:CPU:0: "
            "there is no GPU kernel for StringUpper (string)"
        ),
        f"Neg 'c' asked for {gpu} and runs on /job:worker/replica:0/task:1/device:CPU:0: colocated with 'b'",
    ]


@pytest.mark.parametrize(
    ("graph", "node", "device"),
    [
        (bad("", "/device:CPU:7", colocate=False), "y", "/job:worker/replica:0/task:0/device:GPU:0"),
        (
            bad("", "/job:worker/task:1/gpu:0", "StringUpper", colocate=False),
            "y",
            "/job:worker/replica:0/task:1/device:CPU:0",
        ),
        (bad("/cpu:0", "/gpu:0"), "y", "/job:worker/replica:0/task:0/device:GPU:0"),
    ],
)  # fmt: skip
def test_soft_placement(graph: Graph, node: str, device: str) -> None:
    result = run_pass(Place(CLUSTER, allow_soft_placement=True), graph)
    assert result.graph.node(node).device == device
    assert "soft placement" in result.report["nodes"][node]["reason"]


def work(branches: int, size: int) -> Graph:
    """Independent chains of matrix products that are summed up."""
    graph = Graph()
    ends = []
    for b in range(branches):
        last = graph.add("Placeholder", f"x{b}", attrs={"dtype": F, "shape": Shape([size, size])})
        for i in range(4):
            last = graph.add("MatMul", f"b{b}/m{i}", [last, last], attrs={"T": F})
        ends.append(last)
    graph.add("AddN", "sum", ends, attrs={"T": F, "N": branches})
    return graph


def test_greedy_spreads_what_pays() -> None:
    result = Place(CPUS, strategy="greedy").apply(work(4, 512))
    assert min(result.report["devices"].values()) >= 8
    for branch in range(4):  # no chain is torn apart
        assert len({result.graph.node(f"b{branch}/m{i}").device for i in range(4)}) == 1
    simulated = result.report["simulated_seconds"]
    assert simulated["greedy"] < 0.7 * simulated["default"]


def test_greedy_leaves_together_what_does_not_pay() -> None:
    result = Place(CPUS, strategy="greedy").apply(work(4, 2))
    assert list(result.report["devices"].values()) == [len(result.graph), 0]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["default", "single", "round-robin", "greedy"]))
def test_every_node_gets_an_allowed_device(seed: int, strategy: str) -> None:
    rng = random.Random(seed)
    graph = random_dag(rng, 40)
    for node in graph:
        node.device = rng.choice(["", "", "/job:ps", "/job:worker", "/cpu:0", "/job:worker/task:1"])
    before = structure(graph)
    result = run_pass(Place(CLUSTER, strategy=strategy), graph)
    names = {str(d) for d in CLUSTER.devices}
    for node in result.graph:
        assert node.device in names
        wanted = DeviceSpec.parse(graph.node(node.name).device)
        assert wanted.matches(DeviceSpec.parse(node.device))
    assert structure(result.graph) == before == structure(graph)
    again = run_pass(Place(CLUSTER, strategy=strategy), result.graph)
    assert not again.modified


def test_variables_in_turn_over_parameter_servers() -> None:
    devices = DeviceSet([DeviceSpec(job, 0, t, "CPU", 0) for job in ("worker", "ps") for t in (0, 1)])
    graph = Graph()
    for name, device in (("a", ""), ("b", ""), ("c", ""), ("d", "/job:worker")):
        variable(graph, name, device=device)
    found = placed(graph, devices, variables="/job:ps")
    assert [found[n][5:].split("/replica")[0] + found[n][-15:-13] for n in "abcd"] == [
        "ps:0",
        "ps:1",
        "ps:0",
        "worker:0",
    ]
    assert found["b/Assign"] == found["b"]
    with pytest.raises(GraphmillError, match="no task fits /job:pss, where variables should go"):
        placed(graph, devices, variables="/job:pss")


def test_bad_sets_and_strategies() -> None:
    with pytest.raises(GraphmillError, match="there are no devices"):
        DeviceSet([])
    with pytest.raises(GraphmillError, match="not a full device name"):
        DeviceSet([DeviceSpec("w")])
    with pytest.raises(GraphmillError, match="did you mean 'greedy'"):
        placed(Graph(), strategy="gredy")


def test_greedy_keeps_weights_where_they_are_used() -> None:
    """What is made of constants alone is no reason for a transfer, however long the chain."""
    graph = work(4, 512)
    for number, node in enumerate([n for n in graph.nodes if n.op == "MatMul"]):
        value = from_array(np.ones((512, 512), np.float32))
        weight = graph.add("Const", f"weight{number}", attrs={"dtype": F, "value": value})
        read = graph.add("Identity", f"weight{number}/read", [weight], attrs={"T": F})
        scaled = graph.add("Mul", f"weight{number}/scaled", [read, read], attrs={"T": F})
        node.inputs[1] = scaled.output()
    placed = Place(CPUS, strategy="greedy").apply(graph)
    assert placed.report["chosen"] not in ("default", "single")
    for node in placed.graph.nodes:
        if node.op == "MatMul":
            chain = [node.inputs[1].node]
            while chain[-1].inputs:
                chain.append(chain[-1].inputs[0].node)
            assert {n.device for n in chain} == {node.device}


def test_greedy_does_not_spread_small_graphs() -> None:
    result = Place(CPUS, strategy="greedy").apply(work(8, 16))
    assert result.report["chosen"] == "default"
    assert len({node.device for node in result.graph.nodes}) == 1


@pytest.mark.parametrize("device", ["/job:nobody/task:0", "/job:worker/task:9/cpu:0"])
def test_a_task_that_a_running_cluster_has_not_is_a_mistake(device: str) -> None:
    graph = bad("", device, colocate=False)
    assert "/job:worker" in placed(graph, allow_soft_placement=True)["y"]  # a file has the names of other clusters
    for soft in (False, True):
        with pytest.raises(GraphError, match=f"no device fits {device[:12]}.*; the cluster has /job:ps"):
            placed(bad("", device, colocate=False), allow_soft_placement=soft, leaves_tasks=False)
    graph = bad("", "/job:worker/task:1/cpu:7", colocate=False)
    assert "/task:1/" in placed(graph, allow_soft_placement=True, leaves_tasks=False)["y"]
