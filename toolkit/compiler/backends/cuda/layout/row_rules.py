"""What treats the rows of tensors alike: operations that compute each row by itself, or sum over all of them.

Rows are numbered by images and tokens. They are the first two axes of a tensor, or both of these in one. If all tensors
with rows had the tokens come first, an operation of these would do the same, but for the sizes, the axes or the order
that it may be told as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from toolkit.compiler.backends.cuda.fusion.fusible import BATCH_NORMS, is_elementwise
from toolkit.compiler.backends.cuda.layout.moved_axes import constant_like, numbers_of, order_of
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_channels_first


@dataclass(frozen=True)
class Rows:
    """How many there are: images of tokens, both more than one."""

    images: int
    tokens: int

    def axes_of(self, value: Value) -> int:
        """How many axes of a tensor are its rows: 2, 1 where images and tokens are one axis, 0 where it has none."""
        shape = value.shape or ()
        if shape[:2] == (self.images, self.tokens):
            return 2
        return int(shape[:1] == (self.images * self.tokens,))


class Treated(NamedTuple):
    """Attributes:
    rows: tensors whose rows an operation treats alike.
    beside: tensors that it broadcasts along the images or along the tokens: of their first two axes one has one place.
    """

    rows: tuple[Value, ...]
    beside: tuple[Value, ...] = ()


def treated(operation: Operation, value: Value, rows: Rows) -> Treated | None:
    """What else has rows if a tensor that an operation takes or makes has; None where it does not treat them alike."""
    if not isinstance(operation, Call) or operation.step.deref or not operation.outputs or not rows.axes_of(value):
        return None
    if any(each.shape is None or each.dtype is None or 0 in each.shape for each in _around(operation)):
        return None
    rule = _RULES.get(operation.op) or (_elementwise if is_elementwise(operation) else None)
    found = None if rule is None else rule(operation, rows)
    if found is None or value not in found.rows or not all(map(rows.axes_of, found.rows)):
        return None
    return found


def exchange_numbers(operation: Operation, found: Treated, rows: Rows) -> None:
    """Have an operation do the same where tokens come first, before the shapes of its tensors have changed."""
    change = _CHANGES.get(operation.op)
    if change is not None:
        change(operation, found, rows)


def exchanged_shape(value: Value, rows: Rows) -> tuple[int, ...]:
    """The shape of a tensor with rows where tokens come first."""
    shape = relations.shape(value)
    return shape if rows.axes_of(value) == 1 else (shape[1], shape[0], *shape[2:])


def _around(operation: Operation) -> tuple[Value, ...]:
    return (*operation.inputs, *operation.outputs)


# -- rules: what has rows


def _elementwise(operation: Operation, rows: Rows) -> Treated | None:
    target = operation.output.shape or ()
    count = rows.axes_of(operation.output)
    # a condition for each row is broadcast in another way than all else
    if not count or operation.op in BATCH_NORMS or operation.op == "Select":
        return None
    if operation.op.startswith("BiasAdd") and is_channels_first(operation):
        return None
    whole, beside = [operation.output], list[Value]()
    for value in operation.inputs:
        shape = value.shape or ()
        lead = ((1,) * (len(target) - len(shape)) + shape)[:count]
        if all(size == 1 for size in lead):
            continue
        if len(shape) != len(target):
            return None
        (whole if lead == target[:count] else beside).append(value)
    return Treated(tuple(whole), tuple(beside))


def _matrix_product(operation: Operation, rows: Rows) -> Treated | None:
    """Of the rows of a, each by itself; or a sum over the rows of both factors."""
    a, b = operation.inputs
    turn_a, turn_b = (operation.step.node.attr(name) for name in ("transpose_a", "transpose_b"))
    if turn_a:
        return None if turn_b else Treated((a, b))
    return None if a is b else Treated((a, operation.output))


def _batched_product(operation: Operation, rows: Rows) -> Treated | None:
    """Of the rows of a with one second factor for all of them."""
    a, b = operation.inputs
    is_one = math.prod((b.shape or ())[:-2]) == 1 and len(a.shape or ()) > rows.axes_of(a)
    return Treated((a, operation.output)) if is_one and not operation.step.node.attr("adj_x") and a is not b else None


def _softmax(operation: Operation, rows: Rows) -> Treated | None:
    x = operation.inputs[0]
    return Treated((x, operation.output)) if len(x.shape or ()) > rows.axes_of(x) else None


def _reduction(operation: Operation, rows: Rows) -> Treated | None:
    """Of other axes, of all rows; or of the images or the tokens, of which the other ones are left as an axis."""
    axes = _axes(operation)
    if axes is None:
        return None
    x = operation.inputs[0]
    reduced = axes & set(range(rows.axes_of(x)))
    if not reduced:
        return Treated((x, operation.output))
    is_whole = len(reduced) == rows.axes_of(x)
    return Treated((x,)) if is_whole or not operation.step.node.attr("keep_dims") else None


def _sum_of_columns(operation: Operation, rows: Rows) -> Treated | None:
    x = operation.inputs[0]
    is_alike = not is_channels_first(operation) and len(x.shape or ()) > rows.axes_of(x)
    return Treated((x,)) if is_alike else None


def _reshape(operation: Operation, rows: Rows) -> Treated | None:
    x, sizes = operation.inputs
    return Treated((x, operation.output)) if numbers_of(sizes) is not None else None


def _transposition(operation: Operation, rows: Rows) -> Treated | None:
    """Of any axes where images and tokens are two; what has no rows before or behind it stays as it is."""
    order = order_of(operation)
    if order is None:
        return None
    x, y = operation.inputs[0], operation.output
    count = rows.axes_of(x)
    if count and order[:count] == tuple(range(count)):
        return Treated((x, y))
    given = [x] if count == 2 else []
    made = [y] if rows.axes_of(y) == 2 and not given else []
    return Treated((*given, *made)) if given or made else None


def _broadcast(operation: Operation, rows: Rows) -> Treated | None:
    x, sizes = operation.inputs
    is_alike = rows.axes_of(x) == rows.axes_of(operation.output) == 1 and numbers_of(sizes) is not None
    return Treated((x, operation.output)) if is_alike else None


def _repeated(operation: Operation, rows: Rows) -> Treated | None:
    """Along other axes than the rows."""
    x, times = operation.inputs
    numbers = numbers_of(times)
    is_alike = numbers is not None and set(numbers[: rows.axes_of(x)]) == {1}
    return Treated((x, operation.output)) if is_alike else None


def _axes(operation: Operation) -> set[int] | None:
    numbers = numbers_of(operation.inputs[1]) if len(operation.inputs) == 2 else None
    rank = len(operation.inputs[0].shape or ())
    return None if numbers is None or not rank else {axis % rank for axis in numbers}


_Rule = Callable[[Operation, Rows], Treated | None]
_RULES: dict[str, _Rule] = {
    "MatMul": _matrix_product,
    "BatchMatMul": _batched_product,
    "BatchMatMulV2": _batched_product,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "Sum": _reduction,
    "Mean": _reduction,
    "Max": _reduction,
    "Min": _reduction,
    "BiasAddGrad": _sum_of_columns,
    "Reshape": _reshape,
    "Transpose": _transposition,
    "BroadcastTo": _broadcast,
    "Tile": _repeated,
}


# -- changes: what numbers become

#: the axis of tokens in the place of the images', and the other way round
_OTHER = {0: 1, 1: 0}


def _set_numbers(operation: Operation, numbers: tuple[int, ...]) -> None:
    old = operation.inputs[1]
    if numbers != numbers_of(old):
        operation.replace_operands({old: constant_like(old, numbers)})


def _change_reshape(operation: Operation, found: Treated, rows: Rows) -> None:
    _set_numbers(operation, exchanged_shape(operation.output, rows))


def _change_reduction(operation: Operation, found: Treated, rows: Rows) -> None:
    axes = numbers_of(operation.inputs[1])
    assert axes is not None
    if rows.axes_of(operation.inputs[0]) == 1:
        return
    rank = len(operation.inputs[0].shape or ())
    _set_numbers(operation, tuple(_OTHER.get(axis % rank, axis) for axis in axes))


def _change_transposition(operation: Operation, found: Treated, rows: Rows) -> None:
    order = order_of(operation)
    assert order is not None
    x, y = operation.inputs[0], operation.output
    is_given, is_made = x in found.rows, y in found.rows
    if is_given and is_made:
        return  # the rows stay where they are
    if is_given:
        _set_numbers(operation, tuple(_OTHER.get(axis, axis) for axis in order))
    else:
        _set_numbers(operation, (order[1], order[0], *order[2:]))


_CHANGES: dict[str, Callable[[Operation, Treated, Rows], None]] = {
    "Reshape": _change_reshape,
    "Sum": _change_reduction,
    "Mean": _change_reduction,
    "Max": _change_reduction,
    "Min": _change_reduction,
    "Transpose": _change_transposition,
}
