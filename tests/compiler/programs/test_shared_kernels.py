"""Kernels of nodes that are alike are one, unless they know which node they are of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.compiler.program import Program
from toolkit.formats.models.graphdef import from_bytes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.kernels import registry
from toolkit.kernels.registry import Compute, Kernel, KernelNode, Kind
from toolkit.kernels.types import Array


def _read(count: int = 3) -> Graph:
    """Nodes that were read from a file, for these have kinds."""
    with gm.Graph().as_default() as graph:
        for number in range(count):
            gm.ops.neg(gm.constant([float(number)]), name=f"neg_{number}")
    data: bytes = graph.as_graph_def().SerializeToString()
    read = from_bytes(data)
    assert read is not None
    return read


def _kernels(graph: Graph) -> list[Callable[..., Any]]:
    return [step.compute for step in Program(graph).steps if step.node.op == "Neg"]


def test_alike_nodes_have_one_kernel() -> None:
    first, *others = _kernels(_read())
    assert all(each is first for each in others)


def _by_name(op: KernelNode) -> Compute:
    name = op.name

    def compute(value: Array) -> Array:
        return np.full_like(value, len(name))

    return compute


def _keeping(op: KernelNode) -> Compute:
    def compute(value: Array) -> Array:
        return np.full_like(value, len(op.op))

    return compute


def _by_node(op: KernelNode) -> Compute:
    number = op.node.id

    def compute(value: Array) -> Array:
        return np.full_like(value, number)

    return compute


@pytest.fixture(params=[_by_name, _keeping, _by_node])
def looking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of Neg that look at their node, when they are built or when they run."""
    found = Kernel("Neg", "CPU", {}, 0, Kind.PURE, request.param, "numpy")
    own = registry.get

    def get(node: Node, device_type: str = "CPU", *, defining: bool = False) -> Kernel:
        return found if node.op == "Neg" else own(node, device_type, defining=defining)

    monkeypatch.setattr(registry, "get", get)


@pytest.mark.usefixtures("looking")
def test_kernels_that_look_at_their_nodes_are_their_own() -> None:
    assert len(set(map(id, _kernels(_read())))) == 3
