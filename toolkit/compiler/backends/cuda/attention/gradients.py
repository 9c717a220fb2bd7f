"""The gradients of attention, as graphs have them: by values, and through its softmax by queries and keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolkit.compiler.backends.cuda.attention.known import Known
from toolkit.compiler.backends.cuda.attention.scores import Scores, Used
from toolkit.compiler.backends.cuda.attention.sides import Side, Sides, sides_of
from toolkit.compiler.backends.cuda.layout.moved_axes import numbers_of
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value


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
    shares: Value, used: Used, scores: Scores, keys: Sides, is_beside: Callable[[Operation], bool], known: Known
) -> FoundGradients | None:
    """The gradients of an attention, if they are all that takes its softmax besides.

    Args:
        shares: the softmax.
        used: its product with the values.
        scores: what it is of.
        keys: what is beside the scores in their product.
        is_beside: whether an operation may be put together with the softmax.
        known: numbers that are always the same.
    """
    by_values = _by_values(used)
    others = _others(shares, used, by_values)
    last = next((each for each in others if _difference(each, shares) is not None), None)
    if by_values is None or last is None or len(others) != 2:
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
    if set(d_shares.users) != {times, difference} or _seen(d_shares):
        return None
    found = _by_shares(d_shares, used, known)
    if found is None:
        return None
    by_shares, beside_shares, undropped = found
    beside_values = sides_of(by_values, used.shares)
    assert beside_values is not None
    if beside_shares.keys != used.sides.keys or beside_shares.rows != beside_values.rows:
        return None
    inner = [(times, total), (total, difference), (difference, last)]
    if any(_seen(one.output) or set(one.output.users) != {other} for one, other in inner):
        return None
    members = [*undropped, times, total, difference, last]
    d_scores = last.output
    for link in reversed(scores.links):
        made = link.back(d_scores, known)
        if made is None:
            return None
        members += made
        d_scores = made[0].output if made else d_scores
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
    d_out = beside_shares.rows
    made = FoundGradients(members, by_shares, by_values, by_queries, by_keys, d_out, beside_values.keys, dq, dk)
    if _seen(d_scores) or not all(map(is_beside, made.operations)):
        return None
    return made


def _by_values(used: Used) -> Operation | None:
    """The one product besides that takes what is multiplied with the values, for the gradient by these."""
    found = [each for each in used.shares.users if each is not used.second and sides_of(each, used.shares) is not None]
    if len(found) != 1 or _seen(used.shares):
        return None
    sides = sides_of(found[0], used.shares)
    return found[0] if sides is not None and sides.keys.value is found[0].output else None


def _others(shares: Value, used: Used, by_values: Operation | None) -> list[Operation]:
    """What takes a softmax besides what is known to; [] where others see inside a dropout."""
    for at, link in enumerate(used.links):
        made = link.operation.output
        following = used.links[at + 1].operation if at + 1 < len(used.links) else None
        if _seen(made) or set(made.users) - {following, used.second, by_values}:
            return []
    first = used.links[0].operation if used.links else used.second
    return [each for each in shares.users if each not in (first, by_values)]


def _by_shares(d_shares: Value, used: Used, known: Known) -> tuple[Operation, Sides, list[Operation]] | None:
    """The product that makes the gradient by what is multiplied, and what makes of it that by the softmax."""
    path: list[Operation] = []
    at = d_shares
    for _ in used.links:
        if at.producer is None:
            return None
        path.insert(0, at.producer)
        at = next((each for each in at.producer.inputs if _is_made(each, d_shares)), at)
    by_shares = at.producer
    sides = None if by_shares is None else sides_of(by_shares, at)
    if by_shares is None or sides is None:
        return None
    for link, operation in zip(reversed(used.links), path, strict=True):
        if link.back(at, known) != [operation]:
            return None
        at = operation.output
    return by_shares, sides, path


def _is_made(value: Value, like: Value) -> bool:
    """Whether a value may be a gradient that is being changed: made by a product or such a change."""
    producer = value.producer
    if producer is None or value.shape != like.shape or value.sole_user is None:
        return False
    return sides_of(producer, value) is not None or producer.op in ("Mul", "RealDiv", "Select", "SelectV2")


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
