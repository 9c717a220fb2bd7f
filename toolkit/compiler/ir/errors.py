"""What a pass says when it cannot do something."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.steps import Step
from toolkit.errors import InternalError


class NotSupportedError(Exception):
    """The compiled form of an operation cannot be had: it must run by its own kernel, or less must be fused to it.

    Attributes:
        nodes: names of the graph's nodes that are involved, the last one first.
    """

    def __init__(self, operation: Operation, reason: str, steps: Sequence[Step] = ()):
        """
        Args:
            steps: those of the operation that are to blame; all of them where there are none.
        """
        self.nodes = [step.node.name for step in reversed(steps or operation.steps)]
        self.reason = reason
        super().__init__(f"{self.nodes[0]}: {reason}")


class PassFailedError(InternalError):
    """A pass raised what no pass should: a mistake of the compiler, which costs speed and never a result.

    Attributes:
        name: of the pass.
    """

    def __init__(self, name: str, error: Exception):
        self.name = name
        super().__init__(f"the pass '{name}' failed; this is a bug: {type(error).__name__}: {error}")
