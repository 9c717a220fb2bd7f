"""What stands between the products of an attention, one link after the other: scales, masks, changes of shape, dropout.

Each link knows which operation makes, of the gradient by what it gave, that by what it was given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.compiler.backends.cuda.attention.known import Known
from toolkit.compiler.backends.cuda.layout.moved_axes import is_of_axes, order_of
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import ADDS, scalar_of
from toolkit.kernels.tensors import F32

SELECTS = ("Select", "SelectV2")


@dataclass(frozen=True)
class Link:
    """An operation that changes scores, or shares.

    Attributes:
        operation: which it is.
        given: what it changes.
    """

    operation: Call
    given: Value

    @property
    def shape(self) -> tuple[int, ...]:
        """Of what it gives."""
        return self.operation.output.shape or ()

    def back(self, gradient: Value, known: Known) -> list[Operation] | None:
        """The operation that makes the gradient by `given` of that by the result; none where they are the same.

        Returns:
            None where nobody computes it as this asks for.
        """
        user = gradient.sole_user
        return [user] if user is not None and self._is_back(user, gradient, known) else None

    def _is_back(self, user: Operation, gradient: Value, known: Known) -> bool:
        raise NotImplementedError


@dataclass(frozen=True)
class Scaled(Link):
    """Times a number."""

    factor: float

    def _is_back(self, user: Operation, gradient: Value, known: Known) -> bool:
        return factor_of(user) == (gradient, self.factor)


@dataclass(frozen=True)
class Shaped(Link):
    """In another shape, with the same last two axes."""

    def _is_back(self, user: Operation, gradient: Value, known: Known) -> bool:
        return _is_shape(user) and user.inputs[0] is gradient and user.output.shape == self.given.shape


@dataclass(frozen=True)
class Added(Link):
    """Plus, or less, a mask."""

    mask: Value
    subtracted: bool

    def back(self, gradient: Value, known: Known) -> list[Operation] | None:
        return []

    def is_causal(self, known: Known) -> bool:
        return known.is_pattern(self.mask, "subtracted" if self.subtracted else "added", self.shape)


@dataclass(frozen=True)
class Multiplied(Link):
    """Times numbers, one for each place: of scores 0 and 1 that are known, of shares what dropout leaves."""

    numbers: Value

    def is_causal(self, known: Known) -> bool:
        return known.is_pattern(self.numbers, "factor", self.shape)

    def _is_back(self, user: Operation, gradient: Value, known: Known) -> bool:
        if user.op != "Mul" or len(user.inputs) != 2 or user.output.shape != gradient.shape:
            return False
        other = user.inputs[1] if user.inputs[0] is gradient else user.inputs[0]
        if other is self.numbers:
            return True
        return self.is_causal(known) and known.is_pattern(other, "factor", self.shape)


@dataclass(frozen=True)
class Chosen(Link):
    """Something else instead, by a condition: which is true where what was given stays."""

    condition: Value
    instead: Value
    inverse: bool

    def is_causal(self, known: Known) -> bool:
        kind = "inverse" if self.inverse else "condition"
        return known.is_pattern(self.condition, kind, self.shape) and known.is_pattern(
            self.instead, "instead", self.shape
        )

    def _is_back(self, user: Operation, gradient: Value, known: Known) -> bool:
        if user.op not in SELECTS or user.output.shape != gradient.shape:
            return False
        condition, one, other = user.inputs
        stays, zero = (other, one) if self.inverse else (one, other)
        if stays is not gradient or known.single(zero) != 0:
            return False
        kind = "inverse" if self.inverse else "condition"
        return condition is self.condition or (self.is_causal(known) and known.is_pattern(condition, kind, self.shape))


def factor_of(operation: Operation) -> tuple[Value, float] | None:
    """What an operation multiplies with a number that it always is, and that number."""
    if not isinstance(operation, Call) or operation.op not in ("Mul", "RealDiv") or len(operation.inputs) != 2:
        return None
    first, second = operation.inputs
    number = scalar_of(second)
    if operation.op == "RealDiv":
        return None if not number or first.shape != operation.output.shape else (first, 1.0 / number)
    if number is None:
        first, number = second, scalar_of(first)
    return None if number is None or first.shape != operation.output.shape else (first, number)


def _is_shape(operation: Operation) -> bool:
    """Whether it changes a shape but for the last two axes, and nothing else."""
    if not is_of_axes(operation) or order_of(operation) is not None:
        return False
    before, after = operation.inputs[0].shape or (), operation.output.shape or ()
    return min(len(before), len(after)) > 1 and before[-2:] == after[-2:]


def links_of_scores(operation: Call) -> Iterator[Link]:
    """What an operation may do to scores, each way in which it can be read."""
    yield from _common(operation)
    shape = operation.output.shape
    if len(operation.inputs) == 2 and operation.op in (*ADDS, "Sub"):
        pairs = [operation.inputs] if operation.op == "Sub" else [operation.inputs, operation.inputs[::-1]]
        for scores, mask in pairs:
            if scores.shape == shape and scores is not mask and mask.dtype == F32 and mask.shape is not None:
                yield Added(operation, scores, mask, operation.op == "Sub")


def links_of_shares(operation: Operation, shares: Value) -> Iterator[Link]:
    """What an operation may do to shares that it takes."""
    if isinstance(operation, Call) and not operation.step.deref and operation.inputs:
        yield from (link for link in _common(operation) if link.given is shares)


def _common(operation: Call) -> Iterator[Link]:
    shape = operation.output.shape
    factor = factor_of(operation)
    if factor is not None:
        yield Scaled(operation, *factor)
    elif operation.op == "Mul" and len(operation.inputs) == 2:
        for given, numbers in (operation.inputs, operation.inputs[::-1]):
            if given.shape == shape and given is not numbers and numbers.dtype == F32:
                yield Multiplied(operation, given, numbers)
    elif operation.op in SELECTS:
        condition, one, other = operation.inputs
        if operation.op == "Select" and condition.shape != shape:
            return
        for given, instead, inverse in ((one, other, False), (other, one, True)):
            if given.shape == shape and given is not instead:
                yield Chosen(operation, given, condition, instead, inverse)
    elif _is_shape(operation):
        yield Shaped(operation, operation.inputs[0])
