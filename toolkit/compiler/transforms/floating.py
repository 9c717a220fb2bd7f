"""Tensors of a turn that are computed, or read, right where a list or stack keeps them, instead of being copied."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.sequences import Sequence

#: until they have classes, what finds its operands through addresses that can be changed
_FLEXIBLE = frozenset({"matmul"})
_LEAST = 256  # bytes: smaller tensors are copied as soon as their addresses are


@dataclass(frozen=True, slots=True)
class Slot:
    """The element that a turn pushes as its first, second, ... of a sequence."""

    sequence: Sequence
    which: int


def find_floating(block: Block) -> dict[Value, Slot | None]:
    """The values that have no place in the arena: what is pushed, with where it goes, and what is popped or read.

    What is pushed in its own place is only counted from here on.
    """
    found: dict[Value, Slot | None] = {}
    pushes: dict[Sequence, int] = {}
    arguments = set(block.arguments)
    for operation in block.operations:
        if operation.kind in ("pop", "get"):
            sequence: Sequence = operation.attrs["sequence"]
            # an element that is read may be set in the same turn
            if operation.outputs and not sequence.writes and _floats(operation.output, {"total_of"}):
                found[operation.output] = None
        elif operation.kind in ("push", "count"):
            sequence = operation.attrs["sequence"]
            which = pushes[sequence] = pushes.get(sequence, -1) + 1
            if operation.kind == "count":
                continue
            value = operation.inputs[0]
            made = value.producer
            if value in found or value in arguments or made is None or not _is_addressable(made):
                continue
            if value.shape == sequence.element and value.dtype == sequence.dtype and _floats(value, {"push"}):
                found[value] = Slot(sequence, which)
                operation.kind = "count"
                operation.set_inputs(())
    return found


def _is_addressable(operation: Operation) -> bool:
    return operation.has(Trait.ADDRESSABLE) or operation.kind in _FLEXIBLE


def _floats(value: Value, others: set[str]) -> bool:
    """Whether everybody who takes a value finds it anywhere."""
    return (
        not value.is_result
        and not value.is_constant
        and value.nbytes >= _LEAST
        and all(_is_addressable(user) or user.kind in others for user in value.users)
    )
