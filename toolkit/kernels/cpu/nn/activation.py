"""Activations and their gradients, biases and the L2 loss.

float16 and bfloat16 are computed in float32 and rounded once.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.nn.window import Layout, widen
from toolkit.kernels.registry import FLOATING, NUMBER, REAL, Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array

# Self-normalizing networks (Klambauer et al. 2017), eq. 14: lambda and lambda * alpha
_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def _unlike(op: KernelNode, x: Array, y: Array) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the inputs must have the same shape, not {list(x.shape)} and {list(y.shape)}", node=op.name
    )


def _unary(*ops: str, types: Any = FLOATING) -> Callable[[Callable[[Array], Array]], Callable[[Array], Array]]:
    """Register f(x), computed in at least float32."""

    def register(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
        def compute(x: Array) -> Array:
            return function(widen(x)).astype(x.dtype, copy=False)

        simple(*ops, types={"T": types})(compute)
        return function

    return register


def _gradient(*ops: str, types: Any = FLOATING) -> Callable[[Callable[[Array, Array], Array]], Any]:
    """Register f(gradient, features or outputs), computed in at least float32."""

    def register(function: Callable[[Array, Array], Array]) -> Any:
        def factory(op: KernelNode) -> Compute:
            def compute(dy: Array, x: Array) -> Array:
                if dy.shape != x.shape:
                    raise _unlike(op, dy, x)
                return function(widen(dy), widen(x)).astype(x.dtype, copy=False)

            return compute

        kernel(*ops, types={"T": types})(factory)
        return function

    return register


@simple("Relu", types={"T": REAL})
def relu(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


@simple("Relu6", types={"T": REAL})
def relu6(x: Array) -> Array:
    return np.minimum(np.maximum(x, x.dtype.type(0)), x.dtype.type(6))


@_gradient("ReluGrad", types=REAL)
def relu_grad(dy: Array, x: Array) -> Array:
    return dy * (x > 0)


@_gradient("Relu6Grad", types=REAL)
def relu6_grad(dy: Array, x: Array) -> Array:
    return dy * ((x > 0) & (x < 6))


@kernel("LeakyRelu", types={"T": FLOATING})
def leaky_relu(op: KernelNode) -> Compute:
    alpha = np.float32(op.attr("alpha"))

    def compute(x: Array) -> Array:
        wide = widen(x)
        out: Array = np.where(wide > 0, wide, wide * wide.dtype.type(alpha))
        return out.astype(x.dtype, copy=False)

    return compute


@kernel("LeakyReluGrad", types={"T": FLOATING})
def leaky_relu_grad(op: KernelNode) -> Compute:
    alpha = np.float32(op.attr("alpha"))

    def compute(dy: Array, x: Array) -> Array:
        if dy.shape != x.shape:
            raise _unlike(op, dy, x)
        wide = widen(dy)
        out: Array = np.where(widen(x) > 0, wide, wide * wide.dtype.type(alpha))
        return out.astype(x.dtype, copy=False)

    return compute


@_unary("Elu")
def elu(x: Array) -> Array:
    out: Array = np.where(x < 0, np.expm1(np.minimum(x, 0)), x)
    return out


@_gradient("EluGrad")
def elu_grad(dy: Array, y: Array) -> Array:
    out: Array = np.where(y < 0, (y + 1) * dy, dy)
    return out


@_unary("Selu")
def selu(x: Array) -> Array:
    scale, scale_alpha = x.dtype.type(_SELU_SCALE), x.dtype.type(_SELU_SCALE_ALPHA)
    out: Array = np.where(x < 0, scale_alpha * np.expm1(np.minimum(x, 0)), scale * x)
    return out


@_gradient("SeluGrad")
def selu_grad(dy: Array, y: Array) -> Array:
    scale, scale_alpha = y.dtype.type(_SELU_SCALE), y.dtype.type(_SELU_SCALE_ALPHA)
    out: Array = np.where(y < 0, dy * (y + scale_alpha), dy * scale)
    return out


@_unary("Softplus")
def softplus(x: Array) -> Array:
    return np.logaddexp(x, x.dtype.type(0))


@_gradient("SoftplusGrad")
def softplus_grad(dy: Array, x: Array) -> Array:
    return dy / (np.exp(-x) + x.dtype.type(1))


@_unary("Softsign")
def softsign(x: Array) -> Array:
    return x / (np.abs(x) + x.dtype.type(1))


@_gradient("SoftsignGrad")
def softsign_grad(dy: Array, x: Array) -> Array:
    return dy / np.square(np.abs(x) + x.dtype.type(1))


# -- bias ------------------------------------------------------------------------------------------------------


def _bias_axis(layout: Layout, rank: int) -> int:
    if rank < 2:
        raise InvalidArgumentError(f"the input must be at least 2-dimensional, not {rank}")
    return 1 if layout.channels_first else rank - 1


@kernel("BiasAdd", "BiasAddV1", types={"T": NUMBER})
def bias_add(op: KernelNode) -> Compute:
    layout = Layout.of(op) if op.op == "BiasAdd" else Layout(False)

    def compute(x: Array, bias: Array) -> Array:
        axis = _bias_axis(layout, x.ndim)
        if bias.ndim != 1:
            raise InvalidArgumentError(f"the bias must be 1-dimensional, not of shape {list(bias.shape)}")
        if bias.shape[0] != x.shape[axis]:
            raise InvalidArgumentError(f"the bias has {bias.shape[0]} elements, the input {x.shape[axis]} channels")
        return x + (bias if axis == x.ndim - 1 else bias.reshape(-1, *(1,) * (x.ndim - 2)))

    return compute


#: columns that NumPy adds at full speed; narrower matrices are taken several rows at a time
_WIDE = 1024


def sum_rows(x: Array) -> Array:
    """The sum of the rows of a matrix that lies in one piece.

    Of many narrow rows several are joined to one, added, and the parts added at the end: ten times faster than row by
    row, and nearer to the exact sum.
    """
    rows, columns = x.shape
    joined = _WIDE // columns
    if joined < 2 or rows < 64 * joined:
        total: Array = np.add.reduce(x, 0, x.dtype)
        return total
    whole = rows - rows % joined
    parts = np.add.reduce(x[:whole].reshape(-1, joined * columns), 0, x.dtype).reshape(joined, columns)
    return np.add.reduce(np.concatenate([parts, x[whole:]]), 0, x.dtype)


@kernel("BiasAddGrad", types={"T": NUMBER})
def bias_add_grad(op: KernelNode) -> Compute:
    layout = Layout.of(op)

    def compute(dy: Array) -> Array:
        axis = _bias_axis(layout, dy.ndim)
        wide = widen(dy)
        if axis == dy.ndim - 1 and wide.flags.c_contiguous and wide.size:
            total = sum_rows(wide.reshape(-1, dy.shape[axis]))
        else:
            total = np.add.reduce(wide, tuple(i for i in range(dy.ndim) if i != axis), wide.dtype)
        return total.astype(dy.dtype, copy=False)

    return compute


@simple("L2Loss", types={"T": FLOATING})
def l2_loss(x: Array) -> Array:
    flat = np.ascontiguousarray(widen(x)).reshape(-1)
    return np.asarray(np.dot(flat, flat) / 2, dtype=x.dtype)
