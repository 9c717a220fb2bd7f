"""What only leaves an iteration is computed where the last of what it takes is.

A graph has the sum of a state's gradients where the last of its terms is wanted, behind products that do not concern
it: a kernel of its own. Computed beside its terms it is part of the kernel that makes them. What kernels take stays
with them.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.compiler.backends.cuda.fusion.chains import times_of
from toolkit.compiler.backends.cuda.fusion.fusible import is_elementwise, is_row_reduction
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Loop, Test
from toolkit.compiler.ir.value import Value

Refused = Callable[[Operation], bool]


def compute_early(block: Block, refused: Refused, changes_variables: Refused) -> None:
    """Move elementwise operations of loops, whose results no kernel takes, to behind the last of their operands.

    Args:
        refused: whether an operation must stay a call.
        changes_variables: whether arrays that were read may hold something else behind an operation: nothing is moved
            beyond it.
    """
    for operation in block.operations:
        for region in operation.regions():
            compute_early(region, refused, changes_variables)
            if isinstance(operation, Loop):
                _move(region, refused, changes_variables)


def is_taken_by_kernels(value: Value) -> bool:
    """Whether an operation takes it that can be one kernel with others."""
    return any(is_elementwise(user) or is_row_reduction(user) for user in value.users)


def _move(body: Block, refused: Refused, changes_variables: Refused) -> None:
    times, places = times_of(body, changes_variables), body.positions()
    test = next((operation for operation in body if isinstance(operation, Test)), None)
    for operation in body.operations:
        if not isinstance(operation, Call) or not operation.is_plain or refused(operation):
            continue
        if not is_elementwise(operation) or is_taken_by_kernels(operation.output):
            continue
        makers = [value.producer for value in operation.inputs if value.producer is not None]
        last = max(makers, key=places.__getitem__, default=None)
        if last is None or last.next is operation or times[last] != times[operation]:
            continue
        if test is not None and places[last] < places[test] < places[operation]:
            continue  # before the test it would be computed once more than there are iterations
        if is_elementwise(last) and not refused(last) and last.conditions == operation.conditions:
            assert last.next is not None
            body.move_before(last.next, operation)
            places = body.positions()
