"""Operations that waited together as one kernel, with what it reads, computes and stores."""

from __future__ import annotations

from toolkit.compiler.backends.cuda.fusion.fusible import (
    STEPS,
    is_row_reduction,
    is_spread,
    is_turned,
    step_op,
    strides_of,
    types_of,
)
from toolkit.compiler.backends.cuda.operations import FusedKernelCall, FusedRowsCall
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.waiting import Group
from toolkit.kernels.gpu.elementwise import nests, row_nests
from toolkit.kernels.gpu.elementwise.nests import NestStep

_Read = tuple[Value, tuple[int, ...]]


def joined_kernels(group: Group) -> list[Operation]:
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
            strides = strides_of(operation, index, shape)
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
        op = step_op(operation)
        names = nests.wanted_attributes(op, types_of(operation))
        attributes = tuple((name, operation.step.node.attr(name)) for name in names)
        output = operation.outputs[0]
        made[output] = len(reads) + len(members)
        members.append(NestStep(op, places, output.dtype.name, attributes))
    outputs = [value for value in made if value.producer not in spreads and _is_seen_outside(value, own)]
    if not outputs:  # nobody takes it, such as the last state of a loop
        for operation in own:
            operation.drop_operands()
        return left
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
    if len(operations) <= 1 and not any(isinstance(each, STEPS) for each in operations):
        return operations
    part = Group(group.key)
    part.operations = operations
    return joined_kernels(part)


def _is_seen_outside(value: Value, inside: set[Operation]) -> bool:
    return value.is_result or value.is_predicate or any(user not in inside for user in value.users)


def _taken(operation: Operation) -> tuple[Value, ...]:
    """The inputs that are tensors of numbers: axes are known."""
    alone = is_row_reduction(operation) or is_turned(operation) or is_spread(operation)
    return operation.inputs[:1] if alone else operation.inputs
