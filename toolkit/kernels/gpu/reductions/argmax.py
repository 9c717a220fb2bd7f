"""ArgMax and ArgMin: the first place of the extreme value; NaN is never extreme."""

from __future__ import annotations

import functools

from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import FLOATING, Value
from toolkit.kernels.gpu.primitives.number_types import number_of
from toolkit.kernels.gpu.primitives.reduce_code import State
from toolkit.kernels.gpu.reductions.kernels import GpuReduction, ReducedPlace
from toolkit.kernels.gpu.reductions.launch import reduce_array
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


@functools.cache
def _place_of_extreme(op: str, name: str, result: str) -> GpuReduction:
    """A state is the extreme number and its place, which is behind every place while there is none."""
    element, largest = number_of(name), op == "ArgMax"
    worst = 0 if name == "bool" and largest else 1 if name == "bool" else element.lowest() if largest \
        else element.highest()  # fmt: skip
    compute = element.compute
    is_float = compute in FLOATING
    better = ("ogt" if largest else "olt") if is_float else ("sgt" if largest else "slt")

    def start(k: KernelBuilder) -> State:
        return k.number(worst, compute), k.number((1 << 63) - 1, "i64")

    def lift(k: KernelBuilder, value: Value, place: ReducedPlace) -> State:
        if is_float:
            value = k.select(k.compare("uno", value, value), k.number(worst, compute), value)
        return value, k.convert(place.position, "i64")

    def combine(k: KernelBuilder, a: State, b: State) -> State:
        equal = k.compare("oeq" if is_float else "eq", a[0], b[0])
        first = k.compare("slt", a[1], b[1])
        keep = k.either(k.compare(better, a[0], b[0]), k.both(equal, first))
        return k.select(keep, a[0], b[0]), k.select(keep, a[1], b[1])

    def finish(k: KernelBuilder, state: State, count: Lanes) -> Lanes:
        return k.convert(state[1], number_of(result).compute)

    return GpuReduction(f"{op}_{name}_{result}", element, number_of(result), (compute, "i64"), start, lift, combine,
                        finish)  # fmt: skip


@gpu_kernel("ArgMax", "ArgMin")
def arg_reduce(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.output_types[0].numpy

    def compute(x: GpuArray, dimension: Array) -> GpuArray:
        require(dimension.ndim == 0, "dim must be a scalar, but received tensor of shape: " + shape_text(dimension))
        axis = int(dimension)
        require(-x.ndim <= axis < x.ndim, f"Expected dimension in the range [{-x.ndim}, {x.ndim}), but got {axis}")
        require(x.shape[axis] > 0, f"Reduction axis {axis} is empty in shape {shape_text(x)}")
        axis %= x.ndim
        runs = [(size, i == axis) for i, size in enumerate(x.shape)]
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        return reduce_array(device, _place_of_extreme(op.op, x.dtype.name, dtype.name), x, runs, shape, dtype)

    return compute
