"""When large tensors are computed in programs that assign variables: as late as possible.

A program of initialisers lists all tables before it assigns the first; computed in front of its assignment, each takes
the place of the variable's old value before the next one is made.
"""

from __future__ import annotations

from toolkit.compiler.importer.effects import ASSIGNS
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.kernels.registry import Kind

#: stateful kernels whose state is the node's own, so that it does not matter what else runs before them; functions
#: that draw are not put in the place of their calls, so that no node is there twice
_GENERATORS = frozenset({"RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal"})
_LARGE = 1 << 20  # bytes; what is small is better computed together


def delay(block: Block) -> bool:
    """Compute what is large and depends on constants alone when somebody needs it; all else stays in its order.

    Returns:
        Whether there is nothing else, but that variables are assigned: the program initialises.
    """
    live = block.operations
    if not any(operation.op in ASSIGNS for operation in live):
        return False
    waiting: dict[Operation, None] = {}
    free: set[Operation] = set()
    order: list[Operation] = []
    for operation in live:
        is_free = _is_free(operation, free)
        if is_free:
            free.add(operation)
        if is_free and any(value.shape is not None and value.nbytes >= _LARGE for value in operation.outputs):
            waiting[operation] = None
        else:
            _place(operation, waiting, order)
    while waiting:
        _place(next(iter(waiting)), waiting, order)
    block.reorder(order)
    return not block.results and all(operation in free or operation.op in ASSIGNS for operation in live)


def _is_free(operation: Operation, free: set[Operation]) -> bool:
    """Whether an operation gives the same whenever it runs."""
    if operation.predicates or not operation.outputs or not isinstance(operation, Call):
        return False
    values = [*operation.inputs, *operation.outputs]
    if any(value.dtype is None for value in values) or any(dtype.is_ref for dtype in operation.step.node.input_types):
        return False
    if operation.step.kind is not Kind.PURE and operation.op not in _GENERATORS:
        return False
    return all(value.is_constant or value.producer in free for value in operation.inputs)


def _place(wanted: Operation, waiting: dict[Operation, None], order: list[Operation]) -> None:
    """Put an operation next, behind those that wait and that it needs."""
    stack = [wanted]
    while stack:
        operation = stack[-1]
        missing = [
            maker
            for value in _needs(operation)
            if (maker := value.producer) is not None and maker in waiting and maker is not operation
        ]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if operation is wanted or operation in waiting:
            order.append(operation)
        waiting.pop(operation, None)


def _needs(operation: Operation) -> list[Value]:
    return [*operation.inputs, *(predicate for predicate, _ in operation.predicates)]
