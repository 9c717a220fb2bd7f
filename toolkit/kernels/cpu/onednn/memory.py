"""Memory descriptors (shape, type, strides or "any") and memory objects (a descriptor and a place)."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from toolkit.kernels.cpu.onednn.library import require
from toolkit.kernels.types import Array

#: numpy's types and oneDNN's numbers for them
DATA_TYPES: dict[Any, int] = {
    np.dtype(np.float16): 1,
    np.dtype(ml_dtypes.bfloat16): 2,
    np.dtype(np.float32): 3,
    np.dtype(np.int32): 4,
    np.dtype(np.int8): 5,
    np.dtype(np.uint8): 6,
}
F32 = np.dtype(np.float32)
BF16 = np.dtype(ml_dtypes.bfloat16)
_ANY_TAG = 1
ALIGNMENT = 64  # bytes: a cache line, and the widest vector


class Desc:
    """A memory descriptor; owns its handle unless a primitive descriptor does."""

    __slots__ = ("_keep", "handle")

    def __init__(self, handle: int, keep: Any = None):
        self.handle = handle
        self._keep = keep

    def __del__(self) -> None:
        if self._keep is None and callable(require):  # at the interpreter's end modules are emptied before this
            require().call("dnnl_memory_desc_destroy", self.handle)

    @property
    def size(self) -> int:
        """Bytes of a memory with this descriptor."""
        return require().size_of(self.handle)

    def same(self, other: Desc) -> bool:
        return require().equal(self.handle, other.handle)


def dims(values: Sequence[int]) -> Any:
    """An int64 array for oneDNN."""
    return (ctypes.c_int64 * len(values))(*values)


@functools.lru_cache(maxsize=4096)
def strided(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...]) -> Desc:
    """A plain tensor with strides in elements."""
    handle = require().new(
        "dnnl_memory_desc_create_with_strides", len(shape), dims(shape), DATA_TYPES[dtype], dims(strides)
    )
    return Desc(handle)


@functools.lru_cache(maxsize=4096)
def any_layout(shape: tuple[int, ...], dtype: Any) -> Desc:
    """A tensor whose layout the primitive may choose."""
    return Desc(require().new("dnnl_memory_desc_create_with_tag", len(shape), dims(shape), DATA_TYPES[dtype], _ANY_TAG))


def part(whole: Desc, shape: Sequence[int], start: Sequence[int]) -> Desc:
    """A part of a tensor, where it lies in that."""
    return Desc(require().new("dnnl_memory_desc_create_submemory", whole.handle, dims(shape), dims(start)), keep=whole)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a dense tensor, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def dense(shape: Sequence[int], dtype: Any) -> Desc:
    """A dense row-major tensor."""
    return strided(tuple(shape), dtype, row_major(shape))


def channels_last(shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None) -> Desc:
    """A tensor that lies in memory as N, spatial, C, with the logical order N, C, spatial that oneDNN wants."""
    own = tuple(strides) if strides is not None else row_major(shape)
    order = (0, len(shape) - 1, *range(1, len(shape) - 1))
    return strided(tuple(shape[i] for i in order), dtype, tuple(own[i] for i in order))


def matrix(shape: Sequence[int], rank: int, dtype: Any = F32, *, transposed: bool = False) -> Desc:
    """An operand of a batched product: missing axes are of size 1 (broadcast), a transposition is in the strides."""
    full = (1,) * (rank - len(shape)) + tuple(shape)
    strides = list(row_major(full))
    if transposed:
        full = (*full[:-2], full[-1], full[-2])
        strides[-1], strides[-2] = strides[-2], strides[-1]
    return strided(full, dtype, tuple(strides))


class Memory:
    """A memory object over a buffer that somebody else owns; `keep` holds on to that."""

    __slots__ = ("desc", "handle", "keep")

    def __init__(self, desc: Desc, address: int, keep: Any = None):
        library = require()
        self.desc = desc
        self.handle = ctypes.c_void_p(library.new("dnnl_memory_create", desc.handle, library.engine, address))
        self.keep = keep

    def __del__(self) -> None:
        require().call("dnnl_memory_destroy", self.handle)

    def point_to(self, address: int) -> None:
        """Use another buffer of the same layout from now on."""
        require().call("dnnl_memory_set_data_handle", self.handle, address)


def over(array: Array) -> Memory:
    """A memory over a dense array, which it keeps."""
    return Memory(dense(array.shape, array.dtype), address_of(array), keep=array)


def address_of(array: Array) -> int:
    """Where an array's first element is."""
    try:
        return ctypes.addressof(_Byte.from_buffer(array))
    except (TypeError, ValueError):  # of a type of its own, read-only, empty, or with gaps
        return array.__array_interface__["data"][0]


_Byte = ctypes.c_char  # the buffer protocol answers in a quarter of the time


def aligned(size: int) -> Array:
    """A fresh buffer of bytes that starts at a multiple of `ALIGNMENT`."""
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -address_of(raw) % ALIGNMENT
    return raw[start : start + size]
