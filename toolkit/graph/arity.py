"""Whether functions that plugins register can be called as they will be; our own are held to that by tests."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from toolkit.errors import GraphError

#: what a compute gets before its inputs, by kind of kernel
_BEFORE = {"pure": (), "stateful": ("step",), "async": ("step", "done")}


def require(function: Callable[..., Any], count: int, what: str) -> None:
    """Refuse a function that cannot be called with `count` positional arguments.

    Raises:
        GraphError: it takes fewer or more.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return
    try:
        signature.bind(*[None] * count)
    except TypeError:
        raise GraphError(f"{what}; '{function.__qualname__}' is declared {_shown(function, signature)}") from None


def _shown(function: Callable[..., Any], signature: inspect.Signature) -> str:
    return f"{function.__name__}({', '.join(signature.parameters)})"


def checked(factory: Callable[[Any], Any], kind: str) -> Callable[[Any], Any]:
    """The factory, with the compute that it makes for a node checked against the node's inputs."""

    @functools.wraps(factory)
    def make(op: Any) -> Any:
        compute = factory(op)
        if not callable(compute):
            raise GraphError(f"the kernel factory of {op.op} must return a function, not {compute!r}", node=op.name)
        names = [*_BEFORE[kind], *(f"input {i}" for i in range(len(op.input_types)))]
        what = f"a {kind} kernel of {op.op} is called with ({', '.join(names)})"
        try:
            require(compute, len(names), what)
        except GraphError as error:
            raise error.at(node=op.name) from None
        return compute

    return make
