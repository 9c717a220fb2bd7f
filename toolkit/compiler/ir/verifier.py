"""What must hold between the operands of an operation before code is made of it: the `verify` of its class.

Lowering takes sizes from one operand and lets others follow. Where a graph's shapes and types do not go together the
others do not follow, and the node's own kernel says what is wrong with them. So every block is verified once, behind
the last pass and in front of the emission; what breaks its rule keeps its kernel. Classes that are emitted and have no
rule are refused: a new one needs a rule first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value

#: bytes that a tensor can have at all: more are not in the address space, and sizes in int64 may overflow
MOST = 1 << 46


def verify(block: Block, emitted: Callable[[Operation], bool]) -> None:
    """Look at every operation of a block.

    Args:
        emitted: says whether code is made of an operation; of a call the node's kernel is called where it is not.

    Raises:
        NotSupportedError: an operation breaks the rule of its class, or is no call and no code is made of it.
    """
    looked_at: set[Value] = set()
    for operation in block.operations:
        if not emitted(operation):
            if not isinstance(operation, Call):
                raise NotSupportedError(operation, f"no code is made of '{operation.mnemonic}'")
            continue
        for value in (*operation.inputs, *operation.outputs):
            if value not in looked_at:
                looked_at.add(value)
                if (wrong := _wrong_size(value)) is not None:
                    raise NotSupportedError(operation, wrong)
        for wrong in _wrong(operation):
            raise NotSupportedError(operation, wrong)


def _wrong(operation: Operation) -> Iterable[str]:
    if type(operation).verify is Operation.verify:
        return [f"there is no rule for '{operation.mnemonic}'"]
    return operation.verify()


def _wrong_size(value: Value) -> str | None:
    if value.shape is not None and value.dtype is not None:
        if min(value.shape, default=0) < 0:
            return f"a shape is {list(value.shape)}"
        if value.nbytes > MOST:
            return f"a tensor of {list(value.shape)} cannot be had"
    return None
