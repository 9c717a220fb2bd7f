"""Partitioning: the same sends and receives as TensorFlow's partitioner; join takes them out again."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.graph_pb2 import GraphDef
from tests.passes.graphs import F, from_tensorflow, plain_config, random_dag, random_state_graph, structure, variable
from toolkit import client as gm
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.passes.base import run_pass
from toolkit.passes.partitioning.partition import (
    MARK,
    RECV_OPS,
    SEND_OPS,
    PartitionGraph,
    by_device,
    by_task,
    join,
    partition,
    split,
)
from toolkit.passes.placement.place import Place
from toolkit.passes.pruning.client_graph import rewrite_for_execution
from toolkit.runtime.devices import make_device
from toolkit.runtime.session import Session

CPUS = [f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(2)]
TASKS = [f"/job:worker/replica:0/task:{t}/device:CPU:{i}" for t in range(2) for i in range(2)]


def transfers(parts: dict[str, Any]) -> Counter[Any]:
    """What is sent and received: op, source tensor's name without the edge number, both devices, type."""
    found: Counter[Any] = Counter()
    for graph in parts.values():
        for node in graph:
            if node.op in SEND_OPS | RECV_OPS:
                name = node.attr("tensor_name").decode().split("_", 2)[2]
                dtype = node.attr("T" if node.op in SEND_OPS else "tensor_type")
                kind = "send" if node.op in SEND_OPS else "recv"
                ends = node.attr("send_device").decode(), node.attr("recv_device").decode()
                found[kind, name, *ends, dtype, node.attr("client_terminated")] += 1
    return found


def in_tensorflow(tf: Any, made: Any, fetches: list[str], feeds: dict[str, Any]) -> tuple[dict[str, Graph], list[Any]]:
    """The partitions that TensorFlow's session makes on two CPU devices, and what it computes."""
    metadata = tf.compat.v1.RunMetadata()
    options = tf.compat.v1.RunOptions(output_partition_graphs=True)
    with tf.compat.v1.Session(graph=made, config=plain_config(tf, device_count={"CPU": 2})) as session:
        values = session.run(fetches, feeds, options, metadata)
    graphs = [Graph.from_proto(GraphDef.FromString(p.SerializeToString())) for p in metadata.partition_graphs]
    return {graph.nodes[0].device: graph for graph in graphs}, values


def loops_and_more(tf: Any) -> Any:
    v1 = tf.compat.v1
    made = tf.Graph()
    v1.disable_control_flow_v2()
    with made.as_default():
        with tf.device("/cpu:0"):
            x = v1.placeholder(tf.float32, [3], name="x")
            a = tf.add(x, 1.0, name="a")
            w = v1.Variable([1.0, 2.0, 3.0], use_resource=False, name="w")
            with tf.control_dependencies([a]):
                nothing = tf.no_op("nothing")
        with tf.device("/cpu:1"):
            b = tf.multiply(a, a, name="b")
            c = tf.multiply(a, b, name="c")
            with tf.control_dependencies([nothing]):
                d = tf.identity(c, name="d")

            def body(i: Any, s: Any) -> Any:
                with tf.device("/cpu:0"):
                    t = tf.multiply(s, 0.5)

                    def inner(j: Any, u: Any) -> Any:
                        with tf.device("/cpu:1"):
                            return j + 1, tf.add(u, b)

                    _, t = v1.while_loop(lambda j, u: j < 2, inner, [0, t], name="inner")
                with tf.device("/cpu:1"):
                    return i + 1, tf.add(t, a)

            _, e = v1.while_loop(lambda i, s: i < 3, body, [0, d], name="loop")
        with tf.device("/cpu:0"):
            tf.add(tf.add(e, c), v1.assign_add(w, e), name="y")
    return made


@pytest.mark.tensorflow
def test_like_tensorflow_with_loops_and_variables(tf: Any) -> None:
    """Given TensorFlow's own placement, the same tensors cross, control loops included."""
    made = loops_and_more(tf)
    v1 = tf.compat.v1
    with v1.Session(graph=made, config=plain_config(tf, device_count={"CPU": 2})) as session:
        session.run("w/Assign")
        metadata = v1.RunMetadata()
        session.run("y:0", {"x:0": [1.0, 2.0, 3.0]}, v1.RunOptions(output_partition_graphs=True), metadata)
    theirs = {
        p.node[0].device: Graph.from_proto(GraphDef.FromString(p.SerializeToString()))
        for p in metadata.partition_graphs
    }
    devices = {n.name: n.device for part in theirs.values() for n in part}
    full = from_tensorflow(made)
    for node in full:
        node.device = devices.get(node.name, CPUS[0])
    mine = rewrite_for_execution(full, [full.output("x:0")], [full.output("y:0")], [])
    for node in mine:
        node.device = devices.get(node.name, CPUS[0])
    parts = partition(mine, by_device)
    assert transfers(parts.graphs) == transfers(theirs)
    loops = Counter(
        n.attr("frame_name") for p in theirs.values() for n in p if n.name.startswith("_cloop") and n.op == "Enter"
    )
    ours = Counter(
        n.attr("frame_name") for p in parts.graphs.values() for n in p if MARK in n.attrs and n.op == "Enter"
    )
    assert ours == loops and parts.control_loops == sum(loops.values())
    assert structure(join(parts.graphs)) == structure(mine)


@pytest.mark.tensorflow
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_like_tensorflow_on_random_graphs(tf: Any, seed: int) -> None:
    rng = random.Random(seed)
    graph = random_dag(rng, 20, CPUS)
    fetches = [f"{node.name}:0" for node in graph if node.op not in ("NoOp", "Placeholder")][-4:]
    feeds = {"x:0": np.float32([1, 2]), "y:0": np.float32([3, 4])}
    with tf.Graph().as_default() as made:
        tf.import_graph_def(tf.compat.v1.GraphDef.FromString(graph.to_proto().SerializeToString()), name="")
    theirs, _ = in_tensorflow(tf, made, fetches, feeds)
    devices = {n.name: n.device for part in theirs.values() for n in part}
    mine = rewrite_for_execution(graph, [graph.output(f) for f in feeds], [graph.output(f) for f in fetches], [])
    for node in mine:
        node.device = devices.get(node.name, CPUS[0])
    assert transfers(split(mine)) == transfers(theirs)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["task", "device"]))
def test_join_undoes_split(seed: int, by: str) -> None:
    graph = random_dag(random.Random(seed), 40, TASKS)
    before = structure(graph)
    parts = PartitionGraph(by).split(graph)
    assert structure(graph) == before
    key = by_task if by == "task" else by_device
    for name, part in parts.graphs.items():
        assert {key(node) for node in part} == {name}
    sends, recvs = (
        Counter(
            (n.attr("send_device"), n.attr("recv_device"), n.attr("tensor_name"), n.attr("send_device_incarnation"))
            for p in parts.graphs.values() for n in p if n.op in ops
        )
        for ops in (SEND_OPS, RECV_OPS)
    )  # fmt: skip
    assert sends == recvs and max(sends.values(), default=1) == 1 and len(sends) == len(parts.transfers)
    # one transfer for each tensor and destination
    assert max(Counter((t.tensor, t.target) for t in parts.transfers).values(), default=1) == 1
    joined = join(parts.graphs)
    assert structure(joined) == before
    assert {n.name: n.device for n in joined} == {n.name: n.device for n in graph}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_split_twice(seed: int) -> None:
    """By task, and each task by device, as a cluster does; all parts together still are the graph."""
    graph = random_dag(random.Random(seed), 60, TASKS)
    leaves: dict[str, Graph] = {}
    for part in split(graph, by_task).values():
        leaves |= split(part, by_device)
    assert set(leaves) == {node.device for node in graph}
    assert structure(join(leaves)) == structure(graph)


def test_rendezvous_key() -> None:
    graph = Graph()
    x = graph.add("Placeholder", "w/read", attrs={"dtype": F, "shape": Shape([2])}, device=TASKS[0])
    graph.add("Neg", "y", [x], attrs={"T": F}, device=TASKS[2])
    (transfer,) = partition(graph, by_task, incarnation=lambda device: 0xABC).transfers
    assert transfer.key == f"{TASKS[0]};0000000000000abc;{TASKS[2]};edge_1_w/read;0:0"
    assert (transfer.tensor, transfer.dtype, transfer.source) == ("w/read:0", F, "/job:worker/replica:0/task:0")


def test_variable_is_read_after_what_its_reader_waits_for() -> None:
    """A reader in another partition sees the value after its other inputs, as it would at home."""
    graph = Graph()
    var, _, assign = variable(graph, "v")
    graph.add("Identity", "read", [var], control_inputs=[assign], attrs={"T": F})
    for node in graph:
        node.device = CPUS[node.name == "read"]
    parts = split(graph)
    (value,) = (n for n in parts[CPUS[1]] if n.op == "_Recv" and not n.attr("tensor_name").endswith(b"Assign"))
    assert value.attr("tensor_type") is F and [n.op for n in value.control_inputs] == ["Identity"]
    assert structure(join(parts)) == structure(graph)


def test_colocation_with_another_partition_is_dropped() -> None:
    graph = random_dag(random.Random(3), 10, [CPUS[0]])
    graph.node("x").device = CPUS[1]
    last = graph.nodes[-1]
    last.attrs["_class"] = ["loc:@x", "loc:@y"]
    assert split(graph)[CPUS[0]].node(last.name).attr("_class") == [b"loc:@y"]


def test_gpu_strings_and_sizes_go_through_host_memory() -> None:
    graph = Graph()
    gpu = CPUS[0].replace("CPU", "GPU")
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])}, device=CPUS[0])
    size = graph.add("Shape", "size", [x], attrs={"T": F, "out_type": dtypes.int32}, device=gpu)
    graph.add("Identity", "out", [size], attrs={"T": dtypes.int32}, device=CPUS[0])
    graph.add(
        "Reshape", "back", [x, size], attrs={"T": F, "Tshape": dtypes.int32}, device=CPUS[1].replace("CPU", "GPU")
    )
    ops = {n.name.partition("/")[0]: n.op for p in split(graph).values() for n in p if n.op in SEND_OPS}
    assert ops == {"x": "_Send", "size": "_HostSend"}
    recvs = Counter(n.op for p in split(graph).values() for n in p if n.op in RECV_OPS)
    assert recvs == {"_Recv": 3, "_HostRecv": 1}


def test_functions_go_where_they_are_called() -> None:
    from schemas.function_pb2 import FunctionDef

    graph = random_dag(random.Random(5), 10, CPUS)
    for name in ("f", "g"):
        function = FunctionDef()
        function.signature.name = name
        graph.library.add(function)
        graph.add(
            "PartitionedCall", f"call_{name}", attrs={"Tin": [], "Tout": [], "f": _ref(name)}, device=CPUS[name == "g"]
        )
    parts = split(graph)
    assert [list(parts[d].library) for d in CPUS] == [["f"], ["g"]]
    assert sorted(join(parts).library) == ["f", "g"]


def _ref(name: str) -> Any:
    from toolkit.graph.attrs import FuncRef

    return FuncRef(name)


def unplaced(device: str) -> Graph:
    graph = random_dag(random.Random(0), 3, CPUS)
    graph.nodes[2].device = device
    return graph


def crossing_reference() -> Graph:
    graph = Graph()
    var, value, assign = variable(graph, "v")
    var.device = value.device = CPUS[0]
    assign.device = CPUS[1]
    return graph


@pytest.mark.parametrize(
    ("graph", "by", "message"),
    [
        (unplaced(""), "task", "it has no device; run graphmill place first"),
        (unplaced("/cpu:0"), "device", "its device '/cpu:0' is only part of a name"),
        (unplaced("nowhere"), "device", "'nowhere' is not a device name"),
        (crossing_reference(), "device", "node 'v/Assign': it changes 'v' on /job:localhost"),
        (unplaced(CPUS[0]), "tasks", "did you mean 'task'"),
    ],
)
def test_refused(graph: Graph, by: str, message: str) -> None:
    with pytest.raises(GraphmillError) as caught:
        PartitionGraph(by).split(graph)
    assert message in str(caught.value)


def test_missing_partition() -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])}, device=CPUS[0])
    graph.add("Neg", "y", [x], attrs={"T": F}, device=CPUS[1])
    parts = split(graph)
    del parts[CPUS[0]]
    with pytest.raises(GraphmillError, match=r"nothing sends the tensor 'edge_1_x'.*is a partition missing"):
        join(parts)


def test_loop_without_condition() -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])}, device=CPUS[0])
    enter = graph.add("Enter", "enter", [x], attrs={"T": F, "frame_name": "f", "is_constant": True}, device=CPUS[0])
    graph.add("Neg", "a", [enter], attrs={"T": F}, device=CPUS[0])
    graph.add("Neg", "b", [enter], attrs={"T": F}, device=CPUS[1])
    with pytest.raises(GraphmillError, match="the loop 'f' spreads over several partitions but has no LoopCond"):
        split(graph)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["task", "device"]), st.sampled_from(["", "bfloat16", "half"]))
def test_join_undoes_sharing_and_compression(seed: int, by: str, compress: str) -> None:
    rng = random.Random(seed)
    graph = random_dag(rng, 40, TASKS) if rng.random() < 0.5 else random_state_graph(rng, 40)
    if not graph.nodes[0].device:
        graph = run_pass(Place([DeviceSpec.parse(name) for name in TASKS], strategy="round-robin"), graph).graph
    plain = PartitionGraph(by).split(graph)
    parts = PartitionGraph(by, share_controls=True, compress=compress).split(graph)
    assert structure(join(parts.graphs)) == structure(graph)
    data = Counter(t.tensor for t in plain.transfers if not t.tensor.startswith("^"))
    assert Counter(t.tensor for t in parts.transfers if not t.tensor.startswith("^")) == data
    assert len(parts.transfers) <= len(plain.transfers)
    shared = {(t.tensor.partition(":")[0], t.target) for t in parts.transfers if not t.tensor.startswith("^")}
    again = [t for t in parts.transfers if t.tensor.startswith("^") and (t.tensor[1:], t.target) in shared]
    assert not again or any(o.dtype.is_ref for n in graph for o in n.inputs)
    if compress:
        assert all(t.dtype is not F for t in parts.transfers if not t.tensor.startswith("^"))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_any_placement_and_partition_computes_the_same(seed: int) -> None:
    """State, in an order that control edges make: whole on one device; placed, split and joined on four."""
    rng = random.Random(seed)
    graph = random_state_graph(rng, 30)
    fetches = [f"{n.name}:0" for n in graph if n.op in ("AddV2", "Mul", "Tanh", "Neg", "Identity", "ReadVariableOp")]
    given = {"x:0": np.float32([0.5, -2]), "y:0": np.float32([3, 0.25])}
    expected = Session(graph, force_tokens=True).run(fetches, given) if fetches else []
    devices = [DeviceSpec("localhost", 0, 0, "CPU", i) for i in range(3)]
    for strategy in ("round-robin", "greedy"):
        placed = run_pass(Place(devices, strategy=strategy), graph).graph
        joined = join(PartitionGraph("device", share_controls=True).split(placed).graphs)
        with Session(joined, devices=list(map(make_device, devices)), force_tokens=True) as session:
            for mine, theirs in zip(session.run(fetches, given) if fetches else [], expected, strict=True):
                np.testing.assert_array_equal(mine, theirs)


def test_compressed_transfers_lose_the_lower_half() -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([3])}, device=CPUS[0])
    graph.add("Neg", "y", [x], attrs={"T": F}, device=CPUS[1])
    whole = PartitionGraph("device", compress="bfloat16").apply(graph).graph
    given = np.float32([1 / 3, 1e30, -2.0])
    devices = [make_device(DeviceSpec.parse(name)) for name in CPUS]
    with Session(whole, devices=devices) as session:
        sends = [node.name for node in whole if node.op in SEND_OPS]  # nothing else would run them
        found = session.run(["y:0", sends], {"x:0": given})[0]
    cut = (given.view(np.uint32) & 0xFFFF0000).view(np.float32)
    np.testing.assert_array_equal(found, -cut)


def test_readers_of_a_variable_elsewhere_see_it_before_and_after_a_write() -> None:
    """Each has a receive of its own, for the write between them waits for the first reader."""
    graph = Graph()
    attrs = {"T": F}
    var, value, assign = variable(graph, "v")
    early = graph.add("Neg", "early", [var], control_inputs=[assign], attrs=attrs)
    write = graph.add("AssignAdd", "write", [var, value], control_inputs=[early], attrs=attrs)
    graph.add("Neg", "late", [var], control_inputs=[write], attrs=attrs)
    graph.add("Neg", "late_too", [var], control_inputs=[write], attrs=attrs)
    for node in graph:
        node.device = CPUS[node.op == "Neg"]
    received = [t for t in partition(graph).transfers if t.tensor == "v:0"]
    assert len(received) == 2 and len({t.key for t in received}) == 2
    given = {"v/value:0": np.float32([1, -3])}
    with Session(graph, devices=[make_device(DeviceSpec.parse(name)) for name in CPUS]) as session:
        for _ in range(2):
            found = session.run(["early:0", "late:0", "late_too:0"], given)
            np.testing.assert_array_equal(found, [[-1, 3], [-2, 6], [-2, 6]])


def test_what_is_sent_of_a_variable_is_what_it_holds_when_its_reader_asks() -> None:
    """The write is not on the reader's way, and may come long after the send."""
    graph = Graph()
    attrs = {"T": F}
    var, value, assign = variable(graph, "v")
    step: Node = assign
    for index in range(40):  # the send of the variable itself waits for nothing
        step = graph.add("Neg", f"n{index}", [value], control_inputs=[step], attrs=attrs)
    write = graph.add("AssignAdd", "write", [var, value], control_inputs=[step], attrs=attrs)
    graph.add("Neg", "read", [var], control_inputs=[write], attrs=attrs)
    for node in graph:
        node.device = CPUS[node.name == "read"]
    given = {"v/value:0": np.float32([1, -3])}
    with Session(graph, devices=[make_device(DeviceSpec.parse(name)) for name in CPUS]) as session:
        session.run(["v/Assign"], given)
        np.testing.assert_array_equal(session.run("read:0", given), [-2, 6])


def test_a_reference_that_is_read_in_a_loop_elsewhere_comes_in_every_iteration() -> None:
    """It enters the loop where its variable is, which goes round with it although nothing else of it is there."""
    graph = gm.Graph()
    with graph.as_default():
        with gm.device("/device:CPU:1"):
            v = gm.Variable(2.0, name="v", use_resource=False)
        with gm.device("/device:CPU:0"):
            total = gm.while_loop(
                lambda i, _: i < 3,
                lambda i, s: (i + 1, s + gm.ops.identity(v.handle)),
                [gm.constant(0), gm.constant(0.0)],
            )[1]
            gm.identity(total, name="total")
        gm.global_variables_initializer()
    core = graph.core
    readers = [node for node in core if node.op == "Identity" and node.inputs[0].node.op == "RefEnter"]
    assert readers
    for node in core:
        if node.op == "RefEnter":
            node.device = "/device:CPU:1"
    for node in readers:
        node.device = "/device:CPU:0"
        node.attrs.pop("_class", None)
    with Session(core, devices={"CPU": 2}) as session:
        session.run("init", timeout_ms=60_000)
        assert session.run("total:0", timeout_ms=60_000) == 6.0
