"""Loops over time steps that are layers of LSTM or GRU cells become one operation for each layer.

A loop qualifies whose number of iterations is known, that reads one step of a list or array of tensors in each, whose
states are those of cells, and that writes a cell's output to another list, which is only stacked afterwards. Then
neither list is made. What is anything else stays a loop; the plan's notes say why.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Alias
from toolkit.compiler.ir.operations.recurrent import is_recurrent
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.cells import Cell
from toolkit.compiler.transforms.forms import NotRecurrentError
from toolkit.compiler.transforms.time_loops import Predicate, TimeLoop
from toolkit.kernels.tensors import F32


def lower_recurrent(block: Block, refused: Predicate, has_effect: Predicate) -> None:
    """Replace the loops that are layers of cells."""
    for loop in block.operations:
        if not is_recurrent(loop) or refused(loop):
            continue
        loop.body.drop_unused(has_effect)
        try:
            found = TimeLoop(loop, has_effect)
        except NotRecurrentError as reason:
            block.notes.append(f"{loop.name}: not an LSTM or GRU layer: {reason}")
        else:
            _replace(block, found)


def _replace(block: Block, found: TimeLoop) -> None:
    """Put a primitive for each layer in the loop's place."""
    loop, made = found.loop, list[Operation]()
    sequences: dict[int, Value] = {}
    for cell in found.cells:
        made += _layer(block, found, cell, sequences)
    for index, (first, step) in found.counters.items():
        number = np.asarray(first + step * found.length, loop.outputs[index].dtype)
        block.replace_value(loop.outputs[index], Value(number.dtype, (), number))
    for output, before, after, given in zip(
        loop.outputs, found.body.arguments, found.body.results, loop.inputs, strict=False
    ):
        if after is before:
            block.replace_value(output, given)
    block.weave({loop: made})
    block.remove(found.gone)


def _layer(block: Block, found: TimeLoop, cell: Cell, sequences: dict[int, Value]) -> list[Operation]:
    """The operations for one layer; those who take its results from the loop take them from these.

    Args:
        sequences: the time-major outputs of the layers so far, by the index of their state h.
    """
    loop = found.loop
    if cell.reads:
        x, batch_major = _before_exchange(cell.source.what)
    else:
        x, batch_major = sequences[cell.source.what], False
    states = [index for index in (cell.hidden, cell.memory) if index is not None]
    initial = [loop.inputs[index] for index in states]
    if all(value.is_constant and not np.any(value.constant) for value in initial):
        initial = []
    last = [Value(F32, value.shape) for value in (found.body.results[index] for index in states)]
    for index, value in zip(states, last, strict=True):
        block.replace_value(loop.outputs[index], value)
    after: list[Operation] = []
    stacked: list[Value] = []
    for written in found.written:
        output = written.stack.output
        if written.cell is cell and written.is_last_only:
            after.append(Alias(input=last[0], outputs=[Value(F32, output.shape)], steps=[written.stack.step]))
            after[-1].conditions = loop.conditions
            block.replace_value(output, after[-1].output)
        elif written.cell is cell:
            stacked.append(output)
    feeds_layer = any(not other.reads and other.source.what == cell.hidden for other in found.cells)
    exchange = _exchange_behind(stacked[0]) if len(stacked) == 1 and not feeds_layer else None
    if exchange is not None:
        found.gone.add(exchange)
        stacked = [exchange.output]
    rows = last[0].shape or ()
    sequence = Value(F32, (found.length, *rows) if exchange is None else (*rows[:1], found.length, *rows[1:]))
    sequences[cell.hidden] = sequence
    for output in stacked:
        block.replace_value(output, sequence)
    layer = cell.layer(
        input=x, initial=tuple(initial), weights=cell.weights, length=found.length,
        batch_major_input=batch_major, batch_major_output=exchange is not None,
        outputs=[sequence, *(last if any(value.is_needed for value in last) else [])], steps=[loop.step],
        conditions=loop.conditions,
    )  # fmt: skip
    return [layer, *after]


def _exchanges(operation: Operation | None) -> bool:
    """Whether an operation makes a batch-major sequence of a time-major one, or the other way round."""
    if operation is None or operation.op != "Transpose" or not operation.inputs[1].is_constant:
        return False
    return tuple(np.asarray(operation.inputs[1].constant).tolist()) == (1, 0, 2)


def _before_exchange(x: Value) -> tuple[Value, bool]:
    """A time-major sequence, or the batch-major one that it was made from, and whether it is that."""
    producer = x.producer
    if producer is not None and _exchanges(producer) and producer.inputs[0].shape is not None:
        return producer.inputs[0], True
    return x, False


def _exchange_behind(y: Value) -> Operation | None:
    """The operation that makes a time-major sequence batch-major, if that is all that it is for."""
    user = y.sole_user
    return user if user is not None and _exchanges(user) and user.inputs[0] is y else None
