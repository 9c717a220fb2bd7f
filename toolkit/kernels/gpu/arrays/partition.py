"""DynamicPartition and DynamicStitch. How large the results are is in the numbers, which the host has to see."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.kernels.cpu.arrays.gather import check_indices, check_partitions, check_stitched
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.arrays.gather import gather_rows
from toolkit.kernels.gpu.arrays.scatter import scatter_rows
from toolkit.kernels.gpu.primitives.copying import part
from toolkit.kernels.gpu.primitives.layout import ElementLayout
from toolkit.kernels.gpu.registering import cpu_compute, gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.tensors import row_major


@gpu_kernel("DynamicPartition")
def dynamic_partition(op: KernelNode) -> Compute:
    """All rows are put in order at once; the partitions are parts of that."""
    device, count = device_of(op.node), op.attr("num_partitions")

    def compute(data: GpuArray, partitions: GpuArray) -> list[GpuArray]:
        check_partitions(data, partitions)
        ids = device.to_host(partitions).reshape(-1)
        check_indices(ids.reshape(partitions.shape), count, "partitions")
        rows = data.reshaped((ids.size, *data.shape[partitions.ndim :]))
        order = np.argsort(ids, kind="stable")
        sorted_rows = gather_rows(device, rows, device.to_device(order))
        strides = row_major(rows.shape)
        made: list[GpuArray] = []
        start = 0
        for size in np.bincount(ids, minlength=count).tolist():
            layout = ElementLayout((size, *rows.shape[1:]), strides, start * strides[0])
            made.append(part(device, sorted_rows, layout))
            start += size
        return made

    return compute


@gpu_kernel("DynamicStitch")
def dynamic_stitch(op: KernelNode) -> Compute:
    """Of slices with the same index the last one stays: the others get no place."""
    device, count = device_of(op.node), op.attr("N")

    def compute(*arguments: Any) -> GpuArray:
        indices, data = arguments[:count], arguments[count:]
        inner = check_stitched(indices, data)
        flat = [np.asarray(index).reshape(-1) for index in indices]
        places = np.concatenate(flat).astype(np.int64) if flat else np.zeros(0, np.int64)
        size = int(places.max()) + 1 if places.size else 0
        for index in indices:
            check_indices(np.asarray(index), size)
        owner = np.full(size, -1, np.int64)
        owner[places] = np.arange(len(places))  # of several the last one
        places[owner[places] != np.arange(len(places))] = -1
        y = device.zeros((size, *inner), data[0].dtype)
        start = 0
        for index, value in zip(flat, data, strict=True):
            if value.size:
                rows = device.to_device(places[start : start + len(index)])
                scatter_rows(device, y, value, rows, size, "update")
            start += len(index)
        return y

    return compute


@gpu_kernel("ParallelDynamicStitch")
def parallel_dynamic_stitch(op: KernelNode) -> Compute:
    """Everything is in host memory, as TensorFlow has it."""
    return cpu_compute(op)
