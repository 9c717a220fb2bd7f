"""Memory is accounted where it is taken: NumPy asks here before it allocates the data of an array.

Every tensor, every buffer of a kernel and every arena of compiled code is a NumPy array. NumPy lets its allocator be
replaced (NEP 49), for each array from the moment on that the replacement is set in the thread; so one place sees all
of them, knows their sizes before there is anything, and refuses what does not fit: NumPy raises MemoryError with the
shape and the dtype, and `exhaustion` makes the step's error of it. Nothing is counted, and nothing costs anything, in
sessions without limits.
"""

# ctypes' functions and structures have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import atexit
import ctypes
import functools
import resource
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolkit.kernels.cpu.memory import allocator
from toolkit.kernels.cpu.native.compiler import compiler, is_enabled
from toolkit.limits.limits import Limits

_NO_LIMIT = 1 << 62


class _Book(ctypes.Structure):
    """What the functions of a handler read and write, and where they pass on what they let through."""

    _fields_ = (
        ("used", ctypes.c_int64),
        ("memory", ctypes.c_int64),
        ("tensor", ctypes.c_int64),
        ("peak", ctypes.c_int64),
        ("context", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in allocator.KINDS),
    )


class Account:
    """The memory of one session, or of one run.

    Arrays that are made within `charging` count until they are freed, wherever that happens.
    """

    def __init__(self, limits: Limits):
        self.limits = limits
        self._book = _Book(used=0, memory=limits.memory or _NO_LIMIT, tensor=limits.tensor or _NO_LIMIT)
        self._strict = _make_handler(self._book, strict=True)
        self._lenient = _make_handler(self._book, strict=False)

    @property
    def used(self) -> int:
        """Bytes that are alive."""
        return max(0, int(self._book.used))

    @property
    def peak(self) -> int:
        """The most bytes that were ever alive at one time."""
        return int(self._book.peak)

    @property
    def left(self) -> int:
        """Bytes that may still be allocated."""
        return max(0, int(self._book.memory) - self.used)

    @contextmanager
    def charging(self, *, tensors: bool = True) -> Generator[None]:
        """Within this, the arrays that this thread makes are counted, and refused where they do not fit.

        Args:
            tensors: an array is a tensor, and no larger than one may be.
        """
        before, state = allocator.set_handler(self._strict if tensors else self._lenient), _state()
        _of_thread.state = self, tensors
        try:
            yield
        finally:
            _of_thread.state = state
            allocator.set_handler(before)

    @property
    def is_charging(self) -> bool:
        """Whether the arrays of this thread are tensors that are counted here."""
        return _state() == (self, True)


_of_thread = threading.local()


def _state() -> tuple[Account | None, bool]:
    return getattr(_of_thread, "state", (None, False))


def current() -> Account | None:
    """The account that this thread's arrays are charged to."""
    return _state()[0]


@contextmanager
def charging(account: Account | None) -> Generator[None]:
    """`Account.charging` where there is one: for threads that go on with what another one has begun."""
    if account is None:
        yield
    else:
        with account.charging():
            yield


@contextmanager
def whole() -> Generator[None]:
    """Within this, an array is memory for many tensors, and may be larger than one of them."""
    account = current()
    if account is None:
        yield
    else:
        with account.charging(tensors=False):
            yield


# -- NumPy's side ----------------------------------------------------------------------------------------------------

#: arrays may be freed long after their account is gone
_kept: list[Any] = []


def _keep(thing: Any) -> None:
    _kept.append(thing)


def _make_handler(book: _Book, *, strict: bool) -> Any:
    """A capsule with a handler over this book, which passes on to the handler that is in place.

    Args:
        strict: it refuses what is larger than a tensor may be.
    """
    inner = allocator.underneath()
    allocator.put(book, inner)
    handler = allocator.Handler(name=b"graphmill limits", version=1, context=ctypes.addressof(book))
    if is_enabled() and compiler() is not None:
        for name, address in _native(strict).items():
            setattr(handler, name, address)
    else:
        _interpreted(handler, book, strict)
    _keep((handler, book))
    capsule = allocator.capsule_of(handler)
    _keep(capsule)
    return capsule


_PRELUDE = """
declare i64 @malloc_usable_size(ptr)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)

define internal i1 @refused(ptr %book, i64 %size) {
  %used = load i64, ptr %book
  %memory.at = getelementptr i64, ptr %book, i64 1
  %memory = load i64, ptr %memory.at
  %tensor.at = getelementptr i64, ptr %book, i64 2
  %tensor = load i64, ptr %tensor.at
  %left = sub i64 %memory, %used
  %none = icmp slt i64 %left, 0
  %over = icmp ugt i64 %size, %left
  %larger = icmp ugt i64 %size, %tensor
  %large = and i1 %larger, STRICT
  %full = or i1 %none, %over
  %answer = or i1 %full, %large
  ret i1 %answer
}

define internal void @note(ptr %book, ptr %block, i64 %sign) {
  %bytes = call i64 @malloc_usable_size(ptr %block)
  %change = mul i64 %bytes, %sign
  %before = atomicrmw add ptr %book, i64 %change monotonic
  %after = add i64 %before, %change
  %peak.at = getelementptr i64, ptr %book, i64 3
  %most = atomicrmw max ptr %peak.at, i64 %after monotonic
  ret void
}
"""
_INNER = """
  %context.at = getelementptr ptr, ptr %book, i64 4
  %context = load ptr, ptr %context.at
  %inner.at = getelementptr ptr, ptr %book, i64 PLACE
  %inner = load ptr, ptr %inner.at
"""
_NATIVE = {
    "malloc": """
define ptr @run(ptr %book, i64 %size) {
  %refused = call i1 @refused(ptr %book, i64 %size)
  br i1 %refused, label %no, label %yes
yes:INNER
  %block = call ptr %inner(ptr %context, i64 %size)
  call void @note(ptr %book, ptr %block, i64 1)
  ret ptr %block
no:
  ret ptr null
}
""",
    "calloc": """
define ptr @run(ptr %book, i64 %count, i64 %each) {
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %each)
  %size = extractvalue { i64, i1 } %product, 0
  %overflow = extractvalue { i64, i1 } %product, 1
  %over = call i1 @refused(ptr %book, i64 %size)
  %refused = or i1 %overflow, %over
  br i1 %refused, label %no, label %yes
yes:INNER
  %block = call ptr %inner(ptr %context, i64 %count, i64 %each)
  call void @note(ptr %book, ptr %block, i64 1)
  ret ptr %block
no:
  ret ptr null
}
""",
    "realloc": """
define ptr @run(ptr %book, ptr %old, i64 %size) {
  %had = call i64 @malloc_usable_size(ptr %old)
  %more = sub i64 %size, %had
  %grows = icmp ugt i64 %size, %had
  %wanted = select i1 %grows, i64 %more, i64 0
  %over = call i1 @refused(ptr %book, i64 %wanted)
  br i1 %over, label %no, label %yes
yes:INNER
  call void @note(ptr %book, ptr %old, i64 -1)
  %block = call ptr %inner(ptr %context, ptr %old, i64 %size)
  %failed = icmp eq ptr %block, null
  %stays = select i1 %failed, ptr %old, ptr %block
  call void @note(ptr %book, ptr %stays, i64 1)
  ret ptr %block
no:
  ret ptr null
}
""",
    "free": """
define void @run(ptr %book, ptr %block, i64 %size) {
  call void @note(ptr %book, ptr %block, i64 -1)INNER
  call void %inner(ptr %context, ptr %block, i64 %size)
  ret void
}
""",
}


@functools.cache
def _native(strict: bool) -> dict[str, int]:
    """The addresses of a handler's functions as machine code."""
    machine = compiler()
    assert machine is not None
    prelude = _PRELUDE.replace("STRICT", "true" if strict else "false")
    found: dict[str, int] = {}
    for place, (name, text) in enumerate(_NATIVE.items(), start=5):
        function = machine.function(prelude + text.replace("INNER", _INNER.replace("PLACE", str(place))), {})
        _keep(function)
        found[name] = function.address
    return found


def _interpreted(handler: allocator.Handler, book: _Book, strict: bool) -> None:
    """The same in Python, where LLVM is not installed, and less exact.

    Memory is freed while exceptions are on their way, when no Python may run: so what is alive is not counted but
    asked of the system, for the whole process, and only when something larger is wanted.
    """
    inner: dict[str, Any] = {  # NumPy's own want the interpreter's lock to be held
        name: ctypes.PYFUNCTYPE(*kind)(getattr(book, name)) for name, kind in allocator.KINDS.items()
    }
    context, before = book.context, _mapped()

    def refused(size: int) -> bool:
        if size < _SMALL:
            return False
        book.used = max(0, _mapped() - before)
        book.peak = max(book.peak, min(book.used + size, book.memory))
        return (strict and size > book.tensor) or size > book.memory - book.used

    def malloc(_: int, size: int) -> int | None:
        return None if refused(size) else inner["malloc"](context, size)

    def calloc(_: int, count: int, each: int) -> int | None:
        return None if refused(count * each) else inner["calloc"](context, count, each)

    def realloc(_: int, old: int | None, size: int) -> int | None:
        return None if refused(size) else inner["realloc"](context, old, size)

    for call in (malloc, calloc, realloc):
        made: Any = ctypes.CFUNCTYPE(*allocator.KINDS[call.__name__])(call)
        _keep(made)
        setattr(handler, call.__name__, ctypes.cast(made, ctypes.c_void_p).value)
    handler.context, handler.free = context, book.free


_SMALL = 1 << 16  # bytes


def _mapped() -> int:
    """Bytes of data that the process has asked the system for."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    except OSError:
        return 0


@atexit.register
def _give_back() -> None:
    """Arrays that outlive the interpreter are freed by NumPy's own functions: ours may be gone by then."""
    for thing in _kept:
        if isinstance(thing, tuple):
            handler, book = thing
            allocator.put(handler, book)
