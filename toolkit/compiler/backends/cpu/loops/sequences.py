"""Lists, stacks and arrays of tensors in the body of a loop: found, and their operations brought into one form.

A list is a value that every operation makes anew; where each version is used up by the next, the loop may as well
change it in place. A stack or array is changed through its handle anyway.
"""

from __future__ import annotations

from typing import Any

from toolkit.compiler.importer.facts import numpy_type
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.list_facts import ListFacts, SharedListFacts
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.operations.sequences import (
    Count,
    Get,
    Pop,
    Push,
    SequenceKind,
    SequenceOperation,
    Set,
    TensorSequence,
)
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Step
from toolkit.kernels.cpu.native.code import TYPES

#: op: what it does to which kind of sequence, the positions of its operands among the inputs, and of the element
#: among the outputs
_OPS: dict[str, tuple[type[SequenceOperation], SequenceKind, dict[str, int], int | None]] = {
    "TensorListPushBack": (Push, SequenceKind.LIST, {"element": 1}, None),
    "TensorListPopBack": (Pop, SequenceKind.LIST, {}, 1),
    "TensorListGetItem": (Get, SequenceKind.LIST, {"index": 1}, 0),
    "TensorListSetItem": (Set, SequenceKind.LIST, {"index": 1, "element": 2}, None),
    "StackPushV2": (Push, SequenceKind.STACK, {"element": 1}, None),
    "StackPopV2": (Pop, SequenceKind.STACK, {}, 0),
    "TensorArrayReadV3": (Get, SequenceKind.ARRAY, {"index": 1}, 0),
    "TensorArrayWriteV3": (Set, SequenceKind.ARRAY, {"index": 1, "element": 2}, None),
}
_TYPES = ("element_dtype", "elem_type", "dtype", "T")


def find_sequences(block: Block, states: int) -> list[TensorSequence]:
    """Rewrite the operations on sequences as `Push`, `Pop`, `Get`, `Set` and `Count`.

    Args:
        states: how many of the block's arguments change from iteration to iteration.

    Raises:
        NotSupportedError: one is used in a way that needs more than one version of it at a time.
    """
    found: dict[Value, TensorSequence] = {}
    version: dict[Value, TensorSequence] = {}
    opened: dict[Value, tuple[Value, Step]] = {}
    gradients: set[tuple[Value, bytes]] = set()
    last: list[Operation] = []
    operations: list[Operation] = []
    overwritten: set[Value] = set()
    arguments = set(block.arguments)
    for operation in block.operations:
        op = operation.op if isinstance(operation, Call) else None
        if op == "TensorArrayGradV3" and operation.inputs[0] in arguments:
            handle, flow = operation.inputs
            opened[operation.output] = (handle, operation.step)
            block.replace_value(operation.outputs[1], flow)
            block.erase(operation)
            continue
        if op not in _OPS:
            if any(value in version for value in operation.inputs):
                raise NotSupportedError(operation, "it takes a whole list")
            operations.append(operation)
            continue
        done, kind, positions, made = _OPS[op]
        handle = operation.inputs[0]
        sequence = version.get(handle)
        if sequence is None:
            argument, opener = opened.get(handle, (handle, None))
            if argument not in arguments:
                raise NotSupportedError(operation, "the list is made in the loop")
            if opener is not None:  # openers of one source open the same array
                key = (argument, opener.node.attr("source"))
                if key in gradients:
                    raise NotSupportedError(operation, "gradients of an element are added up")
                gradients.add(key)
            sequence = version[handle] = found[handle] = _described(operation, kind, handle, argument, opener)
        if op == "TensorListSetItem" and operation.step.node.attr("resize_if_index_out_of_bounds", False):
            raise NotSupportedError(operation, "the list may grow anywhere")
        if sequence.kind is not SequenceKind.LIST:
            pass  # the handle stays what it is
        elif done is not Get:
            if handle in overwritten:
                raise NotSupportedError(operation, "two versions of a list go on")
            if handle is not sequence.argument and (done is Set or sequence.writes):
                raise NotSupportedError(operation, "more than one element of a list is set in an iteration")
            overwritten.add(handle)
            version[operation.output] = sequence
        elif handle is not sequence.argument:
            raise NotSupportedError(operation, "what an iteration puts into a list is read in the same iteration")
        if "index" in positions and operation.inputs[positions["index"]].shape != ():
            raise NotSupportedError(operation, "its index is not known to be a scalar")
        _note(operation, sequence, done)
        if op == "TensorArrayWriteV3":
            block.replace_value(operation.output, operation.inputs[3])
        if op == "StackPushV2":
            block.replace_value(operation.output, operation.inputs[1])
        outputs = [] if made is None else [value for value in [operation.outputs[made]] if value.is_needed]
        operands = {name: operation.inputs[at] for name, at in positions.items()}
        make: Any = done  # each takes other operands
        rewritten: SequenceOperation = operation.become(make, sequence=sequence, outputs=outputs, **operands)
        # a list is set behind all that read the version before
        (last if op == "TensorListSetItem" else operations).append(rewritten)
        sequence.takes |= done is Pop and bool(outputs)
    block.reorder([*operations, *last])
    _close(block, states, version, overwritten)
    _count_same(block, states)
    return list(found.values())


def _count_same(block: Block, states: int) -> None:
    """Where one value from outside is all that is pushed, pushes become `Count`."""
    outside = set(block.arguments[states:])
    pushes: dict[TensorSequence, list[Push]] = {}
    for operation in block.operations:
        if isinstance(operation, Push):
            pushes.setdefault(operation.sequence, []).append(operation)
    for sequence, operations in pushes.items():
        pushed = {operation.element for operation in operations}
        value = operations[0].element
        # constants are values of their own wherever they stand
        if len(pushed) == 1 and value.shape == sequence.element and (value.is_constant or value in outside):
            sequence.same = value
            for operation in operations:
                operation.become(Count, sequence=sequence)


def _described(
    operation: Operation, kind: SequenceKind, handle: Value, argument: Value, opener: Step | None
) -> TensorSequence:
    facts = handle.facts.facts if isinstance(handle.facts, SharedListFacts) else handle.facts
    node = operation.step.node
    attribute = next(name for name in _TYPES if name in node.attrs)
    dtype = numpy_type(node.attr(attribute))
    if not isinstance(facts, ListFacts) or facts.element is None or dtype is None or dtype.name not in TYPES:
        raise NotSupportedError(operation, "what the list holds is not known before it runs")
    return TensorSequence(kind, argument, facts.element, dtype, opener)


def _note(operation: Operation, sequence: TensorSequence, done: type[SequenceOperation]) -> None:
    """Refuse what needs care that compiled code does not take."""
    sequence.pushes |= done is Push
    sequence.pops |= done is Pop
    sequence.reads |= done is Get
    sequence.writes |= done is Set
    if sequence.pushes + sequence.pops + (sequence.reads or sequence.writes) > 1:
        raise NotSupportedError(operation, "a list is used in several ways")
    values = [*operation.inputs[1:], *operation.outputs]
    for value in values:
        if value.dtype == sequence.dtype and value.shape not in (sequence.element, ()) and value.shape is not None:
            raise NotSupportedError(operation, "elements of several shapes")


def _close(block: Block, states: int, version: dict[Value, TensorSequence], overwritten: set[Value]) -> None:
    """Refuse lists that are not what they were at the start of an iteration with all that was done to them."""
    for index, value in enumerate(block.results):
        sequence = version.get(value)
        if sequence is None:
            continue
        if value in overwritten:
            raise NotSupportedError(_any(block), f"state {index} is a list before it was changed")
        if block.arguments[index] is not sequence.argument or sequence.result is not None:
            raise NotSupportedError(_any(block), "lists change places from iteration to iteration")
        sequence.result = index
        if value is not sequence.argument:  # it is changed where it is
            block.results[index] = sequence.argument
            sequence.argument.is_result, value.is_result = True, False
    changing = set(block.arguments[:states])
    for sequence in version.values():
        if sequence.kind is not SequenceKind.LIST or sequence.result is not None:
            continue
        if sequence.pushes or sequence.pops or sequence.writes:
            raise NotSupportedError(_any(block), "a list that is changed for one iteration")
        if sequence.argument in changing:
            raise NotSupportedError(_any(block), "a list that is dropped")


def _any(block: Block) -> Operation:
    return block.operations[0]


def is_tensor(value: Value) -> bool:
    """Whether a value of a loop is a tensor that compiled code can hold."""
    return value.dtype is not None and value.dtype.name in TYPES and value.shape is not None
