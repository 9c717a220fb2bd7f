"""Sizes of functions with their calls expanded."""

from __future__ import annotations

import random

import pytest

from schemas.function_pb2 import FunctionDefLibrary
from toolkit.graph.attrs import FuncRef
from toolkit.graph.expansion import SATURATED, expansion
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph


def library_of(calls: dict[str, list[str]]) -> FunctionLibrary:
    """Functions of one NoOp and one call for each name listed."""
    proto = FunctionDefLibrary()
    for name, callees in calls.items():
        function = proto.function.add()
        function.signature.name = name
        function.node_def.add(name="n", op="NoOp")
        for index, callee in enumerate(callees):
            node = function.node_def.add(name=f"c{index}", op="PartitionedCall")
            node.attr["f"].func.name = callee
    return FunctionLibrary.from_proto(proto)


def test_forty_functions_that_call_the_next_twice_are_counted_without_expanding_them():
    calls = {f"f{i}": [f"f{i + 1}"] * 2 for i in range(39)} | {"f39": []}
    found = expansion(library_of(calls))
    assert found.nodes["f39"] == 1
    assert found.nodes["f38"] == 3 + 2
    assert found.nodes["f0"] == 4 * 2**39 - 3
    assert found.depth["f0"] == 40
    assert not found.recursive


def test_sizes_stop_growing():
    calls = {f"f{i}": [f"f{i + 1}"] * 2 for i in range(5000)} | {"f5000": []}
    found = expansion(library_of(calls))
    assert found.nodes["f0"] == SATURATED
    assert found.depth["f0"] == 5001


def test_recursion_is_told_from_what_calls_it():
    found = expansion(library_of({"main": ["a"], "a": ["b"], "b": ["a", "leaf"], "leaf": [], "self": ["self"]}))
    assert found.recursive == {"a", "b", "self"}
    assert found.nodes["main"] == SATURATED
    assert found.nodes["leaf"] == 1


@pytest.mark.parametrize("seed", range(20))
def test_recursive_functions_are_those_that_reach_themselves(seed: int):
    rng = random.Random(seed)
    names = [f"f{i}" for i in range(12)]
    calls = {name: [rng.choice(names) for _ in range(rng.randrange(3))] for name in names}

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(calls[start])
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += calls[name]
        return seen

    def size(name: str) -> int:
        return 1 + len(calls[name]) + sum(map(size, calls[name]))

    found = expansion(library_of(calls))
    assert found.recursive == {name for name in names if name in reached(name)}
    for name in names:
        ends = not found.recursive & (reached(name) | {name})
        assert found.nodes[name] == (size(name) if ends else SATURATED)


def test_calls_of_a_graph_by_op_and_by_attribute():
    graph = Graph()
    graph.library = library_of({"f": ["g"], "g": []})
    graph.add("f", "by_op")
    graph.add("If", "by_attrs", attrs={"then_branch": FuncRef("g"), "else_branch": FuncRef("f")})
    assert expansion(graph.library).graph_nodes(graph) == 2 + 3 + 1 + 3
