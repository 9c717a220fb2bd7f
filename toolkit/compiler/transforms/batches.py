"""Large batches in shares, one for each thread: no thread waits for another before the end.

Threads inside a primitive meet after every primitive. Where each example of a batch is computed by itself, the whole
network is run on shares of the batch instead, by one thread each; piece by piece where its tensors are large.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.elementwise import ELEMENTWISE
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape
from toolkit.passes.operations import operations
from toolkit.target.thresholds import Batches

_CONVOLUTIONS = frozenset({"Conv2D", "Conv3D", "DepthwiseConv2dNative"})
_IMAGES = frozenset({"LRN", "ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"})
_NORMS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
_PRODUCTS = frozenset({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
_REDUCTIONS = frozenset({"Max", "Mean", "Min", "Prod", "Sum"})


def batch_of(block: Block, least: Batches) -> int | None:
    """The size of the batch where every example of it is computed by itself and shares are worth it, else None."""
    arguments = [value for value in block.arguments if value is not None and value.is_needed]
    sizes = {value.shape[0] if value.shape else None for value in (*arguments, *block.results)}
    if len(sizes) != 1 or not arguments:
        return None
    size = sizes.pop()
    if size is None or any(value.is_constant for value in block.results) or _work(block) < least.least_work:
        return None
    return size if all(_is_by_example(operation, size) for operation in block.operations) else None


def share_of(batch: int, threads: int, least: Batches) -> int | None:
    """How many examples each thread gets, None where there are no even shares of some size."""
    share = batch // threads
    return share if threads > 1 and batch % threads == 0 and share >= least.least_examples else None


def piece_of(block: Block, batch: int, share: int, precision: str, least: Batches) -> int:
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


def _is_by_example(operation: Operation, size: int) -> bool:
    """Whether an operation's output number i depends on number i of its inputs alone."""
    kind, node = operation.op, operation.step.node
    output = operation.output.shape if operation.outputs else None
    if not output or output[0] != size or operation.predicates:
        return False
    computed = [value for value in operation.inputs if not value.is_constant]
    if not computed or any(not value.shape or value.shape[0] != size for value in computed):
        return False
    first = operation.inputs[0]
    if kind in ELEMENTWISE:
        return all(_fits(value, output) for value in operation.inputs)
    if kind in _CONVOLUTIONS or kind in _IMAGES:
        return computed == [first]
    if kind in _NORMS:
        training = node.attr("is_training", True)
        return computed == [first] and not training and not any(v.is_needed for v in operation.outputs[1:])
    if kind in ("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D"):
        return node.attr("ksize")[0] == 1 and node.attr("strides")[0] == 1
    if kind == "MatMul":
        return computed == [first] and not node.attr("transpose_a", False)
    if kind in _PRODUCTS:
        return len(computed) == 2 and all(len(value.shape or ()) >= 3 for value in computed)
    if kind in ("Reshape", "Squeeze", "ExpandDims"):
        return computed == [first]
    if kind in ("Softmax", "LogSoftmax"):
        return len(output) > 1
    if kind == "ConcatV2":
        return _joins(operation)
    return computed == [first] and _keeps_first_axis(operation)


def _fits(value: Value, output: tuple[int, ...]) -> bool:
    """Whether a value is one of a batch, or the same for every example."""
    shape = value.shape
    if shape is None:
        return False
    if value.is_constant:
        return len(shape) < len(output) or shape[0] == 1
    return len(shape) == len(output)


def _joins(operation: Operation) -> bool:
    *parts, axis = operation.inputs
    rank = len(operation.output.shape or ())
    return axis.is_constant and int(axis.constant) % rank != 0 and not any(part.is_constant for part in parts)


def _keeps_first_axis(operation: Operation) -> bool:
    """Ops whose second input says what happens to which axis."""
    if len(operation.inputs) < 2 or not operation.inputs[1].is_constant:
        return False
    told = np.asarray(operation.inputs[1].constant)
    if operation.op in _REDUCTIONS:
        rank = len(operation.inputs[0].shape or ())
        return all(int(axis) % rank != 0 for axis in told.reshape(-1))
    if operation.op in ("Pad", "PadV2", "MirrorPad"):
        return not told[0].any()
    if operation.op == "Transpose":
        return int(told[0]) == 0
    return False


def _work(block: Block) -> float:
    """Multiplications in convolutions and products."""
    return sum(
        operations(operation.step.node, _shapes(operation)) / 2
        for operation in block.operations
        if operation.op in _CONVOLUTIONS or operation.op == "MatMul"
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

        pending = [_pool().submit(one, start) for start in range(size, batch, size)]
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


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="graphmill-share")
