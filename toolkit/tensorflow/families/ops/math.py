# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.math: arithmetic that is more than one op, and casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.math import math_ops
from toolkit.graph import dtypes


def abs(x: Any, name: Any = None) -> Tensor:
    return math_ops.abs(x, name)


def add(x: Any, y: Any, name: Any = None) -> Tensor:
    return math_ops.add(x, y, name)


def subtract(x: Any, y: Any, name: Any = None) -> Tensor:
    return ops.sub(x, y, name=name)


def multiply(x: Any, y: Any, name: Any = None) -> Tensor:
    return ops.mul(x, y, name=name)


def divide(x: Any, y: Any, name: Any = None) -> Any:
    """`x / y` as Python would; with a name, the same with the op's name ending in it."""
    if name is not None:
        return math_ops.divide(x, y, name)
    if not isinstance(x, Tensor) and not hasattr(x, "to_tensor"):
        x = convert_to_tensor(x, y.dtype.base if hasattr(y, "dtype") and hasattr(y, "graph") else None)
    return x / y


def truediv(x: Any, y: Any, name: Any = None) -> Tensor:
    return math_ops.divide(x, y, name)


def div(x: Any, y: Any, name: Any = None) -> Tensor:
    """Division as Python 2 had it: integers are rounded down."""
    with name_scope(name, "div", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base, name="y")
        if x.dtype.base.is_floating or x.dtype.base.is_complex:
            return ops.real_div(x, y, name=scope)
        return ops.floor_div(x, y, name=scope)


def div_no_nan(x: Any, y: Any, name: Any = None) -> Tensor:
    with name_scope(name, "div_no_nan", [x, y]) as scope:
        if not isinstance(x, Tensor) and isinstance(y, Tensor):
            x = convert_to_tensor(x, y.dtype.base, name="x")
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base, name="y")
        return ops.div_no_nan(x, y, name=scope)


def pow(x: Any, y: Any, name: Any = None) -> Tensor:
    with name_scope(name, "Pow", [x]) as scope:
        return ops.pow(x, y, name=scope)


def round(x: Any, name: Any = None) -> Tensor:
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.base.is_integer else ops.round(x, name=name)


def sign(x: Any, name: Any = None) -> Tensor:
    return ops.sign(convert_to_tensor(x), name=name)


def ceil(x: Any, name: Any = None) -> Tensor:
    return ops.ceil(x, name=name)


def equal(x: Any, y: Any, name: Any = None) -> Tensor:
    return ops.equal(x, y, name=name)


def not_equal(x: Any, y: Any, name: Any = None) -> Tensor:
    return ops.not_equal(x, y, name=name)


def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    return math_ops.logical_xor(x, y, name)


def log_sigmoid(x: Any, name: Any = None) -> Tensor:
    with name_scope(name, "LogSigmoid", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return ops.neg(ops.softplus(-x), name=scope)


def add_n(inputs: Any, name: Any = None) -> Tensor:
    if not inputs or not isinstance(inputs, list | tuple):
        raise ValueError(f"inputs: expected a list of tensors of one type and shape, at least one, got {inputs!r}")
    return math_ops.add_n(list(inputs), name)  # type: ignore[arg-type]


def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: Any = None) -> Tensor:
    """The sum of tensors; in a graph it is AddN."""
    if len(inputs) == 1 and name is None:
        return convert_to_tensor(inputs[0])
    if len(inputs) == 1:
        return array_ops.identity(inputs[0], name=name)
    return math_ops.add_n(list(inputs), name)


def scalar_mul(scalar: Any, x: Any, name: Any = None) -> Any:
    factor = convert_to_tensor(scalar, x.dtype.base, name="scalar")
    if factor.static_shape.rank not in (None, 0):
        raise ValueError(f"scalar: expected one number, got a tensor of shape {factor.shape}")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(ops.mul(factor, x.values, name=name), x.indices, x.dense_shape)
    return ops.mul(factor, x, name=name)


def cast(x: Any, dtype: Any, name: Any = None) -> Any:
    if isinstance(x, IndexedSlices):
        return IndexedSlices(math_ops.cast(x.values, dtype, name), x.indices, x.dense_shape)
    return math_ops.cast(x, dtype, name)


def _to(dtype: dtypes.DType, default: str) -> Callable[..., Tensor]:
    def to(x: Any, name: str = default) -> Tensor:
        return cast(x, dtype, name)

    to.__name__ = f"to_{dtype.name}"
    return to


to_float = _to(dtypes.float32, "ToFloat")
to_double = _to(dtypes.float64, "ToDouble")
to_int32 = _to(dtypes.int32, "ToInt32")
to_int64 = _to(dtypes.int64, "ToInt64")
to_bfloat16 = _to(dtypes.bfloat16, "ToBFloat16")
to_complex64 = _to(dtypes.complex64, "ToComplex64")
to_complex128 = _to(dtypes.complex128, "ToComplex128")


def complex(real: Any, imag: Any, name: Any = None) -> Tensor:
    with name_scope(name, "Complex") as scope:
        real = convert_to_tensor(real, name="real")
        imag = convert_to_tensor(imag, name="imag")
        wide = dtypes.complex128 if real.dtype.base is dtypes.float64 else dtypes.complex64
        return ops.complex(real, imag, Tout=wide, name=scope)


def real(input: Any, name: Any = None) -> Tensor:
    with name_scope(name, "Real", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        return ops.real(x, Tout=math_ops.real_type(x.dtype), name=scope) if x.dtype.base.is_complex else x


def imag(input: Any, name: Any = None) -> Tensor:
    with name_scope(name, "Imag", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        return ops.imag(x, Tout=math_ops.real_type(x.dtype), name=scope) if x.dtype.base.is_complex else (
            array_ops.zeros_like(x)
        )  # fmt: skip


def angle(input: Any, name: Any = None) -> Tensor:
    with name_scope(name, "Angle", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        if x.dtype.base.is_complex:
            return ops.angle(x, Tout=math_ops.real_type(x.dtype), name=scope)
        return ops.select(ops.less(x, 0), np.pi * array_ops.ones_like(x), array_ops.zeros_like(x))


def conj(x: Any, name: Any = None) -> Tensor:
    if isinstance(x, Tensor) and not x.dtype.base.is_complex and x.dtype.base is not dtypes.variant:
        return x
    with name_scope(name, "Conj", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return ops.conj(x, name=scope) if x.dtype.base.is_complex or x.dtype.base is dtypes.variant else x


def matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
    adjoint_b: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False, output_type: Any = None,
    grad_a: bool = False, grad_b: bool = False, name: Any = None,
) -> Tensor:  # fmt: skip
    if not (a_is_sparse or b_is_sparse):
        return math_ops.matmul(a, b, transpose_a, transpose_b, adjoint_a, adjoint_b, name)
    with name_scope(name, "MatMul", [a, b]) as scope:
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, a.dtype.base, name="b")
        return ops.sparse_mat_mul(
            a, b, transpose_a=transpose_a or adjoint_a, transpose_b=transpose_b or adjoint_b,
            a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, name=scope,
        )  # fmt: skip


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """`start`, `start + delta`, ... below `limit`."""
    return math_ops.range(start, limit, delta, name, dtype)


def zero_fraction(value: Any, name: Any = None) -> Tensor:
    from toolkit.client.nn import nn_ops

    return nn_ops.zero_fraction(value, name)


def global_norm(t_list: Any, name: Any = None) -> Any:
    from toolkit.client.math import clip_ops

    return clip_ops.global_norm(t_list, name)


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: Any = None) -> Any:
    from toolkit.client.math import clip_ops

    return clip_ops.clip_by_value(t, clip_value_min, clip_value_max, name)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: Any = None) -> Any:
    from toolkit.client.math import clip_ops

    return clip_ops.clip_by_norm(t, clip_norm, axes, name)


def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None, name: Any = None) -> Any:
    """All tensors scaled by clip_norm / max(norm, clip_norm), with their norm; NaN where that is not finite."""
    from toolkit.client.construction.context import get_default_graph
    from toolkit.client.math import clip_ops

    tensors: list[Any] = list(t_list)
    norm = clip_ops.global_norm(tensors, name) if use_norm is None else use_norm
    with name_scope(name, "clip_by_global_norm", [t for t in tensors if t is not None]) as scope:
        inverse = 1.0 / norm
        scale = clip_norm * ops.minimum(inverse, constant(1.0, norm.dtype.base) / clip_norm)
        scale = scale + (norm - norm)
        clipped: list[Any] = []
        for position, t in enumerate(tensors):
            if t is None:
                clipped.append(None)
                continue
            values = convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t, name=f"t_{position}")
            with get_default_graph().colocate_with(values):
                scaled = array_ops.identity(values * cast(scale, values.dtype), name=f"{scope}_{position}")
            clipped.append(IndexedSlices(scaled, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else scaled)
        return clipped, norm


def clip_by_average_norm(t: Any, clip_norm: Any, name: Any = None) -> Tensor:
    with name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        t = convert_to_tensor(t, name="t")
        count = math_ops.cast(array_ops.size(t), dtypes.float32)
        squares = t * t
        inverse = ops.rsqrt(math_ops.reduce_sum(squares, math_ops.range(array_ops.rank(t))))
        scaled = t * clip_norm
        return array_ops.identity(scaled * ops.minimum(inverse * count, constant(1.0) / clip_norm), name=scope)
