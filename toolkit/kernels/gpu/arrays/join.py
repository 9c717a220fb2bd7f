"""Joining and splitting along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.kernels.cpu.arrays.join import check_rows, concat_axis, pack_axis
from toolkit.kernels.cuda.conversions import convert_into
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.primitives.copying import copy_part, part
from toolkit.kernels.gpu.primitives.layout import ElementLayout
from toolkit.kernels.gpu.registering import cpu_compute, gpu_kernel, layouts
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.tensors import BF16, F16, F32, row_major

#: parts from which on one kernel copies them all: one more for each number of parts has to be compiled, which saves
#: few launches below
_MANY = 8
#: types that a kernel of conversions gives bit by bit, but for what kind of NaN one is
_COPIED = (F32, BF16, F16)


def joined(device: CudaDevice, values: Sequence[GpuArray], axis: int) -> GpuArray:
    """Tensors one behind the other along an axis; their other sizes are equal."""
    filled = [value for value in values if value.nbytes]
    if not filled:
        shape = list(values[0].shape)
        shape[axis] = sum(value.shape[axis] for value in values)
        return device.empty(shape, values[0].dtype)
    if len(filled) == 1:
        return filled[0]
    shape = list(filled[0].shape)
    shape[axis] = sum(value.shape[axis] for value in filled)
    y = device.empty(shape, filled[0].dtype)
    strides = row_major(shape)
    at = 0
    if len(filled) >= _MANY and y.dtype in _COPIED and all(size == 1 for size in shape[:axis]):
        pairs: list[tuple[GpuArray, GpuArray]] = []
        for value in filled:
            pairs.append((value, y.viewed(y.dtype, value.shape, at)))
            at += value.nbytes
        convert_into(device, pairs)
        return y
    for value in filled:
        copy_part(
            device, value, ElementLayout.dense(value.shape), y, ElementLayout(value.shape, strides, at * strides[axis])
        )
        at += value.shape[axis]
    return y


@gpu_kernel("Concat", "ConcatV2")
def concat(op: KernelNode) -> Compute:
    device, axis_first = device_of(op.node), op.op == "Concat"

    def compute(*arguments: Any) -> GpuArray:
        values, axis = (arguments[1:], arguments[0]) if axis_first else (arguments[:-1], arguments[-1])
        return joined(device, values, concat_axis(values, axis))

    return compute


@gpu_kernel("Pack")
def pack(op: KernelNode) -> Compute:
    device, axis = device_of(op.node), op.attr("axis")

    def compute(*values: GpuArray) -> GpuArray:
        at = pack_axis(values, axis)
        first = values[0].shape
        return joined(device, [value.reshaped((*first[:at], 1, *first[at:])) for value in values], at)

    return compute


@gpu_kernel("ParallelConcat")
def parallel_concat(op: KernelNode) -> Compute:
    device, dims = device_of(op.node), op.attr("shape").as_list()

    def compute(*values: GpuArray) -> GpuArray:
        check_rows(values, dims)
        return joined(device, values, 0)

    return compute


def _parts(op: KernelNode, tensor: int) -> Compute:
    device, find = device_of(op.node), layouts(op, tensor)

    def compute(*arguments: Any) -> list[GpuArray]:
        x: GpuArray = arguments[tensor]
        return [part(device, x, layout) for layout in find(*arguments)]

    return compute


@gpu_kernel("Unpack", "SplitV")
def split_v(op: KernelNode) -> Compute:
    """Parts; those of the first axis share the memory of the whole."""
    return _parts(op, 0)


@gpu_kernel("Split")
def split(op: KernelNode) -> Compute:
    return _parts(op, 1)


@gpu_kernel("ConcatOffset")
def concat_offset(op: KernelNode) -> Compute:
    """Shapes are in host memory."""
    return cpu_compute(op)
