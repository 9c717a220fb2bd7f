"""What is brought to where it is taken before a graph is split, and what must stay where it is."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.passes.partitioning.bring_near import bring_near
from toolkit.passes.partitioning.partition import by_device, partition
from toolkit.passes.placement.place import Place
from toolkit.passes.pruning.client_graph import rewrite_for_execution
from toolkit.runtime.devices import make_device
from toolkit.runtime.session import Session
from toolkit.runtime.sessions.graphs import core_graph

DEVICES = [DeviceSpec("localhost", 0, 0, "CPU", number) for number in (0, 1)]
FIRST, SECOND = map(str, DEVICES)
ops = gm.ops
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def placed(build: Callable[[Any], Any]) -> Graph:
    """x float32[3, 4] to y, placed on two devices; "init" gives variables their values."""
    with gm.Graph().as_default() as made:
        x = gm.placeholder(np.float32, [3, 4], name="x")
        gm.identity(build(x), name="y")
        gm.group([each.initializer for each in gm.global_variables()], name="init")
    return Place(DEVICES, allow_soft_placement=True).apply(core_graph(made)).graph


def crossings(graph: Graph, *, shared: bool = True) -> tuple[set[str], set[str]]:
    """What is sent in a step from the first device to the second, as the graph is, and with all brought near."""
    client = rewrite_for_execution(graph, [graph.output("x:0")], [graph.output("y:0")], [])
    near = bring_near(client, by_device, shared=shared)
    before, after = (
        {each.tensor for each in partition(each).transfers if each.send_device == FIRST} for each in (client, near)
    )
    return before, after


def assert_same(graph: Graph) -> None:
    """Split, a step computes what it computes in one piece."""
    whole = graph.copy()
    for node in whole:
        node.device = ""
    found: list[Any] = []
    for each, devices in ((whole, None), (graph, [make_device(device) for device in DEVICES])):
        with Session(each.copy(), devices=devices, precision="exact") as session:
            session.run("init")
            found.append([session.run("y:0", {"x:0": X}) for _ in range(2)])
    np.testing.assert_array_equal(*found)


def variable(value: float = 0.5) -> Any:
    with gm.device(FIRST):
        return gm.Variable(np.full([3, 4], value, np.float32), use_resource=True, name="v")


def loop(body: Callable[[Any], Any], x: Any) -> Any:
    with gm.device(SECOND):
        return gm.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, body(y)), [0, x])[1]


def test_reads_leave_loops_in_which_nobody_writes() -> None:
    def build(x: Any) -> Any:
        v = variable()
        return loop(lambda y: gm.tanh(y * v + 1.0), x)

    graph = placed(build)
    before, after = crossings(graph, shared=False)
    assert any("ReadVariableOp" in each for each in before)
    assert len(after) == 1 and "ReadVariableOp/before" in after.pop()
    assert not crossings(graph)[1]
    assert_same(graph)


def test_reads_leave_nested_loops() -> None:
    def build(x: Any) -> Any:
        v = variable()
        return loop(lambda y: loop(lambda z: gm.tanh(z * v), y) + v, x)

    graph = placed(build)
    _, after = crossings(graph, shared=False)
    assert after and all("/before" in each for each in after)
    assert_same(graph)


@pytest.mark.parametrize("where", ["inside", "before"])
def test_reads_stay_where_variables_may_have_been_written(where: str) -> None:
    def build(x: Any) -> Any:
        v = variable()

        def written(y: Any) -> Any:
            with gm.control_dependencies([v.assign(v * 1.5)]):
                return gm.tanh(y * v.read_value())

        if where == "inside":
            return loop(written, x)
        with gm.control_dependencies([v.assign(v + 1.0)]):
            entered = gm.identity(x)
        return loop(lambda y: gm.tanh(y * v), entered)

    graph = placed(build)
    _, after = crossings(graph)
    assert not any("/before" in each for each in after)
    assert_same(graph)


def test_gradients_stacks_go_with_their_loop() -> None:
    def build(x: Any) -> Any:
        v = variable()
        y = gm.reduce_sum(loop(lambda y: gm.tanh(y * v), x))
        with gm.device(SECOND):
            return gm.grad(y, [x])[0]

    graph = placed(build)
    _, after = crossings(graph, shared=False)
    assert len(after) == 1, after
    assert_same(graph)


def test_constants_and_reads_that_nobody_writes_are_copied() -> None:
    def build(x: Any) -> Any:
        v = variable()
        with gm.device(FIRST):
            weight = gm.identity(gm.constant(np.full([3, 4], 3, np.float32)))
            here = gm.tanh(x)
        with gm.device(SECOND):
            return here * weight + v

    graph = placed(build)
    before, after = crossings(graph)
    assert len(before) == 3
    assert after == {"Tanh:0"}
    assert_same(graph)


def test_reads_beside_writers_are_not_copied() -> None:
    def build(x: Any) -> Any:
        v = variable()
        with gm.device(FIRST):
            read = gm.identity(v)
        with gm.control_dependencies([read]), gm.device(FIRST):
            written = v.assign_add(np.ones([3, 4], np.float32))
        with gm.device(SECOND), gm.control_dependencies([written]):
            return read * x

    graph = placed(build)
    _, after = crossings(graph)
    assert any(not each.startswith("^") for each in after)
    assert_same(graph)


@pytest.mark.parametrize("listed", [True, False], ids=["made there", "read there"])
def test_tensors_cross_in_place_of_lists(listed: bool) -> None:
    def build(x: Any) -> Any:
        with gm.device(FIRST):
            held = ops.tensor_list_from_tensor(gm.tanh(x), np.array([4], np.int32))
            if not listed:
                held = ops.tensor_list_set_item(held, 1, np.ones(4, np.float32))
        with gm.device(SECOND):
            return ops.tensor_list_stack(held, np.array([4], np.int32), np.float32, num_elements=3) * 2.0

    graph = placed(build)
    before, after = crossings(graph)
    assert any("TensorList" in each for each in before)
    assert after == {"Tanh:0"} if listed else "TensorListStack:0" in after
    assert_same(graph)


def test_what_does_not_cross_stays_as_it_is() -> None:
    graph = placed(lambda x: gm.tanh(x) * 2.0)
    for node in graph:
        node.device = FIRST
    assert bring_near(graph, by_device, shared=True) is graph


def joining(x: Any) -> Any:
    """Two assignments on the first device, for which something on the second one waits twice."""
    with gm.device(FIRST):
        cells = [gm.Variable(np.full([3, 4], value, np.float32), use_resource=True) for value in (0.5, 2.0, 3.0)]
        made = [each.assign_add(gm.abs(x) + each) for each in cells]
    with gm.device(SECOND):
        with gm.control_dependencies(made):
            ops.no_op(name="all")
        with gm.control_dependencies([made[0].op, made[1].op]):
            y = gm.tanh(x, name="both")
            z = gm.exp(x, name="too")
    with gm.device(FIRST), gm.control_dependencies([gm.get_default_graph().get_operation_by_name("all")]):
        return y * z + cells[2]


def test_what_is_waited_for_together_crosses_as_one() -> None:
    graph = placed(joining)
    before, after = crossings(graph)
    assert sum(each.startswith("^") for each in before) == 3
    assert {each for each in after if each.startswith("^")} == {"^both/after"}
    client = rewrite_for_execution(graph, [graph.output("x:0")], [graph.output("y:0")], [])
    near = bring_near(client, by_device, shared=True)
    assert near.node("all").device == FIRST
    assert near.node("both").control_inputs == near.node("too").control_inputs
    assert_same(graph)


def test_what_others_wait_for_alone_crosses_alone() -> None:
    def build(x: Any) -> Any:
        y = joining(x)
        with gm.device(SECOND), gm.control_dependencies([gm.get_default_graph().get_operation_by_name("all")]):
            return y + gm.sqrt(gm.abs(x))

    graph = placed(build)
    _, after = crossings(graph)
    assert {each for each in after if each.startswith("^")} == {"^both/after", "^all"}
    assert_same(graph)
