"""What is measured over the columns of a table is what is measured node by node, and no node is made for it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.graph_pb2 import GraphDef
from tests.fuzz import graphs_mutate
from tests.passes.test_passes_validate_mutations import base, break_it
from tests.passes.test_validate_columns import GRAPHS, loops
from tests.passes.validate_graphs import F, I, add, const
from tests.tables import block_bytes, read_all_as_tables, unmade
from toolkit import client as gm
from toolkit.errors import GraphmillError
from toolkit.formats.inspection.report import table
from toolkit.formats.inspection.summary import inspect
from toolkit.formats.models import graphdef
from toolkit.formats.models.model import Model, read_model
from toolkit.formats.node_tables.infer import infer_table
from toolkit.formats.node_tables.order import topological_order
from toolkit.graph.graph import Graph
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape
from toolkit.graph.shapes.calls import Calls
from toolkit.graph.shapes.nested import infer_nested
from toolkit.passes.measuring import explore
from toolkit.passes.measuring.measure import Survey, measure


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are read of graphs of any size."""
    read_all_as_tables(monkeypatch)


def _facts(graph: Graph, **how: Any) -> Any:
    """All that is measured of a graph, or the error."""
    try:
        found = measure(graph, **how)
    except GraphmillError as error:
        return str(error)
    costs = ({key: cost.as_json() for key, cost in each.items()} for each in (found.by_op, found.by_scope))
    return (found.total.as_json(), found.peak_bytes, found.weight_bytes, found.unknown, *costs)


def both_ways(message: GraphDef, **how: Any) -> bool:
    """Compare; whether no node was made of the table. True also where there is none, of unusual bytes."""
    data = message.SerializeToString(deterministic=True)
    graphs = [graphdef.from_bytes(data) for _ in range(2)]
    columns, nodes = graphs
    if columns is None or nodes is None or not _has_table(columns):
        return True
    _ = nodes.nodes
    assert _facts(columns, **how) == _facts(nodes, **how)
    return _has_table(columns)


def _has_table(graph: Graph) -> bool:
    return graph.unmade is not None


def recurrent(**size: Any) -> None:
    """A loop with arrays, and its gradients: stacks, arrays of gradients, a loop that goes back."""
    x = gm.placeholder("float32", size.get("x", [3, 7, 5]), name="x")
    weights = gm.get_variable("w", [9, 16])

    def body(time: Any, hidden: Any, array: Any) -> Any:
        gates = gm.matmul(gm.concat([x[:, time], hidden], 1), weights)
        i, j, f, o = gm.split(gates, 4, 1)
        hidden = gm.sigmoid(o) * gm.tanh(i * j + f)
        return time + 1, hidden, array.write(time, hidden)

    zero = gm.zeros(gm.stack([gm.shape(x)[0], 4]))
    _, last, array = gm.while_loop(lambda time, *_: time < 7, body, [0, zero, gm.TensorArray("float32", 7)])
    out = array.stack()
    gm.grad([gm.reduce_sum(out * out) + gm.reduce_sum(last)], [weights])


def growing() -> None:
    """What goes around in a loop gets longer: nothing is known of its size once that has been seen."""
    x = gm.placeholder("float32", [2, 3], name="x")
    invariants = [Shape([]), Shape([None, 3]), Shape([None])]
    _, rows, sizes = gm.while_loop(
        lambda i, *_: i < 5,
        lambda i, rows, sizes: (i + 1, gm.concat([rows, x], 0), gm.concat([sizes, gm.stack([i])], 0)),
        [0, x, gm.constant([1])],
        shape_invariants=invariants,
    )
    gm.reshape(rows, gm.stack([gm.shape(rows)[0], 3]))
    gm.fill(sizes, 1.0)


def nested() -> None:
    """Loops within loops, branches in them, and gradients through all."""
    x = gm.placeholder("float32", [None, 4], name="x")

    def inner(j: Any, v: Any) -> Any:
        return j + 1, gm.cond(gm.reduce_sum(v) > 0.0, lambda: v * 2.0, lambda: v - 1.0)

    def outer(i: Any, v: Any) -> Any:
        return i + 1, gm.while_loop(lambda j, _: j < i, inner, [0, v])[1]

    y = gm.while_loop(lambda i, _: i < 5, outer, [0, x])[1]
    gm.grad([gm.reduce_sum(y)], [x])


def queued() -> None:
    """Shapes that are those of a queue's elements, and of the scalars that a table holds."""
    queue = gm.queues.FIFOQueue(10, ["float32", "int32"], shapes=[[3], []])
    rows, _ = queue.dequeue_many(4)
    one, _ = queue.dequeue()
    gm.matmul(rows, gm.ones([3, 2]))
    gm.tanh(one)
    other = gm.queues.FIFOQueue(10, ["float32"], shapes=[[2, 2]])
    gm.matmul(other.dequeue(), gm.ones([2, 5]))


PROGRAMS: dict[str, Callable[[], object]] = {
    "recurrent": recurrent, "of any batch": lambda: recurrent(x=[None, 7, 5]), "growing": growing, "nested": nested,
    "queues": queued,
}  # fmt: skip


def made(program: Callable[[], object]) -> GraphDef:
    graph = gm.Graph()
    with graph.as_default():
        program()
    return graph.as_graph_def()


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_programs(program: Callable[[], object]) -> None:
    message = made(program)
    assert both_ways(message)
    assert both_ways(message, batch=3)
    for seed in range(12):
        broken = GraphDef.FromString(message.SerializeToString())
        dice = random.Random(seed)
        if seed % 2:
            break_it(broken, dice)
        else:
            broken = graphs_mutate.mutate(dice, broken)
        both_ways(broken)


def test_a_block_with_defects() -> None:
    """Most are measured over the table even so: what contradicts itself has shapes that are not known."""
    block = block_bytes()
    assert both_ways(GraphDef.FromString(block))
    kept = 0
    for seed in range(40):
        graph = GraphDef.FromString(block)
        dice = random.Random(seed)
        for _ in range(dice.choice((1, 3))):
            break_it(graph, dice)
        kept += both_ways(graph)
    assert kept > 20


@pytest.mark.parametrize("name", ["net", "loop", "calls", "meta"])
def test_broken_graphs(name: str) -> None:
    for seed in range(40):
        graph = base(name)
        break_it(graph, random.Random(seed))
        both_ways(graph)


@pytest.mark.parametrize("back", ["next_1", "enter_1", "next_0"])
def test_broken_loops(back: str) -> None:
    assert both_ways(loops(back="next_1"))
    for seed in range(40):
        graph = loops(back=back)
        break_it(graph, random.Random(seed))
        both_ways(graph)


@pytest.mark.parametrize("change", GRAPHS.values(), ids=GRAPHS.keys())
def test_unusual_nodes(change: Callable[[GraphDef], object]) -> None:
    graph = GraphDef.FromString(block_bytes())
    add(graph, "Placeholder", "feed", dtype=F, shape=Shape([2, 2]))
    change(graph)
    both_ways(graph)


def _many_inputs(graph: GraphDef) -> None:
    for number in range(30):
        add(graph, "AddN", f"sum_{number}", ["x"] * (2 + number % 5), T=F, N=2 + number % 5)


def _shared(graph: GraphDef) -> None:
    """Handles of one name, of which the first that is met counts, and is the larger one."""
    for number in range(6):
        size = [2, 9 - number]
        add(graph, "VarHandleOp", f"v{number}", dtype=F, shape=Shape(size), shared_name=b"same" if number % 2 else b"")
        add(graph, "VariableV2", f"w{number}", dtype=F, shape=Shape(size), shared_name=b"w", container=b"c")


def _vast(graph: GraphDef) -> None:
    """Bytes and operations that no 64 bits hold."""
    size = Shape([1 << 40, 1 << 20])
    add(graph, "Placeholder", "huge", dtype=F, shape=size)
    for number in range(4):
        add(graph, "Tanh", f"t{number}", ["huge"], T=F)
    add(graph, "MatMul", "product", ["huge", "huge"], T=F, transpose_b=True)


def _scopes(graph: GraphDef) -> None:
    for name in ("/x", "a//b", "a/", "/", "a" + "/s" * 300, "a" + "/s" * 300 + "/t"):
        const(graph, name, [1.0, 2.0], [2])


@pytest.mark.parametrize("change", [_many_inputs, _shared, _vast, _scopes])
def test_numbers(change: Callable[[GraphDef], None]) -> None:
    graph = GraphDef()
    graph.versions.producer = 2474
    add(graph, "Placeholder", "x", dtype=F, shape=Shape([2, 3]))
    change(graph)
    assert both_ways(graph)
    assert both_ways(graph, roots=[graph.node[-1].name, "nowhere"])


def test_parts_of_a_graph() -> None:
    graph = GraphDef.FromString(block_bytes())
    for roots in ([], ["y"], ["block_0000001/cond/Merge", "init"], ["block_0000000/while/NextIteration", "x"]):
        assert both_ways(graph, roots=roots)


def test_the_order_is_that_of_nodes() -> None:
    for seed in range(4):
        message = GraphDef.FromString(block_bytes())
        nodes = list(message.node)
        random.Random(seed).shuffle(nodes)
        other = GraphDef(versions=message.versions, library=message.library, node=nodes)
        graph = unmade(other.SerializeToString(deterministic=True))
        columns: Any = graph.unmade
        order = topological_order(columns)
        assert graph.unmade is columns
        assert [node.id for node in graph.topological_order()] == order
        assert both_ways(other)


def test_cycles_are_spelled_out_without_nodes() -> None:
    for length in (1, 3, 9):
        message = GraphDef.FromString(block_bytes())
        names = [f"c{number}" for number in range(length)]
        for number, name in enumerate(names):
            add(message, "Identity", name, [names[number - 1]], T=F)
        add(message, "Identity", "behind", [names[0]], T=F)
        graph = unmade(message.SerializeToString(deterministic=True))
        with pytest.raises(GraphmillError) as mine:
            Survey(graph)
        assert graph.unmade is not None
        with pytest.raises(GraphmillError) as theirs:
            graph.topological_order()
        assert str(mine.value) == str(theirs.value)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_shapes_are_those_of_nodes(program: Callable[[], object]) -> None:
    message = made(program)
    graph = unmade(message.SerializeToString(deterministic=True))
    columns: Any = graph.unmade
    found = infer_table(columns, graph, Calls(), topological_order(columns))
    assert found is not None
    assert graph.unmade is columns
    shapes = infer_nested(graph, Calls())
    for node in graph:
        like = found.like(node.id)
        assert like.op == node.op
        assert found.shapes.of(like) == shapes.of(node), node
        for index in range(node.num_outputs):
            mine, theirs = found.shapes.handle(Output(like, index)), shapes.handle(Output(node, index))
            assert (mine and list(mine)) == (theirs and list(theirs))
            assert found.shapes.constant(Output(like, index)) == shapes.constant(Output(node, index))


def test_views_of_a_model_make_no_nodes(tmp_path: Path) -> None:
    path = tmp_path / "graph.pb"
    path.write_bytes(block_bytes())

    def seen(view: Callable[[Model], Any], *, has_nodes: bool) -> Any:
        model = read_model(path)
        if has_nodes:
            _ = model.graph.nodes
        found = view(model)
        assert (model.graph.unmade is None) is has_nodes
        return found

    views: list[Callable[[Model], Any]] = [explore.costs, explore.tree]
    for view in views:
        assert seen(view, has_nodes=False) == seen(view, has_nodes=True)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_rows_of_nodes_are_the_same(program: Callable[[], object], tmp_path: Path) -> None:
    """Shapes are found over the table, words once for what is alike."""
    path = tmp_path / "graph.pb"
    for seed in range(6):
        message = made(program)
        if seed:
            break_it(message, random.Random(seed))
        path.write_bytes(message.SerializeToString(deterministic=True))
        try:
            columns, nodes = read_model(path), read_model(path)
        except GraphmillError:
            continue
        _ = nodes.graph.nodes
        for query in (None, "fan-out > 1"):
            assert explore.find_nodes(columns, query) == explore.find_nodes(nodes, query)


def test_rows_that_are_shown_are_as_wide_as_all() -> None:
    rows = [["a", "1"], ["b\x1b", "22"], ["a long one", "333,333"]]
    assert table(rows, right=[1], shown=2) == table(rows, right=[1])[:2]


def test_graphs_of_any_size_are_measured_over_their_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.pb"
    path.write_bytes(block_bytes())
    wanted = inspect(path, explore.add_costs)["graphs"][0]
    monkeypatch.setattr(explore, "_MANY", 10)
    assert wanted["costs"] is not None
    assert inspect(path, explore.add_costs)["graphs"][0] == wanted
    message = GraphDef.FromString(block_bytes())
    add(message, "Identity", "around", ["around"], T=F)
    path.write_bytes(message.SerializeToString(deterministic=True))
    assert "around -> around" in inspect(path, explore.add_costs)["graphs"][0]["broken"]
    # what has to be looked at node by node is not, of so many
    add(message, "Identity", "é", ["x"], T=I)
    path.write_bytes(message.SerializeToString(deterministic=True))
    report = inspect(path, explore.add_costs)["graphs"][0]
    assert (report["costs"], report["broken"]) == (None, None)
