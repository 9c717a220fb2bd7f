"""Moving averages, which batch norms of training steps keep by the dozen: those of one rate are one kernel, in place.

As the graph has it each is a kernel that reads the variable, and another one, or a copy, that changes it; both take as
long as their launch. An average is `old * kept + new * share` that is assigned, or `(old - new) * rate` that is taken
away. Arithmetic and its order stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.compiler.backends.cuda.fusion.updates import (
    ASSIGNMENTS,
    is_blind,
    is_update,
    may_fail,
    read_variable,
    variable_name,
    variables_of,
)
from toolkit.compiler.backends.cuda.operations import UpdatesCall
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.effects import may_change_variables
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, call_of
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import scalar_of
from toolkit.kernels.gpu.state.updates import MOST_TOGETHER
from toolkit.kernels.tensors import F16, F32

_TYPES = frozenset({F16, F32, np.dtype(np.float64)})


@dataclass(frozen=True)
class _Average:
    """Attributes:
    update: what changes the variable.
    rule: of `toolkit.kernels.gpu.state.averages`.
    new: what is averaged.
    numbers: what the rule takes besides, scalars.
    parts: what computes it for this update alone, the reading of the variable first.
    """

    update: Call
    rule: str
    new: Value
    numbers: tuple[Value, ...]
    parts: tuple[Operation, ...]


def gather_averages(block: Block, refused: Callable[[Operation], bool]) -> None:
    """Have neighbouring updates of moving averages by the same numbers be few operations.

    Args:
        refused: whether an operation must stay a call.
    """
    for operation in block.operations:
        for region in operation.regions():
            gather_averages(region, refused)
    order: list[Operation] = []
    runs: list[list[_Average]] = []
    run: list[_Average] = []
    reads: list[Operation] = []  # of what a run keeps, which wait for it as long as nobody takes what they give

    def flush() -> None:
        order.extend(each.update for each in run)
        order.extend(reads)
        runs.append(list(run))
        run.clear()
        reads.clear()

    for operation in block.operations:
        given = [*operation.inputs, *(value for value, _ in operation.predicates)]
        if any(value.producer in reads for value in given):
            flush()
        found = None if refused(operation) else _average(block, operation)
        if found is not None and not any(map(refused, found.parts)):
            run.append(found)
        elif read_variable(operation) in _names(run):
            reads.append(operation)
        else:
            if not _is_passed(operation, run):
                flush()
            order.append(operation)
    flush()
    block.reorder(order)
    for each in runs:
        _gather(block, each)


def _names(run: Sequence[_Average]) -> set[object]:
    """The variables of averages."""
    return {variable_name(each.update.inputs[0]) for each in run}


def _is_passed(operation: Operation, run: Sequence[_Average]) -> bool:
    """Whether averages may be kept behind an operation instead of in front of it."""
    names = _names(run)
    if is_update(operation):
        others = variables_of(operation)
        return None not in others and names.isdisjoint(others)
    read = read_variable(operation)
    return read not in names if read is not None else is_blind(operation) and not may_fail(operation)


def _average(block: Block, operation: Operation) -> _Average | None:
    """The average that an operation keeps; None where it does something else, or others see a part of it."""
    if not isinstance(operation, Call) or operation.op not in ASSIGNMENTS or operation.step.deref:
        return None
    if any(value.is_needed for value in operation.outputs):
        return None
    target, value = operation.inputs[:2]
    found = _assigned(operation, value) if operation.op.startswith("Assign") else None
    if found is None or variable_name(target) is None:
        return None
    read = found.parts[0]
    same = all(part.block is block and part.conditions == operation.conditions for part in found.parts)
    if not same or read_variable(read) != variable_name(target):
        return None
    is_known = found.new.shape is not None and found.new.shape == read.outputs[0].shape
    types = {read.outputs[0].dtype, found.new.dtype, *(number.dtype for number in found.numbers)}
    if not is_known or len(types) != 1 or not types <= _TYPES:
        return None
    if any(number.shape != () for number in found.numbers) or _is_changed_between(read, operation):
        return None
    return found


def _assigned(update: Call, value: Value) -> _Average | None:
    if update.op in ("Assign", "AssignVariableOp"):
        total = call_of(value, "Add", "AddV2")
        factors = [] if total is None else [call_of(each, "Mul") for each in total.inputs]
        if total is None or value.sole_user is not update or None in factors or factors[0] is factors[1]:
            return None
        for one, other in (factors, factors[::-1]):
            assert one is not None and other is not None
            old, new = _taken_apart(one, total, is_read=True), _taken_apart(other, total, is_read=False)
            if old is not None and new is not None and old[0].producer is not None:
                return _Average(update, "MovingAverage", new[0], (old[1], new[1]), (old[0].producer, one, other, total))
        return None
    if update.op in ("AssignSub", "AssignSubVariableOp"):
        scaled = call_of(value, "Mul")
        if scaled is None or value.sole_user is not update:
            return None
        for off, rate in (scaled.inputs, scaled.inputs[::-1]):
            difference = call_of(off, "Sub")
            if difference is not None and off.sole_user is scaled and rate.shape == ():
                old, new = difference.inputs
                read = old.producer
                if read is not None and read_variable(read) is not None and old.sole_user is difference:
                    return _Average(update, "AverageDifference", new, (rate,), (read, difference, scaled))
    return None


def _taken_apart(product: Call, user: Operation, *, is_read: bool) -> tuple[Value, Value] | None:
    """A product's factors, the scalar last; None where others take it, or the first is not read from a variable."""
    if product.outputs[0].sole_user is not user:
        return None
    for one, number in (product.inputs, product.inputs[::-1]):
        reads = one.producer is not None and read_variable(one.producer) is not None
        if number.shape == () and one is not number and (not is_read or (reads and one.sole_user is product)):
            return one, number
    return None


def _is_changed_between(read: Operation, update: Operation) -> bool:
    """Whether a variable may be another one when it is changed than when it was read."""
    name = read_variable(read)
    between = read.next
    while between is not None and between is not update:
        if is_update(between):
            names = variables_of(between)
            if name in names or None in names:
                return True
        elif may_change_variables(between):
            return True
        between = between.next
    return between is None


def _gather(block: Block, run: Sequence[_Average]) -> None:
    """Put those of a run together whose numbers are the same, each variable once."""
    if len(_names(run)) < len(run):
        return
    groups: dict[object, list[_Average]] = {}
    for each in run:
        numbers = tuple(_known_as(number) for number in each.numbers)
        key = (each.rule, each.update.op, each.new.dtype, each.update.conditions, numbers)
        groups.setdefault(key, []).append(each)
    for same in groups.values():
        for first in range(0, len(same), MOST_TOGETHER):
            _join(block, same[first : first + MOST_TOGETHER])


def _known_as(number: Value) -> object:
    """What two scalars that are the same number have in common."""
    known = scalar_of(number)
    return number if known is None else known.hex()  # zeros of either sign are equal


def _join(block: Block, averages: Sequence[_Average]) -> None:
    """Averages as one operation, in the place of the last of them."""
    last = averages[-1].update
    steps = [step for each in averages for part in (*each.parts, each.update) for step in part.steps]
    targets, gradients = (
        tuple(each.update.inputs[0] for each in averages), tuple(each.new for each in averages)
    )  # fmt: skip
    last.become(
        UpdatesCall, rule=averages[-1].rule, targets=targets, gradients=gradients, numbers=averages[-1].numbers,
        steps=steps, outputs=[],
    )  # fmt: skip
    block.remove([each.update for each in averages[:-1]])
    for each in averages:
        for part in reversed(each.parts):
            if not any(value.is_needed for value in part.outputs):
                block.remove([part])
