"""MaxPoolGradWithArgmax: gradients are added up at the places that a pool noted, in the order of the pool's outputs."""

from __future__ import annotations

import functools

import numpy as np

from toolkit.graph import dtypes
from toolkit.kernels.cpu.nn.pool import PoolAttributes
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
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


@kernel("MaxPoolGradWithArgmax", types={"T": FLOATING, "Targmax": [dtypes.int64]}, device="GPU", label="simt")
def max_pool_grad_with_argmax(op: KernelNode) -> Compute:
    """Places outside the tensor have no gradient."""
    device, pool, is_whole = device_of(op.node), PoolAttributes(op), bool(op.attr("include_batch_in_index"))

    def compute(x: GpuArray, dy: GpuArray, argmax: GpuArray) -> GpuArray:
        windows = pool.windows(x.shape)
        for name, given in (("grad", dy), ("argmax", argmax)):
            pool.check_like_output(name, given.shape, x.shape[0], windows, x.shape[-1])
        places = argmax
        if not is_whole and argmax.size:
            places = device.empty(argmax.shape, np.dtype(np.int64))
            sizes = x.size // x.shape[0], argmax.size // x.shape[0]
            device.launch(place_kernel(), blocks_for(places.size), argmax, places, *sizes, places.size)
        places = places.reshaped((places.size,))
        return by_ids(device, "UnsortedSegmentSum", dy.reshaped((dy.size,)), places, x.size).reshaped(x.shape)

    return compute
