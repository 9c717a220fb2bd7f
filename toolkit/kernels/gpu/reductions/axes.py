"""Reductions over axes: Sum, Mean, Prod, Max, Min, All, Any, EuclideanNorm, and what is one in other words.

half and bfloat16 are added and multiplied in float and rounded once. Complex numbers are pairs of real ones, so that a
sum of complex numbers is a sum over one dimension less of twice as many real ones.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toolkit.kernels.cpu.common import require
from toolkit.kernels.cpu.math.reduction import reduction_axes
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cpu.nn.window import Layout
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import FLOATING, Value
from toolkit.kernels.gpu.primitives.number_types import GpuNumber, number_of, real_of
from toolkit.kernels.gpu.primitives.reduce_code import State, largest, smallest
from toolkit.kernels.gpu.reductions.kernels import GpuReduction, ReducedPlace
from toolkit.kernels.gpu.reductions.launch import collapse, reduce_array
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import INDEX, Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def _itself(k: KernelBuilder, value: Value, place: ReducedPlace) -> State:
    return (value,)


def _square(k: KernelBuilder, value: Value, place: ReducedPlace) -> State:
    return (k.mul(value, value),)


def _truth(k: KernelBuilder, value: Value, place: ReducedPlace) -> State:
    return (k.convert(k.convert(value, "i1"), "i32"),)


def _finished(k: KernelBuilder, state: State, count: Lanes) -> Lanes:
    return state[0]


def _mean(k: KernelBuilder, state: State, count: Lanes) -> Lanes:
    return k.div(state[0], k.convert(count, state[0].type))


def _root(k: KernelBuilder, state: State, count: Lanes) -> Lanes:
    return k.intrinsic("sqrt", state[0])


def _half(k: KernelBuilder, state: State, count: Lanes) -> Lanes:
    return k.mul(state[0], k.number(0.5, state[0].type))


def _added(k: KernelBuilder, a: State, b: State) -> State:
    return (k.add(a[0], b[0]),)


def _multiplied(k: KernelBuilder, a: State, b: State) -> State:
    return (k.mul(a[0], b[0]),)


def _both(k: KernelBuilder, a: State, b: State) -> State:
    return (k.both(a[0], b[0]),)


def _either(k: KernelBuilder, a: State, b: State) -> State:
    return (k.either(a[0], b[0]),)


#: op: the state of a number, how states are put together, what the last one becomes
_OPS: dict[str, tuple[Any, Any, Any]] = {
    "Sum": (_itself, _added, _finished),
    "Mean": (_itself, _added, _mean),
    "Prod": (_itself, _multiplied, _finished),
    "EuclideanNorm": (_square, _added, _root),
    "SquaredNorm": (_square, _added, _finished),
    "L2Loss": (_square, _added, _half),
    "All": (_truth, _both, _finished),
    "Any": (_truth, _either, _finished),
}


@functools.cache
def reduction_of(op: str, name: str, result: str = "") -> GpuReduction:
    """What an op computes of numbers of a type.

    Args:
        op: a key of the table above, Max or Min.
        name: NumPy's, of the type.
        result: of the result's type; by default the same.
    """
    element, made = number_of(name), number_of(result or name)
    state = "i32" if op in ("All", "Any") else element.compute
    if op in ("Max", "Min"):
        lift, combine, finish = _itself, _extreme(op, element), _finished
    else:
        lift, combine, finish = _OPS[op]
    if op in ("Max", "Min"):
        identity = element.lowest() if op == "Max" else element.highest()
    else:
        identity = 1 if op in ("Prod", "All") else 0

    def start(k: KernelBuilder) -> State:
        return (k.number(identity, state),)

    return GpuReduction(f"{op}_{name}{'_' + result if result else ''}", element, made, (state,), start, lift, combine,
                        finish)  # fmt: skip


def _extreme(op: str, element: GpuNumber) -> Any:
    choose = largest if op == "Max" else smallest

    def combine(k: KernelBuilder, a: State, b: State) -> State:
        return (choose(k, a[0], b[0], unsigned=element.unsigned and element.compute not in FLOATING),)

    return combine


@gpu_kernel("Sum", "Mean", "Max", "Min", "All", "Any", "EuclideanNorm")
@kernel("Prod", types={"T": ["half", "bfloat16", "float", "double", "int32", "int64"], "Tidx": INDEX}, device="GPU",
        label="simt")  # fmt: skip
def reduce(op: KernelNode) -> Compute:
    """Any axes, in any order; sizes of 1 stay with keep_dims."""
    device, keep = device_of(op.node), bool(op.attr("keep_dims"))

    def compute(x: GpuArray, indices: Array) -> GpuArray:
        return reduced(device, op.op, x, indices, keep=keep)

    return compute


def reduced(device: CudaDevice, op: str, x: GpuArray, indices: Array, *, keep: bool) -> GpuArray:
    """What an op that `reduction_of` knows makes of a tensor.

    Args:
        indices: of the axes.
        keep: these stay, with one element each.

    Raises:
        InvalidArgumentError: the tensor has no such axis.
    """
    axes = reduction_axes(x, indices)
    if not axes:
        return x
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape) if keep or axis not in axes]
    runs = collapse(x.shape, axes)
    real = real_of(x.dtype)
    if x.dtype.kind != "c":
        return reduce_array(device, reduction_of(op, real.name), x, runs, shape, x.dtype)
    if op == "EuclideanNorm":  # a complex number whose second part is 0
        made = device.zeros(shape, x.dtype)
        total = reduce_array(device, reduction_of("EuclideanNorm", real.name), x,
                             collapse((*x.shape, 2), (*axes, x.ndim)), shape, real)  # fmt: skip
        return _with_no_second_part(device, total, made)
    made = reduce_array(device, reduction_of(op, real.name), x, collapse((*x.shape, 2), axes), (*shape, 2), real)
    return made.viewed(x.dtype, tuple(shape))


def _with_no_second_part(device: Any, real: GpuArray, made: GpuArray) -> GpuArray:
    from toolkit.kernels.gpu.reductions.kernels import BLOCK

    elements = int(np.prod(real.shape))
    device.launch(_spread(number_of(real.dtype).memory), -(-elements // BLOCK), real, made, elements)
    return made


@functools.cache
def _spread(memory: str) -> Any:
    """Numbers as the first parts of complex ones."""
    k = KernelBuilder("real_parts")
    x, y, n = k.buffer("x", memory), k.buffer("y", memory, written=True), k.scalar("n", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, n)):
        k.store(y, k.mul(i, k.number(2, "i64")), k.load(x, i))
    return k.finish()


@gpu_kernel("L2Loss")
def l2_loss(op: KernelNode) -> Compute:
    """Half of the sum of squares."""
    device = device_of(op.node)

    def compute(x: GpuArray) -> GpuArray:
        runs = collapse(x.shape, tuple(range(x.ndim)))
        return reduce_array(device, reduction_of("L2Loss", x.dtype.name), x, runs, (), x.dtype)

    return compute


@gpu_kernel("BiasAddGrad")
def bias_add_grad(op: KernelNode) -> Compute:
    """The sum over everything but the channels."""
    device, layout = device_of(op.node), Layout.of(op)

    def compute(dy: GpuArray) -> GpuArray:
        require(dy.ndim >= 2, f"the input must be at least 2-dimensional, not {dy.ndim}")
        axis = 1 if layout.channels_first else dy.ndim - 1
        others = tuple(i for i in range(dy.ndim) if i != axis)
        reduction = reduction_of("Sum", dy.dtype.name)
        return reduce_array(device, reduction, dy, collapse(dy.shape, others), (dy.shape[axis],), dy.dtype)

    return compute
