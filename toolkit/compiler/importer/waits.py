"""Which programs may have to wait for another step: they take no turn on the processors (`runtime.steps.turns`)."""

from __future__ import annotations

from toolkit.compiler.importer.effects import ASSIGNS, HANDLES, READERS
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Dereference, Loop, ReadVariable, Select, Test
from toolkit.kernels.registry import Kind

#: ops that look something up, with kernels that need the step
_LOOKS = READERS | HANDLES | {"_ReadVariablesOp", "LookupTableFind", "LookupTableFindV2"}
#: how the names of ops begin that change a variable, with resources or with references
_UPDATES = ("Apply", "Assign", "ResourceApply", "ResourceScatter", "ResourceSparseApply", "Scatter", "SparseApply")


def may_wait(block: Block, *, in_loop: bool = False) -> bool:
    """Whether a program does something that may last until another step has done its part.

    It may not where all that it does besides computing is reading and changing variables and drawing random numbers.
    A loop that changes variables may wait for what another step makes of them.

    Args:
        in_loop: the block is the body of a loop.
    """
    for operation in block.operations:
        if isinstance(operation, Loop):
            if may_wait(operation.body, in_loop=True):
                return True
        elif not isinstance(operation, Dereference | ReadVariable | Select | Test) and not _goes_on(operation, in_loop):
            return True
    return False


def loops(block: Block) -> bool:
    """Whether a program has loops: how long it takes is known when it has run."""
    return any(isinstance(operation, Loop) for operation in block.operations)


def _goes_on(operation: Operation, in_loop: bool) -> bool:
    step = operation.step
    node = step.node
    if step.kind is Kind.PURE:
        return not (in_loop and any(dtype.is_ref for dtype in node.input_types))
    if node.op in _LOOKS or (step.kind is Kind.STATEFUL and _draws(operation)):
        return True
    return not in_loop and (node.op in ASSIGNS or node.op.startswith(_UPDATES))


def _draws(operation: Operation) -> bool:
    """Whether it takes numbers from a stream of its own."""
    node = operation.step.node
    return node.attr("seed2", None) is not None and not any(dtype.name == "resource" for dtype in node.input_types)
