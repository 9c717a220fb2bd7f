"""Gradients by the places that a pool noted: MaxPoolGradWithArgmax adds them up there, in the order of the pool's
outputs; MaxPoolGradGradWithArgmax takes those that are there.
"""

from __future__ import annotations

import functools

import numpy as np

from toolkit.graph import dtypes
from toolkit.kernels.cpu.nn.pool import PoolAttributes
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.arrays.gather import gather_rows
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for
from toolkit.kernels.gpu.reductions.segment import by_ids
from toolkit.kernels.registry import FLOATING, Compute, KernelNode, kernel


@functools.cache
def place_kernel() -> SimtKernel:
    """Places in their examples become those in the whole tensor: takes places, y, numbers and outputs of an example,
    count."""
    k = KernelBuilder("places_of_examples", BLOCK)
    places, y = k.buffer("places", "i64"), k.buffer("y", "i64", written=True)
    numbers, outputs, count = (k.scalar(name, "i64") for name in ("numbers", "outputs", "count"))
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        k.store(y, i, k.add(k.load(places, i), k.mul(k.div(i, outputs), numbers)))
    return k.finish()


def _whole_places(device: CudaDevice, argmax: GpuArray, x: GpuArray) -> GpuArray:
    """Places in the whole tensor, of those in its examples."""
    places = device.empty(argmax.shape, np.dtype(np.int64))
    if argmax.size:
        sizes = x.size // x.shape[0], argmax.size // x.shape[0]
        device.launch(place_kernel(), blocks_for(places.size), argmax, places, *sizes, places.size)
    return places


@kernel("MaxPoolGradWithArgmax", types={"T": FLOATING, "Targmax": [dtypes.int64]}, device="GPU", label="simt")
def max_pool_grad_with_argmax(op: KernelNode) -> Compute:
    """Places outside the tensor have no gradient."""
    device, pool, is_whole = device_of(op.node), PoolAttributes(op), bool(op.attr("include_batch_in_index"))

    def compute(x: GpuArray, dy: GpuArray, argmax: GpuArray) -> GpuArray:
        windows = pool.windows(x.shape)
        for name, given in (("grad", dy), ("argmax", argmax)):
            pool.check_like_output(name, given.shape, x.shape[0], windows, x.shape[-1])
        places = _whole_places(device, argmax, x) if not is_whole else argmax
        places = places.reshaped((places.size,))
        return by_ids(device, "UnsortedSegmentSum", dy.reshaped((dy.size,)), places, x.size).reshaped(x.shape)

    return compute


@kernel("MaxPoolGradGradWithArgmax", types={"T": FLOATING, "Targmax": [dtypes.int64]}, device="GPU", label="simt")
def max_pool_grad_grad_with_argmax(op: KernelNode) -> Compute:
    """At places outside the tensor it is 0."""
    device, pool, is_whole = device_of(op.node), PoolAttributes(op), bool(op.attr("include_batch_in_index"))

    def compute(x: GpuArray, grad: GpuArray, argmax: GpuArray) -> GpuArray:
        pool.check_second(x, grad, argmax)
        places = _whole_places(device, argmax, x) if not is_whole else argmax
        return gather_rows(device, grad.reshaped((grad.size,)), places)

    return compute
