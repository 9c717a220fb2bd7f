"""Values that variables are assigned: made where the variable will have them, and donated instead of copied.

Without this an initialiser's tables would be there twice, once in an arena that nobody needs again.
"""

from __future__ import annotations

from toolkit.compiler.importer.effects import ASSIGNS
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Alias
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value


def find_donated(block: Block, least: int) -> set[Value]:
    """What is computed in an array of its own, for all that is done with it is that a variable gets it.

    Args:
        least: bytes of it.
    """
    found: set[Value] = set()
    for operation in block.operations:
        if operation.op in ASSIGNS:
            value = _origin(operation.inputs[1], operation)
            if value is not None and value.nbytes >= least:
                found.add(value)
    return found


def _origin(value: Value, user: Operation) -> Value | None:
    """What a value is another shape of, as long as nobody else takes any of them."""
    while value.sole_user is user and value.producer is not None:
        user = value.producer
        if user.has(Trait.WRITES_ANYWHERE):
            return value
        if not isinstance(user, Alias) or user.input.shape is None or user.input.size != value.size:
            return None
        value = user.input
    return None
