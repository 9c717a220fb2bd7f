"""What is computed of a whole tensor and then split is computed of the parts, where only kernels take these.

The gates of a recurrent layer are added in one tensor and split. Computed of the parts, the sums go into the kernel
that takes these, and what is split are products, whose parts a kernel reads where they are (`backends.cuda.parts`).
Where a gradient wants the whole as well, the parts are joined for it, which the kernel does that computes them.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.compiler.backends.cuda.fusion.chains import times_of
from toolkit.compiler.backends.cuda.fusion.fusible import BATCH_NORMS, is_elementwise
from toolkit.compiler.backends.cuda.layout.moved_axes import constant_like, number_of
from toolkit.compiler.backends.cuda.loops.late_pushes import KEEP
from toolkit.compiler.backends.cuda.loops.made_nodes import MadeNodes
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_channels_first
from toolkit.graph import dtypes

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
            split = _split_of(block, operation)
            if split is None:
                continue
            is_beside = split.conditions == operation.conditions and times.get(split) == times.get(operation)
            if is_beside and not refused(operation) and not refused(split) and _is_worth(split, operation):
                for made in _exchange(block, operation, split):
                    times[made] = times[operation]


def _split_of(block: Block, operation: Call) -> Call | None:
    """What splits a tensor that nobody else takes, or only to keep it for later."""
    value = operation.output
    splits = [user for user in value.users if isinstance(user, Call) and user.op == "Split"]
    if len(splits) != 1 or value.is_result or value.is_predicate or splits[0].inputs[0] is value:
        return None
    others = [user for user in value.users if user is not splits[0]]
    if splits[0].step.deref or splits[0].block is not block or not all(_keeps(block, user) for user in others):
        return None
    if others:  # the parts that are joined for these are computed where the split is
        places = block.positions()
        if operation.predicates or min(map(places.__getitem__, others)) < places[splits[0]]:
            return None
    return splits[0]


def _keeps(block: Block, user: Operation) -> bool:
    return isinstance(user, Call) and user.op in KEEP and user.block is block and user.is_plain


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
        kernels = [user for user in part.users if isinstance(user, Call) and is_elementwise(user)]
        others = [user for user in part.users if user not in kernels]
        if not all(isinstance(user, Call) and user.op in KEEP for user in others) or (others and not kernels):
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
    if len(operation.output.users) > 1:
        made.append(_joined(block, operation, split))
    block.remove([split, operation])
    return made


def _joined(block: Block, operation: Call, split: Call) -> Operation:
    """All parts joined again for who keeps the whole, where the first one does."""
    places, (axis, _) = block.positions(), split.inputs
    whole, kind = operation.output, dtypes.from_numpy(operation.output.dtype)
    attributes = {"T": kind, "Tidx": dtypes.from_numpy(axis.dtype), "N": len(split.outputs)}
    made = Value(whole.dtype, whole.shape)
    joined = MadeNodes(operation).call("ConcatV2", "joined", [*split.outputs, axis], [made], attributes)
    others = [user for user in whole.users if user is not split]
    block.insert_before(min(others, key=places.__getitem__), [joined])
    for user in others:
        user.replace_operands({whole: made})
    return joined


def _axis_of_vectors(split: Call) -> Value:
    return constant_like(split.inputs[0], (0,))
