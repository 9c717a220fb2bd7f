"""A target runs although nobody needs what it puts out, compiled as node by node and in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit.errors import OpError
from toolkit.formats.arrays.tensor import from_array
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.runtime.session import Session

tf = pytest.importorskip("tensorflow")

F, I = dtypes.float32, dtypes.int32


def _placeholder(graph: Graph, name: str, dtype: Any) -> Node:
    return graph.add("Placeholder", name, attrs={"dtype": dtype, "shape": Shape(None)})


def _constant(graph: Graph, name: str, value: Any) -> Node:
    dtype = dtypes.from_numpy(value.dtype)
    return graph.add("Const", name, attrs={"dtype": dtype, "value": from_array(value, dtype)})


def _gather(graph: Graph, name: str = "target") -> Node:
    x, at = _placeholder(graph, "x", F), _placeholder(graph, "at", I)
    axis = _constant(graph, "axis", np.array(0, np.int32))
    return graph.add("GatherV2", name, [x, at, axis], attrs={"Tparams": F, "Tindices": I, "Taxis": I})


def _identity(graph: Graph) -> Node:
    return graph.add("Identity", "target", [_gather(graph, "gather")], attrs={"T": F})


def _list(graph: Graph) -> Node:
    x, at = _placeholder(graph, "x", F), _placeholder(graph, "at", I)
    inputs = [x, at, _constant(graph, "shape", np.zeros(0, np.int32)), _constant(graph, "size", np.array(3, np.int32))]
    return graph.add("TensorListScatterV2", "target", inputs, attrs={"element_dtype": F, "shape_type": I})


def _map(graph: Graph) -> Node:
    """The key is there when x[at] is 0."""
    x, at = _placeholder(graph, "x", F), _placeholder(graph, "at", I)
    there = _constant(graph, "there", np.array(1, np.int32))
    attrs = {"key_dtype": I, "value_dtype": F}
    filled = graph.add("TensorMapInsert", "insert", [graph.add("EmptyTensorMap", "map"), there, x], attrs=attrs)
    first = graph.add("Max", "key", [at, _constant(graph, "all", np.zeros(1, np.int32))], attrs={"T": I, "Tidx": I})
    return graph.add("TensorMapErase", "target", [filled, first], attrs=attrs)


def _reshape(graph: Graph) -> Node:
    return graph.add(
        "Reshape", "target", [_placeholder(graph, "x", F), _placeholder(graph, "at", I)], attrs={"T": F, "Tshape": I}
    )


#: (how a graph is made, values of `at` that it takes, and that it must refuse)
_CASES: list[tuple[Callable[[Graph], Node], list[int], list[int]]] = [
    (_gather, [0, 1], [0, 7]), (_identity, [0, 1], [0, 7]), (_list, [0, 2], [0, -7]), (_map, [0, 1], [0, 7]),
    (_reshape, [1, 2], [7, 1]),
]  # fmt: skip


def _run(graph: Graph, at: list[int], *, tokens: bool = False) -> None:
    feeds = {"x:0": np.ones(2, np.float32), "at:0": np.array(at, np.int32)}
    with Session(graph, force_tokens=tokens) as session:
        for _ in range(3):  # the plan is made, and runs again
            assert session.run("target", feeds) is None


def _tensorflow(graph: Graph, at: list[int]) -> Any:
    definition = tf.compat.v1.GraphDef.FromString(graph.to_proto().SerializeToString())
    with tf.Graph().as_default() as there:
        tf.import_graph_def(definition, name="")
        with tf.compat.v1.Session(graph=there) as session:
            feeds = {"x:0": np.ones(2, np.float32), "at:0": np.array(at, np.int32)}
            return session.run(there.get_operation_by_name("target"), feeds)


@pytest.mark.parametrize(("build", "good", "bad"), _CASES, ids=[build.__name__[1:] for build, _, _ in _CASES])
@pytest.mark.parametrize("how", ["on", "off", "tokens"])
def test_a_target_runs(
    build: Callable[[Graph], Node], good: list[int], bad: list[int], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off" if how == "off" else "strict")
    graph = Graph()
    build(graph)
    _run(graph, good, tokens=how == "tokens")
    with pytest.raises(OpError) as found:
        _run(graph, bad, tokens=how == "tokens")
    with pytest.raises(tf.errors.OpError) as wanted:
        _tensorflow(graph, bad)
    assert found.value.status == {3: "INVALID_ARGUMENT", 5: "NOT_FOUND"}[wanted.value.error_code]
    assert found.value.node in ("target", "gather")


@pytest.mark.parametrize("segments", ["strict", "off"])
def test_a_placeholder_in_the_graph_must_be_fed(segments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where a result needs no more than its shape, which is declared."""
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", segments)
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    graph.add("Shape", "shape", [x], attrs={"T": F, "out_type": I})
    with Session(graph) as session:
        np.testing.assert_array_equal(session.run("shape:0", {"x:0": np.ones(2, np.float32)}), [2])
        with pytest.raises(OpError, match="x"):
            session.run("shape:0")
