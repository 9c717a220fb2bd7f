"""Cast and Bitcast."""

from __future__ import annotations

from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.elementwise.node import ElementwiseLaunches, number_kernel
from toolkit.kernels.registry import Compute, KernelNode


@number_kernel("Cast")
def cast(op: KernelNode) -> Compute:
    """A tensor of the type already is handed on."""
    run = ElementwiseLaunches.of(op).run
    is_same = op.input_types[0] == op.output_types[0]

    def compute(x: GpuArray) -> GpuArray:
        return x if is_same else run(x.shape, x)

    return compute


@number_kernel("Bitcast")
def bitcast(op: KernelNode) -> Compute:
    """The same memory as another type; a last axis appears or goes when the sizes differ.

    Raises:
        InvalidArgumentError: the last axis is not what makes one element.
    """
    device, dtype = device_of(op.node), op.output_types[0].numpy

    def compute(x: GpuArray) -> GpuArray:
        have, want = x.dtype.itemsize, dtype.itemsize
        shape = x.shape
        if have > want:
            shape = (*shape, have // want)
        elif have < want:
            require(
                shape and shape[-1] == want // have,
                f"Cannot bitcast from {op.input_types[0]} to {op.output_types[0]}: the last dimension of "
                f"{shape_text(x)} must be {want // have}",
            )
            shape = shape[:-1]
        if not x.nbytes:
            return device.empty(shape, dtype)
        whole = device.copied(x) if x.address % want else x
        return whole.viewed(dtype, shape)

    return compute
