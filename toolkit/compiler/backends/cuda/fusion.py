"""Elementwise operations put together: one kernel, one pass over memory, for a whole chain.

Operations of one shape wait until somebody needs one of them; then all that wait become one kernel. Nothing is moved
before its place in the program, and nothing is held back beyond a change of variables. A single operation stays a call
of its kernel, which serves all shapes.

Reductions of the last axis wait with the operations whose shape they reduce, and so does what is computed with one
number of a row: a softmax or a layer norm that is spelled out is one kernel, with what is elementwise around it.
"""

# numpy's arrays of an unknown type
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.compiler.backends.cuda.operations import FusedKernelCall, FusedRowsCall, NormGradientStep, NormStep
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.conditions import Conditions
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_channels_first
from toolkit.compiler.transforms.waiting import Group, Groups
from toolkit.kernels.facts import stays_on_host
from toolkit.kernels.gpu import nests, row_nests
from toolkit.kernels.gpu.nests import NestStep
from toolkit.kernels.gpu.operators_norms import BATCH_NORM_STEP

#: operands of a kernel: each takes registers for where it is, and its parameters have a limit of 4 KB
_MOST_OPERANDS = 32
#: rows that are too few for all of a GPU, and elements of a tensor that one kernel takes whatever its rows are
_FEW_ROWS, _SMALL = 128, 1 << 14
#: instructions of a reduction for each element, about as many as of an exponential: five shuffles for a few elements
_REDUCTION_WEIGHT = 20
#: instructions of a kernel, by the weights of `nests`: compiling takes time by its length, and registers run out
_MOST_WEIGHT = 2000
_DEVICE = "GPU"
#: what sums over rows, the gradients of what was broadcast along them
_SUMS = ("Sum", "BiasAddGrad")
#: what repeats a tensor, the gradients of sums and means
_SPREADS = ("Tile", "BroadcastTo")
#: operations that are there to be fused; alone they are a kernel of one step
_STEPS = (NormStep, NormGradientStep)
#: batch norms at inference, whose five inputs are a tensor and a number for each channel
BATCH_NORMS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


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
        alone = len(group.operations) == 1 and not isinstance(first, _STEPS)
        alone = alone and not (single and first.output.is_needed)
        operations.extend(group.operations if alone else _joined(group))
        operations.extend(behind.pop(group, ()))

    for operation in block.operations:
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
        if related and (
            sum(group.weight for group in related) + weight > _MOST_WEIGHT
            or len(set(operation.inputs).union(*(group.operands for group in related))) > _MOST_OPERANDS
        ):
            for group in related:
                flush(group)
            related, key = [], _own_key(operation)
            if key is None:
                operations.append(operation)
                continue
        groups.add(operation, weight, key, related)
        for other in related[1:]:  # they are one now
            behind.setdefault(related[0], []).extend(behind.pop(other, ()))
            follows.update({value: related[0] for value, group in follows.items() if group is other})
    for group in groups:
        flush(group)
    block.reorder(operations)


def _followed(operation: Operation, waits: dict[Value, Group], follows: dict[Value, Group]) -> Group | None:
    """The group behind which an operation can be put: it sums over the rows of what waits, or gives such a sum another
    shape, and takes nothing else.

    So the gradients of a bias or of a norm's factors do not end what is computed of each row.
    """
    if not isinstance(operation, Call) or not operation.inputs or operation.predicates:
        return None
    first = operation.inputs[0]
    group = waits.get(first) if operation.op in _SUMS else follows.get(first) if _is_turned(operation) else None
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


def is_spread(operation: Operation) -> bool:
    """Whether it repeats a tensor along axes of one place: kernels read the one where they need the others."""
    if not isinstance(operation, Call) or operation.op not in _SPREADS or operation.step.deref:
        return False
    given, shape = operation.inputs[0], operation.output.shape
    if given.shape is None or not shape or 0 in shape or not operation.inputs[1].is_constant:
        return False
    if given.dtype is None or not nests.is_writable("Cast", [given.dtype.name], given.dtype.name):
        return False
    return _strides(operation, 0) is not None


def _is_of_rows(operation: Operation, shape: tuple[int, ...]) -> bool:
    """Whether it computes one number of each row of a shape, which is longer, from others."""
    if not operation.outputs or shape == operation.output.shape or operation.output.shape != _row_shape(shape):
        return False
    if _is_turned(operation):
        return operation.inputs[0].shape in (shape[:-1], _row_shape(shape))
    if not is_elementwise(operation):
        return False
    strides = [_strides(operation, index, shape) for index in range(len(operation.inputs))]
    return all(own is not None and own[-1] == 0 for own in strides)


def _is_turned(operation: Operation) -> bool:
    """Whether it gives a tensor another shape, which is known."""
    return isinstance(operation, Call) and operation.op == row_nests.RESHAPE and operation.output.shape is not None


def _row_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of one number for each row."""
    return (*shape[:-1], 1)


def _is_seen(value: Value, shape: tuple[int, ...], user: Operation) -> bool:
    """Whether who takes what waits can wait with it: it is of the whole shape, or one number of a row."""
    return value.shape in (shape, _row_shape(shape)) or (value.shape == shape[:-1] and _is_turned(user))


def is_row_reduction(operation: Operation) -> bool:
    """Whether it reduces the last axis of a tensor whose rows can be held in registers, or is a softmax of it."""
    if not isinstance(operation, Call) or not operation.inputs or len(operation.outputs) != 1:
        return False
    given, shape = operation.inputs[0], operation.inputs[0].shape
    if given.dtype is None or not row_nests.is_reduction(operation.op, given.dtype.name) or operation.step.deref:
        return False
    if not shape or 0 in shape or not 1 < shape[-1] <= row_nests.LONGEST_ROW or operation.output.dtype != given.dtype:
        return False
    rows = math.prod(shape[:-1])
    if rows < _FEW_ROWS and rows * shape[-1] > _SMALL:
        return False
    if operation.op in row_nests.ROW_OPS:
        return operation.output.shape == shape
    axes: Any = operation.inputs[1].constant
    is_known = isinstance(axes, np.ndarray | np.generic) and len(operation.inputs) == 2
    wanted = [int(axis) % len(shape) for axis in axes.reshape(-1)] if is_known else []
    return wanted == [len(shape) - 1] and operation.output.shape in (shape[:-1], _row_shape(shape))


def is_elementwise(operation: Operation) -> bool:
    """Whether the generator writes it, and all of it is in the device's memory."""
    if isinstance(operation, _STEPS):
        return True
    if not isinstance(operation, Call) or not operation.outputs:
        return False
    target, node = operation.outputs[0].shape, operation.step.node
    values = (*operation.inputs, operation.outputs[0])
    if target is None or 0 in target or any(value.shape is None or value.dtype is None for value in values):
        return False
    if operation.step.deref or len(operation.inputs) != len(node.input_types):
        return False
    if any(stays_on_host(node, _DEVICE, index, output=False) for index in range(len(operation.inputs))):
        return False
    if stays_on_host(node, _DEVICE, 0, output=True):
        return False
    if operation.op in BATCH_NORMS:
        if node.attr("is_training", True) or any(value.is_needed for value in operation.outputs[1:]):
            return False
    elif len(operation.outputs) != 1:
        return False
    if not nests.is_writable(_step_op(operation), _types(operation), operation.outputs[0].dtype.name):
        return False
    return all(_strides(operation, index) is not None for index in range(len(operation.inputs)))


def _strides(operation: Operation, index: int, target: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
    """How an input lies under a shape, in elements for each dimension; None where it is not broadcast to it.

    Args:
        target: the shape; by default the output's.
    """
    shape = operation.inputs[index].shape
    target = operation.outputs[0].shape if target is None else target
    assert target is not None and shape is not None
    if isinstance(operation, _STEPS) and len(shape) == 1:
        axis = 1 if operation.channels_first else len(target) - 1
        return tuple(int(at == axis) for at in range(len(target)))
    per_channel = (index == 1 and operation.op.startswith("BiasAdd")) or (index > 0 and operation.op in BATCH_NORMS)
    if per_channel and len(shape) == 1:
        axis = 1 if is_channels_first(operation) else len(target) - 1
        return tuple(int(at == axis) for at in range(len(target))) if shape[0] == target[axis] else None
    if operation.op == "Select" and index == 0 and len(shape) == 1 < len(target):  # a condition for each row
        return tuple(int(at == 0) for at in range(len(target))) if shape[0] == target[0] else None
    if len(shape) > len(target):
        return None
    padded = (1,) * (len(target) - len(shape)) + shape
    if any(size not in (1, whole) for size, whole in zip(padded, target, strict=True)):
        return None
    return nests.broadcast_strides(shape, target)


def _step_op(operation: Operation) -> str:
    """What the generator calls it."""
    return BATCH_NORM_STEP if operation.op in BATCH_NORMS else operation.op


def _types(operation: Operation) -> list[str]:
    return [value.dtype.name for value in operation.inputs]


def _weight(operation: Operation) -> int:
    if is_spread(operation):
        return 0
    if is_row_reduction(operation):
        return _REDUCTION_WEIGHT
    return nests.step_weight(_step_op(operation), _types(operation))


def _joined(group: Group) -> list[Operation]:
    """The operations of a group as one; behind it what only repeats, where somebody else takes that."""
    operations, shape = group.operations, group.key[0]
    spreads = {operation for operation in operations if is_spread(operation)}
    if len(spreads) == len(operations):
        return operations
    own = set(operations)
    left: list[Operation] = []
    for operation in reversed(operations):
        if operation in spreads and _is_seen_outside(operation.output, own):
            left.insert(0, operation)
            own.discard(operation)
    reads: dict[_Read, int] = {}
    made: dict[Value, int] = {}
    wanted: list[list[_Read]] = []
    for operation in operations:
        sources: list[_Read] = []
        for index, value in enumerate(_taken(operation)):
            if value in made:
                sources.append((value, ()))
                continue
            strides = _strides(operation, index, shape)
            assert strides is not None
            sources.append((value, strides))
            reads.setdefault((value, strides), len(reads))
        wanted.append(sources)
        made[operation.outputs[0]] = -1
    members: list[NestStep] = []
    for operation, sources in zip(operations, wanted, strict=True):
        places = tuple(made[value] if made.get(value, -1) >= 0 else reads[value, strides] for value, strides in sources)
        if operation in spreads:
            made[operation.outputs[0]] = places[0]
            continue
        op = _step_op(operation)
        names = nests.wanted_attributes(op, _types(operation))
        attributes = tuple((name, operation.step.node.attr(name)) for name in names)
        output = operation.outputs[0]
        made[output] = len(reads) + len(members)
        members.append(NestStep(op, places, output.dtype.name, attributes))
    outputs = [value for value in made if value.producer not in spreads and _is_seen_outside(value, own)]
    stores = tuple(made[value] for value in outputs)
    steps = [step for operation in operations for step in operation.steps]
    conditions = operations[0].conditions
    kind = FusedRowsCall if any(map(is_row_reduction, operations)) else FusedKernelCall
    if spreads and kind is FusedRowsCall and not _has_columns(members, list(reads), outputs, stores, shape):
        return _apart(group, spreads)
    for operation in own:
        operation.drop_operands()
    kernel = kind(
        shape=shape,
        reads=tuple(value for value, _ in reads),
        strides=tuple(strides for _, strides in reads),
        members=tuple(members),
        stores=stores,
        outputs=outputs,
        steps=steps,
        conditions=conditions,
    )
    return [kernel, *left]


_Read = tuple[Value, tuple[int, ...]]


def _has_columns(
    members: list[NestStep], reads: list[_Read], outputs: list[Value], stores: tuple[int, ...], shape: tuple[int, ...]
) -> bool:
    """Whether what a kernel over rows reduces and writes for each column differs from column to column there: it has
    one number of a row for what only repeats that."""
    whole = row_nests.whole_rows(members, [strides[-1:] == (1,) for _, strides in reads])
    for member in members:
        if (member.op in row_nests.REDUCTIONS or member.op in row_nests.ROW_OPS) and not whole[member.inputs[0]]:
            return False
    return all(whole[place] or output.shape != shape for output, place in zip(outputs, stores, strict=True))


def _apart(group: Group, spreads: set[Operation]) -> list[Operation]:
    """The operations of a group as several: what does not depend on what repeats, that, and what does."""
    behind: set[Value] = set()
    first: list[Operation] = []
    later: list[Operation] = []
    for operation in group.operations:
        if operation in spreads or not behind.isdisjoint(operation.inputs):
            behind.update(operation.outputs)
            later.append(operation)
        else:
            first.append(operation)
    found = _together(group, first)
    run: list[Operation] = []
    for operation in later:
        if operation not in spreads:
            run.append(operation)
            continue
        found += [*_together(group, run), operation]
        run = []
    return found + _together(group, run)


def _together(group: Group, operations: list[Operation]) -> list[Operation]:
    """Some operations of a group, none of which repeats, as one."""
    if len(operations) <= 1 and not any(isinstance(each, _STEPS) for each in operations):
        return operations
    part = Group(group.key)
    part.operations = operations
    return _joined(part)


def _is_seen_outside(value: Value, inside: set[Operation]) -> bool:
    return value.is_result or value.is_predicate or any(user not in inside for user in value.users)


def _taken(operation: Operation) -> tuple[Value, ...]:
    """The inputs that are tensors of numbers: axes are known."""
    alone = is_row_reduction(operation) or _is_turned(operation) or is_spread(operation)
    return operation.inputs[:1] if alone else operation.inputs
