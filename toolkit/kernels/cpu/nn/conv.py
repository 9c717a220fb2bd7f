"""Convolutions: Conv2D, Conv3D, Conv, depthwise, and their gradients.

Definitions: y[n, p, f] = sum over taps t and channels c of x[n, p * stride + t * dilation - pad, c] w[t, c, f].
float16 and bfloat16 are accumulated in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.nn import conv_math as math
from toolkit.kernels.cpu.nn.window import Layout, Windows, WindowSpec, widen, window_spec
from toolkit.kernels.registry import FLOATING, Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_FLOATING_AND_INT32 = FLOATING | {dtypes.int32}


def rank_of(op: KernelNode) -> int:
    return 5 if "3D" in op.op else 4


def default_layout(op: KernelNode) -> str:
    return "NDHWC" if "3D" in op.op else "NHWC"


def vector_of_sizes(op: KernelNode, value: Array, name: str) -> tuple[int, ...]:
    """An input that holds the sizes of a tensor."""
    if value.ndim != 1:
        raise InvalidArgumentError(f"{name} must be a vector of sizes, not of shape {list(value.shape)}", node=op.name)
    return tuple(int(v) for v in value)


def conv_windows(op: KernelNode, spec: WindowSpec, x_shape: Sequence[int], w_shape: Sequence[int]) -> Windows:
    """Check a convolution's shapes (channels-last) and lay out its windows."""
    rank = len(spec.strides) + 2
    if len(x_shape) != rank:
        raise InvalidArgumentError(f"input must be {rank}-dimensional, not of shape {list(x_shape)}", node=op.name)
    if len(w_shape) != rank:
        raise InvalidArgumentError(f"filter must be {rank}-dimensional, not of shape {list(w_shape)}", node=op.name)
    if 0 in w_shape:
        raise InvalidArgumentError("filter must not have zero elements (all dimensions must be non-zero)", node=op.name)
    channels, per_group, filters = x_shape[-1], w_shape[-2], w_shape[-1]
    if per_group <= 0 or channels % per_group:
        raise InvalidArgumentError(
            f"input depth must be evenly divisible by filter depth: {channels} vs {per_group}", node=op.name
        )
    groups = channels // per_group
    if groups == 0 or filters % groups:
        raise InvalidArgumentError(
            f"the number of filters, {filters}, must be a multiple of the number of groups, {groups}", node=op.name
        )
    return spec.over(x_shape[1:-1], w_shape[:-2])


def check_gradient(op: KernelNode, shape: Sequence[int], windows: Windows, batch: int, filters: int) -> None:
    """Check the shape (channels last) of an output's gradient."""
    expected = (batch, *windows.out, filters)
    if tuple(shape) != expected:
        raise InvalidArgumentError(
            f"out_backprop must have shape {list(expected)} (channels last) for this input and filter, "
            f"not {list(shape)}",
            node=op.name,
        )


@kernel("Conv2D", types={"T": _FLOATING_AND_INT32})
@kernel("Conv3D", types={"T": FLOATING})
def conv(op: KernelNode) -> Compute:
    layout = Layout.of(op, default_layout(op))
    spec = window_spec(op, layout, rank=rank_of(op))

    def compute(x: Array, w: Array) -> Array:
        if x.ndim != rank_of(op):
            raise InvalidArgumentError(f"input must be {rank_of(op)}-dimensional, not {list(x.shape)}", node=op.name)
        last = layout.last(x)
        windows = conv_windows(op, spec, last.shape, w.shape)
        y = math.forward(widen(last), widen(w), windows)
        return layout.restore(y.astype(x.dtype, copy=False))

    return compute


@kernel("Conv", types={"T": _FLOATING_AND_INT32})
def conv_any(op: KernelNode) -> Compute:
    """Conv of one to three spatial axes, any number of batch axes; strides are per dimension of one example."""
    layout = Layout.of(op, "CHANNELS_LAST")
    batch_dims: int = op.attr("batch_dims")
    groups: int = op.attr("groups")

    def compute(x: Array, w: Array) -> Array:
        rank = w.ndim
        if not 3 <= rank <= 5:
            raise InvalidArgumentError(
                f"filter must have one to three spatial dimensions, not shape {list(w.shape)}", node=op.name
            )
        if x.ndim != batch_dims + rank - 1:
            raise InvalidArgumentError(
                f"input must have {batch_dims + rank - 1} dimensions for this filter and batch_dims, not {x.ndim}",
                node=op.name,
            )
        spec = window_spec(op, layout, rank=rank)
        lead = x.shape[:batch_dims]
        last = layout.last(x.reshape(-1, *x.shape[batch_dims:]))
        if w.shape[-2] * groups != last.shape[-1]:
            raise InvalidArgumentError(
                f"filter depth {w.shape[-2]} times groups {groups} must be the input depth {last.shape[-1]}",
                node=op.name,
            )
        windows = conv_windows(op, spec, last.shape, w.shape)
        y = layout.restore(math.forward(widen(last), widen(w), windows).astype(x.dtype, copy=False))
        return y.reshape(*lead, *y.shape[1:])

    return compute


@kernel("Conv2DBackpropInput", "Conv2DBackpropInputV2", types={"T": _FLOATING_AND_INT32})
@kernel("Conv3DBackpropInput", types={"T": FLOATING})
@kernel("Conv3DBackpropInputV2", types={"T": FLOATING})
def conv_backprop_input(op: KernelNode) -> Compute:
    layout = Layout.of(op, default_layout(op)) if op.op != "Conv3DBackpropInput" else Layout(False)
    rank = rank_of(op)
    spec = window_spec(op, layout, rank=rank)
    takes_tensor = op.op in ("Conv2DBackpropInputV2", "Conv3DBackpropInput")

    def compute(sizes: Array, w: Array, dy: Array) -> Array:
        shape = sizes.shape if takes_tensor else vector_of_sizes(op, sizes, "input_sizes")
        if len(shape) == 2 and rank == 4 and not takes_tensor:  # the spatial sizes alone
            lead = (dy.shape[0],)
            depth = (w.shape[-2],)
            shape = (*lead, *depth, *shape) if layout.channels_first else (*lead, *shape, *depth)
        if len(shape) != rank or min(shape) < 0:
            raise InvalidArgumentError(
                f"input_sizes must be the {rank} sizes of the input, not {list(shape)}", node=op.name
            )
        last = layout.shape_last(shape)
        grads = layout.last(dy)
        windows = conv_windows(op, spec, last, w.shape)
        check_gradient(op, grads.shape, windows, last[0], w.shape[-1])
        dx = math.backward_input(widen(w), widen(grads), last, windows)
        return layout.restore(dx.astype(dy.dtype, copy=False))

    return compute


@kernel("Conv2DBackpropFilter", "Conv2DBackpropFilterV2", types={"T": FLOATING})
@kernel("Conv3DBackpropFilter", types={"T": FLOATING})
@kernel("Conv3DBackpropFilterV2", types={"T": FLOATING})
def conv_backprop_filter(op: KernelNode) -> Compute:
    layout = Layout.of(op, default_layout(op)) if op.op != "Conv3DBackpropFilter" else Layout(False)
    rank = rank_of(op)
    spec = window_spec(op, layout, rank=rank)
    takes_tensor = op.op in ("Conv2DBackpropFilterV2", "Conv3DBackpropFilter")

    def compute(x: Array, sizes: Array, dy: Array) -> Array:
        shape = sizes.shape if takes_tensor else vector_of_sizes(op, sizes, "filter_sizes")
        if len(shape) != rank or min(shape) < 0:
            raise InvalidArgumentError(
                f"filter_sizes must be the {rank} sizes of the filter, not {list(shape)}", node=op.name
            )
        if x.ndim != rank:
            raise InvalidArgumentError(f"input must be {rank}-dimensional, not {list(x.shape)}", node=op.name)
        last, grads = layout.last(x), layout.last(dy)
        windows = conv_windows(op, spec, last.shape, shape)
        check_gradient(op, grads.shape, windows, last.shape[0], shape[-1])
        return math.backward_filter(widen(last), widen(grads), shape, windows).astype(x.dtype, copy=False)

    return compute


# -- depthwise -------------------------------------------------------------------------------------------------


def depthwise_windows(op: KernelNode) -> tuple[Layout, Callable[[Sequence[int], Sequence[int]], Windows]]:
    """Of a depthwise node: its layout, and what checks shapes (channels-last) and lays out its windows."""
    layout = Layout.of(op)
    spec = window_spec(op, layout)

    def windows(x_shape: Sequence[int], w_shape: Sequence[int]) -> Windows:
        if len(x_shape) != 4:
            raise InvalidArgumentError(f"input must be 4-dimensional, not of shape {list(x_shape)}", node=op.name)
        if len(w_shape) != 4:
            raise InvalidArgumentError(f"filter must be 4-dimensional, not of shape {list(w_shape)}", node=op.name)
        if x_shape[-1] != w_shape[2]:
            raise InvalidArgumentError(
                f"input and filter must have the same depth: {x_shape[-1]} vs {w_shape[2]}", node=op.name
            )
        return spec.over(x_shape[1:-1], w_shape[:2])

    return layout, windows


@kernel("DepthwiseConv2dNative", types={"T": FLOATING})
def depthwise(op: KernelNode) -> Compute:
    layout, lay_windows = depthwise_windows(op)

    def compute(x: Array, w: Array) -> Array:
        if x.ndim != 4:
            raise InvalidArgumentError(f"input must be 4-dimensional, not of shape {list(x.shape)}", node=op.name)
        last = layout.last(x)
        windows = lay_windows(last.shape, w.shape)
        y = math.depthwise_forward(widen(last), widen(w), windows)
        return layout.restore(y.astype(x.dtype, copy=False))

    return compute


@kernel("DepthwiseConv2dNativeBackpropInput", types={"T": FLOATING})
def depthwise_backprop_input(op: KernelNode) -> Compute:
    layout, lay_windows = depthwise_windows(op)

    def compute(sizes: Array, w: Array, dy: Array) -> Array:
        shape = vector_of_sizes(op, sizes, "input_sizes")
        if len(shape) != 4 or min(shape) < 0:
            raise InvalidArgumentError(f"input_sizes must be the 4 sizes of the input, not {shape}", node=op.name)
        last = layout.shape_last(shape)
        grads = layout.last(dy)
        windows = lay_windows(last, w.shape)
        check_gradient(op, grads.shape, windows, last[0], w.shape[2] * w.shape[3])
        dx = math.depthwise_backward_input(widen(w), widen(grads), last, windows)
        return layout.restore(dx.astype(dy.dtype, copy=False))

    return compute


@kernel("DepthwiseConv2dNativeBackpropFilter", types={"T": FLOATING})
def depthwise_backprop_filter(op: KernelNode) -> Compute:
    layout, lay_windows = depthwise_windows(op)

    def compute(x: Array, sizes: Array, dy: Array) -> Array:
        shape = vector_of_sizes(op, sizes, "filter_sizes")
        if len(shape) != 4 or min(shape) < 0:
            raise InvalidArgumentError(f"filter_sizes must be the 4 sizes of the filter, not {shape}", node=op.name)
        last, grads = layout.last(x), layout.last(dy)
        windows = lay_windows(last.shape, shape)
        check_gradient(op, grads.shape, windows, last.shape[0], shape[2] * shape[3])
        return math.depthwise_backward_filter(widen(last), widen(grads), shape, windows).astype(x.dtype, copy=False)

    return compute
