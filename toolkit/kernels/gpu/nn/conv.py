"""Convolutions and their gradients; the checks are those of the CPU's kernels."""

from __future__ import annotations

from collections.abc import Callable

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.node import Node
from toolkit.kernels.cpu.nn.conv import (
    check_gradient,
    conv_windows,
    default_layout,
    rank_of,
    vector_of_sizes,
)
from toolkit.kernels.cpu.nn.window import Layout, Windows, window_spec
from toolkit.kernels.cuda.convolving import Layer, convolve, filter_gradient, input_gradient
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.filters import Filters
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.registry import FLOATING, Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_FLOATING_AND_INT32 = FLOATING | {dtypes.int32}
#: pairs of shapes that a node remembers; a graph that is fed one batch after the other has few
_MOST_SHAPES = 256


def is_constant(op: KernelNode, index: int) -> bool:
    """Whether an input never changes."""
    source: Node = op.node.inputs[index].node
    while source.op == "Identity":
        source = source.inputs[0].node
    return source.op == "Const"


def layer_of(windows: Windows, layout: Layout, x_shape: tuple[int, ...], w_shape: tuple[int, ...]) -> Layer:
    """Shapes of a convolution, given those of x (channels last) and of the filter."""
    return Layer(
        windows, x_shape[0], x_shape[-1], w_shape[-1], x_shape[-1] // w_shape[-2], layout.channels_first
    )  # fmt: skip


@kernel("Conv2D", types={"T": _FLOATING_AND_INT32}, device="GPU")
@kernel("Conv3D", types={"T": FLOATING}, device="GPU")
def conv(op: KernelNode) -> Compute:
    device = device_of(op.node)
    layer_for, filters = layers(op), Filters(is_constant=is_constant(op, 1))

    def compute(x: GpuArray, w: GpuArray) -> GpuArray:
        return convolve(device, layer_for(x, w), x, w, filters)

    return compute


def layers(op: KernelNode) -> Callable[[GpuArray, GpuArray], Layer]:
    """What gives the layer of a node's x and filter, worked out once for each pair of shapes.

    It raises InvalidArgumentError where they do not fit, as on CPUs.
    """
    layout = Layout.of(op, default_layout(op))
    spec = window_spec(op, layout, rank=rank_of(op))
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], Layer] = {}

    def find(x: GpuArray, w: GpuArray) -> Layer:
        key = x.shape, w.shape
        found = known.get(key)
        if found is None:
            if x.ndim != rank_of(op):
                raise InvalidArgumentError(
                    f"input must be {rank_of(op)}-dimensional, not {list(x.shape)}", node=op.name
                )
            last = layout.shape_last(x.shape)
            if len(known) >= _MOST_SHAPES:
                known.clear()
            found = known[key] = layer_of(conv_windows(op, spec, last, w.shape), layout, last, w.shape)
        return found

    return find


@kernel("Conv", types={"T": _FLOATING_AND_INT32}, device="GPU")
def conv_any(op: KernelNode) -> Compute:
    """Conv of one to three spatial axes, any number of batch axes; strides are per dimension of one example."""
    device = device_of(op.node)
    layout = Layout.of(op, "CHANNELS_LAST")
    batch_dims: int = op.attr("batch_dims")
    groups: int = op.attr("groups")
    filters = Filters(is_constant=is_constant(op, 1))

    def compute(x: GpuArray, w: GpuArray) -> GpuArray:
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
        lead, example = x.shape[:batch_dims], x.shape[batch_dims:]
        count = 1
        for size in lead:
            count *= size
        flat = x.reshaped((count, *example))
        last = layout.shape_last(flat.shape)
        if w.shape[-2] * groups != last[-1]:
            raise InvalidArgumentError(
                f"filter depth {w.shape[-2]} times groups {groups} must be the input depth {last[-1]}", node=op.name
            )
        layer = layer_of(conv_windows(op, spec, last, w.shape), layout, last, w.shape)
        y = convolve(device, layer, flat, w, filters)
        return y.reshaped((*lead, *y.shape[1:]))

    return compute


@kernel("Conv2DBackpropInput", types={"T": _FLOATING_AND_INT32}, device="GPU")
@kernel("Conv3DBackpropInput", types={"T": FLOATING}, device="GPU")
@kernel("Conv3DBackpropInputV2", types={"T": FLOATING}, device="GPU")
def conv_backprop_input(op: KernelNode) -> Compute:
    device = device_of(op.node)
    layout = Layout.of(op, default_layout(op)) if op.op != "Conv3DBackpropInput" else Layout(False)
    rank = rank_of(op)
    spec = window_spec(op, layout, rank=rank)
    takes_tensor = op.op == "Conv3DBackpropInput"
    filters = Filters(is_constant=is_constant(op, 1))

    def compute(sizes: GpuArray | Array, w: GpuArray, dy: GpuArray) -> GpuArray:
        shape = (
            sizes.shape if isinstance(sizes, GpuArray) or takes_tensor else vector_of_sizes(op, sizes, "input_sizes")
        )
        if len(shape) == 2 and rank == 4:  # the spatial sizes alone
            first, depth = dy.shape[0], w.shape[-2]
            shape = (first, depth, *shape) if layout.channels_first else (first, *shape, depth)
        if len(shape) != rank or min(shape) < 0:
            raise InvalidArgumentError(
                f"input_sizes must be the {rank} sizes of the input, not {list(shape)}", node=op.name
            )
        last = layout.shape_last(shape)
        windows = conv_windows(op, spec, last, w.shape)
        check_gradient(op, _shape_last(op, layout, dy, rank), windows, last[0], w.shape[-1])
        return input_gradient(device, layer_of(windows, layout, last, w.shape), w, dy, tuple(shape), filters)

    return compute


def gradient_layer(
    op: KernelNode, x_shape: tuple[int, ...], w_shape: tuple[int, ...], dy_shape: tuple[int, ...]
) -> Layer:
    """The layer of a gradient's node.

    Raises:
        InvalidArgumentError: the shapes do not fit, as on CPUs.
    """
    layout = Layout.of(op, default_layout(op))
    last = layout.shape_last(x_shape)
    windows = conv_windows(op, window_spec(op, layout, rank=rank_of(op)), last, w_shape)
    check_gradient(op, layout.shape_last(dy_shape), windows, last[0], w_shape[-1])
    return layer_of(windows, layout, last, w_shape)


@kernel("Conv2DBackpropFilter", types={"T": FLOATING}, device="GPU")
@kernel("Conv3DBackpropFilter", types={"T": FLOATING}, device="GPU")
@kernel("Conv3DBackpropFilterV2", types={"T": FLOATING}, device="GPU")
def conv_backprop_filter(op: KernelNode) -> Compute:
    device = device_of(op.node)
    layout = Layout.of(op, default_layout(op)) if op.op != "Conv3DBackpropFilter" else Layout(False)
    rank = rank_of(op)
    spec = window_spec(op, layout, rank=rank)
    takes_tensor = op.op == "Conv3DBackpropFilter"

    def compute(x: GpuArray, sizes: GpuArray | Array, dy: GpuArray) -> GpuArray:
        shape = (
            sizes.shape if isinstance(sizes, GpuArray) or takes_tensor else vector_of_sizes(op, sizes, "filter_sizes")
        )
        if len(shape) != rank or min(shape) < 0:
            raise InvalidArgumentError(
                f"filter_sizes must be the {rank} sizes of the filter, not {list(shape)}", node=op.name
            )
        if x.ndim != rank:
            raise InvalidArgumentError(f"input must be {rank}-dimensional, not {list(x.shape)}", node=op.name)
        last = layout.shape_last(x.shape)
        windows = conv_windows(op, spec, last, shape)
        check_gradient(op, _shape_last(op, layout, dy, rank), windows, last[0], shape[-1])
        return filter_gradient(device, layer_of(windows, layout, last, shape), x, dy, shape)

    return compute


def _shape_last(op: KernelNode, layout: Layout, x: GpuArray, rank: int) -> tuple[int, ...]:
    if x.ndim != rank:
        raise InvalidArgumentError(f"out_backprop must be {rank}-dimensional, not {list(x.shape)}", node=op.name)
    return layout.shape_last(x.shape)
