"""Gradients add the nodes that TensorFlow adds: names, ops, inputs and attributes, op by op.

`python -m pytest -m long` compares every row of `gradient_node_cases`, the normal run a part of them.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.client.client_programs import tf1_semantics
from tests.client.gradients.gradient_node_cases import CASES, Build
from tests.client.node_descriptions import described
from toolkit import client as gm

pytestmark = pytest.mark.tensorflow

#: ops whose gradient is computed by other nodes here, and why
OWN_NODES = {
    "Cholesky": "fewer nodes: the triangular inverse is not made",
    "Einsum": "shapes of operands are made only where they are used",
    "MatrixDeterminant": "ExpandDims instead of a Reshape to a shape that is put together",
    "MatrixDiag": "the op itself, not version 3 of it",
    "MatrixDiagPart": "the op itself, not version 3 of it",
    "MatrixTriangularSolve": "the op itself, not a function around it",
}
#: rows that TensorFlow makes from more, or less, than is known here: shapes through constants that are computed
OWN_SHAPES = {
    "Prod static": "TensorFlow evaluates the permutation while it makes the graph",
    "Conv2DBackpropInput": "the shape that the op is given is known here",
}


def added(tf: ModuleType, build: Build) -> tuple[list[Any], list[Any]]:
    """The nodes that our gradient and TensorFlow's add to one graph."""
    graph = gm.Graph()
    with graph.as_default():
        ys, xs = build()
        before = graph.as_graph_def().SerializeToString()
        gm.grad(ys, xs)
    v1 = tf.compat.v1
    with tf1_semantics(tf), tf.Graph().as_default() as theirs:
        tf.import_graph_def(v1.GraphDef.FromString(before), name="")
        v1.gradients([theirs.get_tensor_by_name(y.name) for y in ys], [theirs.get_tensor_by_name(x.name) for x in xs])
    return described(graph.as_graph_def().node), described(theirs.as_graph_def().node)


def _own(name: str) -> bool:
    op = name.split(" ")[0]
    static = not name.endswith((" partial", " unknown"))
    return op in OWN_NODES or (op == "Prod" and static) or (op == "Conv2DBackpropInput" and not static)


COMPARED = [name for name in CASES if not _own(name)]


def _compare(tf: ModuleType, names: list[str]) -> None:
    for name in names:
        found, expected = added(tf, CASES[name])
        assert [n[:2] for n in found] == [n[:2] for n in expected], name
        for mine, wanted in zip(found, expected, strict=True):
            assert mine == wanted, name


def test_nodes_of_gradients(tf: ModuleType) -> None:
    _compare(tf, COMPARED[::9])


@pytest.mark.long
def test_nodes_of_all_gradients(tf: ModuleType) -> None:
    _compare(tf, COMPARED)
