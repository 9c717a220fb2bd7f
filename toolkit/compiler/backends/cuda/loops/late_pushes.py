"""What only keeps a tensor for later stands behind what is computed.

A loop whose gradient is wanted pushes what that takes, each tensor behind what makes it: in the middle of a cell, whose
operations could not be one kernel then. Behind the iteration's other operations pushes are in nobody's way.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.effects import may_change_variables
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Loop, Test
from toolkit.compiler.ir.value import Value

#: ops that keep a tensor and look at nothing else
KEEP = frozenset({
    "StackPush", "StackPushV2", "TensorArrayWriteV3", "TensorListPushBack", "TensorListSetItem",
})  # fmt: skip
#: ops that look at what some handle stands for, the first of their inputs, and at nothing else
_LOOK = frozenset({"StackPop", "StackPopV2", "TensorArrayReadV3", "TensorArraySizeV3"})


def push_late(block: Block) -> None:
    """Move what keeps tensors, in its order, to before the next operation that takes what it gives or could see it, in
    the bodies of loops."""
    for operation in block.operations:
        for region in operation.regions():
            push_late(region)
        if isinstance(operation, Loop):
            given = dict(zip(operation.body.arguments, operation.inputs, strict=True))
            _push_late(operation.body, {inner: outer for inner, outer in given.items() if inner is not None})


def _push_late(body: Block, given: Mapping[Value, Value]) -> None:
    """Likewise, in one of them.

    Args:
        given: the values outside that its arguments begin as.
    """
    operations: list[Operation] = []
    waiting: list[Operation] = []
    made: set[Value] = set()
    kept: set[Value] = set()  # handles of what waits

    def flush() -> None:
        operations.extend(waiting)
        waiting.clear()
        made.clear()
        kept.clear()

    for operation in body.operations:
        takes = made.intersection(operation.inputs) or any(value in made for value, _ in operation.predicates)
        if isinstance(operation, Call) and operation.op in KEEP and not operation.step.deref:
            waiting.append(operation)
            made.update(operation.outputs)
            kept.add(given.get(operation.inputs[0], operation.inputs[0]))
            continue
        if waiting and (takes or not _is_blind(operation, kept, given)):
            flush()
        operations.append(operation)
    flush()
    body.reorder(operations)


def _is_blind(operation: Operation, kept: set[Value], given: Mapping[Value, Value]) -> bool:
    """Whether it neither sees what waits nor changes what waits to be kept."""
    if isinstance(operation, Call) and operation.op in _LOOK and not operation.step.deref:
        handle = operation.inputs[0]
        # another argument of the loop stands for another stack or array; what is made inside may be any
        return handle in given and all(each in given.values() for each in kept) and given[handle] not in kept
    return not isinstance(operation, Test | Loop) and not may_change_variables(operation)
