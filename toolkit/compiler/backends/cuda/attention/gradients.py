"""The gradients of attention, as graphs have them: by values, and through its softmax by queries and keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolkit.compiler.backends.cuda.attention.masks import Known, masks_nothing
from toolkit.compiler.backends.cuda.attention.sides import Side, Sides, sides_of
from toolkit.compiler.backends.cuda.layout.moved_axes import numbers_of
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import scalar_of


@dataclass
class FoundGradients:
    """Attributes:
    members: the operations, products aside.
    by_shares: makes the gradient by the softmax, of that by the result and the values.
    by_values: makes the gradient by the values.
    by_queries, by_keys: make these, where somebody wants them.
    d_out: the gradient by the result.
    """

    members: list[Operation]
    by_shares: Operation
    by_values: Operation
    by_queries: Operation | None
    by_keys: Operation | None
    d_out: Side
    dv: Side
    dq: Side | None
    dk: Side | None

    @property
    def operations(self) -> list[Operation]:
        products = (self.by_shares, self.by_values, self.by_queries, self.by_keys)
        return [*self.members, *(each for each in products if each is not None)]

    def first(self, positions: dict[Operation, int]) -> Operation:
        """The operation that all others but those before the softmax follow."""
        return min(self.by_shares, self.by_values, key=positions.__getitem__)


def gradients_of(
    shares: Value,
    second: Operation,
    keys: Sides,
    values: Sides,
    factor: float,
    is_beside: Callable[[Operation], bool],
    known: Known | None,
) -> FoundGradients | None:
    """The gradients of an attention, if they are all that takes its softmax besides.

    Args:
        shares: the softmax.
        second: its product with the values.
        keys, values: what is beside the scores in the first product, and beside the softmax in the second.
        factor: the scale of the scores.
        is_beside: whether an operation may be put together with the softmax.
        known: numbers that are always the same, of scores with a causal mask.
    """
    found = [(each, sides) for each in shares.users if each is not second and (sides := sides_of(each, shares))]
    if len(found) != 1 or found[0][1].keys.value is not found[0][0].output:
        return None
    by_values, beside_values = found[0]
    others = [each for each in shares.users if each not in (second, by_values)]
    last = next((each for each in others if _difference(each, shares) is not None), None)
    if last is None or len(others) != 2:
        return None
    difference = _difference(last, shares)
    assert difference is not None
    d_shares = difference.inputs[0]
    total = difference.inputs[1].producer
    if total is None or total.op != "Sum" or not _sums_rows(total):
        return None
    times = total.inputs[0].producer
    if times not in others or times is last or times.op != "Mul" or set(times.inputs) != {shares, d_shares}:
        return None
    by_shares = d_shares.producer
    beside_shares = None if by_shares is None else sides_of(by_shares, d_shares)
    if by_shares is None or beside_shares is None or set(d_shares.users) != {times, difference}:
        return None
    if beside_shares.keys.value is not values.keys.value or beside_shares.keys.order != values.keys.order:
        return None
    d_out = beside_shares.rows
    if d_out.value is not beside_values.rows.value or d_out.order != beside_values.rows.order:
        return None
    members = [times, total, difference, last]
    inner = [(times, total), (total, difference), (difference, last)]
    if any(_seen(one.output) or set(one.output.users) != {other} for one, other in inner):
        return None
    if _seen(d_shares):
        return None
    d_scores = last.output
    while known and (masking := d_scores.sole_user) is not None and masks_nothing(masking, d_scores, known):
        members.append(masking)
        d_scores = masking.output
    if factor != 1.0:
        scaled = d_scores.sole_user
        found_factor = None if scaled is None else factor_of(scaled)
        if scaled is None or found_factor is None or found_factor != (d_scores, factor):
            return None
        members.append(scaled)
        d_scores = scaled.output
    by_queries = by_keys = None
    dq = dk = None
    for user in d_scores.users:
        sides = sides_of(user, d_scores)
        if sides is None:
            return None
        if sides.rows.value is user.output and sides.keys == keys.keys and by_queries is None:
            by_queries, dq = user, sides.rows
        elif sides.keys.value is user.output and sides.rows == keys.rows and by_keys is None:
            by_keys, dk = user, sides.keys
        else:
            return None
    made = FoundGradients(members, by_shares, by_values, by_queries, by_keys, d_out, beside_values.keys, dq, dk)
    if _seen(d_scores) or not all(map(is_beside, made.operations)):
        return None
    return made


def factor_of(operation: Operation) -> tuple[Value, float] | None:
    """What an operation multiplies with a number that it always is, and that number."""
    if not isinstance(operation, Call) or operation.op not in ("Mul", "RealDiv") or len(operation.inputs) != 2:
        return None
    first, second = operation.inputs
    number = scalar_of(second)
    if operation.op == "RealDiv":
        return None if not number else (first, 1.0 / number)
    if number is None:
        first, number = second, scalar_of(first)
    return None if number is None or first.shape != operation.output.shape else (first, number)


def _difference(operation: Operation, shares: Value) -> Operation | None:
    """Of a softmax's gradient, shares * (d_shares - a sum), what is in brackets; None where it is none."""
    if operation.op != "Mul" or len(operation.inputs) != 2 or shares not in operation.inputs:
        return None
    other = operation.inputs[1] if operation.inputs[0] is shares else operation.inputs[0]
    made = other.producer
    return made if made is not None and made.op == "Sub" else None


def _seen(value: Value) -> bool:
    """Whether somebody else than operations wants it."""
    return value.is_result or value.is_predicate


def _sums_rows(total: Operation) -> bool:
    """Whether it sums over the last axis, which stays as one of one place."""
    shape = total.inputs[0].shape or ()
    axes = numbers_of(total.inputs[1]) if len(total.inputs) == 2 else None
    return axes is not None and axes in ((-1,), (len(shape) - 1,)) and total.output.shape == (*shape[:-1], 1)
