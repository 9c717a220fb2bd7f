"""What the rules for quantized graphs share: operations put in front of others, ranges that are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation, Untyped
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.onednn.library import require

T = TypeVar("T", bound=Operation)


class Rewriter:
    """Puts operations in front of the one that is lowered, and finds out ranges.

    Attributes:
        before: what is to be put in front of which operation.
        replaced: operations of which nothing is left.
        exact: the processor adds products of 8-bit numbers without saturation.
    """

    def __init__(self, block: Block):
        self.block = block
        self.before: dict[Operation, list[Operation]] = {}
        self.replaced: set[Operation] = set()
        self.exact = require().has_exact_int8

    def add(
        self, host: Operation, kind: str, inputs: Sequence[Value], outputs: Sequence[Value], **attrs: Any
    ) -> Operation:
        """A new operation in front of `host`, on its behalf."""
        return self.put(host, Untyped(kind, inputs, outputs, host.steps, **attrs))

    def put(self, host: Operation, made: T) -> T:
        """Put an operation in front of `host`, on its branches."""
        made.guard = host.guard
        self.before.setdefault(host, []).append(made)
        return made

    def numbers(
        self, host: Operation, function: Callable[..., Sequence[Any]], inputs: Sequence[Value], outputs: Sequence[Value]
    ) -> list[Value]:
        """Scalars made of others, like `outputs`: now if those are known, else when the plan runs.

        Raises:
            GraphmillError: they are known, and wrong.
        """
        known = constants(inputs)
        if known is not None:
            made = [np.asarray(each) for each in function(*known)]
            return [Value(each.dtype, each.shape, each) for each in made]
        values = [Value(old.dtype, old.shape) for old in outputs]
        if values:
            self.add(host, "numbers", inputs, values, function=function)
        return values

    def set_ranges(self, host: Operation, ranges: Sequence[Value]) -> None:
        """Other values in place of the operation's outputs but the first."""
        for old, new in zip(host.outputs[1:], ranges, strict=True):
            self.block.replace_value(old, new)

    def replace(self, host: Operation, values: Sequence[Value]) -> None:
        """Other values in place of all of the operation's outputs; it goes."""
        for old, new in zip(host.outputs, values, strict=True):
            self.block.replace_value(old, new)
        host.set_inputs(())
        self.replaced.add(host)

    def finish(self, host: Operation, kind: str, inputs: Sequence[Value], **attrs: Any) -> None:
        """Let the operation become one of another kind, which makes its first output."""
        host.kind = kind
        host.attrs.update(attrs)
        host.outputs = host.outputs[:1]
        host.set_inputs(inputs)

    def become(self, host: Operation, kind: type[Operation], **fields: Any) -> None:
        """Put an operation that makes the first output in the place of one, behind what was put in front of that."""
        made = host.become(kind, **fields, outputs=host.outputs[:1])
        if host in self.before:
            self.before[made] = self.before.pop(host)


Rule = Callable[[Rewriter, Operation], None]


def constants(values: Sequence[Value]) -> list[Any] | None:
    """What values always are; None if one of them is not known."""
    return [np.asarray(value.constant) for value in values] if all(value.is_constant for value in values) else None
