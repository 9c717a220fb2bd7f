"""What is computed of a whole tensor and then split is computed of the parts, where only kernels take these.

The gates of a recurrent layer are added in one tensor and split. Computed of the parts, the sums go into the kernel
that takes these, and what is split are products, whose parts a kernel reads where they are (`backends.cuda.parts`).
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.compiler.backends.cuda.fusion.chains import times_of
from toolkit.compiler.backends.cuda.fusion.fusible import BATCH_NORMS, is_elementwise
from toolkit.compiler.backends.cuda.layout.moved_axes import constant_like, number_of
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_channels_first

Refused = Callable[[Operation], bool]
_PER_CHANNEL = ("BiasAdd", "BiasAddV1")


def split_first(block: Block, refused: Refused, changes_variables: Refused) -> None:
    """Split before elementwise operations instead of behind them, in loops too.

    Args:
        refused: whether an operation must stay a call.
        changes_variables: whether arrays that were read may hold something else behind an operation.
    """
    for operation in block.operations:
        for region in operation.regions():
            split_first(region, refused, changes_variables)
    if not any(isinstance(operation, Call) and operation.op == "Split" for operation in block):
        return
    times = times_of(block, changes_variables)
    for operation in reversed(block.operations):
        if operation.block is block and isinstance(operation, Call) and is_elementwise(operation):
            split = operation.output.sole_user
            if not isinstance(split, Call) or split.op != "Split" or split.step.deref or split.block is not block:
                continue
            is_beside = split.conditions == operation.conditions and times.get(split) == times.get(operation)
            if is_beside and not refused(operation) and not refused(split) and _is_worth(split, operation):
                for made in _exchange(block, operation, split):
                    times[made] = times[operation]


def _is_worth(split: Call, operation: Call) -> bool:
    """Whether parts do not lie one behind the other and kernels take them, and what they are computed of has parts."""
    axis, shape = number_of(split.inputs[0]), operation.output.shape
    if axis is None or not shape or axis % len(shape) == 0 or operation.op in (*BATCH_NORMS, "Select"):
        return False
    if operation.op in _PER_CHANNEL and (is_channels_first(operation) or axis % len(shape) != len(shape) - 1):
        return False
    vectors = operation.inputs[1:] if operation.op in _PER_CHANNEL else ()
    others = operation.inputs[:1] if operation.op in _PER_CHANNEL else operation.inputs
    if any(value.shape != shape and value.size != 1 for value in others):
        return False
    if any(value.shape != shape[-1:] for value in vectors):
        return False
    for part in split.outputs:
        if part.is_result or part.is_predicate or part.shape is None:
            return False
        if not all(isinstance(user, Call) and is_elementwise(user) for user in part.users):
            return False
    return True


def _exchange(block: Block, operation: Call, split: Call) -> list[Operation]:
    """Split what an operation takes, and compute each part; what does so."""
    parts = list(split.outputs)
    given: list[list[Value]] = []
    made: list[Operation] = []
    for at, value in enumerate(operation.inputs):
        if value.size == 1:
            given.append([value] * len(parts))
            continue
        is_vector = operation.op in _PER_CHANNEL and at == 1
        axis = _axis_of_vectors(split) if is_vector else split.inputs[0]
        shapes = [(part.shape or ())[-1:] if is_vector else part.shape for part in parts]
        pieces = [Value(value.dtype, shape) for shape in shapes]
        made.append(
            Call(op="Split", inputs=(axis, value), outputs=pieces, steps=[split.step], conditions=operation.conditions)
        )
        given.append(pieces)
    block.insert_before(split, made)
    for number, part in enumerate(parts):
        inputs = tuple(each[number] for each in given)
        computed = Call(
            op=operation.op, inputs=inputs, outputs=[part], steps=[operation.step], conditions=operation.conditions
        )
        block.insert_before(split, [computed])
        made.append(computed)
    block.remove([split, operation])
    return made


def _axis_of_vectors(split: Call) -> Value:
    return constant_like(split.inputs[0], (0,))
