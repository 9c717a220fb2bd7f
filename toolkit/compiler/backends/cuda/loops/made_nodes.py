"""Calls of ops that no node of the graph stands for: what a pass computes beside what was there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.program_kernels import step_of
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node


class MadeNodes:
    """Nodes of a graph of their own.

    Args:
        like: where they run, and what their names begin with.
    """

    def __init__(self, like: Operation):
        self._graph, self._device, self._name = Graph(), like.step.node.device, like.step.node.name

    def call(
        self, op: str, name: str, inputs: Sequence[Value], outputs: Sequence[Value], attributes: Mapping[str, Any]
    ) -> Call:  # fmt: skip
        """The call of an op.

        Args:
            name: what stands behind the common one.
        """
        node = Node(self._graph, 0, f"{self._name}/{name}", op, self._device)
        for key, value in attributes.items():
            node.attrs[key] = value
        return Call(op=op, inputs=tuple(inputs), outputs=list(outputs), steps=[step_of(node)])


def host_number(number: int) -> Value:
    """A whole number in host memory, such as an axis."""
    return Value(np.dtype(np.int32), (), np.array(number, np.int32))


def host_numbers(*numbers: int) -> Value:
    """Whole numbers in host memory, such as a shape."""
    return Value(np.dtype(np.int32), (len(numbers),), np.array(numbers, np.int32))
