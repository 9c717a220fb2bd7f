"""Tensors of an iteration that are computed, or read, where a list or stack keeps them, instead of being copied."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.accumulation import Accumulate
from toolkit.compiler.ir.operations.sequences import Count, Get, Pop, Push, TensorSequence
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value

#: until they have classes, what finds its operands through addresses that can be changed


@dataclass(frozen=True, slots=True)
class SequenceSlot:
    """The element that an iteration pushes as its first, second, ... of a sequence."""

    sequence: TensorSequence
    which: int


def find_floating(block: Block, least: int) -> dict[Value, SequenceSlot | None]:
    """The values that have no place in the arena: what is pushed, with where it goes, and what is popped or read.

    What is pushed in its own place is only counted from here on.

    Args:
        least: bytes of a value; smaller ones are copied as soon as their addresses are.
    """
    found: dict[Value, SequenceSlot | None] = {}
    pushes: dict[TensorSequence, int] = {}
    arguments = set(block.arguments)
    for operation in block.operations:
        if isinstance(operation, Pop | Get):
            # an element that is read may be set in the same iteration
            if operation.outputs and not operation.sequence.writes and _floats(operation.output, Accumulate, least):
                found[operation.output] = None
        elif isinstance(operation, Push | Count):
            sequence = operation.sequence
            which = pushes[sequence] = pushes.get(sequence, -1) + 1
            if isinstance(operation, Count):
                continue
            value = operation.element
            made = value.producer
            if value in found or value in arguments or made is None or not _is_addressable(made):
                continue
            if value.shape == sequence.element and value.dtype == sequence.dtype and _floats(value, Push, least):
                found[value] = SequenceSlot(sequence, which)
                operation.become(Count, sequence=sequence)
    return found


def _is_addressable(operation: Operation) -> bool:
    return operation.has(Trait.ADDRESSABLE)


def _floats(value: Value, copier: type[Operation], least: int) -> bool:
    """Whether everybody who takes a value finds it anywhere: by its address, or as one of these, which copy it."""
    return (
        not value.is_result
        and not value.is_constant
        and value.nbytes >= least
        and all(_is_addressable(user) or isinstance(user, copier) for user in value.users)
    )
