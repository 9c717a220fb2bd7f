"""Tensors put together in an iteration: what computes a part writes it where it belongs."""

from __future__ import annotations

from dataclasses import replace

from toolkit.compiler.backends.cpu.elementwise.operations import FusedLoopNest, Read, Store, Window
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Concat
from toolkit.compiler.ir.value import Value
from toolkit.kernels.tensors import row_major


def spread_joins(block: Block) -> None:
    """Take Concat out of a loop: compiled nests write their outputs into its output, other parts are copied there."""
    position = block.positions()
    for join in block.operations:
        if isinstance(join, Concat) and len(set(join.parts)) > 1 and all(value.size for value in join.parts):
            block.insert_after(join, _spread(join, position))
            block.erase(join)


def _spread(join: Concat, position: dict[Operation, int]) -> list[Operation]:
    """The copies that are left of a concat."""
    target = join.output
    axis = join.axis
    assert target.shape is not None
    strides = row_major(target.shape)
    windows: list[tuple[Value, Window]] = []
    several = {value for value in join.parts if join.parts.count(value) > 1}
    start: int = 0
    for value in join.parts:
        assert value.shape is not None
        windows.append((value, Window(target, start * strides[axis], strides)))
        start += int(value.shape[axis])
    join.parts = ()
    first: Operation | None = None
    copies: list[Operation] = []
    for value, window in windows:
        producer = value.producer
        # where its output could take the place of one that is still read, a nest must not write that in parts
        if (
            producer is None
            or producer not in position
            or not isinstance(producer, FusedLoopNest)
            or not _writes_all_of(producer, value)
            or value.is_needed
            or value in several
            or any(read.nbytes == target.nbytes for read in producer.inputs)
        ):
            copies.append(_copy(join, value, window))
            continue
        producer.stores = tuple(
            replace(store, place=window if place.value is value else place)
            for store, place in zip(producer.stores, producer.written(), strict=True)
        )
        producer.outputs.remove(value)
        producer.steps += join.steps
        if first is None or position[producer] < position[first]:
            first = producer
    first = first or copies[0]
    first.outputs.append(target)
    target.producer = first
    return copies


def _writes_all_of(nest: FusedLoopNest, value: Value) -> bool:
    return all(window.strides is None for window in nest.written() if window.value is value)


def _copy(join: Operation, value: Value, window: Window) -> Operation:
    assert value.shape is not None
    return FusedLoopNest(
        shape=value.shape, reads=(Window(value),), members=(), stores=(Store(Read(0), window),), weight=1,
        outputs=[], steps=join.steps,
    )  # fmt: skip
