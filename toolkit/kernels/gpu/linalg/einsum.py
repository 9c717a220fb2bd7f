"""Einsum: operands with their axes in order, one batch of matrix products, and the result's axes in order.

Where the labels already lie as a product wants them, transposed or not, nothing is moved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from toolkit.kernels.cpu.linalg.matmul import check_operand, parse_equation
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.nn.strided import gathered, scattered
from toolkit.kernels.cuda.products import Batch, multiply
from toolkit.kernels.registry import COMPLEX, FLOATING, Compute, KernelNode, kernel

#: a label, or the place of an axis among those that an ellipsis stands for, from the last one
Label = str | int


class _Operand:
    """An array with a label for each axis; no label twice."""

    def __init__(self, array: GpuArray, labels: Sequence[Label], shape: Sequence[int] | None = None):
        self.array = array
        self.labels = list(labels)
        self.shape = list(array.shape if shape is None else shape)

    def size(self, label: Label) -> int:
        return self.shape[self.labels.index(label)]

    def ordered(self, device: CudaDevice, labels: Sequence[Label]) -> _Operand:
        """With its axes in another order, those that are not named summed up."""
        if list(labels) == self.labels:
            return self
        steps = _steps(self.shape)
        kept = [self.labels.index(label) for label in labels]
        summed = [axis for axis in range(len(self.labels)) if axis not in kept]
        shape = [self.shape[axis] for axis in kept]
        made = gathered(
            device, self.array, shape, [steps[axis] for axis in kept], [self.shape[axis] for axis in summed],
            [steps[axis] for axis in summed],
        )  # fmt: skip
        return _Operand(made, labels, shape)


def _steps(shape: Sequence[int]) -> list[int]:
    steps, step = [0] * len(shape), 1
    for axis in reversed(range(len(shape))):
        steps[axis] = step
        step *= shape[axis]
    return steps


def _labels(text: str, rank: int) -> list[Label]:
    """Those of a term of so many axes."""
    free = rank - len(text.replace("...", ""))
    found: list[Label] = []
    for each in text.replace("...", "."):
        found += range(free - 1, -1, -1) if each == "." else [each]
    return found


def _operand(device: CudaDevice, array: GpuArray, labels: Sequence[Label]) -> _Operand:
    """A label that stands twice: the diagonal."""
    distinct = list(dict.fromkeys(labels))
    if len(distinct) == len(labels):
        return _Operand(array, labels)
    steps = _steps(array.shape)
    shape = [array.shape[labels.index(label)] for label in distinct]
    strides = [sum(step for step, one in zip(steps, labels, strict=True) if one == label) for label in distinct]
    return _Operand(gathered(device, array, shape, strides, [], []), distinct)


def _without_ones(operand: _Operand, sizes: dict[Label, int]) -> _Operand:
    """Without axes of one element that another operand makes longer."""
    kept = [label for label in operand.labels if operand.size(label) == sizes[label]]
    return _Operand(operand.array, kept, [sizes[label] for label in kept])


@kernel("Einsum", types={"T": FLOATING | COMPLEX}, device="GPU")
def einsum(op: KernelNode) -> Compute:
    """Sums of products of one or two operands over labelled axes; an ellipsis stands for axes that broadcast."""
    device = device_of(op.node)
    equation = op.text("equation")
    terms, result = parse_equation(equation, len(op.input_types))

    def compute(*operands: GpuArray) -> GpuArray:
        known: dict[str, int] = {}
        for term, operand in zip(terms, operands, strict=True):
            check_operand(term, operand, known, equation)
        given = [
            _operand(device, operand, _labels(term, operand.ndim))
            for term, operand in zip(terms, operands, strict=True)
        ]
        sizes: dict[Label, int] = {}
        for each in given:
            for label, size in zip(each.labels, each.shape, strict=True):
                sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
        free = max((label for label in sizes if isinstance(label, int)), default=-1) + 1
        wanted = _labels(result, free * ("..." in result) + len(result.replace("...", "")))
        distinct = list(dict.fromkeys(wanted))
        given = [_without_ones(each, sizes) for each in given]
        if len(given) == 1:
            made = given[0].ordered(device, distinct)
        else:
            made = _product(device, given[0], given[1], distinct, sizes)
        return _spread(device, made, wanted) if len(distinct) < len(wanted) else _as(made)

    return compute


def _as(operand: _Operand) -> GpuArray:
    return operand.array.reshaped(tuple(operand.shape))


def _product(
    device: CudaDevice, a: _Operand, b: _Operand, wanted: Sequence[Label], sizes: dict[Label, int]
) -> _Operand:
    """The sums of products of two operands, their axes as wanted."""
    batch = [label for label in wanted if label in a.labels and label in b.labels]
    rows = [label for label in wanted if label in a.labels and label not in b.labels]
    columns = [label for label in wanted if label in b.labels and label not in a.labels]
    depth = [label for label in a.labels if label in b.labels and label not in wanted]
    if [*batch, *rows, *columns] != list(wanted) and [*batch, *columns, *rows] == list(wanted):
        a, b, rows, columns = b, a, columns, rows
    a, turn_a = _laid_out(device, a, batch, rows, depth)
    b, turn_b = _laid_out(device, b, batch, depth, columns)
    count, m, n, k = (math.prod(sizes[label] for label in group) for group in (batch, rows, columns, depth))
    order = [*batch, *rows, *columns]
    shape = [sizes[label] for label in order]
    if not a.array.nbytes or not b.array.nbytes:
        return _Operand(device.zeros([sizes[label] for label in wanted], a.array.dtype), wanted)
    out = device.empty(shape, a.array.dtype)
    of = Batch((0, 0, 0), count, (1, 1, 1)) if count > 1 else None
    multiply(device, a.array, b.array, out, (m, n, k), (turn_a, turn_b), batch=of)
    return _Operand(out, order).ordered(device, wanted)


def _laid_out(
    device: CudaDevice, x: _Operand, batch: list[Label], first: list[Label], second: list[Label]
) -> tuple[_Operand, str]:
    """An operand as a batch of matrices, and whether these are stored transposed; what neither names is summed."""
    if x.labels == [*batch, *second, *first]:
        return x, "T" if first and second else "N"
    return x.ordered(device, [*batch, *first, *second]), "N"


def _spread(device: CudaDevice, value: _Operand, wanted: Sequence[Label]) -> GpuArray:
    """Where a label stands twice in the result, a diagonal is made; the rest is 0."""
    sizes = dict(zip(value.labels, value.shape, strict=True))
    shape = [sizes[label] for label in wanted]
    steps = _steps(shape)
    strides = [sum(step for step, one in zip(steps, wanted, strict=True) if one == label) for label in value.labels]
    out = device.zeros(shape, value.array.dtype)
    scattered(device, value.array, out, value.shape, strides)
    return out
