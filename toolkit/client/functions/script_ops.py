"""Nodes that call a Python function: `py_func`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype
from toolkit.client.construction.create import create_op
from toolkit.client.construction.tensor import TensorLike
from toolkit.client.functions.python_functions import PythonFunction, register
from toolkit.errors import UsageError


def py_func(
    func: Callable[..., Any],
    inp: Sequence[TensorLike],
    Tout: DTypeLike | Sequence[DTypeLike],
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """What a Python function makes of arrays, in each step anew.

    The function is not part of the graph's file: such a graph runs in the process alone that made it. Nothing is known
    of the shapes that come out; say what is with `set_shape`.

    Args:
        func: takes an array for each of `inp` (a NumPy number or bytes for a scalar) and returns an array for each of
            `Tout`, of just that type.
        Tout: the type of each result, or one type for a single one.
        stateful: False: it may be left out, or called once for nodes that are alike.

    Returns:
        A tensor for each type, or one; the operation where there are no types.

    Raises:
        UsageError: `func` is no function.
    """
    return call_python("PyFunc" if stateful else "PyFuncStateless", func, PythonFunction(func), inp, Tout, name)


def call_python(
    op: str, func: Any, function: PythonFunction, inp: Sequence[TensorLike], types: Any, name: str | None = None
) -> Any:
    """A node of one of the three ops that call Python.

    Raises:
        UsageError: `func` is no function.
    """
    if not callable(func):
        raise UsageError(f"{func!r} is no function; give one that takes an array for each input")
    is_list = isinstance(types, list | tuple)
    wanted = [as_dtype(each) for each in (types if is_list else [types])]  # type: ignore[union-attr]
    token = register(function, get_default_graph())
    made = create_op(op, [list(inp)], {"token": token, "Tout": wanted}, name)
    if not is_list:
        return made.outputs[0]
    return list(made.outputs) if wanted else made
