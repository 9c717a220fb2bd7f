"""Elementwise operations put together: one kernel, one pass over memory, for a whole chain.

Operations of one shape wait until somebody needs one of them; then all that wait become one kernel. Nothing is moved
before its place in the program, and nothing is held back beyond a change of variables. A single operation stays a call
of its kernel, which serves all shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolkit.compiler.backends.cuda.operations import FusedKernelCall
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_channels_first
from toolkit.compiler.transforms.waiting import Group, Groups
from toolkit.kernels.facts import stays_on_host
from toolkit.kernels.gpu import nests
from toolkit.kernels.gpu.nests import NestStep
from toolkit.kernels.gpu.operators_norms import BATCH_NORM_STEP

#: operands of a kernel: each takes registers for where it is, and its parameters have a limit of 4 KB
_MOST_OPERANDS = 32
#: instructions of a kernel, by the weights of `nests`: compiling takes time by its length, and registers run out
_MOST_WEIGHT = 2000
_DEVICE = "GPU"
#: batch norms at inference, whose five inputs are a tensor and a number for each channel
BATCH_NORMS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


def gather_kernels(
    block: Block, refused: Callable[[Operation], bool], changes_variables: Callable[[Operation], bool]
) -> None:
    """Put elementwise calls together, in loops too.

    Args:
        refused: whether an operation must stay a call.
    """
    for operation in block.operations:
        for region in operation.regions():
            gather_kernels(region, refused, changes_variables)
    groups = Groups(separate=0)
    operations: list[Operation] = []

    def flush(group: Group) -> None:
        groups.remove(group)
        operations.extend(group.operations if len(group.operations) == 1 else [_joined(group.operations)])

    for operation in block.operations:
        is_candidate = _is_candidate(operation) and not refused(operation)
        key = (operation.outputs[0].shape, operation.conditions) if is_candidate else None
        for value in (*operation.inputs, *(predicate for predicate, _ in operation.predicates)):
            group = groups.place.get(value)
            if group is not None and group.key != key:
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
            related = []
        groups.add(operation, weight, key, related)
    for group in groups:
        flush(group)
    block.reorder(operations)


def _is_candidate(operation: Operation) -> bool:
    """Whether the generator writes it, and all of it is in the device's memory."""
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


def _strides(operation: Operation, index: int) -> tuple[int, ...] | None:
    """How an input lies under the output, in elements for each dimension; None where it is not broadcast to it."""
    target, shape = operation.outputs[0].shape, operation.inputs[index].shape
    assert target is not None and shape is not None
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
    return nests.step_weight(_step_op(operation), _types(operation))


def _joined(operations: Sequence[Operation]) -> Operation:
    """The operations as one."""
    reads: dict[tuple[Value, tuple[int, ...]], int] = {}
    made: dict[Value, int] = {}
    wanted: list[list[tuple[Value, tuple[int, ...]]]] = []
    for operation in operations:
        sources: list[tuple[Value, tuple[int, ...]]] = []
        for index, value in enumerate(operation.inputs):
            strides = _strides(operation, index)
            assert strides is not None
            sources.append((value, strides))
            if value not in made:
                reads.setdefault((value, strides), len(reads))
        wanted.append(sources)
        made[operation.outputs[0]] = -1
    members: list[NestStep] = []
    for operation, sources in zip(operations, wanted, strict=True):
        places = tuple(made[value] if made.get(value, -1) >= 0 else reads[value, strides] for value, strides in sources)
        op = _step_op(operation)
        names = nests.wanted_attributes(op, _types(operation))
        attributes = tuple((name, operation.step.node.attr(name)) for name in names)
        output = operation.outputs[0]
        made[output] = len(reads) + len(members)
        members.append(NestStep(op, places, output.dtype.name, attributes))
    own = set(operations)
    outputs = [
        value for value in made if value.is_result or value.is_predicate or any(user not in own for user in value.users)
    ]
    stores = tuple(made[value] for value in outputs)
    first = operations[0]
    shape = first.outputs[0].shape
    assert shape is not None
    steps = [step for operation in operations for step in operation.steps]
    conditions = first.conditions
    for operation in operations:
        operation.drop_operands()
    return FusedKernelCall(
        shape=shape,
        reads=tuple(value for value, _ in reads),
        strides=tuple(strides for _, strides in reads),
        members=tuple(members),
        stores=stores,
        outputs=outputs,
        steps=steps,
        conditions=conditions,
    )
