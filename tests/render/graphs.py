"""Small graphs to draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape

FLOAT = dtypes.float32


def add(graph: Graph, op: str, name: str, *inputs: Node, control: Sequence[Node] = (), **attrs: Any) -> Node:
    return graph.add(op, name, inputs, control_inputs=control, attrs=attrs)


def perceptron() -> Graph:
    """Two layers in scopes, an initializer that waits for both assignments, a constant."""
    graph = Graph()
    x = add(graph, "Placeholder", "x", dtype=FLOAT, shape=Shape([None, 8]))
    assigned: list[Node] = []
    for layer, (size, out) in enumerate(((8, 4), (4, 2)), 1):
        w = add(graph, "VariableV2", f"layer{layer}/kernel", dtype=FLOAT, shape=Shape([size, out]))
        zero = add(
            graph, "Placeholder", f"layer{layer}/kernel/Initializer/zeros", dtype=FLOAT, shape=Shape([size, out])
        )
        assigned.append(add(graph, "Assign", f"layer{layer}/kernel/Assign", w, zero, T=FLOAT))
        read = add(graph, "Identity", f"layer{layer}/kernel/read", w, T=FLOAT)
        x = add(graph, "MatMul", f"layer{layer}/MatMul", x, read, T=FLOAT)
        x = add(graph, "Relu", f"layer{layer}/Relu", x, T=FLOAT)
    add(graph, "Softmax", "y", x, T=FLOAT)
    add(graph, "NoOp", "init", control=assigned)
    return graph


def stack(layers: int) -> Graph:
    """A chain of equal scopes layer_0, layer_1, ..."""
    graph = Graph()
    x = add(graph, "Placeholder", "x", dtype=FLOAT, shape=Shape([None, 8]))
    for layer in range(layers):
        y = add(graph, "Tanh", f"layer_{layer}/Tanh", x, T=FLOAT)
        x = add(graph, "AddV2", f"layer_{layer}/add", y, x, T=FLOAT)
    add(graph, "Identity", "out", x, T=FLOAT)
    return graph


def large(count: int, scopes: int = 0) -> Graph:
    """A chain with skips; flat, or in as many scopes."""
    graph = Graph()
    x = add(graph, "Placeholder", "x", dtype=FLOAT)
    nodes = [x]
    for i in range(count):
        name = f"block_{i * scopes // count}/n{i}" if scopes else f"n{i}"
        nodes.append(add(graph, "AddV2", name, nodes[-1], nodes[i * 7919 % len(nodes)], T=FLOAT))
    return graph
