"""Joining and splitting along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.kernels.cpu.arrays.join import check_rows, concat_axis, pack_axis
from toolkit.kernels.cuda.conversions import convert_into
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.elementwise import nests
from toolkit.kernels.gpu.elementwise.nests import NestOperand
from toolkit.kernels.gpu.primitives.copying import ALIGNED, copy_part, part
from toolkit.kernels.gpu.primitives.layout import ElementLayout
from toolkit.kernels.gpu.registering import cpu_compute, gpu_kernel, layouts
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.tensors import BF16, F16, F32, row_major

#: parts from which on one kernel copies them all: one more for each number of parts has to be compiled, which saves
#: few launches below
_MANY = 8
#: parts of one shape that one kernel copies, whatever axis they lie along: fewer save one launch, and of more each
#: takes registers for where it is
_FEWEST, _MOST = 3, 16
#: the integers that elements are copied as, by their bytes
_WORDS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
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
    places: list[ElementLayout] = []
    for value in filled:
        places.append(ElementLayout(value.shape, strides, at * strides[axis]))
        at += value.shape[axis]
    whole = [ElementLayout.dense(value.shape) for value in filled]
    if _copied_together(device, list(zip(filled, whole, strict=True)), [(y, place) for place in places]):
        return y
    for value, source, place in zip(filled, whole, places, strict=True):
        copy_part(device, value, source, y, place)
    return y


def _split(device: CudaDevice, x: GpuArray, layouts: Sequence[ElementLayout]) -> list[GpuArray]:
    """Parts of a tensor as tensors."""
    if not any(layout.is_dense for layout in layouts) and x.nbytes:
        made = [device.empty(layout.shape, x.dtype) for layout in layouts]
        targets = [(each, ElementLayout.dense(each.shape)) for each in made]
        if _copied_together(device, [(x, layout) for layout in layouts], targets):
            return made
    return [part(device, x, layout) for layout in layouts]


def _copied_together(
    device: CudaDevice, sources: Sequence[tuple[GpuArray, ElementLayout]],
    targets: Sequence[tuple[GpuArray, ElementLayout]],
) -> bool:  # fmt: skip
    """Copy several parts of one shape by one kernel; whether that was done.

    Args:
        sources: tensors, with where in them is what is copied.
        targets: likewise where that is put.
    """
    shape, word = sources[0][1].shape, _WORDS.get(sources[0][0].dtype.itemsize)
    if word is None or not _FEWEST <= len(sources) <= _MOST or 0 in shape:
        return False
    if any(layout.shape != shape for _, layout in sources):
        return False
    operands = [NestOperand(word, layout.strides) for _, layout in sources]
    width = sources[0][0].dtype.itemsize
    is_aligned = not any((array.address + layout.first * width) % ALIGNED for array, layout in (*sources, *targets))
    found = nests.fused([], operands, range(len(sources)), shape, aligned=is_aligned,
                        placed=[layout.strides for _, layout in targets])  # fmt: skip
    device.launch(found.kernel, found.blocks, *(_behind(*each) for each in (*sources, *targets)), *found.numbers)
    return True


def _behind(array: GpuArray, layout: ElementLayout) -> GpuArray:
    """The memory of a tensor from the first element of a part on, as integers."""
    word = _WORDS[array.dtype.itemsize]
    return array.viewed(word, (array.size - layout.first,), layout.first * array.dtype.itemsize)


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
        return _split(device, x, find(*arguments))

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
