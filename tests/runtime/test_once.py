"""Large programs that are run once: by their kernels where tensors are small, else compiled, with the same results."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bench.large_graphs import write_graph
from toolkit import client as gm
from toolkit.compiler.program import Program
from toolkit.errors import CancelledError, FailedPreconditionError
from toolkit.formats.models.model import read_model
from toolkit.passes.optimize.flow.raise_control_flow import RaiseControlFlow
from toolkit.runtime.executors import planned
from toolkit.runtime.jobs.job import run_model
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.session import Session
from toolkit.runtime.sessions.graphs import core_graph
from toolkit.runtime.steps.step import DeviceStep

#: more than there must be for a program to be large
_LARGE = planned.LARGE
_NODES = _LARGE + 500
#: what makes all nodes run, and numbers that are not far from those that are fed
_FETCHED = ["y:0", "block_0000000/dense_7/add:0", "block_0000001/while/Exit_1:0"]
_X = np.linspace(-0.1, 0.1, 8, dtype=np.float32)[None]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes the large programs have that were compiled."""
    sizes: list[int] = []
    build = planned.build

    def counting(program: Program, *args: Any, **more: Any) -> Any:
        if len(program.steps) >= _LARGE:
            sizes.append(len(program.steps))
        return build(program, *args, **more)

    monkeypatch.setattr(planned, "build", counting)
    return sizes


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Layers, variables, conditionals, loops and functions."""
    path = tmp_path_factory.mktemp("once") / "graph.pb"
    write_graph(path, 7000)
    return path


def test_first_runs_of_large_graphs_are_not_compiled_and_are_the_definitions(blocks: Path, compiled: list[int]) -> None:
    graph = read_model(blocks).graph
    found: list[Any] = []
    ways: list[dict[str, Any]] = [{"force_tokens": True}, {"once": True}, {}]
    for settings in ways:
        compiled.clear()
        with Session(graph, **settings) as session:
            session.run("init")
            found.append(session.run(_FETCHED, {"x:0": _X}))
        assert bool(compiled) == (not settings)
    for by_tokens, once in zip(*found[:2], strict=True):
        assert once.tobytes() == by_tokens.tobytes()
    for once, fast in zip(found[1][1:], found[2][1:], strict=True):
        # sums in another order: numbers of order one cancel in 16 layers, each within some of float32's 6e-8
        np.testing.assert_allclose(once, fast, rtol=1e-4, atol=1e-5)
        assert np.abs(once).max() > 1e-4  # more than what was allowed


def test_what_is_asked_for_again_is_compiled(blocks: Path, compiled: list[int]) -> None:
    with Session(read_model(blocks).graph, once=True) as session:
        session.run("init")
        first = session.run(_FETCHED, {"x:0": _X})
        assert not compiled
        again = session.run(_FETCHED, {"x:0": _X})
        assert len(compiled) == 1
        np.testing.assert_allclose(again[1], first[1], rtol=1e-4, atol=1e-5)  # as above


@pytest.mark.parametrize(("steps", "is_compiled"), [(None, False), (1, False), (2, True)])
def test_the_command_says_that_a_step_is_the_only_one(
    blocks: Path, compiled: list[int], steps: int | None, is_compiled: bool
) -> None:
    options = RunOptions(feeds={"x": _X}, fetches=["y"], init_ops=["init"], steps=steps)
    report = run_model(read_model(blocks), options, log=lambda line: None)
    assert report.outputs["y"].shape == (1, 8)
    assert bool(compiled) == is_compiled


def _chain(x: Any, change: Any) -> Any:
    """A node after the other, as many as make a program large."""
    for _ in range(_NODES):
        x = change(x)
    return x


def test_large_tensors_are_computed_by_compiled_code(compiled: list[int]) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None], name="x")
        y = _chain(x, gm.ops.neg)
    with Session(graph, once=True) as session:
        found = session.run(y, {x: np.ones(4, np.float32)})
        assert not compiled
        assert found.tolist() == [1.0 - _NODES % 2 * 2] * 4
    for size in (50_000, 2_000_000):  # known while it runs, and before
        compiled.clear()
        with Session(graph, once=True) as session:
            found = session.run(y, {x: np.ones(size, np.float32)})
            assert len(compiled) == 1
            assert found.tolist() == [1.0 - _NODES % 2 * 2] * size


def test_what_is_cancelled_ends(compiled: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks first whether a step is over finds that it was cancelled just then."""
    check = DeviceStep.check_cancelled

    def cancel_first(step: DeviceStep) -> None:
        step.cancellation.cancel()
        check(step)

    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None], name="x")
        y = _chain(x, gm.ops.neg)
    with Session(graph, once=True) as session:
        monkeypatch.setattr(DeviceStep, "check_cancelled", cancel_first)
        with pytest.raises(CancelledError):
            session.run(y, {x: np.ones(4, np.float32)})
        assert not compiled
        monkeypatch.undo()
        assert session.run(y, {x: np.ones(4, np.float32)}).tolist() == [1.0 - _NODES % 2 * 2] * 4


def test_loops_that_go_on_are_compiled(compiled: list[int]) -> None:
    with gm.Graph().as_default() as graph:
        count = gm.placeholder(gm.int32, [], name="count")
        _, total = gm.while_loop(
            lambda number, total: gm.ops.less(number, count),
            lambda number, total: (number + 1, total * 3 + number),
            [gm.constant(0), gm.constant(np.int64(1).astype(np.int32))],
        )
        y = _chain(total, gm.ops.neg)
    for times, is_compiled in ((5, False), (20_000, True)):
        expected = np.array(1, np.int32)
        for number in range(times):
            expected = expected * np.array(3, np.int32) + np.array(number, np.int32)
        compiled.clear()
        with Session(graph, once=True) as session:
            assert session.run(y, {count: times}) == expected * (1 - _NODES % 2 * 2)
            assert bool(compiled) == is_compiled


def test_loops_and_branches_that_are_functions_do_not_have_all_compiled(compiled: list[int]) -> None:
    with gm.Graph().as_default() as graph:
        count = gm.placeholder(gm.int32, [], name="count")
        total = gm.while_loop(
            lambda number, total: gm.ops.less(number, count),
            lambda number, total: (number + 1, total * 3 + number),
            [gm.constant(0), gm.constant(np.int64(1).astype(np.int32))],
        )[1]
        total = gm.cond(gm.ops.less(count, 9), lambda: total + 1, lambda: total - 1)
        _chain(gm.identity(total), gm.ops.neg)
        y = gm.identity(graph.get_operations()[-1].outputs[0], name="y")
    raised = RaiseControlFlow().apply(core_graph(graph)).graph
    assert {node.op for node in raised} & {"While", "StatelessWhile"}
    assert {node.op for node in raised} & {"If", "StatelessIf"}
    with Session(graph) as session:
        expected = session.run(y, {count: 5})
    compiled.clear()
    with Session(raised, once=True) as session:
        assert session.run("y:0", {"count:0": 5}) == expected
    assert not compiled


@pytest.mark.parametrize("kind", ["assigns", "draws", "prints"])
def test_what_may_not_be_begun_twice_is_compiled(kind: str, compiled: list[int]) -> None:
    with gm.Graph().as_default() as graph:
        weights = gm.Variable(gm.constant([1.0, 2.0]))
        y = _chain(weights + 0.0, gm.ops.neg)
        if kind == "assigns":
            y = weights.assign_add(y)
        elif kind == "draws":
            y = y + gm.random_uniform([2])
        else:
            y = gm.ops.print(y, [y])
        init = gm.global_variables_initializer()
    with Session(graph, once=True) as session:
        session.run(init)
        session.run(y)
        assert len(compiled) == 1


def test_variables_get_values_and_failures_name_their_nodes() -> None:
    with gm.Graph().as_default() as graph:
        cells = [gm.Variable(gm.constant([float(number)])) for number in range(_NODES // 3)]
        total = gm.ops.add_n([cell + 0.0 for cell in cells])
        init = gm.global_variables_initializer()
    with Session(graph, once=True) as session, pytest.raises(FailedPreconditionError, match="uninitialized"):
        session.run(total)
    with Session(graph, once=True) as session:
        session.run(init)
        assert session.run(total).tolist() == [float(sum(range(len(cells))))]
