"""Random programs with functions, resources and loops on two devices: what TensorFlow's session splits, and we do."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import pytest

from schemas.graph_pb2 import GraphDef
from tests.passes import stages
from tests.passes.graphs import plain_config, to_tensorflow
from tests.passes.test_passes_partition import transfers
from tests.passes.test_semantics import program
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import CONTROL_FLOW_OPS, Node
from toolkit.passes.partitioning.partition import MARK, RECV_OPS, join, split

#: what TensorFlow calls transfers of what lies in the host's memory
_HOST = {"_HostRecv": "_Recv", "_HostSend": "_Send"}


def partitions(tf: Any, seed: int) -> dict[str, Graph]:
    """What TensorFlow's session makes of a program whose nodes are on either device, or on none."""
    before, rng = stages.start(program(seed, subnormal=False)), random.Random(seed)
    graph = before.graph.copy()
    for node in graph:
        tied = any(each.is_ref or each is dtypes.resource for each in node.output_types)
        if not tied and "_class" not in node.attrs and node.op not in CONTROL_FLOW_OPS:
            node.device = rng.choice(["", "", "/cpu:0", "/cpu:1"])
    v1 = tf.compat.v1
    with tf.Graph().as_default() as made:
        tf.import_graph_def(to_tensorflow(tf, graph), name="")
    metadata = v1.RunMetadata()
    config = plain_config(tf, device_count={"CPU": 2}, allow_soft_placement=True)
    with v1.Session(graph=made, config=config) as session:
        session.run(before.initializers, before.feeds)
        options = v1.RunOptions(output_partition_graphs=True)
        session.run([before.fetches, before.targets], before.feeds, options, metadata)
    parts = [Graph.from_proto(GraphDef.FromString(each.SerializeToString())) for each in metadata.partition_graphs]
    return {part.nodes[0].device: part for part in parts}


def client_graph(theirs: dict[str, Graph]) -> Graph:
    """The placed graph that TensorFlow split, functions in place of their calls: without what crosses."""
    for part in theirs.values():
        for node in part:
            stands = node.op == "Const" and re.search(r"/ctrl/_\d+$", node.name) is not None
            stands |= node.op == "Identity" and _stands(node)
            if stands or node.name.startswith("_cloop"):
                node.attrs[MARK] = "control"
    return join(theirs)


def _stands(node: Node) -> bool:
    """Whether an Identity of what is received is one that TensorFlow puts there for a control edge."""
    recv = node.inputs[0].node
    if recv.op not in RECV_OPS:
        return False
    sender = recv.text("tensor_name").split("_", 2)[2]
    return re.fullmatch(re.escape(sender) + r"/_\d+", node.name) is not None


def nodes(parts: dict[str, Graph]) -> dict[str, Counter[str]]:
    """How many nodes of each op are on each device; TensorFlow's control loops need no constant to begin with."""
    return {
        device: Counter(_HOST.get(n.op, n.op) for n in part if not (n.op == "Const" and "/_cloop/" in n.name))
        for device, part in parts.items()
    }


def _is_between(whole: Graph) -> bool:
    """Whether the constant of a loop is read on several devices, or enters an inner loop on another one.

    It goes where its first reader is. Which is the first depends on the order of nodes, and TensorFlow had put it
    there before it wrote down its partitions.
    """
    consumers = whole.consumers()
    return any(
        {edge.dst.device for edge in consumers[node.id] if not edge.is_control} - {node.device}
        for node in whole
        if node.op == "Enter" and node.attr("is_constant")
    )


def check(tf: Any, seed: int) -> bool:
    """Whether it was compared: TensorFlow runs it, two devices take part, and one order of nodes alone is meant.

    TensorFlow does not run functions whose resources come to be on two devices, nor all that take dead tensors.
    """
    try:
        theirs = partitions(tf, seed)
    except tf.errors.InvalidArgumentError:
        return False
    whole = client_graph(theirs)
    if len(theirs) < 2 or _is_between(whole):
        return False
    mine = split(whole)
    assert transfers(mine) == transfers(theirs)
    assert nodes(mine) == nodes(theirs)
    return True


@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", range(30))
def test_nodes_of_each_device_and_what_crosses(tf: Any, seed: int) -> None:
    assert check(tf, seed) or seed in (8, 17, 24, 27)


@pytest.mark.long
@pytest.mark.tensorflow
def test_most_of_many_programs_are_compared(tf: Any) -> None:
    compared = [check(tf, seed) for seed in range(100, 300)]
    assert sum(compared) > 150
