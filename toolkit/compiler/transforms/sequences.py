"""Lists, stacks and arrays of tensors in the body of a loop: found, and their operations brought into one form.

A list is a value that every operation makes anew; where each version is used up by the next, the loop may as well
change it in place. A stack or array is changed through its handle anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolkit.compiler.importer.facts import numpy_type
from toolkit.compiler.importer.lists import Held, ListFacts
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.compiler.program import Step
from toolkit.kernels.cpu.native.code import TYPES


@dataclass(eq=False, slots=True)
class Sequence:
    """What a loop holds tensors in.

    Attributes:
        kind: "list", "stack" or "array".
        argument: the body's argument that it, or its handle, comes as.
        element, dtype: of its tensors.
        opener: the step that makes the handle from the argument: of a gradient's array from that of the values.
        result: the position of the state that it is, None where every turn has the same.
        pushes, pops, reads, writes: whether the body does so.
        takes: what is popped is used.
        same: what every push pushes, where that is one value from outside: then pushes are counted, not made.
    """

    kind: str
    argument: Value
    element: tuple[int, ...]
    dtype: Any
    opener: Step | None = None
    result: int | None = None
    pushes: bool = False
    pops: bool = False
    reads: bool = False
    writes: bool = False
    takes: bool = False
    same: Value | None = None


#: op: what it does, the position of an index and of a tensor among the inputs, and of the tensor among the outputs
_OPS: dict[str, tuple[str, int | None, int | None, int | None]] = {
    "TensorListPushBack": ("push", None, 1, None),
    "TensorListPopBack": ("pop", None, None, 1),
    "TensorListGetItem": ("get", 1, None, 0),
    "TensorListSetItem": ("set", 1, 2, None),
    "StackPushV2": ("push", None, 1, None),
    "StackPopV2": ("pop", None, None, 0),
    "TensorArrayReadV3": ("get", 1, None, 0),
    "TensorArrayWriteV3": ("set", 1, 2, None),
}
_TYPES = ("element_dtype", "elem_type", "dtype", "T")
_KINDS = {"TensorL": "list", "StackPu": "stack", "StackPo": "stack", "TensorA": "array"}


def find_sequences(block: Block, states: int) -> list[Sequence]:
    """Rewrite the operations on sequences as "push", "pop", "get" and "set" with attrs sequence.

    Args:
        states: how many of the block's arguments change from turn to turn.

    Raises:
        NotSupportedError: one is used in a way that needs more than one version of it at a time.
    """
    found: dict[Value, Sequence] = {}
    version: dict[Value, Sequence] = {}
    opened: dict[Value, tuple[Value, Step]] = {}
    gradients: set[tuple[Value, bytes]] = set()
    last: list[Operation] = []
    operations: list[Operation] = []
    overwritten: set[Value] = set()
    arguments = set(block.arguments)
    for operation in block.operations:
        if operation.kind == "TensorArrayGradV3" and operation.inputs[0] in arguments:
            handle, flow = operation.inputs
            opened[operation.output] = (handle, operation.step)
            operation.set_inputs(())
            block.replace_value(operation.outputs[1], flow)
            continue
        if operation.kind not in _OPS:
            if any(value in version for value in operation.inputs):
                raise NotSupportedError(operation, "it takes a whole list")
            operations.append(operation)
            continue
        what, index, given, made = _OPS[operation.kind]
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
            sequence = version[handle] = found[handle] = _described(operation, handle, argument, opener)
        if operation.kind == "TensorListSetItem":
            if operation.step.node.attr("resize_if_index_out_of_bounds", False):
                raise NotSupportedError(operation, "the list may grow anywhere")
            last.append(operation)  # behind all that read the version before
        else:
            operations.append(operation)
        if sequence.kind != "list":
            pass  # the handle stays what it is
        elif what != "get":
            if handle in overwritten:
                raise NotSupportedError(operation, "two versions of a list go on")
            if handle is not sequence.argument and (what == "set" or sequence.writes):
                raise NotSupportedError(operation, "more than one element of a list is set in a turn")
            overwritten.add(handle)
            version[operation.output] = sequence
        elif handle is not sequence.argument:
            raise NotSupportedError(operation, "what a turn puts into a list is read in the same turn")
        if index is not None and operation.inputs[index].shape != ():
            raise NotSupportedError(operation, "its index is not known to be a scalar")
        _note(operation, sequence, what)
        if operation.kind == "TensorArrayWriteV3":
            block.replace_value(operation.output, operation.inputs[3])
        if operation.kind == "StackPushV2":
            block.replace_value(operation.output, operation.inputs[1])
        places = [at for at in (index, given) if at is not None]
        operation.attrs.update(sequence=sequence)
        operation.set_inputs([operation.inputs[at] for at in places])
        operation.outputs = [] if made is None else [value for value in [operation.outputs[made]] if value.is_needed]
        operation.kind = what
        sequence.takes |= what == "pop" and bool(operation.outputs)
    block.reorder([*operations, *last])
    _close(block, states, version, overwritten)
    _count_same(block, states)
    return list(found.values())


def _count_same(block: Block, states: int) -> None:
    """Where one value from outside is all that is pushed, pushes become "count"."""
    outside = set(block.arguments[states:])
    pushes: dict[Sequence, list[Operation]] = {}
    for operation in block.operations:
        if operation.kind == "push":
            pushes.setdefault(operation.attrs["sequence"], []).append(operation)
    for sequence, operations in pushes.items():
        pushed = {operation.inputs[0] for operation in operations}
        value = operations[0].inputs[0]
        # constants are values of their own wherever they stand
        if len(pushed) == 1 and value.shape == sequence.element and (value.is_constant or value in outside):
            sequence.same = value
            for operation in operations:
                operation.kind = "count"
                operation.set_inputs(())


def _described(operation: Operation, handle: Value, argument: Value, opener: Step | None) -> Sequence:
    facts = handle.facts.facts if isinstance(handle.facts, Held) else handle.facts
    node = operation.step.node
    attribute = next(name for name in _TYPES if name in node.attrs)
    dtype = numpy_type(node.attr(attribute))
    if not isinstance(facts, ListFacts) or facts.element is None or dtype is None or dtype.name not in TYPES:
        raise NotSupportedError(operation, "what the list holds is not known before it runs")
    return Sequence(_KINDS[operation.kind[:7]], argument, facts.element, dtype, opener)


def _note(operation: Operation, sequence: Sequence, what: str) -> None:
    """Refuse what needs care that compiled code does not take."""
    sequence.pushes |= what == "push"
    sequence.pops |= what == "pop"
    sequence.reads |= what == "get"
    sequence.writes |= what == "set"
    if sequence.pushes + sequence.pops + (sequence.reads or sequence.writes) > 1:
        raise NotSupportedError(operation, "a list is used in several ways")
    values = [*operation.inputs[1:], *operation.outputs]
    for value in values:
        if value.dtype == sequence.dtype and value.shape not in (sequence.element, ()) and value.shape is not None:
            raise NotSupportedError(operation, "elements of several shapes")


def _close(block: Block, states: int, version: dict[Value, Sequence], overwritten: set[Value]) -> None:
    """Refuse lists that are not, at the end of a turn, what they were at its start with all that was done to them."""
    for index, value in enumerate(block.results):
        sequence = version.get(value)
        if sequence is None:
            continue
        if value in overwritten:
            raise NotSupportedError(_any(block), f"state {index} is a list before it was changed")
        if block.arguments[index] is not sequence.argument or sequence.result is not None:
            raise NotSupportedError(_any(block), "lists change places from turn to turn")
        sequence.result = index
        if value is not sequence.argument:  # it is changed where it is
            block.results[index] = sequence.argument
            sequence.argument.is_result, value.is_result = True, False
    changing = set(block.arguments[:states])
    for sequence in version.values():
        if sequence.kind != "list" or sequence.result is not None:
            continue
        if sequence.pushes or sequence.pops or sequence.writes:
            raise NotSupportedError(_any(block), "a list that is changed for one turn")
        if sequence.argument in changing:
            raise NotSupportedError(_any(block), "a list that is dropped")


def _any(block: Block) -> Operation:
    return block.operations[0]


def is_tensor(value: Value) -> bool:
    """Whether a value of a loop is a tensor that compiled code can hold."""
    return value.dtype is not None and value.dtype.name in TYPES and value.shape is not None
