"""What the rules for quantized graphs share: operations put in front of others, ranges that are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.tiles import Numbers
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.target.target import Target

P = ParamSpec("P")
T = TypeVar("T", bound=Operation)


class Rewriter:
    """Puts operations in front of the one that is lowered, and finds out ranges.

    Attributes:
        before: what is to be put in front of which operation.
        replaced: operations of which nothing is left.
        target: the processor that code is made for.
        exact: it adds products of 8-bit numbers without saturation.
    """

    def __init__(self, block: Block, target: Target):
        self.block = block
        self.target = target
        self.before: dict[Operation, list[Operation]] = {}
        self.replaced: set[Operation] = set()
        self.exact = target.vectors.exact_int8

    def add(self, host: Operation, kind: Callable[P, T], *args: P.args, **fields: P.kwargs) -> T:
        """A new operation in front of `host`, on its behalf."""
        given: dict[str, Any] = {"steps": host.steps, "conditions": host.conditions, **fields}
        made = kind(*args, **given)
        self.before.setdefault(host, []).append(made)
        return made

    def abandon(self, host: Operation) -> None:
        """Take back what was added in front of `host`, which stays as it is."""
        for made in self.before.pop(host, ()):
            made.drop_operands()

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
            self.add(host, Numbers, outputs=values, arguments=tuple(inputs), function=function)
        return values

    def set_ranges(self, host: Operation, ranges: Sequence[Value]) -> None:
        """Other values in place of the operation's outputs but the first."""
        for old, new in zip(host.outputs[1:], ranges, strict=True):
            self.block.replace_value(old, new)

    def replace(self, host: Operation, values: Sequence[Value]) -> None:
        """Other values in place of all of the operation's outputs; it goes."""
        for old, new in zip(host.outputs, values, strict=True):
            self.block.replace_value(old, new)
        host.drop_operands()
        self.replaced.add(host)

    def finish(self, host: Operation, kind: Callable[P, T], *args: P.args, **fields: P.kwargs) -> T:
        """Put another operation in the place of one, which makes its first output."""
        given: dict[str, Any] = {"outputs": host.outputs[:1], **fields}
        made = host.become(kind, *args, **given)
        if host in self.before:
            self.before[made] = self.before.pop(host)
        return made


#: what it returns is for other rules
Rule = Callable[[Rewriter, Operation], object]


def constants(values: Sequence[Value]) -> list[Any] | None:
    """What values always are; None if one of them is not known."""
    return [np.asarray(value.constant) for value in values] if all(value.is_constant for value in values) else None
