"""Logarithms and sines of the platform's C library, over whole arrays.

TensorFlow's random kernels call `logf`, `sincosf`, `log` and `sincos` number by number, while NumPy has vector
forms of its own that differ in the last bit now and then. To give the same numbers the library's functions are
wrapped as ufuncs, by NumPy's documented C interface (PyUFunc_FromFuncAndData over its loops for C functions).
Where that cannot be done, NumPy's functions are used, float32 evaluated in float64 and rounded once: then about one
and a half of a hundred normals differ in the last bit.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.kernels.types import Array

#: places in NumPy's table of ufunc functions, part of its binary interface
_FROM_FUNC_AND_DATA = 1
_LOOPS = {1: (6, 5), 2: (14, 15)}  # by the number of arguments: of float32, of float64
_NONE_IDENTITY = -1

Function = Callable[..., Array]

#: what the ufuncs point to, which they do not own
_kept: list[Any] = []


def _table() -> Any:
    """NumPy's ufunc functions as an array of addresses."""
    capsule: Any = np._core._multiarray_umath._UFUNC_API  # type: ignore[attr-defined]  # as import_ufunc() does in C
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(pointer_of(capsule, name_of(capsule)), ctypes.POINTER(ctypes.c_void_p))


def _library(name: str) -> Any:
    """The C library that has this function: the process's own, or libm."""
    for file in (None, "libm.so.6"):
        try:
            library = ctypes.CDLL(file)
            if hasattr(library, name) and hasattr(library, name + "f"):
                return library
        except (OSError, TypeError):  # Windows has no library of the process
            continue
    raise OSError(f"no C library with {name} and {name}f")


def _wrap(name: str, arguments: int) -> Function:
    """A ufunc over the library's `name` (float64) and `namef` (float32)."""
    table, library = _table(), _library(name)
    loops = (ctypes.c_void_p * 2)(*(table[place] for place in _LOOPS[arguments]))
    data = (ctypes.c_void_p * 2)(*(ctypes.cast(getattr(library, f), ctypes.c_void_p) for f in (name + "f", name)))
    numbers = [np.dtype(kind).num for kind in (np.float32, np.float64) for _ in range(arguments + 1)]
    types = (ctypes.c_byte * len(numbers))(*numbers)
    text = ctypes.create_string_buffer(name.encode())
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, *[ctypes.c_void_p] * 3, *[ctypes.c_int] * 4, *[ctypes.c_void_p] * 2, ctypes.c_int
    )(table[_FROM_FUNC_AND_DATA])
    _kept.append((loops, data, types, text, library))
    places = [ctypes.addressof(part) for part in (loops, data, types)]
    return make(*places, 2, arguments, 1, _NONE_IDENTITY, ctypes.addressof(text), ctypes.addressof(text), 0)


def rounded(function: Function) -> Function:
    """NumPy's function; float32 by way of float64."""
    return lambda *values: function(*(v.astype(np.float64) for v in values)).astype(values[0].dtype)


def _choose(name: str, spare: Function, arguments: int = 1) -> Function:
    try:
        function = _wrap(name, arguments)
        samples = [0.5, 0.75][:arguments]
        if math.isclose(function(*map(np.float64, samples)), getattr(math, name)(*samples)):
            return function
    except (AttributeError, OSError, ValueError):  # another platform, or a NumPy that keeps its table elsewhere
        pass
    return rounded(spare)


log: Function = _choose("log", np.log)
log1p: Function = _choose("log1p", np.log1p)
exp: Function = _choose("exp", np.exp)
sin: Function = _choose("sin", np.sin)
cos: Function = _choose("cos", np.cos)
power: Function = _choose("pow", np.power, 2)
