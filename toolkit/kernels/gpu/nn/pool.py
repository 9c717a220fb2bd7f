"""Max and average pools over two or three spatial axes, with their first and second gradients.

Padding never takes part. Among equal maxima the first in row-major order receives the gradient.
"""

from __future__ import annotations

import math

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cpu.nn.pool import PoolAttributes, vector_of_four
from toolkit.kernels.cpu.nn.window import Windows
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.nn import pools
from toolkit.kernels.cuda.nn.common import Geometry, dense, geometry
from toolkit.kernels.registry import FLOATING, Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_NARROW_3D = {dtypes.float16, dtypes.bfloat16, dtypes.float32}


class _Pool:
    """A pooling node: its attributes, and shapes worked out for its inputs."""

    def __init__(self, op: KernelNode, ksize: Array | None = None, strides: Array | None = None):
        if ksize is None or strides is None:
            self.of = PoolAttributes(op)
        else:
            self.of = PoolAttributes(op, vector_of_four(op, ksize), vector_of_four(op, strides))
        self.op = op
        self.device: CudaDevice = device_of(op.node)

    def last(self, x: GpuArray) -> tuple[int, ...]:
        """A shape as channels-last, its rank checked."""
        if x.ndim != self.of.rank:
            raise InvalidArgumentError(
                f"the input must be {self.of.rank}-dimensional, not of shape {list(x.shape)}", node=self.op.name
            )
        return self.of.layout.shape_last(x.shape)

    def shape(self, last: tuple[int, ...]) -> tuple[int, ...]:
        """Back from channels-last."""
        return (last[0], last[-1], *last[1:-1]) if self.of.layout.channels_first else last

    def laid(self, last: tuple[int, ...]) -> tuple[Windows, Geometry]:
        """The windows over an input's shape, channels last."""
        windows = self.of.windows(last)
        first = self.of.layout.channels_first
        return windows, geometry(windows, last[0], last[-1], last[-1], channels_first=first)

    def output(self, last: tuple[int, ...], windows: Windows) -> tuple[int, ...]:
        return self.shape((last[0], *windows.out, last[-1]))

    def over_depth(self, last: tuple[int, ...]) -> tuple[tuple[int, ...], Geometry]:
        """A window over channels alone: the output's shape, and channels as a spatial axis of windows.

        Raises:
            UnimplementedError: the window does not divide the depth.
        """
        depth, channels = self.of.depth, last[-1]
        if channels % depth:
            raise UnimplementedError(f"a depth window of {depth} must divide the depth {channels}", node=self.op.name)
        count, first = channels // depth, self.of.layout.channels_first
        positions = math.prod(last[1:-1])

        def strides(channels: int) -> tuple[int, ...]:
            batch, axis, channel = dense((positions,), channels, first)
            return (batch, 0, axis, channel, 0)

        geometry = Geometry(
            last[0], 1, (1, positions, channels), (1, 1, depth), (1, positions, count), (1, 1, depth), (1, 1, 1),
            (0, 0, 0), strides(channels), strides(count),
        )  # fmt: skip
        return self.shape((*last[:-1], count)), geometry

    def no_depth(self, what: str) -> None:
        """
        Raises:
            UnimplementedError: the window goes over channels.
        """
        if self.of.depth > 1:
            raise UnimplementedError(f"{what} is not supported", node=self.op.name)

    def taps(self, x: GpuArray, g: Geometry, shape: tuple[int, ...]) -> tuple[GpuArray, GpuArray]:
        """The maxima and which tap of its window each is."""
        best, taps = self.device.empty(shape, x.dtype), self.device.empty(shape, "int32")
        pools.over_outputs(self.device, pools.tap_kernel, g, x, best, taps, more=("",))
        return best, taps


def _by_inputs(op: KernelNode, tensors: int, of: str) -> Compute:
    """A kernel of V2, whose sizes and strides are inputs behind the tensors."""
    make = {"max": _max_pool, "gradient": _max_pool_grad, "second": _max_pool_grad_grad}[of]

    def compute(*given: GpuArray | Array) -> GpuArray:
        ksize, strides = given[tensors:]
        return make(_Pool(op, ksize, strides))(*given[:tensors])

    return compute


@kernel("MaxPool", types={"T": FLOATING}, device="GPU")
@kernel("MaxPool3D", types={"T": _NARROW_3D}, device="GPU")
def max_pool(op: KernelNode) -> Compute:
    return _max_pool(_Pool(op))


@kernel("MaxPoolV2", types={"T": FLOATING}, device="GPU")
def max_pool_v2(op: KernelNode) -> Compute:
    return _by_inputs(op, 1, "max")


def _max_pool(pool: _Pool) -> Compute:
    def compute(x: GpuArray) -> GpuArray:
        last = pool.last(x)
        windows, g = pool.laid(last)
        shape = pool.output(last, windows)
        if pool.of.depth > 1:
            shape, g = pool.over_depth(last)
        y = pool.device.empty(shape, x.dtype)
        pools.over_outputs(pool.device, pools.max_kernel, g, x, y)
        return y

    return compute


@kernel("MaxPoolGrad", types={"T": FLOATING}, device="GPU")
def max_pool_grad(op: KernelNode) -> Compute:
    return _max_pool_grad(_Pool(op))


def _max_pool_3d_grad(dtype: object) -> None:
    @kernel("MaxPool3DGrad", types={"T": [dtype], "TInput": [dtype]}, device="GPU")  # type: ignore[list-item]
    def max_pool_3d_grad(op: KernelNode) -> Compute:
        return _max_pool_grad(_Pool(op))


for _dtype in sorted(_NARROW_3D, key=lambda each: each.name):
    _max_pool_3d_grad(_dtype)


@kernel("MaxPoolGradV2", types={"T": FLOATING}, device="GPU")
def max_pool_grad_v2(op: KernelNode) -> Compute:
    return _by_inputs(op, 3, "gradient")


def _max_pool_grad(pool: _Pool) -> Compute:
    """Each output's gradient goes to the input that was its maximum."""

    def compute(x: GpuArray, y: GpuArray, dy: GpuArray) -> GpuArray:
        last, grads = pool.last(x), pool.last(dy)
        windows, g = pool.laid(last)
        pool.no_depth("the gradient of a depthwise max pool")
        pool.of.check_like_output("orig_output", pool.last(y), last[0], windows, last[-1])
        pool.of.check_like_output("grad", grads, last[0], windows, last[-1])
        dx = pool.device.empty(x.shape, dy.dtype)
        if pool.of.rank == 5:
            pools.over_inputs(pool.device, pools.near_gradient_kernel, g, x, y, dy, dx)
        elif dy.nbytes:
            _, taps = pool.taps(x, g, dy.shape)
            pools.over_inputs(pool.device, pools.max_gradient_kernel, g, dy, taps, dx)
        else:
            return pool.device.zeros(x.shape, dy.dtype)
        return dx

    return compute


@kernel("MaxPoolGradGrad", types={"T": FLOATING}, device="GPU")
@kernel("MaxPool3DGradGrad", types={"T": _NARROW_3D}, device="GPU")
def max_pool_grad_grad(op: KernelNode) -> Compute:
    return _max_pool_grad_grad(_Pool(op))


@kernel("MaxPoolGradGradV2", types={"T": FLOATING}, device="GPU")
def max_pool_grad_grad_v2(op: KernelNode) -> Compute:
    return _by_inputs(op, 3, "second")


def _max_pool_grad_grad(pool: _Pool) -> Compute:
    """The second gradient picks, for each output, the input's gradient at the maximum."""

    def compute(x: GpuArray, y: GpuArray, ddx: GpuArray) -> GpuArray:
        last, grads, outputs = pool.last(x), pool.last(ddx), pool.last(y)
        windows, g = pool.laid(last)
        pool.no_depth("the gradient of a depthwise max pool")
        pool.of.check_like_output("orig_output", outputs, last[0], windows, last[-1])
        if grads != last:
            raise InvalidArgumentError(
                f"grad must have the shape of orig_input, {list(last)} (channels last), not {list(grads)}",
                node=pool.op.name,
            )
        _, taps = pool.taps(x, g, y.shape)
        ddy = pool.device.empty(y.shape, ddx.dtype)
        pools.over_outputs(pool.device, pools.pick_kernel, g, ddx, taps, ddy)
        return ddy

    return compute


@kernel("MaxPoolWithArgmax", types={"T": FLOATING, "Targmax": [dtypes.int64]}, device="GPU")
def max_pool_with_argmax(op: KernelNode) -> Compute:
    """Maxima and their flat positions, in the whole tensor or (the default) within their example."""
    pool = _Pool(op)
    positions = "batch" if op.attr("include_batch_in_index") else "example"

    def compute(x: GpuArray) -> tuple[GpuArray, GpuArray]:
        last = pool.last(x)
        windows, g = pool.laid(last)
        require(x.nbytes > 0, f"tensor_in must not be empty, got shape {shape_text(x)}")
        shape = pool.output(last, windows)
        best, places = pool.device.empty(shape, x.dtype), pool.device.empty(shape, "int64")
        pools.over_outputs(pool.device, pools.tap_kernel, g, x, best, places, more=(positions,))
        return best, places

    return compute


# -- averages --------------------------------------------------------------------------------------------------


@kernel("AvgPool", types={"T": FLOATING}, device="GPU")
@kernel("AvgPool3D", types={"T": _NARROW_3D}, device="GPU")
def avg_pool(op: KernelNode) -> Compute:
    pool = _Pool(op)
    pool.no_depth("average pooling over depth")

    def compute(x: GpuArray) -> GpuArray:
        last = pool.last(x)
        windows, g = pool.laid(last)
        y = pool.device.empty(pool.output(last, windows), x.dtype)
        pools.over_outputs(pool.device, pools.average_kernel, g, x, y)
        return y

    return compute


@kernel("AvgPoolGrad", types={"T": FLOATING}, device="GPU")
@kernel("AvgPool3DGrad", types={"T": _NARROW_3D}, device="GPU")
def avg_pool_grad(op: KernelNode) -> Compute:
    pool = _Pool(op)
    pool.no_depth("average pooling over depth")

    def compute(sizes: Array, dy: GpuArray) -> GpuArray:
        if sizes.shape != (pool.of.rank,):
            raise InvalidArgumentError(
                f"orig_input_shape must be a vector of {pool.of.rank}, not of shape {list(sizes.shape)}", node=op.name
            )
        shape = tuple(int(v) for v in sizes)
        last, grads = pool.of.layout.shape_last(shape), pool.last(dy)
        windows, g = pool.laid(last)
        pool.of.check_like_output("grad", grads, last[0], windows, last[-1])
        if not dy.nbytes:
            return pool.device.zeros(shape, dy.dtype)
        dx = pool.device.empty(shape, dy.dtype)
        pools.over_inputs(pool.device, pools.average_gradient_kernel, g, dy, dx)
        return dx

    return compute
