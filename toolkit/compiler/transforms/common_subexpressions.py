"""Compute once what is computed several times: calls of one op with the same attributes, inputs and branches.

Networks that are put together of blocks begin each block with an activation of its own, so that the same tensor is
rectified several times; behind a convolution the only one that is left can be done while the output is in registers.
TensorFlow's graph optimizer does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.effects import has_effect
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.graph.node import Node

#: bytes up to which constants are compared by what they hold: axes, shapes and scalars, of which each node has its own
_SMALL = 256


def merge_common_subexpressions(block: Block, refused: Callable[[Operation], bool]) -> None:
    """Give the users of a call the outputs of an earlier one that is like it; nobody then needs the later.

    What draws random numbers, has an effect, handles what is no tensor, or takes a variable as it is just then, stays.
    So does the later one of two that are both returned, which may be written to apart from each other.

    Args:
        refused: operations that must stay as they are.
    """
    known: dict[tuple[Any, ...], list[Call]] = {}
    for operation in block.operations:
        if type(operation) is not Call or has_effect(operation) or refused(operation) or not _flows(operation):
            continue
        alike = known.setdefault((operation.op, *map(_of, operation.inputs), *operation.predicates), [])
        node = operation.step.node
        first = next((each for each in alike if _agree(each.step.node, node)), None)
        if first is None:
            alike.append(operation)
        elif not any(a.is_result and b.is_result for a, b in zip(first.outputs, operation.outputs, strict=True)):
            _merge(block, first, operation)


def _merge(block: Block, first: Call, second: Call) -> None:
    for kept, dropped in zip(first.outputs, second.outputs, strict=True):
        block.replace_value(dropped, kept)
    first.steps = [*second.steps, *first.steps]
    block.erase(second)


def _flows(operation: Call) -> bool:
    """Whether it takes and makes tensors alone, none of which somebody else may change meanwhile."""
    if not operation.inputs or any(value.dtype is None for value in (*operation.inputs, *operation.outputs)):
        return False
    return not any(_is_variable(value.producer) for value in operation.inputs)


def _is_variable(producer: Operation | None) -> bool:
    return producer is not None and (isinstance(producer, Dereference) or producer.has(Trait.READS_VARIABLE))


def _of(value: Value) -> Any:
    """What a value is told by: itself, or what a small constant holds."""
    constant = value.constant
    if constant is None or value.dtype is None or getattr(constant, "nbytes", _SMALL + 1) > _SMALL:
        return value
    if value.dtype.kind == "O":  # texts: its bytes are addresses
        return value
    return constant.dtype, constant.shape, constant.tobytes()


def _agree(first: Node, second: Node) -> bool:
    """Whether two nodes of one op have the same attributes."""
    names = (*first.op_def.attrs, "_kernel")
    return all(first.attr_proto(name) == second.attr_proto(name) for name in names)
