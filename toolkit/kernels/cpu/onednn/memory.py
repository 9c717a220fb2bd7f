"""Memory descriptors (shape, type, strides or "any") and memory objects (a descriptor and a place)."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.errors import InternalError
from toolkit.kernels.cpu.memory.addresses import address, address_of_view
from toolkit.kernels.cpu.onednn.library import require
from toolkit.kernels.tensors import BF16, F32, row_major
from toolkit.kernels.types import Array

#: numpy's types and oneDNN's numbers for them
DATA_TYPES: dict[Any, int] = {
    np.dtype(np.float16): 1,
    BF16: 2,
    F32: 3,
    np.dtype(np.int32): 4,
    np.dtype(np.int8): 5,
    np.dtype(np.uint8): 6,
}
_ANY_TAG = 1
_RAW = np.dtype(np.uint8)  # what buffers are made of


class Desc:
    """A memory descriptor; owns its handle unless a primitive descriptor does.

    Attributes:
        dtype: numpy's type of the tensor, None where a primitive chose the layout.
    """

    __slots__ = ("_keep", "_size", "dtype", "handle")

    def __init__(self, handle: int, keep: Any = None, dtype: Any = None):
        self.handle = handle
        self.dtype = dtype
        self._keep = keep
        self._size: int | None = None

    def __del__(self) -> None:
        if self._keep is None and callable(require):  # at the interpreter's end modules are emptied before this
            require().destroy("dnnl_memory_desc_destroy", self.handle)

    @property
    def size(self) -> int:
        """Bytes of a memory with this descriptor."""
        if self._size is None:
            self._size = require().size_of(self.handle)
        return self._size

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
    return Desc(handle, dtype=dtype)


@functools.lru_cache(maxsize=4096)
def any_layout(shape: tuple[int, ...], dtype: Any) -> Desc:
    """A tensor whose layout the primitive may choose."""
    handle = require().new("dnnl_memory_desc_create_with_tag", len(shape), dims(shape), DATA_TYPES[dtype], _ANY_TAG)
    return Desc(handle, dtype=dtype)


class _Part(Desc):
    """A part of a tensor. It counts with all bytes of the whole, for oneDNN does not say how far a part reaches."""

    __slots__ = ()

    def __init__(self, handle: int, whole: Desc):
        super().__init__(handle, dtype=whole.dtype)
        self._size = whole.size


def part(whole: Desc, shape: Sequence[int], start: Sequence[int]) -> Desc:
    """A part of a tensor, where it lies in that."""
    return _Part(require().new("dnnl_memory_desc_create_submemory", whole.handle, dims(shape), dims(start)), whole)


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
    """A memory object over a buffer that somebody else owns: oneDNN's only way to a tensor.

    Args:
        place: an array of the descriptor's type, or bytes; dense, or a view whose strides the descriptor has. None
            where the memory is pointed to its array later.
        offset: bytes from the start of `place`.
        keep: what else must live as long.

    Attributes:
        start: the address that it was made with; 0 where it is pointed to its array later.

    Raises:
        InternalError: the array has fewer bytes than the descriptor, or is of another type.
    """

    __slots__ = ("desc", "handle", "keep", "size", "start")

    def __init__(self, desc: Desc, place: Array | None = None, offset: int = 0, keep: Any = None):
        library = require()
        self.desc = desc
        self.size = desc.size
        self.start = 0
        if place is not None:
            _check_type(desc, place)
            self.start = (
                address_of_view(place, self.size)
                if offset == 0
                else address(place, offset + self.size, offset) + offset
            )
        self.handle = ctypes.c_void_p(library.new("dnnl_memory_create", desc.handle, library.engine, self.start))
        self.keep = (desc, place, keep)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            require().destroy("dnnl_memory_destroy", self.handle)

    def point_to(self, array: Array, offset: int = 0) -> None:
        """Use another buffer from now on, which the caller keeps.

        Raises:
            InternalError: it has fewer bytes than the descriptor behind that offset, or gaps.
        """
        require().set_handle(self.handle, ctypes.c_void_p(address(array, offset + self.size, offset) + offset))


def _check_type(desc: Desc, array: Array) -> None:
    if desc.dtype is not None and array.dtype != desc.dtype and array.dtype != _RAW:
        raise InternalError(f"an array of {array.dtype} was to be read by oneDNN as {desc.dtype}")


def over(array: Array) -> Memory:
    """A memory over a dense array, which it keeps."""
    return Memory(dense(array.shape, array.dtype), array)


def array_of(descs: Sequence[Desc]) -> Any:
    """Descriptors one behind the other, as functions of oneDNN take several."""
    return (ctypes.c_void_p * len(descs))(*[desc.handle for desc in descs])
