"""When things are computed in programs that assign variables: as late as possible.

A program of initialisers lists all tables before it assigns the first; computed in front of its assignment, each takes
the place of the variable's old value before the next one is made.
"""

from __future__ import annotations

from collections import Counter

from toolkit.kernels.registry import Kind
from toolkit.runtime.segments.emission.handover import ASSIGNS
from toolkit.runtime.segments.ir import Block, Operation, Value

#: stateful kernels whose state is the node's own, so that it does not matter what else runs before them
_GENERATORS = frozenset({"RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal"})
_LOWERED = frozenset({"alias", "eltwise", "join", "nest", "scalar", "sigmoid", "sum", "total", "ufunc", "view"})


def delay(block: Block) -> None:
    """Compute what depends on constants alone when somebody needs it; all else stays in its order."""
    live = block.live()
    if not any(operation.kind in ASSIGNS for operation in live):
        return
    # a function that is called twice is in the block twice: its generator's draws have an order
    generators = Counter(operation.name for operation in live if operation.kind in _GENERATORS)
    waiting: dict[Operation, None] = {}
    free: set[Operation] = set()
    order: list[Operation | None] = []
    for operation in live:
        if _is_free(operation, free) and generators.get(operation.name, 1) == 1:
            free.add(operation)
            waiting[operation] = None
        else:
            _place(operation, waiting, order)
    while waiting:
        _place(next(iter(waiting)), waiting, order)
    block.operations = order


def _is_free(operation: Operation, free: set[Operation]) -> bool:
    """Whether an operation gives the same whenever it runs."""
    if operation.predicates or not operation.outputs:
        return False
    values = [*operation.inputs, *operation.outputs]
    if any(value.dtype is None for value in values) or any(dtype.is_ref for dtype in operation.step.node.input_types):
        return False
    if operation.kind not in _LOWERED and not (
        operation.kind == operation.step.node.op and (operation.step.kind is Kind.PURE or operation.kind in _GENERATORS)
    ):
        return False
    return all(value.is_constant or value.producer in free for value in operation.inputs)


def _place(wanted: Operation, waiting: dict[Operation, None], order: list[Operation | None]) -> None:
    """Put an operation next, behind those that wait and that it needs."""
    stack = [wanted]
    while stack:
        operation = stack[-1]
        missing = [each for value in _needs(operation) if (each := value.producer) is not None and each in waiting]
        missing = [each for each in missing if each is not operation]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if operation is wanted or operation in waiting:
            order.append(operation)
        waiting.pop(operation, None)


def _needs(operation: Operation) -> list[Value]:
    return [*operation.inputs, *(predicate for predicate, _ in operation.predicates)]
