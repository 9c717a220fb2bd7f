"""Softmaxes that are spelled out, as GPT-2 has them: exp(x - max) over its sum; one operation, and its gradient's four.

The gradient goes back through the quotient, the sum, the exponential and (where nobody stopped it) the maximum, which
gets what comes to 0 but for rounding. What is put in its place is what TensorFlow's gradient of Softmax makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolkit.compiler.backends.cuda.layout.moved_axes import is_of_axes, numbers_of, order_of
from toolkit.compiler.backends.cuda.loops.made_nodes import MadeNodes, host_numbers
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import ADDS
from toolkit.graph import dtypes
from toolkit.kernels.tensors import F32


def put_softmaxes(block: Block, refused: Callable[[Operation], bool]) -> None:
    """Have one operation for each softmax that is spelled out over the last axis."""
    for operation in block.operations:
        if operation.block is block and operation.op == "RealDiv":
            found = _found(operation)
            if found is not None and all(_is_with(each, operation, refused) for each in found.operations):
                _put(block, found)


@dataclass
class _Found:
    """Attributes:
    x: what it is of.
    quotient: makes the softmax.
    forward, backward: the operations of both, the quotient and the one that makes the gradient by x last.
    by_shares: the gradient by the softmax, where there is one.
    """

    x: Value
    quotient: Operation
    forward: list[Operation]
    backward: list[Operation]
    by_shares: Value | None

    @property
    def operations(self) -> list[Operation]:
        return [*self.forward, *self.backward]


def _is_with(operation: Operation, like: Operation, refused: Callable[[Operation], bool]) -> bool:
    same = isinstance(operation, Call) and operation.block is like.block and operation.conditions == like.conditions
    return same and not operation.step.deref and not refused(operation)


def _found(quotient: Operation) -> _Found | None:
    exponentials, total = quotient.inputs
    exp, sum = exponentials.producer, total.producer
    if (
        exp is None
        or exp.op != "Exp"
        or sum is None
        or not _is_of_rows(sum, "Sum")
        or sum.inputs[0] is not exponentials
    ):
        return None
    less = exp.inputs[0].producer
    if less is None or less.op != "Sub" or exponentials.shape != quotient.output.shape or exponentials.dtype != F32:
        return None
    x, top = less.inputs
    most = top.producer
    forward = [less, exp, sum, quotient]
    if most is not None and most.op == "StopGradient":
        forward.insert(0, most)
        most = most.inputs[0].producer
    if most is None or not _is_of_rows(most, "Max") or most.inputs[0] is not x or x.shape != exponentials.shape:
        return None
    forward.insert(0, most)
    if any(_seen(each.output) for each in forward[:-1]) or set(less.output.users) != {exp}:
        return None
    if top.producer is not most and set(top.users) != {less}:
        return None
    others = set(exponentials.users) - {sum, quotient}
    if not others:
        alone = set(total.users) == {quotient} and set(most.output.users) == {forward[1]}
        return _Found(x, quotient, forward, [], None) if alone else None
    return _with_gradient(x, forward, exponentials, total, others)


def _with_gradient(
    x: Value, forward: list[Operation], exponentials: Value, total: Value, others: set[Operation]
) -> _Found | None:
    most, quotient = forward[0], forward[-1]
    negative = next((each for each in others if each.op == "Neg"), None)
    back = next((each for each in others if each.op == "Mul"), None)
    if len(others) != 2 or negative is None or back is None:
        return None
    one = _next(negative, "RealDiv")
    two = None if one is None else _next(one, "RealDiv")
    times = None if two is None else _next(two, "Mul")
    if one is None or two is None or times is None or one.inputs[1] is not total or two.inputs[1] is not total:
        return None
    by_shares = times.inputs[0] if times.inputs[1] is two.output else times.inputs[1]
    path: list[Operation] = [negative, one, two, times]
    rows = _next(times, "Sum")
    if rows is None or not _sums_last(rows):
        return None
    spread = _spread(rows, path)
    added = None if spread is None else _next(spread, "AddN", *ADDS)
    if spread is None or added is None or len(added.inputs) != 2 or back.output.shape != x.shape:
        return None
    share = next((each.producer for each in added.inputs if each is not spread.output), None)
    if share is None or share.op != "RealDiv" or tuple(share.inputs) != (by_shares, total):
        return None
    if share.output.sole_user is not added or added.output.sole_user is not back:
        return None
    if set(total.users) != {quotient, one, two, share}:
        return None
    path += [share, added, back]
    if set(most.output.users) == {forward[1]}:
        return _Found(x, quotient, forward, path, by_shares)
    return _through_maximum(x, forward, path, back, by_shares)


def _through_maximum(
    x: Value, forward: list[Operation], path: list[Operation], back: Operation, by_shares: Value
) -> _Found | None:
    """With what the maximum gets, which is added to what is there without."""
    most, less = forward[0], forward[1]
    equal = next((each for each in most.output.users if each.op == "Equal"), None)
    if equal is None or set(most.output.users) != {less, equal} or set(equal.inputs) != {most.output, x}:
        return None
    where = _next(equal, "Cast")
    negative = next((each for each in back.output.users if each.op == "Neg"), None)
    last = next((each for each in back.output.users if each.op in ("AddN", *ADDS)), None)
    if where is None or negative is None or last is None or set(back.output.users) != {negative, last}:
        return None
    count = next((each for each in where.output.users if each.op == "Sum"), None)
    part = next((each for each in where.output.users if each.op == "RealDiv"), None)
    rows = _next(negative, "Sum")
    if count is None or part is None or rows is None or len(where.output.users) != 2 or _seen(back.output):
        return None
    if not _sums_last(count) or not _sums_last(rows) or any(map(_seen, (where.output, most.output))):
        return None
    path += [equal, where, negative]
    counted, summed = _spread(count, path, wide=False), _spread(rows, path, wide=False)
    given = _next(part, "Mul")
    if (
        given is None
        or counted is None
        or summed is None
        or counted.output.sole_user is not part
        or set(given.inputs) != {part.output, summed.output}
    ):
        return None
    if given.output.sole_user is not last or len(last.inputs) != 2:
        return None
    path += [part, given, last]
    return _Found(x, forward[-1], forward, path, by_shares)


def _next(operation: Operation, *ops: str) -> Operation | None:
    """The one operation that takes a result, if it is one of these."""
    user = operation.output.sole_user
    return user if user is not None and user.op in ops else None


def _spread(rows: Operation, path: list[Operation], *, wide: bool = True) -> Operation | None:
    """The last of the changes of shape behind a row's number, and (`wide`) of what repeats it; all go into the path.

    Returns:
        None where the number does not end beside its own row.
    """
    shape = rows.inputs[0].shape or ()
    column = (*shape[:-1], 1)
    path.append(rows)
    at = rows
    while (user := at.output.sole_user) is not None:
        repeats = wide and user.op in ("Tile", "BroadcastTo") and at.output.shape == column
        if not repeats and (not is_of_axes(user) or order_of(user) is not None):
            break
        path.append(user)
        at = user
    return at if at.output.shape in (column, shape) else None


def _is_of_rows(operation: Operation, op: str) -> bool:
    """Whether it reduces the last axis, which stays as one of one place."""
    if operation.op != op or not _sums_last(operation):
        return False
    shape = operation.inputs[0].shape or ()
    return operation.output.shape == (*shape[:-1], 1)


def _sums_last(operation: Operation) -> bool:
    shape = operation.inputs[0].shape or ()
    axes = numbers_of(operation.inputs[1]) if len(operation.inputs) == 2 else None
    return axes is not None and axes in ((-1,), (len(shape) - 1,))


def _seen(value: Value) -> bool:
    return value.is_result or value.is_predicate


def _put(block: Block, found: _Found) -> None:
    made, kept = MadeNodes(found.quotient), {"T": dtypes.float32}

    def call(op: str, inputs: Sequence[Value], output: Value, **more: object) -> Call:
        new = made.call(op, op.lower(), inputs, [output], {**kept, **more})
        new.conditions = found.quotient.conditions
        return new

    shares, shape = found.quotient.output, found.x.shape or ()
    positions = block.positions()
    block.insert_before(found.quotient, [call("Softmax", [found.x], shares)])
    if found.by_shares is not None:
        d, last = found.by_shares, found.backward[-1]
        values = [Value(F32, (*shape[:-1], 1) if at == 1 else shape) for at in range(3)]
        times = call("Mul", [d, shares], values[0])
        total = call("Sum", [values[0], host_numbers(-1)], values[1], Tidx=dtypes.int32, keep_dims=True)
        block.insert_before(
            last,
            [times, total, call("Sub", [d, values[1]], values[2]), call("Mul", [values[2], shares], last.output)],
        )
    for operation in sorted(found.operations, key=positions.__getitem__, reverse=True):
        block.erase(operation)
