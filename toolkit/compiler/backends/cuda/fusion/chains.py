"""Chains of calls that become one call of a library: what follows what, and one operation in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call

#: what says that a program learns
_LEARNING = ("Grad", "Backprop", "Apply")


def learns(block: Block) -> bool:
    """Whether a program computes gradients or changes variables by them: a NaN on the way must be seen."""
    return any(word in operation.op for operation in block.walk() for word in _LEARNING)


def times_of(block: Block, changes_variables: Callable[[Operation], bool]) -> dict[Operation, int]:
    """How many operations before each one may have changed variables."""
    found: dict[Operation, int] = {}
    count = 0
    for operation in block:
        found[operation] = count
        count += changes_variables(operation)
    return found


def next_of(
    operation: Operation, refused: Callable[[Operation], bool], times: dict[Operation, int]
) -> Operation | None:
    """The one operation that takes a result, if that can be computed where the result is."""
    user = operation.output.sole_user
    if not isinstance(user, Call) or user.block is not operation.block or refused(user) or not user.outputs:
        return None
    if any(value.is_needed for value in user.outputs[1:]):
        return None
    if user.conditions != operation.conditions or times.get(user) != times.get(operation) or user.step.deref:
        return None
    return user


def replace_chain(members: Sequence[Operation], last: Operation, kind: Any, **fields: Any) -> None:
    """Put one operation in the place of the last of a chain, and take the others out.

    Args:
        members: all but the last one; of their results nobody else takes any.
        kind, fields: the operation.
    """
    block = last.block
    assert block is not None
    steps = [step for each in (*members, last) for step in each.steps]
    last.become(kind, outputs=last.outputs[:1], steps=steps, **fields)
    waiting = set(members)
    while free := [each for each in waiting if not any(value.users for value in each.outputs)]:  # those behind go first
        block.remove(free)
        waiting.difference_update(free)
