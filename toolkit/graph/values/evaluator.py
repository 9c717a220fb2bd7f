"""Finds the values of outputs, node by node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.errors import GraphmillError
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.graph.values import arithmetic, arrays, sizes
from toolkit.graph.values.table import Arguments, ValueFunction, functions
from toolkit.graph.values.value import Value

_OPS = (arithmetic, arrays, sizes)  # which register what they compute
_SHAPE_ONLY = frozenset({"Const", "Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike"})


class Evaluator:
    """Finds values of outputs, with a memory.

    Args:
        shape_of: the static shape of an output, as far as it is known.
        recall: the values of a node's outputs where somebody knows them; None where nobody does.
    """

    def __init__(
        self,
        shape_of: Callable[[Output], Shape],
        recall: Callable[[Node], list[Value | None] | None] = lambda node: None,
    ):
        self.shape_of = shape_of
        self._recall = recall
        self._known: dict[Node, list[Value | None]] = {}
        self._constants: dict[NodeKind, list[Value | None]] = {}  # of constants that are alike
        self._blocked: set[Output] = set()

    def block(self, output: Output) -> None:
        """Treat an output as unknown from now on (it is fed)."""
        self._blocked.add(output)

    def forget(self, node: Node) -> None:
        """Drop what is remembered about a node whose input shapes or attributes have changed."""
        self._known.pop(node, None)

    def __call__(self, output: Output) -> Any:
        """The value of an output as a number or nested lists, or None when nothing is known."""
        value = self.value(output)
        return None if value is None else value.nested()

    def value(self, output: Output) -> Value | None:
        """The value of an output, or None when nothing is known."""
        known = self._known.get(output.node)
        if known is not None:
            return known[output.index] if output.index < len(known) else None
        stack = [output.node]
        entered: set[Node] = set()
        while stack:
            node = stack[-1]
            if node in self._known:
                stack.pop()
                continue
            recalled = self._recall(node)
            function = functions.get(node.op)
            if recalled is not None or function is None:
                self._known[node] = recalled or []
            elif node not in entered:
                entered.add(node)
                if node.op not in _SHAPE_ONLY:
                    stack += [src for src, _ in node.inputs if src not in self._known]
            else:  # its inputs are done, or it is on a malformed cycle
                self._known[node] = self._compute(node, function)
        results = self._known[output.node]
        return results[output.index] if output.index < len(results) else None

    def _compute(self, node: Node, function: ValueFunction) -> list[Value | None]:
        kind = node.kind if node.op == "Const" and not self._blocked else None
        if kind is None:
            return self._results(node, function)
        found = self._constants.get(kind)
        if found is None:
            found = self._constants[kind] = self._results(node, function)
        return found

    def _results(self, node: Node, function: ValueFunction) -> list[Value | None]:
        try:
            result = function(Arguments(node, self._known, self.shape_of))
        except (GraphmillError, TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError):
            # Malformed nodes and unknown elements end up here; other code reports the former.
            return []
        found = list(result) if isinstance(result, list) else [result]
        found = [v if v is not None and v.is_small else None for v in found]
        if self._blocked:
            found = [None if Output(node, i) in self._blocked else v for i, v in enumerate(found)]
        return found


def is_foldable(op: str) -> bool:
    """Whether values are followed through this op."""
    return op in functions
