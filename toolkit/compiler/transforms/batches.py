"""Large batches in shares, one for each thread: no thread waits for another before the end.

Threads inside a primitive meet after every primitive. Where each example of a batch is computed by itself, the whole
network is run on shares of the batch instead, by one thread each; piece by piece where its tensors are large.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.transforms.examples import MULTIPLY, is_by_example
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape
from toolkit.kernels.once import once
from toolkit.passes.measuring.operations import operations
from toolkit.target.thresholds import BatchThresholds


def batch_of(block: Block, least: BatchThresholds) -> int | None:
    """The size of the batch where every example of it is computed by itself and shares are worth it, else None."""
    arguments = [value for value in block.arguments if value is not None and value.is_needed]
    sizes = {value.shape[0] if value.shape else None for value in (*arguments, *block.results)}
    if len(sizes) != 1 or not arguments:
        return None
    size = sizes.pop()
    if size is None or any(value.is_constant for value in block.results) or _work(block) < least.least_work:
        return None
    return size if all(is_by_example(operation, size) for operation in block.operations) else None


def share_of(batch: int, threads: int, least: BatchThresholds) -> int | None:
    """How many examples each thread gets, None where there are no even shares of some size."""
    share = batch // threads
    return share if threads > 1 and batch % threads == 0 and share >= least.least_examples else None


def piece_of(block: Block, batch: int, share: int, precision: str, least: BatchThresholds) -> int:
    """How many examples of a share are computed at a time: so many that no tensor becomes large."""
    outputs = [v for operation in block.operations for v in operation.outputs if v.shape and v.shape[0] == batch]
    example = max((value.nbytes for value in outputs if value.dtype is not None), default=0) / batch
    if precision == "bf16":
        example /= 2
    piece = share
    while piece * example > least.large and piece % 2 == 0 and piece // 2 >= least.least_examples:
        piece //= 2
    return piece


def part_of(argument: Any, batch: int, start: int, size: int) -> Any:
    """The examples of an argument; what is no batch, which the network does not look at, as it is."""
    is_batch = isinstance(argument, np.ndarray) and argument.shape[:1] == (batch,)
    return argument[start : start + size] if is_batch else argument


def is_share(whole: Block, share: Block, batch: int, size: int) -> bool:
    """Whether one block is the other with fewer examples: the same steps, the same shapes but for the first number."""
    if len(whole.operations) != len(share.operations):
        return False
    pairs = list(zip(whole.operations, share.operations, strict=True))
    return all(
        type(a) is type(b)
        and a.op == b.op
        and a.step is b.step
        and all(_shrunk(x.shape, batch, size) == y.shape for x, y in zip(a.outputs, b.outputs, strict=True))
        for a, b in pairs
    )


def _shrunk(shape: tuple[int, ...] | None, batch: int, size: int) -> tuple[int, ...] | None:
    return (size, *shape[1:]) if shape and shape[0] == batch else shape


def _work(block: Block) -> float:
    """Multiplications in convolutions and products."""
    return sum(
        operations(operation.step.node, _shapes(operation)) / 2
        for operation in block.operations
        if operation.op in MULTIPLY
    )


def _shapes(operation: Operation) -> dict[Output, Shape]:
    """Of what a node takes and makes."""
    node = operation.step.node
    pairs = [*zip(node.inputs, operation.inputs, strict=False), (node.output(), operation.output)]
    return {output: Shape(value.shape) for output, value in pairs}


class Shares:
    """Runs a function of arguments on shares of them, each in a thread of its own.

    Args:
        prepare: what every thread does first.
        piece: how many examples of a share the function takes at a time; None for all.
    """

    def __init__(self, count: int, size: int, prepare: Callable[[], None], piece: int | None = None):
        self._count = count
        self._size = size
        self._piece = piece or size
        self._prepare = prepare

    def run(self, function: Callable[[Sequence[Any]], list[Any]], arguments: Sequence[Any]) -> list[Any]:
        """The results on the whole batch."""
        size, piece, batch = self._size, self._piece, self._size * self._count

        def one(start: int) -> list[list[Any]]:
            self._prepare()
            firsts = range(start, start + size, piece)
            return [function([part_of(argument, batch, first, piece) for argument in arguments]) for first in firsts]

        pending = [_pool(os.getpid()).submit(one, start) for start in range(size, batch, size)]
        try:
            done = one(0)
        finally:
            waited = [future.exception() for future in pending]  # an arena is not left to a thread that still runs
        for error in waited:
            if error is not None:
                raise error
        for future in pending:
            done += future.result()
        return [np.concatenate(parts) for parts in zip(*done, strict=True)]


@once
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of a process: a forked child has none of its parent's."""
    return ThreadPoolExecutor(thread_name_prefix="graphmill-share")
