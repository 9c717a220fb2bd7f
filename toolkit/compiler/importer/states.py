"""States of loops that nobody asks for: a gradient that is not fetched, a counter that only counts."""

from __future__ import annotations

from collections.abc import Callable

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Loop
from toolkit.compiler.ir.value import Value


def drop_states(block: Block, has_effect: Callable[[Operation], bool]) -> None:
    """Take what is computed for the loop's own sake out of every loop; inner loops first lose what outer ones drop."""
    for operation in reversed(block.operations):
        if isinstance(operation, Loop):
            body = operation.body
            _drop(operation, body, has_effect)
            body.drop_unused(has_effect)
            drop_states(body, has_effect)
            body.drop_unused(has_effect)
            _drop_constants(operation, body)


def _drop(loop: Loop, body: Block, has_effect: Callable[[Operation], bool]) -> None:
    count = len(loop.outputs)
    index_of = {value: index for index, value in enumerate(body.arguments[:count]) if value is not None}
    wanted = {index for index, value in enumerate(loop.outputs) if value.is_needed}
    reached: set[Operation] = set()
    seen: set[Value] = set()
    todo: list[Value] = [body.results[index] for index in wanted]
    for operation in body.operations:
        if has_effect(operation):
            reached.add(operation)
            todo += [*operation.inputs, *(value for value, _ in operation.predicates)]
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        index = index_of.get(value)
        if index is not None and index not in wanted:
            wanted.add(index)
            todo.append(body.results[index])
        operation = value.producer
        if operation is not None and operation not in reached:
            reached.add(operation)
            todo += [*operation.inputs, *(predicate for predicate, _ in operation.predicates)]
    if len(wanted) == count:
        return
    _keep(loop, body, sorted(wanted))


def _keep(loop: Loop, body: Block, wanted: list[int]) -> None:
    """Let a loop have these states only."""
    count = len(loop.outputs)
    results = body.results
    body.arguments = [body.arguments[index] for index in wanted] + body.arguments[count:]
    body.results = [results[index] for index in wanted]
    kept = set(body.results)
    for value in results:
        value.is_result = value in kept
    loop.outputs = [loop.outputs[index] for index in wanted]
    loop.states = tuple(loop.states[index] for index in wanted)


def _drop_constants(loop: Loop, body: Block) -> None:
    """Let go of values from outside that no iteration uses any more."""
    count = len(loop.outputs)
    kept = [index for index, value in enumerate(body.arguments[count:], count) if value is not None and value.is_needed]
    arguments = [*body.arguments[:count], *(body.arguments[index] for index in kept)]
    if len(arguments) < len(body.arguments):
        body.arguments = arguments
        loop.invariants = tuple(loop.invariants[index - count] for index in kept)
