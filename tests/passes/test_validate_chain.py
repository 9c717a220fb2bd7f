"""Validating functions that call one another takes time in proportion to how many there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas import graph_pb2, types_pb2
from toolkit.graph.shapes import functional
from toolkit.passes.validate.engine import validate_files

FLOAT = types_pb2.DT_FLOAT


def chain(length: int) -> graph_pb2.GraphDef:
    """A graph whose function calls a function, which calls a function, and so on."""
    graph = graph_pb2.GraphDef()
    graph.versions.producer = 1500
    for number in range(length):
        function = graph.library.function.add()
        function.signature.name = f"f{number}"
        function.signature.input_arg.add(name="x", type=FLOAT)
        function.signature.output_arg.add(name="y", type=FLOAT)
        node = function.node_def.add(name="n", input=["x"])
        if number + 1 < length:
            node.op = "PartitionedCall"
            node.attr["f"].func.name = f"f{number + 1}"
            node.attr["Tin"].list.type.append(FLOAT)
            node.attr["Tout"].list.type.append(FLOAT)
            function.ret["y"] = "n:output:0"
        else:
            node.op = "Relu"
            node.attr["T"].type = FLOAT
            function.ret["y"] = "n:activations:0"
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = FLOAT
    call = graph.node.add(name="y", op="PartitionedCall", input=["x"])
    call.attr["f"].func.name = "f0"
    call.attr["Tin"].list.type.append(FLOAT)
    call.attr["Tout"].list.type.append(FLOAT)
    return graph


def test_each_function_is_followed_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = 0
    follow = functional.follow

    def counted(*args: object) -> object:
        nonlocal followed
        followed += 1
        return follow(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(functional, "follow", counted)
    counts: list[int] = []
    for length in (100, 400):
        file = tmp_path / f"{length}.pb"
        file.write_bytes(chain(length).SerializeToString())
        followed = 0
        assert not validate_files([str(file)]).findings
        counts.append(followed)
    assert 100 <= counts[0] <= 300
    assert counts[1] <= 4.2 * counts[0]


def test_recursion_is_found_in_a_chain(tmp_path: Path) -> None:
    graph = chain(50)
    last = graph.library.function[-1]
    last.CopyFrom(graph.library.function[0])
    last.signature.name = "f49"
    last.node_def[0].attr["f"].func.name = "f40"
    (tmp_path / "ring.pb").write_bytes(graph.SerializeToString())
    found = validate_files([str(tmp_path / "ring.pb")]).findings
    assert {finding.function for finding in found if finding.rule == "functions/recursion"} == {
        f"f{number}" for number in range(40, 50)
    }
