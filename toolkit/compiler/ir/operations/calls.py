"""What the importer makes of a graph: calls of kernels, branches, loops, and what reads variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolkit.compiler.ir.operation import Untyped
from toolkit.compiler.ir.value import Value
from toolkit.compiler.program import Step


# until the last pass says `become` where it assigned a kind, a call can be made another kind in its place
class Call(Untyped, mnemonic="call"):
    """A node of the graph that no pass has recognised: its kernel is called with the operands.

    Attributes:
        op: the graph's op, which is also its kind.
        operands: what the node takes, in the order of the op's inputs.
    """

    def __init__(
        self,
        *,
        op: str,
        operands: Iterable[Value],
        outputs: Iterable[Value],
        steps: Sequence[Step],
        guard: Any = None,
    ):
        super().__init__(op, operands, outputs, steps)
        self.guard = guard

    @property
    def op(self) -> str:
        return self.kind

    @property
    def operands(self) -> tuple[Value, ...]:
        return tuple(self.inputs)

    def like(self, inputs: Iterable[Value], outputs: Iterable[Value]) -> Untyped:
        made = Call(op=self.op, operands=inputs, outputs=outputs, steps=self.steps)
        made.attrs.update(self.attrs)
        return made
