"""Tensors put together in a turn: what computes a part writes it where it belongs."""

from __future__ import annotations

from toolkit.compiler.backends.cpu.elementwise.nests import Member, Window
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation, Untyped
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.onednn.memory import row_major


def spread_joins(block: Block) -> None:
    """Take "concat" out of a turn: compiled nests write their outputs into its output, other parts are copied there."""
    position = block.positions()
    for join in block.operations:
        if join.kind == "concat" and len(set(join.inputs)) > 1 and all(value.size for value in join.inputs):
            block.insert_after(join, _spread(join, position))
            block.erase(join)


def _spread(join: Operation, position: dict[Operation, int]) -> list[Operation]:
    """The copies that are left of a concat."""
    target = join.output
    axis: int = join.attrs["axis"]
    assert target.shape is not None
    strides = row_major(target.shape)
    windows: list[tuple[Value, Window]] = []
    several = {value for value in join.inputs if join.inputs.count(value) > 1}
    start: int = 0
    for value in join.inputs:
        assert value.shape is not None
        windows.append((value, Window(target, start * strides[axis], strides)))
        start += int(value.shape[axis])
    join.set_inputs(())
    first: Operation | None = None
    copies: list[Operation] = []
    for value, window in windows:
        producer = value.producer
        # where its output could take the place of one that is still read, a nest must not write that in parts
        if (
            producer is None
            or producer not in position
            or not _computes(producer, value)
            or value.is_needed
            or value in several
            or any(read.nbytes == target.nbytes for read in producer.inputs)
        ):
            copies.append(_copy(join, value, window))
            continue
        writes = producer.attrs.setdefault("writes", [(output, Window(output)) for output in producer.outputs])
        producer.attrs["writes"] = [(made, window if made is value else place) for made, place in writes]
        producer.outputs.remove(value)
        producer.steps += join.steps
        if first is None or position[producer] < position[first]:
            first = producer
    first = first or copies[0]
    first.outputs.append(target)
    target.producer = first
    return copies


def _computes(producer: Operation, value: Value) -> bool:
    """Whether an operation is a nest that writes a value as a whole."""
    if producer.kind != "nest":
        return False
    return all(made is value for made, place in producer.attrs.get("writes", ()) if place.value is value)


def _copy(join: Operation, value: Value, window: Window) -> Operation:
    copied = Value(value.dtype, value.shape)
    part = Untyped("part", [], [copied], join.steps)
    return Untyped(
        "nest", [value], [], join.steps, members=[Member(part, [0])], reads=[Window(value)], shape=value.shape,
        writes=[(copied, window)],
    )  # fmt: skip
