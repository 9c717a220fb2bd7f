"""Steps over tables of nodes: results and errors are those of tokens, and no node is made where nothing is unusual."""

# lambdas over tensors of the client, whose parameters have no types; numpy's overloads answer arrays typed Any
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from schemas.graph_pb2 import GraphDef
from tests.fuzz import loop_frames
from tests.tables import block_bytes, read_all_as_tables, unmade
from toolkit import client as gm
from toolkit.errors import CancelledError, GraphmillError
from toolkit.formats.models.model import from_graph
from toolkit.graph.graph import Graph
from toolkit.graph.node import LoneNode, Node
from toolkit.graph.tensorref import parse_tensor
from toolkit.runtime.executors import once, planned
from toolkit.runtime.jobs.job import run_model
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.session import Session
from toolkit.runtime.steps.step import DeviceStep
from toolkit.runtime.table_steps import planner
from toolkit.runtime.table_steps import run as table_run

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are read of graphs of any size, and programs of any size are large."""
    read_all_as_tables(monkeypatch)
    monkeypatch.setattr(planned, "LARGE", 0)
    monkeypatch.setattr(planner, "LARGE", 0)
    monkeypatch.setattr(table_run, "TIMES", 100)  # small loops go around as often as large graphs may
    monkeypatch.setattr(table_run, "KNOWN_BYTES", 1 << 20)


class Ran:
    """What came of a session over a graph.

    Attributes:
        told: the bytes of all results, or what the error says.
        needed_no_node: whether none was made.
    """

    def __init__(
        self,
        data: bytes,
        fetches: Sequence[str],
        feeds: Mapping[str, Any],
        init: Sequence[str],
        **ways: Any,
    ):
        graph = unmade(data)
        if ways.pop("made", False):
            _ = graph.nodes
        with Session(graph, **ways) as session:
            try:
                for name in init:
                    session.run(graph.glance(name))
                wanted = [graph.glance_output(parse_tensor(name)) for name in fetches]
                given = {graph.glance_output(parse_tensor(name)): value for name, value in feeds.items()}
                values = session.run(wanted, given)
                self.told: Any = [
                    (np.asarray(value).dtype, np.shape(value), np.asarray(value).tobytes()) for value in values
                ]
            except GraphmillError as error:
                self.told = type(error), str(error)
            self.needed_no_node = graph.unmade is not None
            if self.needed_no_node:
                session.moved()
                assert graph.unmade is not None


def same(
    data: bytes, fetches: Sequence[str], feeds: Mapping[str, Any] | None = None, init: Sequence[str] = (),
    ways: Mapping[str, Any] | None = None,
) -> Ran:  # fmt: skip
    """What a step over a table gives: the same as in another way, by default by tokens."""
    mine = Ran(data, fetches, feeds or {}, init, once=True)
    theirs = Ran(data, fetches, feeds or {}, init, **(ways or {"force_tokens": True}))
    assert mine.told == theirs.told
    return mine


def bytes_of(graph: gm.Graph, *, as_sorted: bool = False) -> bytes:
    """A graph as it was made: what leads into branches and loops stands behind its users; or in an order."""
    proto = graph.core.to_proto()
    if as_sorted:
        of = {node.name: node for node in proto.node}
        ordered = [of[node.name] for node in graph.core.topological_order()]
        copies = [type(ordered[0]).FromString(node.SerializeToString()) for node in ordered]
        del proto.node[:]
        proto.node.extend(copies)
    return proto.SerializeToString(deterministic=True)


# -- blocks ----------------------------------------------------------------------------------------------

_FETCHED = ["y", "block_0000000/dense_7/add", "block_0000001/while/Exit_1", "block_0000001/dense_0/kernel/read"]
_ROW = np.linspace(-0.1, 0.1, 8, dtype=np.float32)[None]


def test_blocks_of_layers_run_without_a_node() -> None:
    assert same(block_bytes(), _FETCHED, {"x": _ROW}, ["init"]).needed_no_node


def test_the_command_makes_no_node() -> None:
    found: list[Any] = []
    for by_tokens in (False, True):
        graph = unmade(block_bytes())
        options = RunOptions(feeds={"x": _ROW}, fetches=["y"], init_ops=["init"], force_tokens=by_tokens)
        found.append(run_model(from_graph(graph), options, log=lambda line: None).outputs["y"])
        assert (graph.unmade is None) == by_tokens
    assert found[0].tobytes() == found[1].tobytes()


def test_nodes_that_were_glanced_at_are_those_that_are_made() -> None:
    graph = unmade(block_bytes())
    glanced = [graph.glance(name) for name in ("y", "init", "block_0000001/call")]
    assert graph.glance("y") is glanced[0]
    assert graph.glance("none") is None
    assert type(glanced[0]) is LoneNode
    assert glanced[0] is not None
    assert glanced[0].inputs[0].node.name == "block_0000002/y"
    assert graph.unmade is None
    for node in glanced:
        assert type(node) is Node
        assert graph.nodes[node.id] is node is graph.node(node.name)
    plain = unmade(block_bytes())
    assert graph.to_proto() == plain.to_proto()


def test_what_is_changed_after_a_glance_is_heeded() -> None:
    graph = unmade(block_bytes())
    y = graph.glance("y")
    assert y is not None
    y.attrs["T"] = y.attr("T")
    with Session(graph, once=True) as session:
        session.run(graph.glance("init"))
        assert graph.unmade is None


def test_what_is_asked_for_again_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    build = planned.build

    def counting(program: Any, *args: Any, **more: Any) -> Any:
        sizes.append(len(program.steps))
        return build(program, *args, **more)

    monkeypatch.setattr(planned, "build", counting)
    graph = unmade(block_bytes())
    with Session(graph, once=True) as session:
        session.run(graph.glance("init"))
        y, x = (graph.glance_output(parse_tensor(name)) for name in ("y", "x"))
        first = session.run(y, {x: _ROW})
        assert graph.unmade is not None
        assert max(sizes, default=0) < 100  # the function
        again = session.run(y, {x: _ROW})
        assert max(sizes) > 100
        assert again.shape == first.shape


def test_what_is_cancelled_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def over(step: DeviceStep) -> None:
        raise CancelledError("the step was cancelled")

    graph = unmade(block_bytes())
    with Session(graph, once=True) as session:
        session.run(graph.glance("init"))
        monkeypatch.setattr(DeviceStep, "check_cancelled", over)
        with pytest.raises(CancelledError, match="the step was cancelled"):
            session.run(graph.glance_output(parse_tensor("y")), {graph.glance_output(parse_tensor("x")): _ROW})
        assert graph.unmade is not None


# -- what is fed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feeds", "needs_no_node"),
    [
        ({"x": _ROW, "block_0000000/dense_3/Relu": _ROW}, True),
        ({"block_0000001/y": _ROW}, True),
        ({"x": _ROW, "block_0000001/cond/Switch:1": _ROW}, False),  # both branches have values
        ({"x": _ROW, "block_0000001/dense_0/kernel/read": np.ones((8, 8), np.float32)}, True),
        ({"x": _ROW, "y": _ROW}, True),
        ({"x": _ROW, "block_0000001/while/mul": _ROW}, False),  # in a loop
        ({"x": _ROW, "block_0000001/dense_0/kernel": np.ones((8, 8), np.float32)}, True),  # a variable itself
        ({"x": np.ones((2, 9), np.float32)}, True),  # is refused before anything runs
        ({"block_0000000/dense_3/Relu": np.ones((2, 9), np.float32)}, True),
        ({}, False),  # a placeholder lacks a value
    ],
)
def test_any_tensor_may_be_fed(feeds: dict[str, Any], needs_no_node: bool) -> None:
    found = same(block_bytes(), ["y"], feeds, ["init"])
    if needs_no_node and isinstance(found.told, list):
        assert found.needed_no_node


def test_what_has_no_value_is_told_by_its_node() -> None:
    found = same(block_bytes(), ["y"], {"x": _ROW})
    assert "uninitialized value block_0000000/dense_0/" in found.told[1]


# -- graphs of the client ------------------------------------------------------------------------------------


def _conditionals(x: Any) -> Any:
    def outer(y: Any) -> Any:
        return gm.cond(gm.reduce_sum(y) > 3.0, lambda: gm.exp(y) + gm.constant(1.0), lambda: y - 1.0)

    inner = gm.cond(gm.reduce_max(x) > 0.5, lambda: outer(x * 2.0), lambda: outer(x) * 0.5)
    return [inner, gm.reduce_sum(inner), x + 1.0]


def _loops(x: Any) -> Any:
    def body(y: Any, n: Any) -> Any:
        z, m = gm.while_loop(lambda z, m: gm.reduce_sum(gm.square(z)) > 2.0, lambda z, m: [z * 0.5, m + 1.0], [y, n])
        return [z * 0.75, m]

    y, n = gm.while_loop(lambda y, n: gm.reduce_sum(gm.square(y)) > 0.6, body, [x * 3.0, gm.constant(np.float32(0))])
    again, _ = gm.while_loop(
        lambda y, n: gm.reduce_sum(gm.square(y)) > 0.6, body, [x * 3.0, gm.constant(np.float32(0))]
    )
    return [y, n, again]


def _loop_in_branch(x: Any) -> Any:
    def count() -> Any:
        return gm.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, y * 0.75], [gm.constant(0), x])[1]

    return [gm.cond(gm.reduce_max(x) > 0.5, count, lambda: x - 1.0)]


def _branch_in_loop(x: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        return [i + 1, gm.cond(i > 1, lambda: y * 0.5, lambda: y + 1.0)]

    return gm.while_loop(lambda i, y: i < 4, body, [gm.constant(0), x])


def _many_outputs(x: Any) -> Any:
    a, b, c = gm.split(x, 3, axis=1)
    rows = gm.unstack(x, 4, 0)
    return [gm.concat([c, a, b], 1), gm.add_n(rows), b, gm.shape(x), rows[2]]


def _control(x: Any) -> Any:
    with gm.control_dependencies([gm.identity(x)]):
        late = gm.constant([1.0, 2.0, 3.0])
    return [x + late, late]


@pytest.mark.parametrize(
    ("make", "needs_no_node"),
    [
        (_conditionals, True), (_loops, True), (_loop_in_branch, True), (_branch_in_loop, True), (_many_outputs, True),
        (_control, True),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
@pytest.mark.parametrize(("scale", "as_sorted"), [(0.01, False), (1.0, False), (30.0, False), (1.0, True)])
def test_graphs_of_the_client_give_what_tokens_give(
    make: Callable[[Any], Any], needs_no_node: bool, scale: float, as_sorted: bool
) -> None:
    with gm.Graph().as_default() as graph:
        fetched = make(gm.placeholder(gm.float32, [4, 3], name="x"))
        names = [each.name for each in fetched]
    found = same(bytes_of(graph, as_sorted=as_sorted), names, {"x": X * np.float32(scale)})
    assert isinstance(found.told, list)
    assert found.needed_no_node == needs_no_node


def test_loops_in_loops_give_what_tokens_give() -> None:
    ran = 0
    for case in itertools.islice(loop_frames.cases(11), 0, 200, 5):  # which are as they were built
        data = GraphDef.FromString(case.graph).SerializeToString(deterministic=True)
        found = same(data, case.fetches)
        ran += found.needed_no_node and isinstance(found.told, list)
    assert ran > 30


def test_what_is_on_no_branch_has_no_value() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 3], name="x")
        gm.cond(gm.reduce_sum(x) > 100.0, lambda: gm.identity(x, name="taken"), lambda: x)
    inside = next(node.name for node in graph.core if node.name.endswith("taken"))
    found = same(bytes_of(graph), [inside], {"x": X})
    assert "branch that was not taken" in found.told[1]


@pytest.mark.parametrize("kind", ["reference", "resource"])
def test_variables_get_values_and_are_read(kind: str) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 3], name="x")
        cells = [
            gm.get_variable(f"v{number}", initializer=np.full(3, number, np.float32), use_resource=kind == "resource")
            for number in range(3)
        ]
        y = gm.add_n([x * cell for cell in cells]) + cells[2]
        init = gm.global_variables_initializer()
    found = same(bytes_of(graph), [y.name], {"x": X}, [init.name])
    assert isinstance(found.told, list)
    assert found.needed_no_node


@pytest.mark.parametrize("kind", ["twice", "updates", "draws", "prints", "fails", "shape", "fails in a loop"])
def test_what_is_unusual_is_left_to_nodes(kind: str) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 3], name="x")
        cell = gm.Variable(gm.constant([1.0, 2.0, 3.0]))
        init = [cell.initializer]
        y = x * cell
        if kind == "twice":
            first = cell.assign([5.0, 6.0, 7.0])
            init = [gm.group([cell.initializer, first])]
        elif kind == "updates":
            y = cell.assign_add(gm.reduce_sum(y, 0))
        elif kind == "draws":
            y = y + gm.random_uniform([3], seed=3)
        elif kind == "prints":
            y = gm.ops.print(y, [y])
        elif kind == "fails":
            y = gm.gather(y, gm.cast(gm.reduce_sum(y) * 1000.0, gm.int32) + 7, name="far")
        elif kind == "fails in a loop":
            far = gm.cast(gm.reduce_sum(y) * 1000.0, gm.int32) + 7
            y = gm.while_loop(lambda i, z: i < 3, lambda i, z: [i + 1, z + gm.gather(z, far)], [gm.constant(0), y])[1]
        else:
            y = gm.reshape(gm.tile(y, gm.cast(x[0, :2] * 0.0 + 2.0, gm.int32)), [4, 3], name="wrong")
    ways = {"once": True, "made": True}  # what is compiled has other roundings than tokens
    found = same(bytes_of(graph), [y.name], {"x": X}, [each.name for each in init], ways)
    assert not found.needed_no_node


def test_loops_that_go_on_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_run, "TIMES", once.TIMES)
    sizes: list[int] = []
    build = planned.build

    def counting(program: Any, *args: Any, **more: Any) -> Any:
        sizes.append(len(program.steps))
        return build(program, *args, **more)

    def tried(*_: Any) -> None:
        raise AssertionError("what has been given up is compiled at once")

    monkeypatch.setattr(planned, "build", counting)
    with gm.Graph().as_default() as graph:
        count = gm.placeholder(gm.int32, [], name="count")
        _, total = gm.while_loop(
            lambda number, total: gm.ops.less(number, count),
            lambda number, total: (number + 1, total * 3 + number),
            [gm.constant(0), gm.constant(np.int64(1).astype(np.int32))],
        )
    monkeypatch.setattr(once, "run_once", tried)
    for times, is_compiled in ((3, False), (3000, True)):
        sizes.clear()
        found = same(bytes_of(graph), [total.name], {"count": np.int32(times)})
        assert isinstance(found.told, list)
        assert bool(sizes) == is_compiled
        assert found.needed_no_node != is_compiled


def test_large_constants_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "KNOWN_BYTES", once.KNOWN_BYTES)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 3], name="x")
        y = x @ gm.constant(np.arange(3 << 12, dtype=np.float32).reshape(3, -1) % 7)
    found = same(bytes_of(graph), [y.name], {"x": np.ones((4, 3), np.float32)})
    assert isinstance(found.told, list)
    assert not found.needed_no_node


def test_devices_of_other_machines_are_told() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 3], name="x")
        with gm.device("/job:worker/task:3/device:CPU:0"):
            y = gm.square(x, name="far")
        z = y + 1.0
    data = bytes_of(graph)
    lines: list[list[str]] = []
    ways: list[dict[str, Any]] = [{"once": True}, {"force_tokens": True}]
    for settings in ways:
        read: Graph = unmade(data)
        with Session(read, **settings) as session:
            fetched, fed = (read.glance_output(parse_tensor(name)) for name in (z.name, "x"))
            session.run(fetched, {fed: X})
            lines.append(session.moved())
            assert (read.unmade is None) == ("force_tokens" in settings)
    assert lines[0] == lines[1]
    assert "Square 'far' asked for" in lines[0][0]
