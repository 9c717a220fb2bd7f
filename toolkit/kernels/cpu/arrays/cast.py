"""Cast and Bitcast.

Conversions out of range follow C on the machines TensorFlow's wheels are built for; see `float_to_int`.
"""

from __future__ import annotations

from typing import Any

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.graph.dtypes import DType
from toolkit.kernels.cpu.common import NARROW_FLOATS, np, shape_text, wide
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

#: explicit mantissa bits, for `Truncate`
_MANTISSA = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}


def float_to_int(x: Array, target: Any) -> Array:
    """C's conversion as x86 does it: toward zero through a 32- or 64-bit integer, whose lowest value stands for
    what it cannot hold, then wrapping to the target's width."""
    if target.kind == "u" and target.itemsize == 8:
        return _float_to_uint64(x)
    through = np.dtype(np.int64 if target.itemsize == 8 or target == np.uint32 else np.int32)
    limit = 2.0 ** (through.itemsize * 8 - 1)
    x = x.astype(np.float64) if x.dtype.itemsize < 8 else x
    fits = (x >= -limit) & (x < limit)
    return np.where(fits, np.where(fits, x, 0).astype(through), np.iinfo(through).min).astype(target)


def _float_to_uint64(x: Array) -> Array:
    x = x.astype(np.float64) if x.dtype.itemsize < 8 else x
    low = float_to_int(x, np.dtype(np.int64)).astype(np.uint64)
    high = float_to_int(x - 2.0**63, np.dtype(np.int64)).astype(np.uint64) ^ np.uint64(1 << 63)
    return np.where(x >= 2.0**63, high, low)


def _truncate(x: Array, target: Any) -> Array:
    """Clear the mantissa bits that the target does not have, so that the conversion rounds toward zero."""
    drop = _MANTISSA.get(x.dtype.name, 0) - _MANTISSA.get(target.name, 99)
    if drop <= 0:
        return x
    bits = {8: np.uint64, 4: np.uint32, 2: np.uint16}[x.dtype.itemsize]
    keep = np.array(~((1 << drop) - 1) & (2 ** (x.dtype.itemsize * 8) - 1), bits)
    return (np.ascontiguousarray(x).view(bits) & keep).view(x.dtype).reshape(x.shape)


def cast_array(x: Array, target: DType, truncate: bool = False) -> Array:
    """`x` as another type, with TensorFlow's rules."""
    dtype = target.numpy
    if x.dtype == dtype:
        return x
    if dtype == np.bool_:
        return np.asarray(x != 0)
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    if target.is_floating and truncate:
        x = _truncate(x, dtype)
    elif dtype.kind in "iu" and x.dtype.kind not in "iub":
        return float_to_int(wide(x), dtype) if target.size else x.astype(dtype)
    if dtype.kind == "V" and x.dtype.kind in "iub" and not target.is_floating:  # int4 and its like wrap
        return np.asarray(x).astype(np.int64).astype(np.int8).astype(dtype)
    if dtype in NARROW_FLOATS and x.dtype.kind in "iu" and x.dtype.itemsize > 2:
        x = x.astype(np.float32)
    return np.asarray(x.astype(dtype))


@kernel("Cast", "_HostCast")
def cast(op: KernelNode) -> Compute:
    source, target, truncate = op.input_types[0].base, op.output_types[0], bool(op.attr("Truncate", False))
    if source is not target and not {source.kind, target.kind}.isdisjoint("srv"):
        raise UnimplementedError(f"Cast {source} to {target} is not supported", node=op.name)

    def compute(x: Array) -> Array:
        return cast_array(x, target, truncate)

    return compute


@kernel("Bitcast")
def bitcast(op: KernelNode) -> Compute:
    """The same bytes as another type; a last axis appears or goes when the sizes differ."""
    dtype = op.output_types[0].numpy

    def compute(x: Array) -> Array:
        have, want = x.dtype.itemsize, dtype.itemsize
        x = np.ascontiguousarray(x).reshape(x.shape)
        if have == want:
            return x.view(dtype)
        if have > want:
            return x.reshape(-1).view(dtype).reshape(*x.shape, have // want)
        if x.ndim == 0 or x.shape[-1] != want // have:
            raise InvalidArgumentError(
                f"Cannot bitcast from {op.input_types[0]} to {op.output_types[0]}: the last dimension of "
                f"{shape_text(x)} must be {want // have}"
            )
        return x.reshape(-1).view(dtype).reshape(x.shape[:-1])

    return compute
