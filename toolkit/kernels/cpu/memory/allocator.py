"""NumPy's allocator of array data, which may be replaced (NEP 49): its functions, and where they are put.

`toolkit.limits` counts what a step allocates, `zones` puts red zones around it.
"""

# ctypes' functions and structures have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

_SET_HANDLER, _GET_HANDLER = 304, 305  # places in NumPy's table of functions
_HANDLER_NAME = b"mem_handler"

#: the functions of a handler: what each returns and takes, the context first
KINDS: dict[str, tuple[Any, ...]] = {
    "malloc": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t),
    "calloc": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t),
    "realloc": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t),
    "free": (None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t),
}


class Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in KINDS),
    )


@functools.cache
def _numpy() -> tuple[Any, Any]:
    """NumPy's functions that set and get the handler of a thread."""
    import numpy as np

    core = importlib.import_module("numpy._core" if hasattr(np, "_core") else "numpy.core")
    pointer: Any = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
    get_handler = ctypes.PYFUNCTYPE(ctypes.py_object)(table[_GET_HANDLER])
    return set_handler, get_handler


def set_handler(handler: Any) -> Any:
    """Use a handler (a capsule) in this thread; the one that was there."""
    return _numpy()[0](handler)


def capsule_of(handler: Handler) -> Any:
    """A handler as NumPy takes it; who makes it keeps the handler."""
    new: Any = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(handler), _HANDLER_NAME, None)


def in_place() -> Handler:
    """The handler of this thread, as it is: what is written into it holds."""
    pointer: Any = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Handler.from_address(pointer(_numpy()[1](), _HANDLER_NAME))


def underneath() -> Handler:
    """The functions to pass on to: those of this thread, or NumPy's own where they were replaced everywhere."""
    found = in_place()
    return _own if _own is not None and ctypes.addressof(found) == _replaced else found


_own: Handler | None = None
_replaced = 0


def replace_everywhere(handler: Handler) -> None:
    """Have the handler that every thread begins with do what another one does.

    Args:
        handler: its `free` and `realloc` are given what was allocated before as well.
    """
    global _own, _replaced
    found = in_place()
    _own, _replaced = Handler.from_buffer_copy(found), ctypes.addressof(found)
    put(found, handler)


def put(target: Any, source: Any) -> None:
    """Give a handler, or what has such fields, the functions of another one."""
    target.context = source.context
    for name in KINDS:
        setattr(target, name, getattr(source, name))
