"""The order of two batch axes between transpositions, such as images of heads or heads of images.

Where attention lies between transpositions, nothing in it asks which of both axes comes first. If heads do, a product
of all rows with the columns of each head writes what the transposition behind it gives; if the batch does, it takes a
product for each image. So the order is changed where more transpositions go into products by it
(`backends.cuda.transpositions`); those that are left move as much as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from toolkit.compiler.backends.cuda.fusion.chains import times_of
from toolkit.compiler.backends.cuda.fusion.fusible import is_elementwise, is_row_reduction
from toolkit.compiler.backends.cuda.layout.moved_axes import constant_like, order_of
from toolkit.compiler.backends.cuda.layout.transpositions import goes_into_product
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.conditions import Conditions
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value

Refused = Callable[[Operation], bool]
_Known = dict[tuple[Value, Conditions], Value]
_PRODUCTS = ("BatchMatMul", "BatchMatMulV2")
#: axes of the tensors between the transpositions: two of the batch, and two of matrices
_RANK = 4
_EXCHANGED = (1, 0, 2, 3)
#: heads of images out of [tokens, images, heads, columns]
_OF_TOKENS = (1, 2, 0, 3)


@dataclass
class _Region:
    """Operations that treat both batch axes alike, up to the transpositions around them.

    Attributes:
        lead: the sizes of both axes.
        operations, values: what is inside, each value with both axes.
        entries, exits: transpositions that make, and that take, such values.
        beside: what is broadcast along one of the axes, or comes from outside: it is turned for the region.
    """

    lead: tuple[int, ...]
    operations: dict[Operation, None] = field(default_factory=dict[Operation, None])
    values: dict[Value, None] = field(default_factory=dict[Value, None])
    entries: dict[Operation, None] = field(default_factory=dict[Operation, None])
    exits: dict[Operation, None] = field(default_factory=dict[Operation, None])
    beside: dict[Value, None] = field(default_factory=dict[Value, None])


def order_batches(block: Block, refused: Refused, changes_variables: Refused) -> None:
    """Exchange both batch axes of what lies between transpositions where more of these go into products so.

    Args:
        refused: whether an operation must stay a call.
        changes_variables: whether arrays that were read may hold something else behind an operation.
    """
    for operation in block.operations:
        for region in operation.regions():
            order_batches(region, refused, changes_variables)
    if not any(order_of(operation) is not None for operation in block):
        return
    times = times_of(block, changes_variables)
    seen: set[Operation] = set()
    known: _Known = {}
    for operation in block.operations:
        if operation in seen or not isinstance(operation, Call) or operation.op not in _PRODUCTS:
            continue
        region = _region(operation, refused)
        if region is None:
            continue
        seen.update(region.operations)
        if any(order_of(entry) == _OF_TOKENS for entry in region.entries):
            continue  # images and heads are one stride (`backends.cuda.row_order`)
        before = _count(region, refused, times)
        _exchange_entries(region)
        turned = sum(value.shape is not None and 1 not in value.shape[:2] for value in region.beside)
        if _count(region, refused, times) > before + turned:
            _exchange(block, region, known)
        else:
            _exchange_entries(region)


def _count(region: _Region, refused: Refused, times: dict[Operation, int]) -> int:
    return sum(goes_into_product(entry, refused, times) for entry in region.entries)


def _region(seed: Operation, refused: Refused) -> _Region | None:
    """The region around a product; None where something else than transpositions is around it."""
    shape = seed.output.shape or ()
    if len(shape) != _RANK or 1 in shape[:2]:
        return None
    found = _Region(shape[:2])
    waiting = [seed]
    while waiting:
        operation = waiting.pop()
        if operation in found.operations:
            continue
        if not _is_inside(operation, seed, refused):
            return None
        found.operations[operation] = None
        for value in (*operation.inputs, operation.output):
            if value in found.values or not _moves(operation, value):
                continue
            whole = _is_whole(value, found.lead)
            if whole is None:
                return None
            if not whole or value.producer is None:
                found.beside[value] = None
                continue
            following = _around(value, found)
            if following is None:
                return None
            found.values[value] = None
            waiting += following
    types = {entry.output.dtype for entry in found.entries}
    can_turn = all(value.dtype in types for value in found.beside)
    return found if found.entries and can_turn else None


def _around(value: Value, region: _Region) -> list[Operation] | None:
    """The operations around a value that must belong to the region; its transpositions are noted there."""
    producer = value.producer
    assert producer is not None
    if value.is_result or value.is_predicate:
        return None
    found: list[Operation] = []
    if order_of(producer) is not None:
        region.entries[producer] = None
    else:
        found.append(producer)
    for user in value.users:
        if order_of(user) is not None:
            region.exits[user] = None
        else:
            found.append(user)
    return found


def _is_inside(operation: Operation, seed: Operation, refused: Refused) -> bool:
    """Whether an operation treats both batch axes alike."""
    if not isinstance(operation, Call) or refused(operation) or operation.conditions != seed.conditions:
        return False
    if operation.block is not seed.block or len(operation.output.shape or ()) != _RANK:
        return False
    if operation.op in _PRODUCTS:
        shapes = [value.shape for value in (*operation.inputs, operation.output)]
        return all(shape is not None and shape[:2] == (seed.output.shape or ())[:2] for shape in shapes)
    return is_elementwise(operation) or is_row_reduction(operation)


def _moves(operation: Operation, value: Value) -> bool:
    """Whether an operand has one of both axes; those of a reduction beside the tensor are numbers."""
    if value is not operation.inputs[0] and is_row_reduction(operation) and value is not operation.output:
        return False
    shape = value.shape or ()
    return any(size != 1 for size in shape[: max(len(shape) - 2, 0)])


def _is_whole(value: Value, lead: tuple[int, ...]) -> bool | None:
    """Whether it has both axes; False where it is broadcast along one, None where it has another rank."""
    shape = value.shape or ()
    if len(shape) != _RANK:
        return None
    return shape[:2] == lead


def _exchange_entries(region: _Region) -> None:
    """Let the transpositions before a region give both axes in the other order; done twice, nothing has changed."""
    for entry in region.entries:
        order = order_of(entry)
        assert order is not None
        _set_shape(entry.output)
        _set_order(entry, [order[place] for place in _EXCHANGED])


def _exchange(block: Block, region: _Region, known: _Known) -> None:
    """Exchange both axes of what is in a region, behind its entries.

    Args:
        known: what came from outside into regions before, and as what.
    """
    outputs = {entry.output for entry in region.entries}
    for leaving in region.exits:
        order = order_of(leaving)
        assert order is not None
        _set_order(leaving, [_EXCHANGED[place] for place in order])
    for value in region.values:
        if value not in outputs:
            _set_shape(value)
    positions = block.positions()
    inside = sorted(region.operations, key=positions.__getitem__)
    moved: dict[Value, Value] = {}
    for value in region.beside:
        key = value, inside[0].conditions
        if key not in known:
            known[key] = _exchanged(block, region, value, inside)
        moved[value] = known[key]
    for operation in inside:
        operation.replace_operands(moved)


def _exchanged(block: Block, region: _Region, value: Value, inside: Sequence[Operation]) -> Value:
    """What comes from outside of a region, with both axes in the other order."""
    shape = value.shape or ()
    made = Value(value.dtype, tuple(shape[place] for place in _EXCHANGED))
    entry = next(each for each in region.entries if each.output.dtype == value.dtype)
    first = next(operation for operation in inside if value in operation.inputs)
    order = constant_like(entry.inputs[1], _EXCHANGED)
    made_by = Call(
        op="Transpose", inputs=(value, order), outputs=[made], steps=[entry.step], conditions=first.conditions
    )
    block.insert_before(first, [made_by])
    return made


def _set_shape(value: Value) -> None:
    shape = value.shape or ()
    value.shape = tuple(shape[place] for place in _EXCHANGED)


def _set_order(turn: Operation, order: Sequence[int]) -> None:
    old = turn.inputs[1]
    turn.replace_operands({old: constant_like(old, order)})
