"""ExtractImagePatches and ExtractVolumePatches: windows overlap in memory, so that laying them out is one copy."""

from __future__ import annotations

import math

import numpy as np

from toolkit.kernels.cpu.common import require_rank
from toolkit.kernels.cpu.images.patches import patch_windows
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.arrays.pad import padded
from toolkit.kernels.gpu.primitives.copying import copy_part, part
from toolkit.kernels.gpu.primitives.layout import ElementLayout, layout_of, stand_in
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode


@gpu_kernel("ExtractImagePatches", "ExtractVolumePatches")
def extract_patches(op: KernelNode) -> Compute:
    """(N, spatial..., C) to (N, out..., window x C): windows in row-major order, channels innermost."""
    device = device_of(op.node)
    rank, window, find = patch_windows(op)

    def compute(x: GpuArray) -> GpuArray:
        require_rank(x, rank, "input")
        covered, windows = find(x.shape[1:-1])
        shape = (x.shape[0], *windows.out, math.prod(window) * x.shape[-1])
        y = device.empty(shape, x.dtype)
        if not y.size:
            return y
        base = stand_in(x.shape, f"V{x.dtype.itemsize}")
        wide = part(device, x, layout_of(base[covered], base))
        wide = padded(device, wide, [(0, 0), *windows.pads, (0, 0)], np.zeros((), x.dtype))
        base = stand_in(wide.shape, f"V{x.dtype.itemsize}")
        view = layout_of(windows.view(base), base)
        copy_part(device, wide, view, y, ElementLayout.dense(view.shape))
        return y

    return compute
