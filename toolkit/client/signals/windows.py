"""Window functions, as vectors of weights."""

from __future__ import annotations

import math

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import cond
from toolkit.client.math import math_ops
from toolkit.client.math.special_ops import bessel_i0e
from toolkit.client.nn import nn_ops
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType


def _floating(dtype: DTypeLike) -> DType:
    kind = as_dtype(dtype).base
    if not kind.is_floating:
        raise ValueError(f"dtype: windows are floats, not {kind}")
    return kind


def scalar(value: TensorLike, name: str | None, dtype: DTypeLike = None) -> Tensor:
    """A tensor of one number.

    Raises:
        ValueError: it is known to be more.
    """
    tensor = convert_to_tensor(value, dtype, name=name)
    if tensor.static_shape.rank not in (None, 0):
        raise ValueError(f"{name or 'window_length'}: expected one number, got a tensor of shape {tensor.static_shape}")
    return tensor


def kaiser_window(
    window_length: TensorLike, beta: TensorLike = 12.0, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Kaiser's window, [window_length]; the larger `beta`, the lower the side lobes."""
    with name_scope(name, "kaiser_window"):
        kind = _floating(dtype)
        length = scalar(window_length, None, dtypes.int32)
        if static_value(length) == 1:
            return array_ops.ones([1], kind)
        half = (math_ops.cast(length, dtypes.float32) - 1.0) / 2.0
        at = math_ops.cast(math_ops.range(-half, half + 0.1, dtype=dtypes.float32), kind)
        shape = math_ops.cast(beta, kind)
        one = math_ops.cast(1.0, kind)
        half = math_ops.cast(half, kind)
        inside = shape * ops.sqrt(nn_ops.relu(one - ops.square(at / half)))
        return ops.exp(inside - shape) * (bessel_i0e(inside) / bessel_i0e(shape))


def kaiser_bessel_derived_window(
    window_length: TensorLike, beta: TensorLike = 12.0, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """The window of sums of Kaiser's, as audio codecs use it."""
    with name_scope(name, "kaiser_bessel_derived_window"):
        kind = _floating(dtype)
        length = scalar(window_length, None, dtypes.int32)
        half = length // 2
        sums = math_ops.cumsum(kaiser_window(half + 1, beta, kind))
        rising = ops.sqrt(sums[:-1] / sums[-1])
        return array_ops.concat([rising, rising[::-1]], 0)


def vorbis_window(window_length: TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """The window of Vorbis."""
    with name_scope(name, "vorbis_window"):
        kind = _floating(dtype)
        length = scalar(window_length, None, dtypes.int32)
        at = math_ops.cast(math_ops.range(length), kind)
        inner = ops.sin(math.pi / math_ops.cast(length, kind) * (at + 0.5))
        return ops.sin(math.pi / 2.0 * _power(inner, 2.0))


def _power(x: Tensor, exponent: float) -> Tensor:
    with name_scope(None, "Pow", [x]) as scope:
        return ops.pow(x, exponent, name=scope)


def hann_window(
    window_length: TensorLike, periodic: TensorLike = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Hann's raised cosine; periodic for spectra, symmetric for filters."""
    return _raised_cosine(name, "hann_window", window_length, periodic, dtype, 0.5, 0.5)


def hamming_window(
    window_length: TensorLike, periodic: TensorLike = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Hamming's raised cosine."""
    return _raised_cosine(name, "hamming_window", window_length, periodic, dtype, 0.54, 0.46)


def _raised_cosine(
    name: str | None, scope: str, window_length: TensorLike, periodic: TensorLike, dtype: DTypeLike, a: float, b: float
) -> Tensor:
    kind = _floating(dtype)
    with name_scope(name, scope, [window_length, periodic]):
        length = scalar(window_length, "window_length", dtypes.int32)
        known = static_value(length)
        if known == 1:
            return array_ops.ones([1], kind)
        wraps = math_ops.cast(scalar(periodic, "periodic", dtypes.bool_), dtypes.int32)
        even = 1 - length % 2
        n = math_ops.cast(length + wraps * even - 1, kind)
        count = math_ops.cast(math_ops.range(length), kind)
        angle = constant(2 * math.pi, kind) * count / n

        def window() -> Tensor:
            return math_ops.cast(a - b * ops.cos(angle), kind)

        if known is not None:
            return window()
        return cond(ops.equal(length, 1), lambda: array_ops.ones([length], kind), window)
