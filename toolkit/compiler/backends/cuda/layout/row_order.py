"""The order of rows: tokens before images where attention then needs no copies.

Attention of several images takes and gives matrices of an image and a head. Where rows are numbered image by image, a
head's matrices lie one row apart from head to head, and one image apart from image to image: no one stride. Where they
are numbered token by token, images lie as far apart as all their heads do, so image and head are one stride, and all
transpositions that split and join heads become strides of products (`backends.cuda.transpositions`).

Nearly all of a network treats its rows alike (`backends.cuda.row_rules`), so their order is changed for as much of it
as does: what comes in is turned once, and so is what goes out. That pays from a few layers on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from toolkit.compiler.backends.cuda.layout.moved_axes import order_of
from toolkit.compiler.backends.cuda.layout.row_rules import Rows, Treated, exchange_numbers, exchanged_shape, treated
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference, ReadVariable
from toolkit.compiler.ir.value import Value

Refused = Callable[[Operation], bool]
_PRODUCTS = ("BatchMatMul", "BatchMatMulV2")
#: of a tensor [images, tokens, heads, columns] that becomes heads of images, and back
_HEADS = (0, 2, 1, 3)


@dataclass
class _Region:
    """What treats the rows alike, as far as it goes.

    Attributes:
        rows: how many.
        operations: what is inside, with what has rows there.
        values: all tensors with rows around these.
    """

    rows: Rows
    operations: dict[Operation, Treated] = field(default_factory=dict[Operation, Treated])
    values: dict[Value, None] = field(default_factory=dict[Value, None])

    def entries(self) -> list[Value]:
        """What comes from outside."""
        return [value for value in self.values if value.producer not in self.operations]

    def exits(self) -> list[Value]:
        """What is made inside and wanted outside."""
        return [
            value
            for value in self.values
            if value.producer in self.operations
            and (value.is_result or any(user not in self.operations for user in value.users))
        ]

    def agrees(self) -> bool:
        """Whether no operation takes as something else what has rows for another."""
        return all(
            value in found.rows
            for operation, found in self.operations.items()
            for value in (*operation.inputs, *operation.outputs)
            if value in self.values
        )


def order_rows(block: Block, refused: Refused) -> None:
    """Number rows token by token where fewer bytes are copied so, in loops too.

    Args:
        refused: whether an operation must stay a call.
    """
    for operation in block.operations:
        for region in operation.regions():
            order_rows(region, refused)
    seen: set[tuple[Value, Rows]] = set()
    for operation in block.operations:
        if order_of(operation) != _HEADS:
            continue
        for split in (operation.inputs[0], operation.output):
            images, tokens = relations.shape(split)[:2]
            rows = Rows(images, tokens)
            if min(images, tokens) == 1 or (split, rows) in seen or not _is_joined(split):
                continue
            region = _region(operation, split, rows, refused)
            seen.update((value, rows) for value in region.values)
            steps = _turning_steps(region)
            if steps is not None and region.agrees() and _saved_bytes(region) > 0:
                _exchange(block, region, *steps)


def _is_joined(split: Value) -> bool:
    """Whether images and tokens are two axes for a while: something around has another shape."""
    around = ([] if split.producer is None else [split.producer]) + list(split.users)
    return any(isinstance(each, Call) and each.op == "Reshape" for each in around)


def _region(seed: Operation, split: Value, rows: Rows, refused: Refused) -> _Region:
    """All that treats the rows of a tensor alike, from there on in all directions."""
    region = _Region(rows, values={split: None})
    outside: set[Operation] = set()
    waiting = [split]
    while waiting:
        value = waiting.pop()
        for operation in ([] if value.producer is None else [value.producer]) + list(value.users):
            if operation in region.operations or operation in outside:
                continue
            is_beside = operation.block is seed.block and operation.conditions == seed.conditions
            found = treated(operation, value, rows) if is_beside and not refused(operation) else None
            if found is None or any(each.is_predicate for each in found.rows):
                outside.add(operation)
                continue
            region.operations[operation] = found
            new = [each for each in found.rows if each not in region.values]
            region.values.update(dict.fromkeys(new))
            waiting += new
    return region


def _saved_bytes(region: _Region) -> int:
    """Bytes that are copied less: of heads that products join, without what is turned on the way in and out."""
    saved = 0
    for operation in region.operations:
        if order_of(operation) is None:
            continue
        x, y = operation.inputs[0], operation.output
        if y in region.values and x not in region.values:
            saved += y.nbytes if _is_product(x.producer) and x.sole_user is operation else 0
        elif x in region.values and y not in region.values:
            goes_on = not y.is_result and all(map(_is_product, y.users))
            saved -= 0 if goes_on else x.nbytes
    beside = {value for found in region.operations.values() for value in found.beside}
    return saved - sum(value.nbytes for value in (*region.entries(), *region.exits(), *beside))


def _is_product(operation: Operation | None) -> bool:
    return isinstance(operation, Call) and operation.op in _PRODUCTS


def _turning_steps(region: _Region) -> tuple[Call, Call] | None:
    """A transposition and a change of shape, whose nodes those that are put in can have; None where none can be."""
    turns = [each for each in region.operations if isinstance(each, Call) and each.op == "Transpose"]
    shapes = [each for each in region.operations if isinstance(each, Call) and each.op == "Reshape"]
    if not turns or not shapes:
        return None
    beside = {value for found in region.operations.values() for value in found.beside}
    if any(isinstance(value.producer, Dereference | ReadVariable) for value in region.entries()):
        return None  # what it holds later may be something else
    wanted = {value.dtype for value in (*region.entries(), *region.exits(), *beside)}
    return (turns[0], shapes[0]) if wanted <= {turns[0].output.dtype} & {shapes[0].output.dtype} else None


def _exchange(block: Block, region: _Region, turn: Call, shape: Call) -> None:
    """Have the tokens come first in a region, with turned copies of what comes in and goes out."""
    rows, order = region.rows, block.positions()
    inside = sorted(region.operations, key=order.__getitem__)
    turning = _Turning(block, turn, shape, inside[0])
    exits = [(value, value.shape or (), rows.axes_of(value)) for value in region.exits()]
    beside = {value: None for found in region.operations.values() for value in found.beside}
    incoming = {value: (value.shape or (), rows.axes_of(value)) for value in region.entries()}
    incoming.update({value: (value.shape or (), 2) for value in beside})
    for operation in inside:
        exchange_numbers(operation, region.operations[operation], rows)
    for value in region.values:
        if value not in incoming:
            value.shape = exchanged_shape(value, rows)
    moved = {value: turning.before(value, rows, axes, inside) for value, (_, axes) in incoming.items()}
    for operation in inside:
        operation.replace_operands(moved)
    for value, was, axes in exits:
        turning.behind(value, was, rows, axes, region)


@dataclass
class _Turning:
    """Puts in what turns rows.

    Attributes:
        turn, shape: calls whose nodes are taken.
        like: an operation inside, for the branches that what is put in is on.
    """

    block: Block
    turn: Call
    shape: Call
    like: Operation

    def before(self, value: Value, rows: Rows, axes: int, inside: list[Operation]) -> Value:
        """What comes in, tokens first."""
        shape = relations.shape(value)
        lead, rest = (shape[:2], shape[2:]) if axes != 1 else ((rows.images, rows.tokens), shape[1:])
        turned = (lead[1], lead[0], *rest)
        target = turned if axes != 1 else shape
        made = self._turned(value, (*lead, *rest), target)
        self.block.insert_before(next(each for each in inside if value in each.inputs), made)
        return made[-1].output

    def behind(self, value: Value, was: tuple[int, ...], rows: Rows, axes: int, region: _Region) -> None:
        """What goes out, in its own order, for all outside."""
        rest = was[axes:]
        made = self._turned(value, (rows.tokens, rows.images, *rest), was)
        assert value.producer is not None
        outside = [user for user in value.users if user not in region.operations and user not in made]
        back = made[-1].output
        self.block.insert_after(value.producer, made)
        for user in outside:
            user.replace_operands({value: back})
        if value.is_result:
            self.block.results = [back if each is value else each for each in self.block.results]
            value.is_result, back.is_result = False, True

    def _turned(self, value: Value, split: tuple[int, ...], target: tuple[int, ...]) -> list[Operation]:
        """A tensor of two axes of rows, whose first two axes change places, in a shape."""
        made: list[Operation] = []
        at = value
        if at.shape != split:
            made.append(self._call(self.shape, at, split, split))
            at = made[-1].output
        turned = (split[1], split[0], *split[2:])
        order = (1, 0, *range(2, len(split)))
        made.append(self._call(self.turn, at, order, turned))
        if turned != target:
            made.append(self._call(self.shape, made[-1].output, target, target))
        return made

    def _call(self, like: Call, value: Value, numbers: tuple[int, ...], shape: tuple[int, ...]) -> Operation:
        dtype = like.inputs[1].dtype
        told = Value(dtype, (len(numbers),), np.array(numbers, dtype))
        return Call(
            op=like.op, inputs=(value, told), outputs=[Value(value.dtype, shape)], steps=[like.step],
            conditions=self.like.conditions,
        )  # fmt: skip
