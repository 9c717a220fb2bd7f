"""What is computed of joined tensors is computed of the parts and joined then, where kernels make these.

The gradients of a cell's gates are joined, and what follows is the gradient of one sigmoid over all of them. Computed
of the parts that goes into the kernel that makes them, which writes the whole (`in_place`): nothing is copied to be
joined.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.compiler.backends.cuda.fusion.chains import times_of
from toolkit.compiler.backends.cuda.fusion.fusible import BATCH_NORMS, is_elementwise
from toolkit.compiler.backends.cuda.layout.moved_axes import number_of
from toolkit.compiler.backends.cuda.loops.made_nodes import MadeNodes, host_number
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference, ReadVariable
from toolkit.compiler.ir.value import Value
from toolkit.graph import dtypes

Refused = Callable[[Operation], bool]
#: ops whose operands are not all of one shape, or whose channels a join may cut
_OTHERS = frozenset({*BATCH_NORMS, "BiasAdd", "BiasAddV1", "Select"})


def join_late(block: Block, refused: Refused, changes_variables: Refused) -> None:
    """Join behind elementwise operations instead of before them, in loops too.

    Args:
        refused: whether an operation must stay a call.
        changes_variables: whether arrays that were read may hold something else behind an operation.
    """
    for operation in block.operations:
        for region in operation.regions():
            join_late(region, refused, changes_variables)
    if not any(joins_columns(operation) for operation in block):
        return
    times = times_of(block, changes_variables)
    known: dict[tuple[Value, int, int], list[Value]] = {}
    for operation in block.operations:
        if not isinstance(operation, Call) or operation.op in _OTHERS or refused(operation):
            continue
        if not is_elementwise(operation) or not operation.is_plain:
            continue
        join = next((each for value in operation.inputs if (each := value.producer) and joins_columns(each)), None)
        if join is not None and times.get(join) == times[operation] and _is_worth(block, operation, join, refused):
            for made in _exchange(block, operation, join, known):
                times[made] = times[operation]


def joins_columns(operation: Operation) -> bool:
    """Whether it puts tensors of one shape side by side, so that a kernel over that shape can write the whole."""
    if not isinstance(operation, Call) or operation.op != "ConcatV2" or not operation.is_plain:
        return False
    *parts, axis = operation.inputs
    number, joined = number_of(axis), operation.output
    if number is None or not joined.shape or 0 in joined.shape or number % len(joined.shape) == 0:
        return False
    return len(parts) > 1 and all(part.shape == parts[0].shape and part.dtype == joined.dtype for part in parts)


def _is_worth(block: Block, operation: Call, join: Operation, refused: Refused) -> bool:
    """Whether kernels make the parts of all that is joined, and everything else can be read part by part."""
    shape, number = operation.output.shape, number_of(join.inputs[-1])
    for value in operation.inputs:
        if value.size == 1:
            continue
        maker = value.producer
        if value.shape != shape or isinstance(maker, Dereference | ReadVariable):
            return False  # what a variable holds would be copied part by part
        if maker is None or not joins_columns(maker):
            if maker is not None and maker.block is not block:
                return False
            continue
        parts = maker.inputs[:-1]
        is_alike = number_of(maker.inputs[-1]) == number and len(parts) == len(join.inputs) - 1
        if refused(maker) or maker.block is not block or not is_alike or value.sole_user is not operation:
            return False
        if not all(part.producer is not None and _is_kernel(part.producer, block, refused) for part in parts):
            return False
    return True


def _is_kernel(operation: Operation, block: Block, refused: Refused) -> bool:
    if not isinstance(operation, Call) or not operation.is_plain:
        return False
    return operation.block is block and is_elementwise(operation) and not refused(operation)


def _exchange(
    block: Block, operation: Call, join: Operation, known: dict[tuple[Value, int, int], list[Value]]
) -> list[Operation]:
    """Compute each part, and join what is computed; what does so.

    Args:
        known: parts of tensors that were taken out of them before, by the tensors, their number and the axis.
    """
    *pieces, axis = join.inputs
    count, part, along = len(pieces), pieces[0].shape or (), number_of(axis) or 0
    nodes, joins = MadeNodes(operation), list[Operation]()
    given: list[list[Value]] = []
    made: list[Operation] = []
    for value in operation.inputs:
        maker = value.producer
        if value.size == 1:
            given.append([value] * count)
        elif maker is not None and joins_columns(maker):
            joins.append(maker)
            given.append(list(maker.inputs[:-1]))
        else:
            key = (value, count, along)
            if key not in known:
                known[key] = [Value(value.dtype, part) for _ in range(count)]
                attributes = {"T": dtypes.from_numpy(value.dtype), "num_split": count}
                taken = [host_number(along), value]
                made.append(nodes.call("Split", "parts", taken, known[key], attributes))
            given.append(known[key])
    computed = [Value(operation.output.dtype, part) for _ in range(count)]
    for number, output in enumerate(computed):
        inputs = tuple(each[number] for each in given)
        made.append(Call(op=operation.op, inputs=inputs, outputs=[output], steps=[operation.step]))
    kind = dtypes.from_numpy(operation.output.dtype)
    whole = nodes.call(
        "ConcatV2", "joined", [*computed, axis], [Value(operation.output.dtype, operation.output.shape)],
        {"T": kind, "Tidx": dtypes.from_numpy(axis.dtype), "N": count},
    )  # fmt: skip
    block.insert_before(operation, [*made, whole])
    block.replace_value(operation.output, whole.output)
    block.erase(operation)
    block.remove(joins)
    return [*made, whole]
