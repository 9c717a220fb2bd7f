"""What a pass says when it cannot do something."""

from __future__ import annotations

from toolkit.compiler.ir.operation import Operation


class NotSupportedError(Exception):
    """The compiled form of an operation cannot be had: it must run by its own kernel, or less must be fused to it.

    Attributes:
        nodes: names of the graph's nodes that are involved, the last one first.
    """

    def __init__(self, operation: Operation, reason: str):
        self.nodes = [step.node.name for step in reversed(operation.steps)]
        self.reason = reason
        super().__init__(f"{operation.name}: {reason}")
