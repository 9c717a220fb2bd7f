"""Stacks of truth values stay in the device's memory where it makes and takes them.

TensorFlow keeps what is pushed of whole numbers and truth values in host memory. What a dropout kept, or a Select
chose, is such a tensor: the gradient's loop copies it back, and each copy to the host waits for the device, which no
CUDA graph can do. A stack holds whatever tensor it is given, so that neither copy is needed.
"""

from __future__ import annotations

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Loop
from toolkit.compiler.ir.value import Value
from toolkit.kernels.facts import COPY_IN, COPY_OUT

_PUSHES, _POPS, _STACKS = ("StackPush", "StackPushV2"), ("StackPop", "StackPopV2"), ("Stack", "StackV2")


def keep_where_made(block: Block) -> None:
    """Push and pop without copies where all that is pushed is copied to the host, and all that is popped from it."""
    for operation in block.operations:
        for region in operation.regions():
            keep_where_made(region)
    for operation in block.operations:
        if isinstance(operation, Call) and operation.op in _STACKS and operation.is_plain:
            ends = _ends(operation.outputs[0])
            if ends and all(map(_is_copied, ends)):
                for end in ends:
                    _keep(end)


def _ends(stack: Value) -> list[Call] | None:
    """All that pushes to a stack or pops from it; None where somebody else takes it."""
    found: list[Call] = []
    waiting = [stack]
    while waiting:
        handle = waiting.pop()
        if handle.is_result:
            return None
        for user in handle.users:
            if isinstance(user, Loop) and handle not in user.states:
                given = zip(user.body.arguments[len(user.states) :], user.invariants, strict=True)
                waiting += [inner for inner, outer in given if outer is handle and inner is not None]
            elif isinstance(user, Call) and user.op in (*_PUSHES, *_POPS) and user.is_plain:
                found.append(user)
            else:
                return None
    return found


def _is_copied(end: Call) -> bool:
    """Whether what is pushed comes from the device, or what is popped goes there, and nobody on the host sees it."""
    if end.op in _PUSHES:
        copy = end.inputs[1].producer
        return copy is not None and _is_copy(copy, COPY_OUT) and not end.output.is_needed
    value = end.output
    seen = value.is_result or value.is_predicate
    return not seen and all(_is_copy(user, COPY_IN) for user in value.users)


def _is_copy(operation: Operation, op: str) -> bool:
    return isinstance(operation, Call) and operation.op == op and operation.is_plain


def _keep(end: Call) -> None:
    """Take the copies out that a push or a pop has."""
    if end.op in _PUSHES:
        copy = end.inputs[1].producer
        assert copy is not None and copy.block is not None
        end.replace_operands({end.inputs[1]: copy.inputs[0]})
        if not copy.output.is_needed:
            copy.block.erase(copy)
        return
    for copy in list(end.output.users):
        assert copy.block is not None
        copy.block.replace_value(copy.output, end.output)
        copy.block.erase(copy)
