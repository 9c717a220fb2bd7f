"""What a product or a convolution is, in NumPy: for the fake libraries, and for tests of the real ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy

from toolkit.kernels.cpu.nn import conv_math as nn_conv_math
from toolkit.kernels.cpu.nn.window import Windows
from toolkit.kernels.cuda.libraries.base import EIGHT_BITS, EPILOGUES, Convolution, Product
from toolkit.kernels.types import Array

np: Any = numpy  # generic over dtypes, which its overloads cannot follow
_RELU_BITS = 128  # rows of bits are padded to so many


def dtype_of(name: str) -> Any:
    """NumPy's type, or one that `ml_dtypes` brings."""
    return np.dtype(getattr(ml_dtypes, name) if name in ("bfloat16", EIGHT_BITS) else name)


def wide(dtype: Any) -> Any:
    """The type that sums are in."""
    return np.dtype(np.float32) if dtype.itemsize <= 2 else dtype


def auxiliary_shape(p: Product) -> tuple[tuple[int, ...], Any]:
    """Shape and type of what an epilogue keeps or is given."""
    if "relu" in p.epilogue:
        return (p.batch, p.m, -(-p.n // _RELU_BITS) * _RELU_BITS // 8), np.dtype(np.uint8)
    return (p.batch, p.m, p.n), dtype_of(p.dtype)


def _matrices(flat: Array, batch: int, rows: int, columns: int, lead: int, stride: int) -> Array:
    """The matrices of a batch as they are stored (`Product.stored`)."""
    size = flat.itemsize
    return np.lib.stride_tricks.as_strided(flat, (batch, rows, columns), (stride * size, lead * size, size))


def _operand(flat: Array, p: Product, stored: tuple[int, int, int, int], turn: str) -> Array:
    """op of an operand of each product of the batch, in the type of the sums."""
    view = _matrices(flat, p.batch, *stored).astype(wide(flat.dtype))
    if turn == "N":
        return view
    return np.conj(np.swapaxes(view, 1, 2)) if turn == "C" else np.swapaxes(view, 1, 2)


def product(
    p: Product, a: Array, b: Array, out: Array, bias: Array | None, auxiliary: Array | None,
    factors: tuple[Array, Array] | None = None,
) -> None:  # fmt: skip
    """Compute a product into `out`; all arrays are flat and of the product's type, relu's bits of uint8."""
    stored_a, stored_b, stored_out = p.stored
    left, right = _operand(a, p, stored_a, p.turn_a), _operand(b, p, stored_b, p.turn_b)
    target = _matrices(out, p.batch, *stored_out)
    scale = left.dtype.type
    y = np.matmul(left, right)
    if factors is not None:
        with np.errstate(all="ignore"):  # an infinite factor times a sum of zeros
            y = y * (factors[0] * factors[1])
    if p.alpha != 1:
        y = y * scale(p.alpha)
    if p.beta != 0:
        y = y + scale(p.beta) * target.astype(y.dtype)
    if p.epilogue:
        y = _finish(p, y, left, right, bias, auxiliary)
    target[...] = y.astype(out.dtype)


def _finish(p: Product, y: Array, left: Array, right: Array, bias: Array | None, auxiliary: Array | None) -> Array:
    kind = EPILOGUES[p.epilogue]
    kept = None
    if auxiliary is not None:
        kept = auxiliary.reshape(auxiliary_shape(p)[0])
    if kind.bias == "read":
        y = y + _matrices(np.asarray(bias), p.batch, 1, p.n, 0, p.stride_bias).astype(y.dtype)
    if p.epilogue.startswith("sums of"):
        # of all products of the batch, as one product of them one under the other has it
        sums = right.sum(axis=(0, 1)) if p.epilogue.endswith("b") else left.sum(axis=(0, 2))
        np.asarray(bias)[...] = sums.astype(np.asarray(bias).dtype)
        return y
    if kind.auxiliary == "written":
        assert kept is not None
        if "relu" in p.epilogue:
            bits = np.zeros((p.batch, p.m, kept.shape[-1] * 8), bool)
            bits[..., : p.n] = y > 0
            kept[...] = np.packbits(bits, axis=-1, bitorder="little")
        else:
            kept[...] = y.astype(kept.dtype)
    if kind.auxiliary == "read":
        assert kept is not None
        if "relu" in p.epilogue:
            y = y * np.unpackbits(kept, axis=-1, bitorder="little")[..., : p.n].astype(y.dtype)
        else:
            y = y * _gelu_slope(kept.astype(y.dtype))
        if kind.bias == "written":
            np.asarray(bias)[...] = y.sum(axis=(0, 1)).astype(np.asarray(bias).dtype)
        return y
    if "relu" in p.epilogue:
        return np.maximum(y, 0)
    return gelu(y) if "gelu" in p.epilogue else y


def gelu(x: Array) -> Array:
    """By tanh, as cuBLASLt has it."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def _gelu_slope(x: Array) -> Array:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    t = np.tanh(inner)
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def windows_of(c: Convolution) -> Windows:
    """Its windows as the CPU's kernels lay them out."""
    return Windows(c.sizes, c.kernel, c.strides, c.dilations, c.pads, c.out)


def convolution(
    c: Convolution, first: Array, second: Array, out: Array, bias: Array | None, added: Array | None
) -> None:
    """Compute a convolution into `out`; arrays have the shapes of `Convolution`, the bias is a vector."""
    windows, type = windows_of(c), wide(first.dtype)

    def last(x: Array) -> Array:
        x = x.astype(type)
        return np.moveaxis(x, 1, -1) if c.channels_first else x

    def restored(x: Array) -> Array:
        return np.moveaxis(x, -1, 1) if c.channels_first else x

    def as_tensorflow(w: Array) -> Array:
        return np.ascontiguousarray(np.moveaxis(last(w), 0, -1))  # (kernel..., C / groups, F)

    if c.kind == "forward":
        y = nn_conv_math.forward(last(first), as_tensorflow(second), windows)
        for name in c.epilogue:
            if name == "bias":
                y = y + np.asarray(bias).astype(type)
            elif name == "add":
                y = y + last(np.asarray(added))
            else:
                y = ACTIVATIONS[name](y)
        out[...] = restored(y).astype(out.dtype)
    elif c.kind == "input":
        shape = (c.batch, *c.sizes, c.channels)
        dx = nn_conv_math.backward_input(as_tensorflow(first), last(second), shape, windows)
        out[...] = restored(dx).astype(out.dtype)
    else:
        shape = (*c.kernel, c.channels // c.groups, c.filters)
        dw = nn_conv_math.backward_filter(last(first), last(second), shape, windows)
        out[...] = restored(np.moveaxis(dw, -1, 0)).astype(out.dtype)
