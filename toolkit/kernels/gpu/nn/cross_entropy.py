"""Cross entropies of softmax: losses and gradients of rows, in one kernel.

Logits are read once where a row fits into registers. Like TensorFlow's on GPUs, the sparse one makes the loss and the
gradient of a row NaN whose label is no class; it cannot raise without waiting for the GPU.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.primitives.number_types import (
    GpuNumber,
    index_type,
    load_vector,
    number_of,
    store_vector,
    vector_of,
)
from toolkit.kernels.gpu.primitives.reduce_code import Running, State
from toolkit.kernels.gpu.primitives.row_code import WALKERS, ExponentialSum, RowTeam, TeamShape, exponentials, team_for
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode

#: numbers in registers for each logit: it, its label, and a term of the loss that is being computed
HELD = 3


@gpu_kernel("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(op: KernelNode) -> Compute:
    """loss = -sum(labels * log softmax), backprop = softmax - labels."""
    device = device_of(op.node)

    def compute(features: GpuArray, labels: GpuArray) -> tuple[GpuArray, GpuArray]:
        try:
            shape = np.broadcast_shapes(features.shape, labels.shape)
        except ValueError:
            raise InvalidArgumentError(
                f"logits and labels must be broadcastable: {list(features.shape)} and {list(labels.shape)}",
                node=op.name,
            ) from None
        if len(shape) != 2:
            raise InvalidArgumentError(f"logits and labels must be 2-dimensional, not {list(shape)}", node=op.name)
        return _dense(device, features, labels, shape)

    return compute


def _dense(device: CudaDevice, x: GpuArray, labels: GpuArray, shape: Any) -> tuple[GpuArray, GpuArray]:
    rows, columns = shape
    loss, backprop = device.empty((rows,), x.dtype), device.empty(shape, x.dtype)
    if not rows:
        return loss, backprop
    if not columns:
        return device.zeros((rows,), x.dtype), backprop
    number, index = number_of(x.dtype), index_type(rows * columns)
    if x.shape == labels.shape:
        team = team_for(columns, vector_of(number, columns, x, labels, backprop), index, HELD * number.words)
    else:
        team = TeamShape(WALKERS, 0, 1, index)
    steps: list[int] = []
    if not team.slots:
        for each in (x, labels):
            height, width = (1, *each.shape)[-2:]
            steps += [0 if height == 1 else width // team.vector, 0 if width == 1 and columns > 1 else 1]
    made = dense_kernel(number.name, team)
    device.launch(made, team.blocks(rows), x, labels, loss, backprop, rows, columns // team.vector, *steps)
    return loss, backprop


def _term(k: KernelBuilder, label: Lanes, shifted: Lanes, logarithm: Lanes) -> Value:
    """A label of zero contributes nothing, even where the logit is -inf."""
    none = k.number(0.0, label.type)
    return k.select(k.compare("oeq", label, none), none, k.mul(label, k.sub(logarithm, shifted)))


@functools.cache
def dense_kernel(name: str, shape: TeamShape) -> SimtKernel:
    """Scalars: rows, columns (in vectors); where a row is walked along, from row to row and column to column of both
    inputs, in vectors."""
    number = number_of(name)
    k = KernelBuilder(f"cross_entropy_{name}_{shape.threads}x{shape.slots}", shape.block)
    x, labels = k.buffer("x", number.memory), k.buffer("labels", number.memory)
    loss, backprop = (k.buffer(each, number.memory, written=True) for each in ("loss", "backprop"))
    rows, columns = k.scalar("rows", shape.index), k.scalar("columns", shape.index)
    team = RowTeam(k, shape, rows, columns)
    one = k.number(1.0, number.compute)
    if not shape.slots:
        _walk_dense(k, team, number, (x, labels, loss, backprop))
        return k.finish()
    wanted = team.load(number, labels, 0.0)
    _, shifted, exponents, total = exponentials(k, team, team.load(number, x, -math.inf))
    logarithm, factor = functions.log(k, total), k.div(one, total)
    terms = [_term(k, label, value, logarithm) for label, value in zip(wanted, shifted, strict=True)]
    found = team.total(terms, k.add)
    made = [k.sub(k.mul(value, factor), label) for value, label in zip(exponents, wanted, strict=True)]
    team.store(number, backprop, made)
    with k.when(team.first):
        number.store(k, loss, team.row, found)
    return k.finish()


def _walk_dense(k: KernelBuilder, team: RowTeam, number: GpuNumber, buffers: tuple[KernelBuffer, ...]) -> None:
    x, labels, loss, backprop = buffers
    index, vector = team.shape.index, team.shape.vector
    steps = [k.scalar(each, index) for each in ("x_row", "x_column", "label_row", "label_column")]

    def numbers(buffer: KernelBuffer, place: Lanes, first: int) -> list[Value]:
        at = k.add(k.mul(team.row, steps[first]), k.mul(place, steps[first + 1]))
        return load_vector(k, number, buffer, at, vector)

    found = ExponentialSum(k, number.compute)
    team.walk(lambda place: tuple(numbers(x, place, 0)), found.take)
    top, total = found.finish(team)
    logarithm, factor = functions.log(k, total), k.div(k.number(1.0, number.compute), total)
    running = Running(k, (k.number(0.0, number.compute),))

    def use(values: State) -> None:
        made: list[Lanes] = []
        sum_ = running.get()[0]
        for value, label in zip(values[1 : 1 + vector], values[1 + vector :], strict=True):
            shifted = k.sub(value, top)
            made.append(k.sub(k.mul(functions.exp(k, shifted), factor), label))
            sum_ = k.add(sum_, _term(k, label, shifted, logarithm))
        running.set((sum_,))
        store_vector(k, number, backprop, k.add(team.begin, values[0]), made)

    team.walk(lambda place: (place, *numbers(x, place, 0), *numbers(labels, place, 2)), use)
    total = team.reduce(running.get(), lambda a, b: (k.add(a[0], b[0]),))[0]
    with k.when(team.first):
        number.store(k, loss, team.row, total)


@gpu_kernel("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(op: KernelNode) -> Compute:
    """Labels are numbers of classes."""
    device = device_of(op.node)

    def compute(features: GpuArray, labels: GpuArray) -> tuple[GpuArray, GpuArray]:
        if features.ndim != 2:
            raise InvalidArgumentError(f"logits must be 2-dimensional, not {list(features.shape)}", node=op.name)
        if labels.ndim != 1:
            raise InvalidArgumentError(f"labels must be 1-dimensional, not {list(labels.shape)}", node=op.name)
        rows, columns = features.shape
        if labels.shape[0] != rows:
            raise InvalidArgumentError(
                f"logits and labels must have the same first dimension: {rows} and {labels.shape[0]}", node=op.name
            )
        if columns == 0:
            raise InvalidArgumentError("there must be at least one class", node=op.name)
        loss, backprop = device.empty((rows,), features.dtype), device.empty(features.shape, features.dtype)
        if rows:
            number, index = number_of(features.dtype), index_type(rows * columns)
            team = team_for(columns, vector_of(number, columns, features, backprop), index, number.words)
            made = sparse_kernel(number.name, labels.dtype.name, team)
            vectors = columns // team.vector
            device.launch(made, team.blocks(rows), features, labels, loss, backprop, rows, vectors)
        return loss, backprop

    return compute


@functools.cache
def sparse_kernel(name: str, label_name: str, shape: TeamShape) -> SimtKernel:
    """Scalars: rows, columns (in vectors)."""
    number, index, vector = number_of(name), shape.index, shape.vector
    k = KernelBuilder(f"sparse_cross_entropy_{name}_{shape.threads}x{shape.slots}", shape.block)
    x, labels = k.buffer("x", number.memory), k.buffer("labels", number_of(label_name).memory)
    loss, backprop = (k.buffer(each, number.memory, written=True) for each in ("loss", "backprop"))
    rows, columns = k.scalar("rows", index), k.scalar("columns", index)
    team = RowTeam(k, shape, rows, columns)
    one, none, nan = (k.number(each, number.compute) for each in (1.0, 0.0, math.nan))
    label, valid, at_label = _label(k, team, number, (x, labels))

    def gradient(exponent: Lanes, factor: Lanes, place: Lanes, offset: int) -> Value:
        """softmax, less 1 at the label; NaN where that is no class."""
        column = k.add(k.mul(place, k.number(vector, index)), k.number(offset, index))
        less = k.select(k.compare("eq", k.convert(column, label.type), label), one, none)
        return k.select(valid, k.sub(k.mul(exponent, factor), less), nan)

    if shape.slots:
        top, _, exponents, total = exponentials(k, team, team.load(number, x, -math.inf))
        factor = k.div(one, total)
        made: list[Lanes] = []
        for i, exponent in enumerate(exponents):
            place = k.add(team.thread, k.number(i // vector * shape.threads, index))
            made.append(gradient(exponent, factor, place, i % vector))
        team.store(number, backprop, made)
    else:
        found = ExponentialSum(k, number.compute)

        def read(place: Lanes) -> State:
            return (place, *load_vector(k, number, x, k.add(team.begin, place), vector))

        team.walk(read, lambda values: found.take(values[1:]))
        top, total = found.finish(team)
        factor = k.div(one, total)

        def write(values: State) -> None:
            made = [gradient(functions.exp(k, k.sub(value, top)), factor, values[0], i)
                    for i, value in enumerate(values[1:])]  # fmt: skip
            store_vector(k, number, backprop, k.add(team.begin, values[0]), list[Lanes](made))

        team.walk(read, write)
    with k.when(team.first):
        wanted = k.sub(functions.log(k, total), k.sub(at_label, top))
        number.store(k, loss, team.row, k.select(valid, wanted, nan))
    return k.finish()


def _label(
    k: KernelBuilder, team: RowTeam, number: GpuNumber, buffers: tuple[KernelBuffer, KernelBuffer]
) -> tuple[Value, Value, Value]:
    """The label of the team's row, whether it is a class, and its logit (0 where it is none)."""
    x, labels = buffers
    index, vector = team.shape.index, team.shape.vector
    label = k.variable(k.number(0, labels.type))
    if team.active is None:
        label.set(k.load(labels, team.row))
    else:
        with k.when(team.active):
            label.set(k.load(labels, team.row))
    column = label.get()
    classes = k.convert(k.mul(team.columns, k.number(vector, index)), column.type)
    valid = k.both(k.compare("sge", column, k.number(0, column.type)), k.compare("slt", column, classes))
    found = k.variable(k.number(0.0, number.compute))
    with k.when(valid if team.active is None else k.both(valid, team.active)):
        at = k.add(k.mul(team.begin, k.number(vector, index)), k.convert(column, index))
        found.set(number.load(k, x, at))
    return column, valid, found.get()
