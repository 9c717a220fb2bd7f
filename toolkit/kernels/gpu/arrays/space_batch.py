"""Blocks of pixels between the spatial axes and the batch, or the channels."""

from __future__ import annotations

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.arrays.pad import batch_blocks, block_sizes, check_blocks, depth_block
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.arrays.pad import padded
from toolkit.kernels.gpu.primitives.copying import part
from toolkit.kernels.gpu.primitives.layout import ElementLayout, layout_of, stand_in
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


def _moved(device: CudaDevice, x: GpuArray, split: list[int], order: list[int], shape: list[int]) -> GpuArray:
    """Axes taken apart, put in another order, and put together."""
    base = stand_in(split, x.dtype)
    return part(device, x, layout_of(base.transpose(order), base)).reshaped(tuple(shape))


def _to_batch(device: CudaDevice, x: GpuArray, block: Array, paddings: Array) -> GpuArray:
    sizes, pads = block_sizes(x, block, paddings, "paddings")
    count = len(sizes)
    pairs = [(0, 0), *((int(a), int(b)) for a, b in pads), *[(0, 0)] * (x.ndim - 1 - count)]
    check_blocks([size + a + b for size, (a, b) in zip(x.shape, pairs, strict=True)], sizes)
    wide = padded(device, x, pairs, np.zeros((), x.dtype))
    split = [wide.shape[0]]
    for size, by in zip(wide.shape[1:], sizes, strict=False):
        split += [size // by, by]
    rest = list(wide.shape[1 + count :])
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count + 1, 2),
             *range(2 * count + 1, 2 * count + 1 + len(rest))]  # fmt: skip
    shape = [wide.shape[0] * int(np.prod(sizes, dtype=int)), *split[1::2], *rest]
    return _moved(device, wide, [*split, *rest], order, shape)


def _to_space(device: CudaDevice, x: GpuArray, block: Array, crops: Array) -> GpuArray:
    sizes, cuts = block_sizes(x, block, crops, "crops")
    batch = batch_blocks(x, sizes)
    count, rest = len(sizes), list(x.shape[1 + len(sizes) :])
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    spatial = [s * b for s, b in zip(x.shape[1 : 1 + count], sizes, strict=True)]
    pairs = [(int(a), int(b)) for a, b in cuts]
    for axis, (before, after) in enumerate(pairs):
        require(
            before + after <= spatial[axis],
            f"cropped_shape[{axis}]={spatial[axis] - before - after} must be non-negative",
        )
    whole = _moved(device, x, [*sizes, batch, *x.shape[1:]], order, [batch, *spatial, *rest])
    base = stand_in(whole.shape, whole.dtype)
    cut = tuple(slice(before, size - after) for size, (before, after) in zip(spatial, pairs, strict=True))
    layout: ElementLayout = layout_of(base[(slice(None), *cut)], base)
    return part(device, whole, layout)


@gpu_kernel("SpaceToBatchND", "SpaceToBatch")
def space_to_batch(op: KernelNode) -> Compute:
    return _blocks(op, _to_batch)


@gpu_kernel("BatchToSpaceND", "BatchToSpace")
def batch_to_space(op: KernelNode) -> Compute:
    return _blocks(op, _to_space)


def _blocks(op: KernelNode, function: Compute) -> Compute:
    device = device_of(op.node)
    if op.op.endswith("ND"):

        def compute_nd(x: GpuArray, block: Array, pairs: Array) -> GpuArray:
            return function(device, x, block, pairs)

        return compute_nd
    size = op.attr("block_size")

    def compute(x: GpuArray, pairs: Array) -> GpuArray:
        require(x.ndim == 4, f"Input should have rank 4, got shape {shape_text(x)}")
        return function(device, x, np.array([size, size]), pairs)

    return compute


@gpu_kernel("SpaceToDepth", "DepthToSpace")
def space_and_depth(op: KernelNode) -> Compute:
    device, block, layout = device_of(op.node), op.attr("block_size"), op.text("data_format")
    to_depth = op.op == "SpaceToDepth"
    if layout not in ("NHWC", "NCHW"):
        raise InvalidArgumentError(f"Only NHWC and NCHW are supported by {op.op}, not {layout}")
    first = layout == "NCHW"

    def compute(x: GpuArray) -> GpuArray:
        require(x.ndim == 4, f"Input rank should be: 4 instead of: {x.ndim}")
        n, h, w, c = (x.shape[0], *x.shape[2:], x.shape[1]) if first else x.shape
        depth_block(h, w, c, block, to_depth)
        if to_depth:
            h, w, depth = h // block, w // block, c * block * block
            if first:
                return _moved(device, x, [n, c, h, block, w, block], [0, 3, 5, 1, 2, 4], [n, depth, h, w])
            return _moved(device, x, [n, h, block, w, block, c], [0, 1, 3, 2, 4, 5], [n, h, w, depth])
        depth = c // (block * block)
        if first:
            shape = [n, depth, h * block, w * block]
            return _moved(device, x, [n, block, block, depth, h, w], [0, 3, 4, 1, 5, 2], shape)
        shape = [n, h * block, w * block, depth]
        return _moved(device, x, [n, h, w, block, block, depth], [0, 1, 3, 2, 4, 5], shape)

    return compute
