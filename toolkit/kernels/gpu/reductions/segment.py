"""Reductions over segments: sorted, unsorted, and of rows picked by index (sparse), with gradients.

As TensorFlow's on GPUs, they do not look whether ids are in order or in range: rows whose id or index is out of range
are left out. Sums are the same bits each time, since nothing is added atomically.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toolkit.kernels.cpu.common import require, require_scalar, require_vector, shape_text
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, SimtKernel
from toolkit.kernels.gpu.arrays.sort_kernels import BLOCK
from toolkit.kernels.gpu.primitives.number_types import number_of, real_of
from toolkit.kernels.gpu.reductions.segment_kernels import (
    SegmentForm,
    last_of,
    looked_up,
    reduce_segments,
    segment_offsets,
    sorted_ids,
)
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


def _form(op: str, name: str) -> SegmentForm:
    """What an op computes: TensorFlow's identities, and what it has for segments without rows."""
    number = number_of(name)
    kind = op.removeprefix("Unsorted").removeprefix("Segment")
    unsorted = op.startswith("Unsorted")
    match kind:
        case "Prod":
            return SegmentForm("prod", name, 1, 1)
        case "Max":
            lowest = number.finite(-1)
            return SegmentForm("max", name, lowest if unsorted else number.lowest(), lowest if unsorted else 0)
        case "Min":
            highest = number.finite(1)
            return SegmentForm("min", name, highest if unsorted else number.highest(), highest if unsorted else 0)
        case "Mean":
            return SegmentForm("sum", name, 0, 0, "count")
        case _:
            return SegmentForm("sum", name, 0, 0)


def _columns(data: GpuArray, rank: int) -> int:
    """Numbers of a row, where the first `rank` dimensions are rows; complex numbers are two."""
    real: Any = real_of(data.dtype)
    found = data.dtype.itemsize // real.itemsize
    for size in data.shape[rank:]:
        found *= size
    return found


@gpu_kernel("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin")
def unsorted_segment(op: KernelNode) -> Compute:
    """Rows with an id below 0, or beyond the segments, are left out."""
    device = device_of(op.node)

    def compute(data: GpuArray, ids: GpuArray, count_input: Array) -> GpuArray:
        require_scalar(count_input, "num_segments")
        count = int(count_input)
        require(count >= 0, f"Input num_segments == {count} must not be negative.")
        require(
            data.shape[: ids.ndim] == ids.shape,
            f"data.shape = {shape_text(data)} does not start with segment_ids.shape = {shape_text(ids)}",
        )
        return by_ids(device, op.op, data, ids, count)

    return compute


def by_ids(device: CudaDevice, op: str, data: GpuArray, ids: GpuArray, count: int) -> GpuArray:
    """What an op for unsorted segments, such as UnsortedSegmentSum, makes of rows with ids.

    Args:
        count: of segments.
    """
    made = device.empty((count, *data.shape[ids.ndim :]), data.dtype)
    if made.nbytes:
        keys, places = sorted_ids(device, ids.reshaped((ids.size,)))
        form = _with_rows(_form(op, real_of(data.dtype).name), "i32")
        offsets = segment_offsets(device, keys, count)
        reduce_segments(device, form, data, offsets, made, _columns(data, ids.ndim), places)
    return made


def _with_rows(form: SegmentForm, rows: str, divided: str = "", *, weighted: bool = False) -> SegmentForm:
    return SegmentForm(form.how, form.name, form.start, form.empty, divided, rows, weighted)


@gpu_kernel("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin")
def segment(op: KernelNode) -> Compute:
    """The result has a row for each id up to the last, which is asked of the GPU."""
    device = device_of(op.node)

    def compute(data: GpuArray, ids: GpuArray) -> GpuArray:
        require_vector(ids, "segment_ids")
        require(data.ndim >= 1, "data must be at least rank 1")
        require(
            ids.size == data.shape[0],
            f"segment_ids should be the same size as dimension 0 of input: {ids.size} vs. {shape_text(data)}",
        )
        count = max(0, last_of(device, ids) + 1) if ids.size else 0
        made = device.empty((count, *data.shape[1:]), data.dtype)
        offsets = segment_offsets(device, ids, count)
        reduce_segments(device, _form(op.op, data.dtype.name), data, offsets, made, _columns(data, 1))
        return made

    return compute


# -- sparse ----------------------------------------------------------------------------------------------

_DIVIDED = {"Sum": "", "Mean": "count", "SqrtN": "root"}


@gpu_kernel(
    "SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN",
    "SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments",
)  # fmt: skip
def sparse_segment(op: KernelNode) -> Compute:
    """Segments of the rows data[indices]; a mean divides by the count, sqrt_n by its root."""
    device = device_of(op.node)
    kind = op.op.removeprefix("SparseSegment").removesuffix("WithNumSegments")

    def compute(data: GpuArray, indices: GpuArray, ids: GpuArray, *counts: Array) -> GpuArray:
        require_vector(indices, "indices")
        require_vector(ids, "segment_ids")
        require(data.ndim >= 1, "data must be at least rank 1")
        require(indices.size == ids.size, "segment_ids and indices should have same size.")
        if counts:
            require_scalar(counts[0], "num_segments")
            count = int(counts[0])
            require(count >= 0, f"num_segments must not be negative, got {count}")
        else:
            count = max(0, last_of(device, ids) + 1) if ids.size else 0
        made = device.empty((count, *data.shape[1:]), data.dtype)
        form = _with_rows(_form("Sum", data.dtype.name), TYPES[indices.dtype.name], _DIVIDED[kind])
        reduce_segments(device, form, data, segment_offsets(device, ids, count), made, _columns(data, 1), indices)
        return made

    return compute


def _check_gradient(grad: GpuArray, indices: GpuArray, ids: GpuArray, rows: Array, rows_name: str) -> None:
    require_scalar(rows, rows_name)
    require_vector(indices, "indices")
    require_vector(ids, "segment_ids")
    require(grad.ndim >= 1, "grad must be at least a vector, got a scalar")
    require(indices.size == ids.size, "segment_ids and indices should have same size.")
    require(int(rows) >= 0, f"{rows_name} must not be negative, got {int(rows)}")


@functools.cache
def _counts(name: str) -> SimtKernel:
    """How often each id occurs, from 0. Scalars: ids, segments."""
    k = KernelBuilder(f"segment_counts_{name}", BLOCK)
    ids, counts = k.buffer("ids", number_of(name).memory), k.buffer("counts", "i32", written=True)
    count, segments = k.scalar("count", "i64"), k.scalar("segments", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        segment_id = k.convert(k.load(ids, i), "i64")
        with k.when(k.both(k.compare("sge", segment_id, k.number(0, "i64")), k.compare("slt", segment_id, segments))):
            k.atomic("add", counts, segment_id, k.number(1, "i32"))
    return k.finish()


@functools.cache
def _weights(compute: str, kind: str) -> SimtKernel:
    """1 over the counts, at least 1, or over their roots. Scalars: how many."""
    k = KernelBuilder(f"segment_weights_{compute}_{kind}", BLOCK)
    counts, made = k.buffer("counts", "i32"), k.buffer("made", compute, written=True)
    count, i = k.scalar("count", "i64"), k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        found = k.load(counts, i)
        one = k.number(1, "i32")
        size = k.convert(k.select(k.compare("sgt", found, one), found, one), compute)
        k.store(made, i, k.div(k.number(1.0, compute), k.intrinsic("sqrt", size) if kind == "SqrtN" else size))
    return k.finish()


def _gradient(
    device: CudaDevice, kind: str, grad: GpuArray, ids: GpuArray, places: GpuArray, offsets: GpuArray, made: GpuArray
) -> None:
    """Rows of the gradient, by `offsets` of the sorted indices, of which `places` says where they came from."""
    number = number_of(grad.dtype)
    rows = looked_up(device, ids, places)
    weights: GpuArray | None = None
    if kind != "Sum":
        segments = grad.shape[0]
        counts = device.zeros((segments,), np.int32)
        device.launch(_counts(ids.dtype.name), -(-ids.size // BLOCK), ids, counts, ids.size, segments)
        weights = device.empty((segments,), np.float64 if number.compute == "double" else np.float32)
        device.launch(_weights(number.compute, kind), -(-segments // BLOCK), counts, weights, segments)
    form = _with_rows(_form("Sum", number.name), TYPES[ids.dtype.name], weighted=weights is not None)
    reduce_segments(device, form, grad, offsets, made, _columns(grad, 1), rows, weights)


@gpu_kernel("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")
def sparse_segment_grad(op: KernelNode) -> Compute:
    """Row indices[i] of the result is the sum of grad[ids[i]], weighted as the forward op does."""
    device = device_of(op.node)
    kind = op.op.removeprefix("SparseSegment").removesuffix("Grad")

    def compute(grad: GpuArray, indices: GpuArray, ids: GpuArray, rows: Array) -> GpuArray:
        _check_gradient(grad, indices, ids, rows, "output_dim0")
        count = int(rows)
        made = device.empty((count, *grad.shape[1:]), grad.dtype)
        if not made.nbytes:
            return made
        keys, places = sorted_ids(device, indices)
        _gradient(device, kind, grad, ids, places, segment_offsets(device, keys, count), made)
        return made

    return compute


@gpu_kernel("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2")
def sparse_segment_grad_v2(op: KernelNode) -> Compute:
    """Gradients of the rows that were used only, and which rows those are, in rising order."""
    from toolkit.kernels.gpu.arrays.unique import run_starts

    device = device_of(op.node)
    kind = op.op.removeprefix("SparseSegment").removesuffix("GradV2")

    def compute(grad: GpuArray, indices: GpuArray, ids: GpuArray, rows: Array) -> tuple[GpuArray, GpuArray]:
        _check_gradient(grad, indices, ids, rows, "dense_output_dim0")
        if not int(rows) or not indices.size:
            return device.empty((0, *grad.shape[1:]), grad.dtype), device.empty((0,), indices.dtype)
        keys, places = sorted_ids(device, indices)
        used, offsets = run_starts(device, keys)
        made = device.empty((used.size, *grad.shape[1:]), grad.dtype)
        _gradient(device, kind, grad, ids, places, offsets, made)
        return made, used

    return compute
