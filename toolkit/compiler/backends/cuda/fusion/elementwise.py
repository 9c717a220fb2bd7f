"""Elementwise operations put together: one kernel, one pass over memory, for a whole chain.

Operations of one shape wait until somebody needs one of them; then all that wait become one kernel. Nothing is moved
before its place in the program, and nothing is held back beyond a change of variables. A single operation stays a call
of its kernel, which serves all shapes.

Reductions of the last axis wait with the operations whose shape they reduce, and so does what is computed with one
number of a row: a softmax or a layer norm that is spelled out is one kernel, with what is elementwise around it.

Where tensors are joined side by side, all that wait for it become one kernel, which writes the whole
(`parts.in_place`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolkit.compiler.backends.cuda.fusion.fusible import (
    STEPS,
    is_elementwise,
    is_row_reduction,
    is_spread,
    is_turned,
    row_shape,
    step_op,
    strides_of,
    types_of,
)
from toolkit.compiler.backends.cuda.fusion.joined_kernels import joined_kernels
from toolkit.compiler.backends.cuda.parts.late_joins import joins_columns
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.conditions import Conditions
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.waiting import Group, Groups
from toolkit.kernels.gpu.elementwise import nests

#: operands of a kernel: each takes registers for where it is, and its parameters have a limit of 4 KB
_MOST_OPERANDS = 32
#: instructions of a reduction for each element, about as many as of an exponential: five shuffles for a few elements
_REDUCTION_WEIGHT = 20
#: instructions of a kernel, by the weights of `nests`: compiling takes time by its length, and registers run out
_MOST_WEIGHT = 2000
#: what sums over rows, the gradients of what was broadcast along them
_SUMS = ("Sum", "BiasAddGrad")


def gather_kernels(
    block: Block, refused: Callable[[Operation], bool], changes_variables: Callable[[Operation], bool], *,
    single: bool = False,
) -> None:  # fmt: skip
    """Put elementwise calls together, in loops too.

    Args:
        refused: whether an operation must stay a call.
        single: one that nothing is put together with becomes a kernel too, whose operands may get another type.
    """
    for operation in block.operations:
        for region in operation.regions():
            gather_kernels(region, refused, changes_variables, single=single)
    groups = Groups(separate=0)
    operations: list[Operation] = []

    behind: dict[Group, list[Operation]] = {}  # sums over rows of what waits: they are made when that is
    follows: dict[Value, Group] = {}  # what these make

    def flush(group: Group) -> None:
        if group not in list(groups):
            return
        groups.remove(group)
        first = group.operations[0]
        alone = len(group.operations) == 1 and not isinstance(first, STEPS)
        alone = alone and not (single and first.output.is_needed)
        operations.extend(group.operations if alone else joined_kernels(group))
        operations.extend(behind.pop(group, ()))

    def join_behind(related: Sequence[Group]) -> None:  # they are one now
        for other in related[1:]:
            behind.setdefault(related[0], []).extend(behind.pop(other, ()))
            follows.update({value: related[0] for value, group in follows.items() if group is other})

    for operation in block.operations:
        if joins_columns(operation) and not refused(operation):
            parts = [groups.place.get(part) for part in operation.inputs[:-1]]
            waiting = list(dict.fromkeys(group for group in parts if group is not None))
            if None not in parts and len({group.key for group in waiting}) == 1 and _fits(waiting):
                groups.merge(waiting)
                join_behind(waiting)
        key = None if refused(operation) else _key(operation, groups)
        taken = (*operation.inputs, *(predicate for predicate, _ in operation.predicates))
        group = None if key is not None or refused(operation) else _followed(operation, groups.place, follows)
        if group is not None and group in list(groups):
            behind.setdefault(group, []).append(operation)
            follows[operation.output] = group
            continue
        for value in taken:
            if value in follows:
                flush(follows.pop(value))
        for value in taken:
            group = groups.place.get(value)
            if group is not None and (group.key != key or not _is_seen(value, group.key[0], operation)):
                flush(group)
        if key is None:
            if changes_variables(operation):
                for group in groups:
                    flush(group)
            operations.append(operation)
            continue
        weight = _weight(operation)
        related = groups.related(operation, key)
        if related and not _fits(related, weight, operation.inputs):
            for group in related:
                flush(group)
            related, key = [], _own_key(operation)
            if key is None:
                operations.append(operation)
                continue
        groups.add(operation, weight, key, related)
        join_behind(related)
    for group in groups:
        flush(group)
    block.reorder(operations)


def _fits(groups: Sequence[Group], weight: int = 0, inputs: Sequence[Value] = ()) -> bool:
    """Whether groups, with an operation of a weight, may be one kernel."""
    operands = set(inputs).union(*(group.operands for group in groups))
    return sum(group.weight for group in groups) + weight <= _MOST_WEIGHT and len(operands) <= _MOST_OPERANDS


def _followed(operation: Operation, waits: dict[Value, Group], follows: dict[Value, Group]) -> Group | None:
    """The group behind which an operation can be put: it sums over the rows of what waits, or gives such a sum another
    shape, and takes nothing else.

    So the gradients of a bias or of a norm's factors do not end what is computed of each row.
    """
    if not isinstance(operation, Call) or not operation.inputs or operation.predicates:
        return None
    first = operation.inputs[0]
    group = waits.get(first) if operation.op in _SUMS else follows.get(first) if is_turned(operation) else None
    alone = all(value.is_constant for value in operation.inputs[1:]) and len(operation.outputs) == 1
    return group if group is not None and alone and not operation.step.deref else None


#: a group's shape and the branches that its operations are on
_Key = tuple[tuple[int, ...], Conditions]


def _key(operation: Operation, groups: Groups) -> _Key | None:
    """Which operations it may wait with; None where it is a call whatever happens."""
    for value in operation.inputs:
        group = groups.place.get(value)
        if group is not None and group.key[1] == operation.conditions and _is_of_rows(operation, group.key[0]):
            return group.key
    return _own_key(operation)


def _own_key(operation: Operation) -> _Key | None:
    """That of an operation with which nothing waits."""
    if is_row_reduction(operation):
        shape = operation.inputs[0].shape
    elif is_elementwise(operation) or is_spread(operation):
        shape = operation.output.shape
    else:
        return None
    assert shape is not None
    return shape, operation.conditions


def _is_of_rows(operation: Operation, shape: tuple[int, ...]) -> bool:
    """Whether it computes one number of each row of a shape, which is longer, from others."""
    if not (shape and operation.outputs):  # one number has no rows
        return False
    if shape == operation.output.shape or operation.output.shape != row_shape(shape):
        return False
    if is_turned(operation):
        return operation.inputs[0].shape in (shape[:-1], row_shape(shape))
    if not is_elementwise(operation):
        return False
    strides = [strides_of(operation, index, shape) for index in range(len(operation.inputs))]
    return all(own is not None and own[-1] == 0 for own in strides)


def _is_seen(value: Value, shape: tuple[int, ...], user: Operation) -> bool:
    """Whether who takes what waits can wait with it: it is of the whole shape, or one number of a row."""
    return value.shape in (shape, row_shape(shape)) or (value.shape == shape[:-1] and is_turned(user))


def _weight(operation: Operation) -> int:
    if is_spread(operation):
        return 0
    if is_row_reduction(operation):
        return _REDUCTION_WEIGHT
    return nests.step_weight(step_op(operation), types_of(operation))
