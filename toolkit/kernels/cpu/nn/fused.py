"""Convolutions, products and normalization fused with what surrounds them, as graph optimizers leave them.

`fused_ops` names what follows in order: BiasAdd or FusedBatchNorm, Add, and an activation.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.arrays.pad import mirror_pad
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cpu.images.resize import Grid, bilinear
from toolkit.kernels.cpu.math.special_error import erf
from toolkit.kernels.cpu.nn.conv import conv, depthwise
from toolkit.kernels.cpu.nn.norm import fused_batch_norm
from toolkit.kernels.cpu.nn.window import Layout, widen
from toolkit.kernels.registry import FLOATING, Compute, KernelNode, kernel
from toolkit.kernels.types import Array

Activation = Callable[[Array], Array]


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _gelu(x: Array) -> Array:
    share = 0.5 * (1 + erf(x.astype(np.float64) * math.sqrt(0.5)))
    return x * share.astype(x.dtype)


def _gelu_by_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


_ACTIVATIONS: dict[str, Activation] = {
    "Identity": lambda x: x,
    "Relu": lambda x: np.maximum(x, 0),
    "Relu6": lambda x: np.clip(x, 0, 6),
    "Elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "Tanh": np.tanh,
    "Sigmoid": _sigmoid,
    "GeluExact": _gelu,
    "GeluApproximate": _gelu_by_tanh,
    "_MklSwish": lambda x: x * _sigmoid(x),
    "_FusedHardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Mish": lambda x: x * np.tanh(np.logaddexp(x, 0)),
}


def _activation(op: KernelNode, name: str) -> Activation:
    """
    Raises:
        UnimplementedError: there is none of that name.
    """
    if name in ("LeakyRelu", "_MklLeakyRelu"):
        slope = np.float32(op.attr("leakyrelu_alpha"))
        return lambda x: np.where(x > 0, x, x * slope)
    found = _ACTIVATIONS.get(name)
    if found is None:
        raise UnimplementedError(f"Fusion is not implemented: {name}", node=op.name)
    return found


class _Epilogue:
    """What follows a fused op, over channels-last values."""

    def __init__(self, op: KernelNode):
        names = [name.decode() for name in op.attr("fused_ops")]
        self._epsilon = np.float32(op.attr("epsilon"))
        self._first = names.pop(0) if names and names[0] in ("BiasAdd", "FusedBatchNorm") else None
        self._adds = bool(names) and names[0] == "Add"
        rest = names[1:] if self._adds else names
        if len(rest) > 1:
            raise UnimplementedError(f"Fusion is not implemented: {op.attr('fused_ops')}", node=op.name)
        self._activation = _activation(op, rest[0] if rest else "Identity")
        wanted = {None: 0, "BiasAdd": 1, "FusedBatchNorm": 4}[self._first] + self._adds
        given = op.attr("num_args")
        if given != wanted:
            raise InvalidArgumentError(f"{op.attr('fused_ops')} needs {wanted} arguments, not {given}", node=op.name)

    def __call__(self, y: Array, args: Sequence[Array]) -> Array:
        dtype = y.dtype
        y, args = widen(y), [widen(a) for a in args]
        if self._first is not None:
            for value in args[: 1 if self._first == "BiasAdd" else 4]:
                require(value.shape == y.shape[-1:], f"{shape_text(value)} is not one value for each of {y.shape[-1]}")
        if self._first == "BiasAdd":
            y = y + args[0]
        elif self._first == "FusedBatchNorm":
            scale, offset, mean, variance = args[:4]
            factor = scale / np.sqrt(variance + self._epsilon)
            y = y * factor + (offset - mean * factor)
        if self._adds:
            require(args[-1].shape == y.shape, f"{shape_text(args[-1])} cannot be added to {shape_text(y)}")
            y = y + args[-1]
        return self._activation(y).astype(dtype, copy=False)


@kernel("_FusedConv2D", types={"T": FLOATING})
def fused_conv2d(op: KernelNode) -> Compute:
    if op.text("filter_format") != "HWIO":
        raise UnimplementedError(f"filters in {op.text('filter_format')} run on GPUs only", node=op.name)
    return _with_epilogue(op, conv(op))


@kernel("_FusedDepthwiseConv2dNative", types={"T": FLOATING})
def fused_depthwise(op: KernelNode) -> Compute:
    return _with_epilogue(op, depthwise(op))


def _with_epilogue(op: KernelNode, convolve: Compute) -> Compute:
    epilogue, layout = _Epilogue(op), Layout.of(op)

    def compute(x: Array, w: Array, *args: Array) -> Array:
        y = layout.last(convolve(x, w))
        last = [layout.last(a) if a.ndim == 4 else a for a in args]
        return layout.restore(epilogue(y, last))

    return compute


@kernel("_FusedMatMul", types={"T": FLOATING})
def fused_matmul(op: KernelNode) -> Compute:
    epilogue = _Epilogue(op)
    turned_a, turned_b = op.attr("transpose_a"), op.attr("transpose_b")

    def compute(a: Array, b: Array, *args: Array) -> Array:
        require(a.ndim == 2, f"In[0] is not a matrix: {shape_text(a)}")
        require(b.ndim == 2, f"In[1] is not a matrix: {shape_text(b)}")
        left, right = (a.T if turned_a else a), (b.T if turned_b else b)
        require(
            left.shape[1] == right.shape[0], f"Matrix size-incompatible: In[0]: {shape_text(a)}, In[1]: {shape_text(b)}"
        )
        return epilogue((widen(left) @ widen(right)).astype(a.dtype, copy=False), args)

    return compute


@kernel("_FusedBatchNormEx", types={"T": FLOATING - {dtypes.float64}, "U": [dtypes.float32]})
def fused_batch_norm_ex(op: KernelNode) -> Compute:
    """Batch normalization, then a side input is added, then the activation."""
    normalize = fused_batch_norm(op)
    activation = _activation(op, op.text("activation_mode"))

    def compute(x: Array, scale: Array, offset: Array, mean: Array, variance: Array, *side: Array) -> tuple[Array, ...]:
        y, *rest = normalize(x, scale, offset, mean, variance)
        total = widen(y) + widen(side[0]) if side else widen(y)
        return (activation(total).astype(x.dtype, copy=False), *rest[:4], np.zeros((0,), np.float32))

    return compute


@kernel("FusedPadConv2D", types={"T": FLOATING})
def fused_pad_conv2d(op: KernelNode) -> Compute:
    """A convolution of the image with its mirrored borders."""
    pad, convolve = mirror_pad(op), conv(op)

    def compute(x: Array, paddings: Array, w: Array) -> Array:
        require(x.ndim == 4, f"input must be 4-dimensional, not of shape {shape_text(x)}")
        return convolve(pad(x, paddings), w)

    return compute


@kernel("FusedResizeAndPadConv2D", types={"T": FLOATING - {dtypes.bfloat16}})
def fused_resize_conv2d(op: KernelNode) -> Compute:
    """The image is resized first, bilinearly."""
    grid = Grid(bool(op.attr("resize_align_corners")), False)
    pad, convolve = mirror_pad(op), conv(op)

    def compute(x: Array, size: Array, paddings: Array, w: Array) -> Array:
        require(x.ndim == 4, f"input must be 4-dimensional, not of shape {shape_text(x)}")
        require(size.shape == (2,), f"size must be 1-dimensional with 2 elements, got {shape_text(size)}")
        height, width = (int(n) for n in size)
        require(height > 0 and width > 0, "output dimensions must be positive")
        return convolve(pad(bilinear(x, grid, height, width).astype(x.dtype, copy=False), paddings), w)

    return compute
