"""Kernels that run node by node on oneDNN: primitives kept by shape, and the registration above NumPy's kernels.

Such a kernel is made with NumPy's beside it, which takes over for what is too small to be worth a primitive, for
what is wrong (it knows the messages), and for what oneDNN cannot do or has only reference code for. The library is
loaded when the first tensor of a fair size comes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from toolkit.forks import free_in_children
from toolkit.graph import dtypes
from toolkit.kernels.cpu.memory import guard
from toolkit.kernels.cpu.memory.addresses import aligned
from toolkit.kernels.cpu.onednn.library import (
    OneDnnError,
    is_present,
    library,
    processor_has_bfloat16,
    require,
    threads,
)
from toolkit.kernels.cpu.onednn.memory import Desc, Memory, dense, strided
from toolkit.kernels.cpu.onednn.primitive import Arg, Primitive, argument_array, new_stream, reorder
from toolkit.kernels.registry import Compute, Factory, KernelNode, kernel
from toolkit.kernels.tensors import row_major
from toolkit.kernels.types import Array
from toolkit.target.target import Target

PRIORITY = 1  # over NumPy's kernels, below what a plugin is likely to ask for
_MAX_KEPT = 512  # primitives; the one that was used longest ago goes
_MAX_PACKED = 1 << 29  # bytes of constants in layouts of oneDNN's own

Accelerated = Callable[[KernelNode, Compute], Compute]


def onednn(
    *ops: str, numpy: Factory, attrs: Sequence[str] = ("T",), narrow: bool = False
) -> Callable[[Accelerated], Accelerated]:
    """Register kernels for float32 over their NumPy kernels.

    Args:
        numpy: the factory of the NumPy kernels.
        attrs: those that must be float32.
        narrow: register one for bfloat16 too, where the processor multiplies it.
    """

    def register(factory: Accelerated) -> Accelerated:
        def build(op: KernelNode) -> Compute:
            return factory(op, numpy(op))

        build.__module__ = factory.__module__  # reports say where a kernel is
        for dtype, available in ((dtypes.float32, is_present), (dtypes.bfloat16, _has_bfloat16))[: 1 + narrow]:
            types = dict.fromkeys(attrs, (dtype,))
            kernel(*ops, types=types, priority=PRIORITY, label="onednn", available=available)(build)
        return factory

    return register


def _has_bfloat16() -> bool:
    return is_present() and processor_has_bfloat16()


def is_worth(amount: int, least: int) -> bool:
    """Whether there is enough work for a primitive, and a library to do it."""
    return amount > least and library() is not None


class _Own:
    """What a thread has for itself: a stream, and scratch memory that grows."""

    def __init__(self) -> None:
        self.stream = new_stream()
        self._scratch = aligned(0, "scratch memory of a thread")

    def scratch(self, size: int) -> Array:
        """So many bytes, or more."""
        if self._scratch.nbytes < size:
            self._scratch = aligned(size, "scratch memory of a thread")
        return self._scratch

    def __del__(self) -> None:
        if callable(require):  # at the interpreter's end modules are emptied before this
            require().destroy("dnnl_stream_destroy", self.stream)


_threads = threading.local()


def _own() -> _Own:
    try:
        return _threads.own
    except AttributeError:
        _threads.own = _Own()
        return _threads.own


class Kept:
    """A primitive and the layouts of its arguments, run over one set of arrays after another, by any thread.

    Args:
        processor: says when other threads are let in.

    Attributes:
        primitive: what is run.
    """

    def __init__(self, primitive: Primitive, arguments: Sequence[tuple[int, Desc]], processor: Target):
        self.primitive = primitive
        self._arguments = list(arguments)
        scratch = primitive.scratch
        self._scratch = scratch.size if scratch is not None else 0
        if scratch is not None:
            self._arguments.append((Arg.SCRATCHPAD, scratch))
        size = sum(desc.size for _, desc in arguments)
        is_short = size < processor.threads.released
        self._execute: Any = require().execute_held if is_short else require().execute
        self._free: list[tuple[list[Memory], Any]] = []  # memories that no thread is using

    def run(self, *arrays: Array) -> None:
        """Execute over dense arrays, one for each argument, in their order.

        Raises:
            OneDnnError: it failed.
            InternalError: an array is smaller than its layout, or has gaps.
        """
        if guard.is_on():
            self._run_guarded(arrays)
        else:
            self._run(arrays)

    def _run(self, arrays: Sequence[Array]) -> None:
        own = _own()
        try:
            memories, prepared = self._free.pop()
        except IndexError:
            memories = [Memory(desc) for _, desc in self._arguments]
            prepared = argument_array(
                self.primitive, [(arg, memory) for (arg, _), memory in zip(self._arguments, memories, strict=True)]
            )
        for memory, array in zip(memories, arrays, strict=False):
            memory.point_to(array)
        if self._scratch:
            memories[-1].point_to(own.scratch(self._scratch))
        status = self._execute(self.primitive.handle, own.stream, len(memories), prepared)
        self._free.append((memories, prepared))
        if status:
            raise OneDnnError("dnnl_primitive_execute", status)

    def _run_guarded(self, arrays: Sequence[Array]) -> None:
        """On copies between red zones."""
        copies = [guard.empty(array.shape, array.dtype, f"argument {i}") for i, array in enumerate(arrays)]
        for copy, array in zip(copies, arrays, strict=True):
            np.copyto(copy, array)
        self._run(copies)
        guard.check(f"{self.primitive.implementation}, by itself")
        for copy, array in zip(copies, arrays, strict=True):
            if array.flags.writeable:
                np.copyto(array, copy)

    def like(self, x: Array) -> Array:
        """What becomes of an array, as an array of the same shape and type."""
        y = np.empty(x.shape, x.dtype)
        self.run(np.ascontiguousarray(x), y)
        return y


class _Recent:
    """Things by key, made when they are first asked for; those unused for longest go."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()
        free_in_children(self, "_lock")

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What was made for the key; None where oneDNN refused, which is not tried again."""
        key = (key, threads())  # a primitive is made for so many
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        try:
            made = make()
        except OneDnnError:
            made = None
        with self._lock:
            self._found[key] = made
            while len(self._found) > self._most:
                self._found.popitem(last=False)
        return made


KEPT = _Recent(_MAX_KEPT)


class _Packed:
    """Constants in a layout that a primitive chose, as long as the constants live."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._found: OrderedDict[tuple[int, int], tuple[Any, Kept, Array]] = OrderedDict()
        self._lock = threading.RLock()  # an array may die while a thread is in here
        free_in_children(self, "_lock")

    def get(self, array: Array, conversion: Kept, size: int) -> Array:
        """The array in the other layout, of so many bytes; converted again each time when the array may change."""
        if not _is_constant(array):
            return _converted(array, conversion, size)
        key = (id(array), id(conversion))
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
                return found[2]
        packed = _converted(array, conversion, size)
        with self._lock:
            gone = [self._drop(key)]
            self._found[key] = (ref(array, lambda _: self._drop(key)), conversion, packed)
            self._held += packed.nbytes
            while self._held > self._most:
                gone.append(self._drop(next(iter(self._found))))
        # primitives go behind the lock: the library's is taken for that, and within it an array may die
        gone.clear()
        return packed

    def _drop(self, key: tuple[int, int]) -> Any:
        """Forget an array in another layout; what is given back is whoever's last to hold it."""
        with self._lock:
            found = self._found.pop(key, None)
            if found is not None:
                self._held -= found[2].nbytes
        return found


PACKED = _Packed(_MAX_PACKED)


def _is_constant(array: Array) -> bool:
    """Whether nobody can write to the array: it is a view of immutable bytes, as constants of graphs are."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return isinstance(owner, bytes) or (isinstance(owner, memoryview) and owner.readonly)


def _converted(array: Array, conversion: Kept, size: int) -> Array:
    target = aligned(size)
    conversion.run(np.ascontiguousarray(array), target)
    return target


def conversion(source: Desc, target: Desc, processor: Target) -> Kept:
    """A copy that changes layout."""
    return Kept(reorder(source, target), [(Arg.SRC, source), (Arg.DST, target)], processor)


def transposed(x: Array, axes: Sequence[int], processor: Target) -> Array:
    """A contiguous copy with the axes in another order, by oneDNN."""
    x = np.ascontiguousarray(x)
    shape = tuple(x.shape[axis] for axis in axes)
    y = np.empty(shape, x.dtype)

    def make() -> Kept:
        steps = row_major(x.shape)
        source = strided(shape, x.dtype, tuple(steps[axis] for axis in axes))
        return conversion(source, dense(shape, x.dtype), processor)

    kept = KEPT.get(("transpose", x.shape, x.dtype, tuple(axes)), make)
    kept.run(x, y)
    return y


def last(x: Array, processor: Target, *, channels_first: bool) -> Array:
    """A dense channels-last tensor."""
    return transposed(x, (0, *range(2, x.ndim), 1), processor) if channels_first else np.ascontiguousarray(x)


def restored(x: Array, processor: Target, *, channels_first: bool) -> Array:
    """A channels-last tensor in the node's layout."""
    return transposed(x, (0, x.ndim - 1, *range(1, x.ndim - 1)), processor) if channels_first else x
