"""Operations that oneDNN computes by a primitive of its own: convolutions, matrix products, pools, norms.

Each lowering puts a `Convolution`, a `MatMul`, a pool, ... in the place of a call. What cannot be lowered stays
and runs by its NumPy kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.views import lower_reshape
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.elementwise import ReluGradient
from toolkit.compiler.ir.operations.images import Resize
from toolkit.compiler.ir.operations.memory import Concat, Pad, Permute
from toolkit.compiler.ir.operations.norms import Softmax
from toolkit.compiler.ir.operations.pools import Pool, PoolFunction
from toolkit.compiler.ir.operations.products import Convolution, ConvolutionWindows, MatMul
from toolkit.compiler.ir.operations.reductions import Reduce, ReduceFunction
from toolkit.compiler.transforms.elements import is_channels_first, is_float
from toolkit.kernels.cpu.nn.window import Layout, window_spec
from toolkit.kernels.registry import KernelNode
from toolkit.target.thresholds import PrimitiveThresholds

#: lowers a call, given it and from how many elements on a primitive is worth its call
Lowering = Callable[..., bool]
_CHANNELS_LAST = Layout(channels_first=False)
_lowerings: dict[str, Lowering] = {}
#: what few programs have: lowered by a module that is imported when one does, and registers its lowerings then
_IMPORTED = {
    **dict.fromkeys(("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"), "toolkit.compiler.backends.cpu.recurrent.networks"),
    **dict.fromkeys(
        (
            "Conv2DBackpropInput", "Conv3DBackpropInputV2", "Conv2DBackpropFilter", "Conv3DBackpropFilterV2",
            "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter", "MaxPoolGrad",
        ),
        "toolkit.compiler.backends.cpu.learning.training",
    ),
}  # fmt: skip
P = ParamSpec("P")


def lowering(*ops: str, **told: Any) -> Callable[[Callable[P, bool]], Callable[P, bool]]:
    """Register what lowers calls of these ops; it returns False to leave one as it is.

    Args:
        told: what it is given besides for these ops.
    """

    def register(function: Callable[P, bool]) -> Callable[P, bool]:
        for op in ops:
            if op in _lowerings:
                raise ValueError(f"two lowerings for {op}")
            _lowerings[op] = functools.partial(function, **told) if told else function
        return function

    return register


def lower_hosts(block: Block, is_excluded: Callable[[Operation], bool], sizes: PrimitiveThresholds) -> None:
    """Lower every operation that can be.

    Args:
        sizes: from how many elements on a primitive is worth its call.
    """
    for operation in block.operations:
        op = operation.op
        if op in _IMPORTED and op not in _lowerings:
            import_module(_IMPORTED[op])
        lower = _lowerings.get(op)
        if lower is not None and not is_excluded(operation):
            lower(operation, sizes)


@lowering("Conv2D", "Conv3D")
@lowering("DepthwiseConv2dNative", depthwise=True)
def _convolution(operation: Operation, sizes: PrimitiveThresholds, *, depthwise: bool = False) -> bool:
    """Convolutions channels-last."""
    x, w = operation.inputs[:2]
    if not (is_float(x) and is_float(w) and is_float(operation.output)):
        return False
    if is_channels_first(operation):
        return False
    assert x.shape is not None and w.shape is not None
    spec = window_spec(KernelNode(operation.step.node), _CHANNELS_LAST, rank=len(x.shape))
    found = spec.over(x.shape[1:-1], w.shape[:-2])
    groups = x.shape[-1] // w.shape[-2] if not depthwise else w.shape[-2]
    windows = ConvolutionWindows(found.strides, found.dilations, found.pads, groups, depthwise)
    computed = None if w.is_constant else w
    operation.become(Convolution, input=x, filter=computed, weights=w.constant, windows=windows)
    return True


@lowering("MatMul", transposes=("transpose_a", "transpose_b"))
@lowering("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", transposes=("adj_x", "adj_y"))
def _matmul(operation: Operation, sizes: PrimitiveThresholds, *, transposes: tuple[str, str]) -> bool:
    """Matrix products.

    Args:
        transposes: the attributes that say whether a factor is transposed.
    """
    a, b = operation.inputs
    if not (is_float(a) and is_float(b) and is_float(operation.output)):
        return False
    assert a.shape is not None and b.shape is not None
    transpose_a, transpose_b = (bool(operation.step.node.attr(name, False)) for name in transposes)
    if len(a.shape) < 2 or len(b.shape) < 2 or len(a.shape) > 6 or len(b.shape) > 6:
        return False
    if operation.output.size * a.shape[-2 if transpose_a else -1] < sizes.product:
        return False  # NumPy is faster there
    if b.is_constant and len(b.shape) == 2:
        weights = b.constant.T if transpose_b else b.constant
        operation.become(MatMul, left=a, weights=weights, transpose_left=transpose_a)
    else:
        operation.become(MatMul, left=a, right=b, transpose_left=transpose_a, transpose_right=transpose_b)
    return True


@lowering("MaxPool", "MaxPool3D", function=PoolFunction.MAX)
@lowering("AvgPool", "AvgPool3D", function=PoolFunction.MEAN)
def _pool(operation: Operation, sizes: PrimitiveThresholds, *, function: PoolFunction) -> bool:
    if not is_float(operation.inputs[0]) or not is_float(operation.output):
        return False
    return lower_pool(operation, function) is not None


def lower_pool(operation: Operation, function: PoolFunction) -> Pool | None:
    """A pool channels last over spatial axes becomes `Pool`, which makes the first output; others stay."""
    x, node = operation.inputs[0], KernelNode(operation.step.node)
    size: list[int] = list(node.attr("ksize"))
    if size[0] != 1 or size[-1] != 1 or is_channels_first(operation):
        return None
    assert x.shape is not None
    window = tuple(size[1:-1])
    windows = window_spec(node, _CHANNELS_LAST, rank=len(x.shape)).over(x.shape[1:-1], window)
    return operation.become(
        Pool, outputs=operation.outputs[:1], input=x, window=window, strides=windows.strides, padding=windows.pads,
        function=function,
    )  # fmt: skip


# not Max and Min, in which oneDNN overlooks NaN
@lowering("Mean", function=ReduceFunction.MEAN)
@lowering("Sum", function=ReduceFunction.SUM)
def _reduction(operation: Operation, sizes: PrimitiveThresholds, *, function: ReduceFunction) -> bool:
    """Large reductions over constant axes; the mean of whole images is a pool."""
    x, axes = operation.inputs
    if not is_float(x) or not is_float(operation.output) or not axes.is_constant or x.size < sizes.reduction:
        return False
    assert x.shape is not None
    rank = len(x.shape)
    which = tuple(sorted(int(axis) % rank for axis in np.asarray(axes.constant).reshape(-1)))
    if not which or rank > 5 or len(set(which)) < len(which):  # the kernel refuses an axis named twice
        return False
    if function is ReduceFunction.MEAN and rank in (4, 5) and which == tuple(range(1, rank - 1)):
        operation.become(
            Pool, input=x, function=PoolFunction.MEAN, window=x.shape[1:-1], strides=(1,) * len(which),
            padding=((0, 0),) * len(which),
        )  # fmt: skip
    else:
        operation.become(Reduce, input=x, function=function, axes=which)
    return True


@lowering("Pad", "PadV2")
def _pad(operation: Operation, sizes: PrimitiveThresholds) -> bool:
    """Padding with a constant; the convolution or pool that follows may take it over."""
    x, amounts = operation.inputs[:2]
    fill = operation.inputs[2].constant if len(operation.inputs) > 2 else np.float32(0)
    if not is_float(x) or not is_float(operation.output) or not amounts.is_constant or fill is None:
        return False
    pads = tuple((int(before), int(after)) for before, after in np.asarray(amounts.constant))
    if min(min(pair) for pair in pads) < 0:
        return False
    operation.become(Pad, input=x, padding=pads, value=float(fill))
    return True


@lowering("Softmax")
def _softmax(operation: Operation, sizes: PrimitiveThresholds) -> bool:
    """Along the last axis; of its logarithm oneDNN has fewer digits than TensorFlow."""
    if not is_float(operation.inputs[0]) or not is_float(operation.output):
        return False
    if operation.output.size < sizes.softmax:
        return False
    operation.become(Softmax, input=operation.inputs[0])
    return True


@lowering("ConcatV2")
def _concat(operation: Operation, sizes: PrimitiveThresholds) -> bool:
    """Joining large float tensors."""
    *parts, axis = operation.inputs
    if not all(map(is_float, parts)) or not is_float(operation.output) or not axis.is_constant:
        return False
    if operation.output.size < sizes.join or any(part.is_constant for part in parts):
        return False
    assert operation.output.shape is not None
    operation.become(Concat, parts=tuple(parts), axis=int(axis.constant) % len(operation.output.shape))
    return True


@lowering("Reshape", "Squeeze", "ExpandDims")
def _reshape(operation: Operation, sizes: PrimitiveThresholds) -> bool:
    """Early, since what is fused goes through them."""
    return lower_reshape(operation)


@lowering("Transpose")
def _transpose(operation: Operation, sizes: PrimitiveThresholds) -> bool:
    """A permutation of a large tensor."""
    x, permutation = operation.inputs
    if not is_float(x) or not permutation.is_constant or not is_float(operation.output):
        return False
    if x.size < sizes.transpose:
        return False
    axes: tuple[Any, ...] = tuple(int(axis) for axis in np.asarray(permutation.constant))
    if len(axes) > 6:
        return False
    operation.become(Permute, input=x, axes=axes)
    return True


@lowering("ReluGrad")
def _relu_gradient(operation: Operation, sizes: PrimitiveThresholds) -> bool:
    """Of large tensors."""
    if not all(map(is_float, (*operation.inputs, operation.output))) or operation.output.size < sizes.elementwise:
        return False
    if any(value.shape != operation.output.shape for value in operation.inputs):
        return False
    gradient, x = operation.inputs
    operation.become(ReluGradient, gradient=gradient, input=x)
    return True


@lowering("ResizeBilinear")
def _resize(operation: Operation, sizes: PrimitiveThresholds) -> bool:
    """Interpolation between pixel centres, which is oneDNN's."""
    x, node = operation.inputs[0], operation.step.node
    if not is_float(x) or not is_float(operation.output) or operation.output.size < sizes.elementwise:
        return False
    if not node.attr("half_pixel_centers", False) or node.attr("align_corners", False):
        return False
    operation.become(Resize, input=x)
    return True
