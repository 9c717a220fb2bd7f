"""Convolutions and products fused with what follows them, as graph optimizers leave them.

`fused_ops` names it in order: BiasAdd or FusedBatchNorm, Add, and an activation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cuda.convolving import Fused, convolve
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.filters import Filters
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.nn.batch_norm import launch_affine
from toolkit.kernels.cuda.nn.channels import activation, launch_epilogue
from toolkit.kernels.cuda.products import multiply
from toolkit.kernels.gpu.nn.conv import is_constant, layers
from toolkit.kernels.registry import Compute, KernelNode, kernel


class _Epilogue:
    """What follows a node's convolution or product.

    Raises:
        UnimplementedError: there is no such activation.
        InvalidArgumentError: the number of arguments is another one than it needs.
    """

    def __init__(self, op: KernelNode):
        names = [name.decode() for name in op.attr("fused_ops")]
        self._epsilon = float(np.float32(op.attr("epsilon")))
        self._first = names.pop(0) if names and names[0] in ("BiasAdd", "FusedBatchNorm") else None
        self._adds = bool(names) and names[0] == "Add"
        rest = names[1:] if self._adds else names
        self.name = rest[0] if rest else "Identity"
        leaky = self.name in ("LeakyRelu", "_MklLeakyRelu")
        self.slope = float(np.float32(op.attr("leakyrelu_alpha"))) if leaky else 0.0
        unknown = activation(self.name, self.slope) is None or (self.name == "GeluExact" and _is_double(op))
        if len(rest) > 1 or unknown:
            raise UnimplementedError(f"Fusion is not implemented: {op.attr('fused_ops')}", node=op.name)
        wanted = {None: 0, "BiasAdd": 1, "FusedBatchNorm": 4}[self._first] + self._adds
        given = op.attr("num_args")
        if given != wanted:
            raise InvalidArgumentError(f"{op.attr('fused_ops')} needs {wanted} arguments, not {given}", node=op.name)

    def fused(self, device: CudaDevice, args: Sequence[GpuArray], shape: Sequence[int], channels: int) -> Fused:
        """What follows, given the result's shape."""
        vectors: Sequence[GpuArray] = args[: {None: 0, "BiasAdd": 1, "FusedBatchNorm": 4}[self._first]]
        for value in vectors:
            require(value.shape == (channels,), f"{shape_text(value)} is not one value for each of {channels}")
        if self._first == "FusedBatchNorm":
            scale, offset, mean, variance = vectors
            vectors = launch_affine(device, scale, offset, mean, variance, self._epsilon)
        added = None
        if self._adds:
            added = args[-1]
            require(added.shape == tuple(shape), f"{shape_text(added)} cannot be added to {shape_text(shape)}")
        return Fused(vectors, added, self.name, self.slope)


def _is_double(op: KernelNode) -> bool:
    return op.output_types[0] == dtypes.float64


@kernel("_FusedConv2D", types={"T": [dtypes.float16, dtypes.float32, dtypes.float64]}, device="GPU")
def fused_conv2d(op: KernelNode) -> Compute:
    device = device_of(op.node)
    if op.text("filter_format") != "HWIO":
        raise UnimplementedError(f"filters in {op.text('filter_format')} are not implemented", node=op.name)
    epilogue, layer_for, filters = _Epilogue(op), layers(op), Filters(is_constant=is_constant(op, 1))

    def compute(x: GpuArray, w: GpuArray, *args: GpuArray) -> GpuArray:
        layer = layer_for(x, w)
        given = args[: op.attr("num_args")]
        fused = epilogue.fused(device, given, layer.y_shape, layer.filters)
        return convolve(device, layer, x, w, filters, fused)

    return compute


@kernel("_FusedMatMul", types={"T": [dtypes.float16, dtypes.bfloat16, dtypes.float32]}, device="GPU")
def fused_matmul(op: KernelNode) -> Compute:
    device = device_of(op.node)
    epilogue = _Epilogue(op)
    turned_a, turned_b = bool(op.attr("transpose_a")), bool(op.attr("transpose_b"))
    turns = ("T" if turned_a else "N", "T" if turned_b else "N")

    def compute(a: GpuArray, b: GpuArray, *args: GpuArray) -> GpuArray:
        require(a.ndim == 2, f"In[0] is not a matrix: {shape_text(a)}")
        require(b.ndim == 2, f"In[1] is not a matrix: {shape_text(b)}")
        m, k = a.shape[::-1] if turned_a else a.shape
        depth, n = b.shape[::-1] if turned_b else b.shape
        require(k == depth, f"Matrix size-incompatible: In[0]: {shape_text(a)}, In[1]: {shape_text(b)}")
        fused = epilogue.fused(device, args, (m, n), n)
        if not m * n:
            return device.empty((m, n), a.dtype)
        if not k:
            out, bias, name = device.zeros((m, n), a.dtype), None, "Identity"
        else:
            # the library's epilogues, where nothing else is in between
            is_simple = fused.added is None and len(fused.vectors) == 1 and not fused.slope
            out = device.empty((m, n), a.dtype)
            bias, name = (fused.vectors[0], fused.name) if is_simple else (None, "Identity")
            multiply(device, a, b, out, (m, n, k), turns, bias=bias, name=name)
        if bias is None and not fused.is_nothing:
            launch_epilogue(
                device, out, out, n, 1, vectors=fused.vectors, added=fused.added, name=fused.name, slope=fused.slope
            )
        return out

    return compute
