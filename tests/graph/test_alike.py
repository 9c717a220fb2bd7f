"""What shape inference recalls of nodes that are alike, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bench.large_graphs import write_graph
from tests.graph.shape_cases import constant
from toolkit.formats.models.graphdef import from_bytes
from toolkit.formats.models.model import read_graph
from toolkit.graph import dtypes
from toolkit.graph import infer as inference
from toolkit.graph.alike import Alike
from toolkit.graph.graph import Graph
from toolkit.graph.infer import infer
from toolkit.graph.shape import Shape
from toolkit.graph.values.value import Value

F, I = dtypes.float32, dtypes.int32


def read(graph: Graph) -> Graph:
    """The graph as a file has it: its nodes know what they have in common."""
    found = from_bytes(graph.to_proto().SerializeToString(deterministic=True))
    assert found is not None
    return found


def reshaped(graph: Graph, x: Any, name: str, sizes: list[int]) -> None:
    """A Reshape to sizes that are packed of constants, one by one."""
    parts = [constant(graph, f"{name}/{i}", I, size) for i, size in enumerate(sizes)]
    target = graph.add("Pack", f"{name}/sizes", parts, attrs={"T": I, "N": len(sizes), "axis": 0})
    graph.add("Reshape", name, [x, target], attrs={"T": F, "Tshape": I})


def test_nodes_that_differ_in_values_alone_are_told_apart() -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 6])})
    for name, sizes in (("a", [2, 3]), ("b", [3, 2]), ("again", [2, 3])):
        reshaped(graph, x, name, sizes)
    shapes = infer(read(graph))
    found = {output.node.name: shape for output, shape in shapes.items() if output.node.op == "Reshape"}
    assert found == {"a": Shape([2, 3]), "b": Shape([3, 2]), "again": Shape([2, 3])}


def test_values_that_are_fed_are_not_recalled_from_others() -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 6])})
    reshaped(graph, x, "a", [2, 3])
    reshaped(graph, x, "b", [2, 3])
    again = read(graph)
    shapes = infer(again, {"b/sizes": Shape([2])})
    assert shapes[again.output("a")] == Shape([2, 3])
    assert shapes[again.output("b")] == Shape([None, None])
    shapes = infer(again, {"a/0": Shape(())})
    assert shapes[again.output("a")] == Shape([None, 3])
    assert shapes[again.output("b")] == Shape([2, 3])


@pytest.mark.parametrize("given", [1, 1.0, True, -1])
def test_values_of_another_type_are_other_values(given: float) -> None:
    alike, others = Alike(), [each for each in (1, 1.0, True, -1) if each is not given]
    known = alike.known([Shape(())], [Value((), [given])])
    assert alike.known([Shape(())], [Value((), [given])]) is known
    assert all(alike.known([Shape(())], [Value((), [other])]) is not known for other in others)
    assert alike.known([Shape(())], [None]) == known, "of the same shapes"
    assert alike.known([Shape(())], [None]) is not known


def test_shape_functions_are_called_for_kinds_not_for_nodes(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    original = inference._run  # pyright: ignore[reportPrivateUsage]

    def counted(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        return original(*arguments)

    monkeypatch.setattr(inference, "_run", counted)
    costs: list[tuple[int, int]] = []
    for count in (2_000, 8_000):
        write_graph(tmp_path / "many.pb", count)
        graph = read_graph(tmp_path / "many.pb")
        asked = 0
        infer(graph)
        costs.append((sum(node.op == "PartitionedCall" for node in graph), asked))
    (few, first), (many, then) = costs
    # in each block more: states of a loop of its own, a call with its body's three nodes
    assert then - first == (many - few) * (2 + 4)
