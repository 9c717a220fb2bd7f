"""Costs of graphs whose functions call functions: counted however deep, or said to be unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.main import run
from schemas.graph_pb2 import GraphDef
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef, encode
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.passes.measuring.measure import Measured, measure

F = dtypes.float32


def chain(calls: list[list[int]], shape: Shape) -> Graph:
    """Functions f0, f1... of a float, each calling those of these numbers one after the other; without any, a Mul."""
    proto = GraphDef()
    for i, called in enumerate(calls):
        function = proto.library.function.add()
        function.signature.name = f"f{i}"
        function.signature.input_arg.add(name="a", type=1)
        function.signature.output_arg.add(name="r", type=1)
        last = "a"
        for t, target in enumerate(called):
            node = function.node_def.add(name=f"c{t}", op="PartitionedCall", input=[last])
            encode([F], node.attr["Tin"])
            encode([F], node.attr["Tout"])
            encode(FuncRef(f"f{target}"), node.attr["f"])
            last = f"c{t}:output:0"
        if not called:
            node = function.node_def.add(name="m", op="Mul", input=["a", "a"])
            encode(F, node.attr["T"])
            last = "m:z:0"
        function.ret["r"] = last
    graph = Graph.from_proto(proto)
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": shape})
    last = FuncRef(f"f{len(calls) - 1}")
    graph.add("PartitionedCall", "y", [x], attrs={"Tin": [F], "Tout": [F], "f": last})
    return graph


def doubling(depth: int) -> list[list[int]]:
    return [[]] + [[i, i] for i in range(depth)]


def flops(found: Measured) -> tuple[int, bool]:
    return found.total.flops, not found.unknown


@pytest.mark.parametrize("depth", [1, 12, 13, 40, 41, 60, 700])
def test_functions_that_nest_deep_are_counted_in_full(depth: int) -> None:
    assert flops(measure(chain(doubling(depth), Shape([3])))) == (3 * 2**depth, True)


def test_many_chains_of_deep_calls_are_counted_in_full() -> None:
    """Each function calls the one before, and every tenth the Mul as well."""
    calls: list[list[int]] = [[]] + [[i, i - i % 7] for i in range(200)]
    counts = [1]
    for called in calls[1:]:
        counts.append(sum(counts[i] for i in called))
    assert flops(measure(chain(calls, Shape([5])))) == (5 * counts[-1], True)


@pytest.mark.parametrize("calls", [[[], [0, 1]], [[], [0, 2], [1, 0], [2]]])
def test_recursion_is_told(calls: list[list[int]]) -> None:
    found = measure(chain(calls, Shape([3])))
    assert found.total.flops >= 3
    assert found.unknown[0].startswith("functions that call themselves count once each time they are called: 'f")


def test_shapes_that_are_not_known_are_told() -> None:
    assert measure(chain(doubling(3), Shape(None))).unknown == [
        "nodes whose shapes are not known before a run are not counted: 1"
    ]
    assert flops(measure(chain(doubling(3), Shape([None, 2])), batch=4)) == (8 * 8, True)


def test_functions_that_cannot_be_built_are_told() -> None:
    graph = chain(doubling(3), Shape([3]))
    proto = graph.to_proto()
    proto.library.function[0].ret["r"] = "nowhere:z:0"
    found = measure(Graph.from_proto(proto))
    assert found.unknown[0] == "functions that cannot be built are not counted: 'f0'"


def written(path: Path, calls: list[list[int]], shape: Shape) -> str:
    path.write_bytes(chain(calls, shape).to_proto().SerializeToString())
    return str(path)


def test_inspect_says_what_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for calls, shape, expected in [
        (doubling(60), Shape([3]), f"operations    {3 * 2**60:,} FLOPs for a batch of 1"),
        ([[], [0, 1]], Shape([3]), "operations    at least 3 FLOPs for a batch of 1"),
        (doubling(3), Shape(None), "operations    an unknown number of FLOPs for a batch of 1"),
    ]:
        path = written(tmp_path / "g.pb", calls, shape)
        assert run(["inspect", path, "--costs"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert expected.split() in [line.split() for line in lines]
        assert any(line.startswith("unknown ") for line in lines) == (calls[-1] == [0, 1] or shape.dims is None)
        assert run(["inspect", path]) == 0
        assert expected.split() in [line.split() for line in capsys.readouterr().out.splitlines()]


def test_a_budget_that_cannot_be_checked_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "g.pb", [[], [0, 1]], Shape([3]))
    run(["validate", path, "--max-flops", "100"])
    assert "budgets/flops-unknown" in capsys.readouterr().out
    run(["validate", path, "--max-flops", "2"])
    assert "3 floating-point operations for a batch of 1; 2 are allowed" in capsys.readouterr().out
    path = written(tmp_path / "g.pb", doubling(60), Shape([3]))
    run(["validate", path, "--max-flops", "100"])
    assert f"{3 * 2**60:,} floating-point operations" in capsys.readouterr().out
