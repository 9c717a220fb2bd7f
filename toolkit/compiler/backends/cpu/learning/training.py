"""Primitives of training steps: convolutions whose filters change, their gradients, gradients of pools."""

from __future__ import annotations

from dataclasses import replace

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.primitives import converted, convolution, pooling_gradient, refusals
from toolkit.compiler.backends.cpu.networks.hosts import lowering
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.pools import PoolGradient
from toolkit.compiler.ir.operations.products import (
    Convolution,
    ConvolutionFilterGradient,
    ConvolutionInputGradient,
    ConvolutionWindows,
    FlipFilter,
)
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_channels_first, is_float
from toolkit.kernels.cpu.nn.window import Layout, window_spec
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.primitive import (
    FORWARD_TRAINING,
    Arg,
    DescriptorQuery,
    reorder,
)
from toolkit.kernels.registry import KernelNode
from toolkit.kernels.tensors import F32
from toolkit.target.thresholds import PrimitiveThresholds

_CHANNELS_LAST = Layout(channels_first=False)


@lowering("Conv2DBackpropInput", "Conv3DBackpropInputV2", by_input=True)
@lowering("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", by_input=False)
@lowering("DepthwiseConv2dNativeBackpropInput", by_input=True, depthwise=True)
@lowering("DepthwiseConv2dNativeBackpropFilter", by_input=False, depthwise=True)
def _conv_gradient(
    operation: Operation, sizes: PrimitiveThresholds, *, by_input: bool, depthwise: bool = False
) -> bool:
    """Gradients of convolutions, channels last.

    Args:
        by_input: with respect to the input, not to the filter.
    """
    first, second, third = operation.inputs
    dy, other = third, second if by_input else first
    if not (is_float(dy) and is_float(other) and is_float(operation.output)):
        return False
    if is_channels_first(operation):
        return False
    x_shape = operation.output.shape if by_input else other.shape
    w_shape = other.shape if by_input else operation.output.shape
    assert x_shape is not None and w_shape is not None
    spec = window_spec(KernelNode(operation.step.node), _CHANNELS_LAST, rank=len(x_shape))
    found = spec.over(x_shape[1:-1], w_shape[:-2])
    groups = w_shape[-2] if depthwise else x_shape[-1] // w_shape[-2]
    windows = ConvolutionWindows(found.strides, found.dilations, found.pads, groups, depthwise)
    if by_input:
        operation.become(ConvolutionInputGradient, output_gradient=dy, filter=other, windows=windows)
    else:
        operation.become(ConvolutionFilterGradient, input=other, output_gradient=dy, windows=windows)
    return True


@lowering("MaxPoolGrad")
def _max_pool_gradient(operation: Operation, sizes: PrimitiveThresholds) -> bool:
    """The gradient of a max pool of images."""
    x, pooled, gradient = operation.inputs
    if not all(map(is_float, (x, pooled, gradient, operation.output))) or is_channels_first(operation):
        return False
    node = KernelNode(operation.step.node)
    size: list[int] = list(node.attr("ksize"))
    assert x.shape is not None
    if size[0] != 1 or size[-1] != 1 or len(x.shape) != 4:
        return False
    window = tuple(size[1:-1])
    windows = window_spec(node, _CHANNELS_LAST, rank=4).over(x.shape[1:-1], window)
    operation.become(
        PoolGradient, input=x, pooled=pooled, gradient=gradient, window=window, strides=windows.strides,
        padding=windows.pads,
    )  # fmt: skip
    return True


def turn_gradients(block: Block) -> None:
    """Without strides, the gradient by the input is a convolution with the filter turned round, which is faster."""
    for operation in block.operations:
        if not isinstance(operation, ConvolutionInputGradient):
            continue
        w, windows = operation.filter, operation.windows
        if windows.groups != 1 or windows.depthwise or max(windows.strides) > 1:
            continue
        assert w.shape is not None
        *spatial, inputs, outputs = w.shape
        spans = [(k - 1) * d for k, d in zip(spatial, windows.dilations, strict=True)]
        padding = tuple((s - before, s - after) for s, (before, after) in zip(spans, windows.padding, strict=True))
        if min(min(pair) for pair in padding) < 0:
            continue
        turned = Value(F32, (*spatial, outputs, inputs))
        flip = FlipFilter(input=w, outputs=[turned], steps=[operation.step], conditions=operation.conditions)
        block.insert_before(operation, [flip])
        windows = replace(windows, padding=padding)
        operation.become(Convolution, input=operation.output_gradient, filter=turned, windows=windows)


def write_flip_filter(emitter: Emitter, operation: FlipFilter) -> None:
    """Filters with their taps in reverse order, inputs and outputs exchanged."""
    assert operation.output.shape is not None
    reverse = emitter.share("k", (slice(None, None, -1),) * (len(operation.output.shape) - 2))
    source = emitter.read(operation.input)
    emitter.line(f"copyto({emitter.read(operation.output)}, {source}[{reverse}].swapaxes(-1, -2))")


def write_conv_input(emitter: Emitter, operation: Operation) -> None:
    """The gradient with respect to the input of a convolution."""
    assert isinstance(operation, ConvolutionInputGradient)
    dy, w, x = operation.output_gradient, operation.filter, operation.output.shape
    assert dy.shape is not None and w.shape is not None and x is not None
    geometry = convolution(operation.windows, x, w.shape, dy.shape)
    source, target = memory.channels_last(dy.shape, F32), memory.channels_last(x, F32)
    with refusals(operation):
        primitive = geometry.backward_input(prefer=geometry.preferred(F32, F32, emitter.target.primitives))
    packed = converted(emitter, w, geometry.filter_desc(), primitive.desc(DescriptorQuery.WEIGHTS))
    emitter.execute(
        primitive, [(Arg.DIFF_DST, dy, source), (Arg.WEIGHTS, *packed), (Arg.DIFF_SRC, operation.output, target)]
    )


def write_conv_filter(emitter: Emitter, operation: Operation) -> None:
    """The gradient with respect to the filter of a convolution."""
    assert isinstance(operation, ConvolutionFilterGradient)
    x, dy, w = operation.input, operation.output_gradient, operation.output.shape
    assert x.shape is not None and dy.shape is not None and w is not None
    geometry = convolution(operation.windows, x.shape, w, dy.shape)
    source, other = memory.channels_last(x.shape, F32), memory.channels_last(dy.shape, F32)
    plain = geometry.filter_desc()
    with refusals(operation):
        primitive = geometry.backward_filter(prefer=geometry.preferred(F32, F32, emitter.target.primitives))
    made = primitive.desc(DescriptorQuery.DIFF_WEIGHTS)
    where, layout = (operation.output, plain) if plain.same(made) else (emitter.scratch(made), None)
    emitter.execute(primitive, [(Arg.SRC, x, source), (Arg.DIFF_DST, dy, other), (Arg.DIFF_WEIGHTS, where, layout)])
    if where is not operation.output:
        emitter.execute(reorder(made, plain), [(Arg.SRC, where, None), (Arg.DST, operation.output, plain)])


def write_pool_gradient(emitter: Emitter, operation: PoolGradient) -> None:
    """The gradient of a max pool; the forward pool is run again for the positions of the maxima."""
    x, dy = operation.input, operation.gradient
    pool = pooling_gradient(operation)
    big, small = pool.descs()
    with refusals(operation):
        forward = pool.forward(kind=FORWARD_TRAINING)
        backward = pool.backward(forward)
    workspace = emitter.scratch(forward.desc(DescriptorQuery.WORKSPACE))
    again = emitter.scratch(small)
    emitter.execute(forward, [(Arg.SRC, x, big), (Arg.DST, again, None), (Arg.WORKSPACE, workspace, None)])
    emitter.execute(
        backward, [(Arg.DIFF_DST, dy, small), (Arg.DIFF_SRC, operation.output, big), (Arg.WORKSPACE, workspace, None)]
    )
