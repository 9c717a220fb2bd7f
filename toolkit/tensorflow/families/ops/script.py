# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Python functions as nodes: py_func, numpy_function, py_function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from toolkit.client.construction.convert import as_dtype, convert_to_tensor
from toolkit.client.functions import script_ops


def py_func(func: Any, inp: Any, Tout: Any, stateful: bool = True, name: Any = None) -> Any:
    return script_ops.py_func(func, inp, Tout, stateful, name)


def numpy_function(func: Any = None, inp: Any = None, Tout: Any = None, stateful: bool = True, name: Any = None) -> Any:
    return _called("numpy_function", script_ops.py_func, func, inp, Tout, {"stateful": stateful, "name": name})


def py_function(func: Any = None, inp: Any = None, Tout: Any = None, name: Any = None) -> Any:
    return _called("py_function", _immediate, func, inp, Tout, {"name": name})


def _immediate(func: Any, inp: Any, Tout: Any, name: Any = None) -> Any:
    from toolkit.runtime.sessions.immediate import immediate_function

    types = [as_dtype(each) for each in (Tout if isinstance(Tout, list | tuple) else [Tout])]
    given = [each if hasattr(each, "dtype") else convert_to_tensor(each) for each in inp]
    function = immediate_function(func, [as_dtype(each.dtype).base for each in given], types)
    return script_ops.call_python("EagerPyFunc", func, function, given, Tout, name)


def _called(what: str, make: Callable[..., Any], func: Any, inp: Any, types: Any, rest: dict[str, Any]) -> Any:
    """The call of a function, or, without one, the decorator that makes functions such calls."""
    if types is None:
        raise TypeError(f"{what} needs the types of the results: Tout=tf.float32, or a list of types")
    if func is not None:
        if inp is None:
            raise TypeError(f"{what} needs the list of tensors that the function is called with: inp=[x]")
        return make(func, inp, types, **rest)
    if inp is not None:
        raise TypeError(f"{what} as a decorator takes no tensors; the decorated function is called with them")

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return make(function, args, types, **rest)

        return call

    return decorate
