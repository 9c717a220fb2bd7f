"""What every backend that writes a Python function needs: when values are used last, and what its lines call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Step, as_outputs, dereference


def last_uses(block: Block) -> dict[Operation, list[Value]]:
    """The values that each operation of a block is the last to take or, where nobody takes them, makes.

    Results, and what decides branches, are needed beyond.
    """
    last: dict[Value, Operation] = {}
    for operation in block:
        for value in operation.outputs:
            last[value] = operation
        for value in operation.inputs:
            last[value] = operation
    found: dict[Operation, list[Value]] = {}
    for value, operation in last.items():
        if not value.is_result and not value.is_predicate:
            found.setdefault(operation, []).append(value)
    return found


def outputs_of(step: Step) -> Callable[[Any], Sequence[Any]]:
    """What makes a sequence of a kernel's result; see `program.as_outputs`."""
    return lambda result: as_outputs(step, result)


def value_of(step: Step) -> Callable[[Any], Any]:
    """What gives the present value of the reference variable that a step reads; see `program.dereference`."""

    def read(cell: Any) -> Any:
        held = [cell] * (max(step.deref) + 1)
        dereference(step, held)
        return held[step.deref[0]]

    return read
