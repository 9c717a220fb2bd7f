"""Placement by cost: simulation, strategies, memory, stages, rules, parameter servers."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import function_pb2 as pb
from tests import tolerance
from tests.passes.graphs import F, random_dag, random_state_graph, structure, variable
from toolkit.errors import FormatError, GraphmillError
from toolkit.formats.arrays.tensor import from_array
from toolkit.formats.settings.cluster import Cluster, parse_cluster
from toolkit.formats.settings.cost_file import MeasuredCosts, NodeCost
from toolkit.formats.settings.placement_rules import parse_rules
from toolkit.graph import dtypes, plugins
from toolkit.graph.attrs import FuncRef, encode
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.passes.base import PassResult, run_pass
from toolkit.passes.placement.costs import NodeCosts
from toolkit.passes.placement.devices import DeviceSet
from toolkit.passes.placement.place import Place
from toolkit.passes.placement.rules import PARAMETER_OPS
from toolkit.passes.placement.simulation import Simulator
from toolkit.passes.placement.strategies import strategy

#: how far sums of up to a thousand times, in seconds, may be apart
SUM = tolerance.gamma(1000, np.float64)
HERE = "/job:localhost/replica:0/task:0/device:CPU:"


def cluster(text: str) -> Cluster:
    return parse_cluster(text, "c.yaml")


def place(graph: Graph, described: Cluster, **options: Any) -> PassResult:
    devices = DeviceSet(described.devices, described.default)
    return run_pass(Place(devices, speeds=described.speeds, **options), graph)


def layers(count: int, size: int = 256, batch: int = 64) -> Graph:
    """Dense layers with constant weights, one after another."""
    graph = Graph()
    last = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([batch, size])})
    for index in range(count):
        value = from_array(np.full((size, size), index, np.float32))
        weight = graph.add("Const", f"layer{index}/w", attrs={"dtype": F, "value": value})
        last = graph.add("MatMul", f"layer{index}/matmul", [last, weight], attrs={"T": F})
        last = graph.add("Relu", f"layer{index}/relu", [last], attrs={"T": F})
    return graph


def trained(count: int, size: int = 64) -> Graph:
    """Dense layers of resource variables, their gradients by hand, and updates."""
    graph = Graph()
    last: Node = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([32, size])})
    inputs: list[Node] = []
    handles: list[Node] = []
    reads: list[Node] = []
    for index in range(count):
        handle = graph.add("VarHandleOp", f"v{index}", attrs={"dtype": F, "shape": Shape([size, size])})
        handles.append(handle)
        reads.append(graph.add("ReadVariableOp", f"v{index}/read", [handle], attrs={"dtype": F}))
        inputs.append(last)
        last = graph.add("MatMul", f"layer{index}", [last, reads[-1]], attrs={"T": F})
    rate = graph.add("Const", "rate", attrs={"dtype": F, "value": from_array(np.float32(0.1))})
    grad = graph.add("Sub", "loss_grad", [last, last], attrs={"T": F})
    for index in reversed(range(count)):
        step = graph.add("MatMul", f"grad{index}/w", [inputs[index], grad], attrs={"T": F, "transpose_a": True})
        graph.add("ResourceApplyGradientDescent", f"apply{index}", [handles[index], rate, step], attrs={"T": F})
        grad = graph.add("MatMul", f"grad{index}/x", [grad, reads[index]], attrs={"T": F, "transpose_b": True})
    return graph


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_greedy_is_never_worse(seed: int) -> None:
    """On paper no slower than one device or round robin, within the memory, and every device an allowed one."""
    rng = random.Random(seed)
    graph = random_dag(rng, 40) if rng.random() < 0.5 else random_state_graph(rng, 40)
    for node in graph:
        node.device = rng.choice(["", "", "", "", "/cpu:1"]) if node.op in ("Tanh", "Neg") else ""
    overhead, startup = rng.choice(["1us", "50us", "500us"]), rng.choice(["0us", "100us"])
    described = cluster(
        f"local: {{CPU: 3}}\nspeeds: {{CPU: {{overhead: {overhead}, startup: {startup}}}}}\n"
        f"links: {{local: {{latency: {rng.choice(['1us', '100us'])}}}}}"
    )
    seconds = {
        name: place(graph, described, strategy=name).report["simulated"]["seconds"]
        for name in ("single", "round-robin", "greedy")
    }
    assert seconds["greedy"] <= min(seconds.values()) * (1 + 1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_simulation_keeps_to_the_laws(seed: int) -> None:
    """No node runs before its inputs have arrived, no device does two things at once, all memory is given back."""
    rng = random.Random(seed)
    graph = random_dag(rng, 40)
    described = cluster("local: {CPU: 3}\nlinks: {local: {latency: 3us}}")
    where = [rng.choice(described.devices) for _ in graph.nodes]
    order = graph.topological_order()
    costs = NodeCosts(graph, described.speeds)
    step = Simulator(graph, order, costs).run(where)
    ends = {run.node.id: run.end for run in step.runs}
    starts = {run.node.id: run.start for run in step.runs}
    arrivals = {(each.output, each.target): each.end for each in step.transfers}
    assert len(ends) == len(graph) and len(arrivals) == len(step.transfers)
    for node in graph.nodes:
        for source in [*node.inputs, *(Output(src, -1) for src in node.control_inputs)]:
            same = where[source.node.id] == where[node.id]
            ready = ends[source.node.id] if same else arrivals[source, where[node.id]]
            assert starts[node.id] >= ready
    for device in described.devices:
        runs = sorted((run.start, run.end) for run in step.runs if run.device == device)
        assert all(before[1] <= after[0] + 1e-12 for before, after in pairwise(runs))
    assert step.seconds >= max(step.busy.values())
    alone = Simulator(graph, order, costs).run([described.devices[0]] * len(graph))
    assert alone.seconds == pytest.approx(sum(costs.times(described.devices[0])), rel=SUM) and not alone.transfers
    assert max(alone.peak.values()) <= sum(map(sum, costs.held)) + sum(costs.resident)


def test_peak_memory_of_a_chain() -> None:
    """Two tensors of a chain are alive at once, beside the weights; a view takes no memory of its own."""
    graph = Graph()
    last = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([250])})
    for index in range(5):
        last = graph.add("Neg", f"n{index}", [last], attrs={"T": F})
        last = graph.add("Identity", f"i{index}", [last], attrs={"T": F})
    described = cluster("local: {CPU: 2}")
    report = place(graph, described, strategy="single").report["simulated"]
    assert [row["peak_bytes"] for row in report["devices"].values()] == [2000]
    graph.node("n2").device = "/cpu:1"
    report = place(graph, described, strategy="single").report["simulated"]
    assert {row["peak_bytes"] for row in report["devices"].values()} == {2000}
    assert [row["tensor"] for row in report["transfers"]] == ["i1:0", "n2:0"] and report["transfer_bytes"] == 2000


def test_too_large_for_one_device_goes_on_two() -> None:
    graph = layers(8)  # 262,144 bytes of weights each
    described = cluster("local: {CPU: 3}\nspeeds: {CPU: {memory: 1500KB}}")
    with pytest.raises(
        GraphmillError, match=r"does not hold the step: .*CPU:0 would need 2,\d\d\d,\d\d\d bytes"
    ) as told:
        place(graph, described)
    assert "of its 1,500,000 bytes (1.5 MB) (constants and variables take 2,097,152 bytes" in str(told.value)
    assert str(told.value).endswith("; try --strategy greedy")
    for options in ({"strategy": "greedy"}, {"strategy": "stages", "stages": 2}, {"strategy": "stages", "stages": 3}):
        result = place(graph, described, **options)
        rows = result.report["simulated"]["devices"].values()
        assert len(rows) >= 2 and all(row["peak_bytes"] <= 1_500_000 for row in rows)
        for index in range(8):  # weights lie where they are used
            assert len({result.graph.node(f"layer{index}/{n}").device for n in ("w", "matmul")}) == 1
    small = cluster("local: {CPU: 3}\nspeeds: {CPU: {memory: 600KB}}")
    for options in ({"strategy": "greedy"}, {"strategy": "stages", "stages": 3}):
        with pytest.raises(
            GraphmillError, match=r"memory.*constants and variables.* take 2,097,152 bytes.*600,000 bytes"
        ):
            place(graph, small, **options)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_stages_are_balanced_and_cut_where_little_goes(count: int) -> None:
    graph = layers(12)
    result = place(graph, cluster("local: {CPU: 4}"), strategy="stages", stages=count)
    counts = Counter(node.device for node in result.graph if node.op == "MatMul")
    assert counts == {f"{HERE}{i}": 12 // count for i in range(count)}
    assert len(result.report["simulated"]["transfers"]) == count - 1
    stages = [int(node.device[-1]) for node in result.graph if node.op == "MatMul"]
    assert stages == sorted(stages)


def test_gradients_are_in_the_stage_of_their_layer() -> None:
    graph = trained(8)
    result = place(graph, cluster("local: {CPU: 2}"), strategy="stages", stages=2)
    for index in range(8):
        names = (f"v{index}", f"layer{index}", f"apply{index}", f"grad{index}/w")
        assert len({result.graph.node(name).device for name in names}) == 1, index
    assert Counter(n.device for n in result.graph if n.op == "VarHandleOp") == {f"{HERE}0": 4, f"{HERE}1": 4}


def test_too_many_stages() -> None:
    with pytest.raises(GraphmillError, match="3 stages need 3 devices; there are"):
        place(layers(4), cluster("local: {CPU: 2}"), strategy="stages", stages=3)
    with pytest.raises(GraphmillError, match="say how many stages there are with --stages N"):
        place(layers(4), cluster("local: {CPU: 2}"), strategy="stages")
    graph = Graph()
    graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    with pytest.raises(GraphmillError, match="cannot be cut into 2 stages: it has 1 parts"):
        place(graph, cluster("local: {CPU: 2}"), strategy="stages", stages=2)


def test_faster_devices_and_slow_links() -> None:
    """Work goes where it is done sooner, and stays together where the way is slow."""
    graph = layers(4)
    fast = cluster(
        "jobs: {a: [h:1], b: [h:2]}\nspeeds: {/job:b: {flops: 1T, bandwidth: 1TB}}\nlinks: {remote: {latency: 1us}}"
    )
    result = place(graph, fast, strategy="greedy")
    assert {n.device[5] for n in result.graph if n.op == "MatMul"} == {"b"}
    slow = cluster("jobs: {a: [h:1], b: [h:2]}\nspeeds: {/job:b: {flops: 60G}}\nlinks: {remote: {bandwidth: 1KB}}")
    graph.node("x").device = "/job:a"
    assert {n.device[5] for n in place(graph, slow, strategy="greedy").graph} == {"a"}


def test_measured_times_win() -> None:
    """Costs of a file replace the estimates: by node, then by signature, on devices of that type only."""
    graph = layers(2)
    measured = MeasuredCosts(
        {"layer0/matmul": NodeCost("MatMul", "CPU:0", 3e-3), "layer1/matmul": NodeCost("Tanh", "CPU:0", 9.0)},
        {"CPU MatMul(float32[64,256], float32[256,256])": 2e-3},
        overhead=1e-6,
    )
    described = cluster("local: {CPU: 1, GPU: 1}")
    costs = NodeCosts(graph, described.speeds, measured)
    on_cpu = costs.times(described.devices[0])
    assert on_cpu[graph.node("layer0/matmul").id] == pytest.approx(3.001e-3, rel=SUM)
    assert on_cpu[graph.node("layer1/matmul").id] == pytest.approx(2.001e-3, rel=SUM)
    assert costs.times(described.devices[1])[graph.node("layer0/matmul").id] < 1e-4
    unknown = layers(1, batch=1)
    unknown.node("x").attrs["shape"] = Shape([None, 256])
    times = [sum(NodeCosts(unknown, batch=batch).times(described.devices[0])) for batch in (1, 1000)]
    assert times[1] > 10 * times[0]


def test_devices_hand_one_interpreter_to_each_other() -> None:
    """While another device is at work a node takes longer; where one device does everything, none does."""
    graph = Graph()
    for chain in range(2):
        last = graph.add("Placeholder", f"x{chain}", attrs={"dtype": F, "shape": Shape([4])})
        for n in range(5):
            last = graph.add("Neg", f"chain{chain}/{n}", [last], attrs={"T": F})
    ran = {node.name: NodeCost("Neg", "CPU:0", 1e-3) for node in graph if node.op == "Neg"}

    described = cluster("local: {CPU: 2}")

    def simulated(contention: float, second: int) -> float:
        measured = MeasuredCosts(
            ran, step=1e-2, overhead=0.0, latency=0.0, bandwidth=1e12, cores=2, threads=1, startup=0.0,
            contention=contention,
        )  # fmt: skip
        where = [described.devices[second if "1" in node.name.partition("/")[0] else 0] for node in graph.nodes]
        costs = NodeCosts(graph, described.speeds, measured)
        return Simulator(graph, graph.topological_order(), costs).run(where).seconds

    assert simulated(0.0, 1) == pytest.approx(5e-3, rel=SUM)
    assert simulated(1e-3, 1) == pytest.approx(10e-3, rel=SUM)  # the chain that begins second: 2 ms a node
    assert simulated(1e-3, 0) == simulated(0.0, 0) == pytest.approx(10e-3, rel=SUM)


RULES = """
# the first that fits wins
"layer1/*": /device:CPU:1
op = MatMul and not name ~ layer2*: /device:CPU:2
layer2/relu: "@layer1/relu"
"re:^layer(0)/relu$": ""
"nothing*": /cpu:0
"""


def test_rules() -> None:
    graph = layers(4)
    graph.node("layer0/relu").device = "/job:elsewhere"
    result = place(graph, cluster("local: {CPU: 3}"), rules=parse_rules(RULES, "r.yaml"))
    where = {node.name: int(node.device[-1]) for node in result.graph}
    assert where["layer1/matmul"] == where["layer1/relu"] == where["layer2/relu"] == 1
    assert where["layer0/matmul"] == where["layer3/matmul"] == 2
    assert where["layer2/matmul"] == where["layer0/relu"] == 0
    assert result.report["rules"] == {
        "layer1/*": 3, "op = MatMul and not name ~ layer2*": 2, "layer2/relu": 1,
        "re:^layer(0)/relu$": 1, "nothing*": 0,
    }  # fmt: skip
    assert "asks for the device of 'layer1/relu'" in result.report["nodes"]["layer2/relu"]["reason"]
    assert not result.report["moved"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "r.yaml:1:1: the file is empty"),
        ("- a", "r.yaml:1:1: a rule file is a mapping of patterns to devices"),
        ("a*: /cpu:0\n  b: 1", "r.yaml:2: not valid YAML"),
        ("a*: /cpu:0\nb*: nowhere", "r.yaml:2:5: 'nowhere' is not a device name"),
        ("a*: /cpu:0\nb*: [1]", "r.yaml:2:5: the rule for 'b*' has no device name"),
        ("a*: /cpu:0\na*: /cpu:1", "r.yaml:2:1: there is a rule for 'a*' already, at r.yaml:1:1"),
        ("opp = MatMul: /cpu:0", "r.yaml:1:1: "),
        ("re:a(: /cpu:0", "r.yaml:1:1: 'a(' is not a regular expression"),
        ("[1]: /cpu:0", "r.yaml:1:1: a rule begins with a pattern"),
    ],
)
def test_mistakes_in_rules_have_a_place(text: str, told: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_rules(text, "r.yaml")
    assert str(caught.value).startswith(told)


def test_rules_about_nodes_that_are_not_there() -> None:
    for text in ('"*": "@layer0/mtmul"', "before layer0/mtmul: /cpu:0"):
        with pytest.raises(GraphmillError, match=r"r.yaml:1:1: there is no node 'layer0/mtmul'.*did you mean"):
            place(layers(1), cluster("local: {CPU: 2}"), rules=parse_rules(text, "r.yaml"))


def test_the_device_of_another_node() -> None:
    """`@node`, as early versions of TensorFlow wrote it, chains included."""
    graph = layers(2)
    graph.node("layer0/relu").device = "@layer1/relu"
    graph.node("layer0/matmul").device = "@layer0/relu"
    graph.node("layer1/relu").device = "/cpu:1"
    where = {n.name: n.device[-1] for n in place(graph, cluster("local: {CPU: 2}")).graph}
    assert where["layer0/matmul"] == where["layer0/relu"] == where["layer1/relu"] == "1"
    graph.node("layer0/relu").device = "@nobody"
    with pytest.raises(
        GraphmillError, match="node 'layer0/relu': its device '@nobody' is that of a node that does not"
    ):
        place(graph, cluster("local: {CPU: 2}"))


@pytest.mark.tensorflow
@pytest.mark.parametrize("balance", ["round-robin", "bytes"])
def test_variables_as_replica_device_setter_puts_them(tf: Any, balance: str) -> None:
    v1 = tf.compat.v1
    rng = random.Random(3)
    sizes = [rng.randint(1, 500) for _ in range(17)]
    devices = [rng.choice(["", "", "", "/job:ps", "/job:worker", "/device:CPU:0"]) for _ in sizes]
    balancing = None if balance == "round-robin" else _Balance(3)
    setter = v1.train.replica_device_setter(ps_tasks=3, ps_strategy=balancing)
    made = tf.Graph()
    with made.as_default():
        for index, size in enumerate(sizes):
            own = v1.device(devices[index]) if devices[index] else nullcontext()  # None would clear the setter
            with v1.device(setter), own:
                v1.get_variable(f"v{index}", [size], use_resource=index % 2 == 0)
    graph = Graph()
    for index, size in enumerate(sizes):
        op = "VarHandleOp" if index % 2 == 0 else "VariableV2"
        graph.add(op, f"v{index}", attrs={"dtype": F, "shape": Shape([size])}, device=devices[index])
    jobs = cluster("jobs: {worker: [h:1], ps: [h:2, h:3, h:4]}")
    ours = {n.name: n.device for n in place(graph, jobs, variables="/job:ps", balance=balance).graph}
    for index in range(len(sizes)):
        theirs = DeviceSpec.parse(made.get_operation_by_name(f"v{index}").device)
        assert theirs.matches(DeviceSpec.parse(ours[f"v{index}"])), (index, theirs, ours[f"v{index}"])


@pytest.mark.tensorflow
def test_what_goes_on_parameter_servers(tf: Any) -> None:
    """The ops that replica_device_setter takes for parameters."""
    from tensorflow.python.training import device_setter

    assert set(device_setter.STANDARD_PS_OPS) == PARAMETER_OPS


class _Balance:
    """TensorFlow's contrib GreedyLoadBalancingStrategy, gone with contrib: always the task with the least so far."""

    def __init__(self, tasks: int):
        self.loads = [0] * tasks

    def __call__(self, op: Any) -> int:
        task = self.loads.index(min(self.loads))
        self.loads[task] += _bytes_of(op)
        return task


def _bytes_of(op: Any) -> int:
    shape = op.get_attr("shape")
    return 4 * int(np.prod([dim.size for dim in shape.dim]))


PLUGIN = """
from toolkit.passes.placement.constraints import Choice
from toolkit.passes.placement.strategies import strategy

@strategy("last-device", "all on the last device")
def last(task):
    device = task.constraints.set.devices[-1]
    return [Choice(device, "it is the last") for _ in task.constraints.graph.nodes]
"""


def test_a_plugin_brings_a_strategy(tmp_path: Path) -> None:
    (tmp_path / "last.py").write_text(PLUGIN)
    plugins.load(str(tmp_path / "last.py"))
    graph = layers(2)
    described = cluster("local: {CPU: 3}")
    assert {n.device[-1] for n in place(graph, described, strategy="last-device").graph} == {"2"}
    graph.node("layer0/relu").device = "/cpu:0"
    with pytest.raises(
        GraphmillError, match=r"the placement strategy 'last-device' puts it on .*CPU:2, where it may not"
    ):
        place(graph, described, strategy="last-device")
    with pytest.raises(GraphmillError, match="there is a placement strategy 'greedy' already"):
        strategy("greedy", "again")(lambda task: [])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["single", "round-robin", "greedy", "stages"]))
def test_strategies_keep_what_binds(seed: int, name: str) -> None:
    """Groups stay together, wishes are met, nothing else of the graph changes."""
    rng = random.Random(seed)
    graph = random_state_graph(rng, 30)
    for node in graph:
        if node.op in ("Tanh", "Neg", "Mul"):
            node.device = rng.choice(["", "/cpu:0", "/cpu:1"])
        if rng.random() < 0.1 and "_class" not in node.attrs and not node.device:
            node.attrs["_class"] = [f"loc:@{rng.choice(graph.nodes).name}"]
    described = cluster("local: {CPU: 3}")
    try:
        default = place(graph, described)
        result = place(graph, described, strategy=name, stages=2)
    except GraphmillError as error:
        assert "on one device with" in str(error) or "cannot be cut" in str(error), error
        return
    assert structure(result.graph) == structure(default.graph) == structure(graph)
    for key, row in result.report["nodes"].items():
        assert row["group"] == default.report["nodes"][key]["group"]
        if row["group"] is not None:
            assert row["device"] == result.report["nodes"][row["group"]]["device"]
        elif graph.node(key).device:
            assert DeviceSpec.parse(graph.node(key).device).matches(DeviceSpec.parse(row["device"]))


def test_reference_is_overruled_by_its_variable() -> None:
    """What takes a reference or a resource goes where that is, whatever it asks for; two resources cannot be moved."""
    graph = Graph()
    var, _, assign = variable(graph, "v", device="/cpu:1")
    del assign.attrs["_class"]
    assign.device = "/cpu:0"
    described = cluster("local: {CPU: 2}")
    result = place(graph, described)
    assert result.graph.node("v/Assign").device == f"{HERE}1"
    assert [each["node"] for each in result.report["moved"]] == ["v/Assign"]
    other, _, _ = variable(graph, "w", device="/cpu:0")
    other.attrs["_class"] = ["loc:@v"]
    with pytest.raises(GraphmillError, match="node 'w': it must be on one device with 'v'"):
        place(graph, described)
    assert place(graph, described, allow_soft_placement=True).graph.node("w").device == f"{HERE}0"
    assert var.device == "/cpu:1"


def test_resources_that_a_function_uses_together_stay_together() -> None:
    """A call binds nothing, but one node of its body must find both where it runs."""
    graph = Graph()
    handle = pb.FunctionDef()
    handle.signature.name = "adds"
    for name, dtype in (("a", dtypes.resource), ("b", dtypes.resource), ("c", dtypes.resource)):
        handle.signature.input_arg.add(name=name, type=dtype.enum)
    node = handle.node_def.add(name="branch", op="Case", input=["zero:output:0", "c", "a"])
    for key, value in {"Tin": [dtypes.resource] * 2, "Tout": [], "branches": [FuncRef("nothing")]}.items():
        encode(value, node.attr[key])
    zero = handle.node_def.add(name="zero", op="Const")
    encode(dtypes.int32, zero.attr["dtype"])
    encode(from_array(np.int32(0)), zero.attr["value"])
    empty = pb.FunctionDef()
    empty.signature.name = "nothing"
    for name in ("a", "b"):
        empty.signature.input_arg.add(name=name, type=dtypes.resource.enum)
    graph.library.add(empty)
    graph.library.add(handle)
    variables = [graph.add("VarHandleOp", name, attrs={"dtype": F, "shape": Shape([])}) for name in "abc"]
    for each in variables:
        given = graph.add("Placeholder", f"{each.name}/given", attrs={"dtype": F, "shape": Shape([])})
        graph.add("AssignAddVariableOp", f"{each.name}/add", [each, given], attrs={"dtype": F})
    graph.add("adds", "call", variables)
    described = cluster("local: {CPU: 3}")
    placed = place(graph, described, strategy="round-robin")
    a, b, c = (placed.graph.node(name).device for name in "abc")
    assert a == c != b
    assert "the function of 'call' uses it with 'a'" in placed.report["nodes"]["c"]["reason"]
    by_default = place(graph, described, strategy="default").report["nodes"]
    assert by_default["c"]["group"] == "c"  # as in TensorFlow, whose placer looks at calls from outside
    graph.node("a").device, graph.node("c").device = "/cpu:1", "/cpu:2"  # who says otherwise is heard
    told = place(graph, described, strategy="round-robin").graph
    assert told.node("a").device != told.node("c").device


def test_what_was_measured_one_by_one_runs_compiled() -> None:
    """Each node takes its share of the compiled step; in a loop that is spread over devices what it takes alone."""
    from tests.passes import validate_graphs

    graph = Graph.from_proto(validate_graphs.loop())
    inside = {"enter_i", "enter_n", "merge", "less", "cond", "switch", "body", "one", "plus", "next", "exit"}
    ran = {node.name: node.op for node in graph if node.op not in ("Placeholder", "Const")}
    measured = MeasuredCosts(
        {name: NodeCost(op, "CPU:0", 1e-3) for name, op in ran.items()},
        step=1.0, overhead=1e-3, latency=0.0, bandwidth=1e10, compiled=len(ran) * 0.5e-3, cores=1, threads=1,
        startup=0.0,
    )  # fmt: skip
    described = cluster("local: {CPU: 2}")
    costs = NodeCosts(graph, measured=measured)
    assert costs.compiled_share == pytest.approx(0.25, rel=SUM)
    simulator = Simulator(graph, graph.topological_order(), costs)
    assert [sorted(graph.nodes[each].name for each in found) for found in simulator.loops] == [sorted(inside)]

    def seconds(elsewhere: set[str]) -> float:
        here, there = described.devices
        return simulator.run([there if node.name in elsewhere else here for node in graph.nodes]).seconds

    whole = seconds(set())
    chain = ("enter_i", "merge", "less", "cond", "switch", "body", "plus", "next")  # each waits for the one before
    assert whole == pytest.approx(measured.compiled, rel=SUM)
    assert seconds({"result"}) <= whole * (1 + SUM)  # the loop lies on one device
    assert seconds({"plus"}) >= len(chain) * 2e-3 * (1 - SUM)
