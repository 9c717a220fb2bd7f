"""Argument scopes: keyword arguments that functions are given for the length of a `with` block.

    with arg_scope([conv2d, fully_connected], weights_regularizer=l2_regularizer(0.01)) as scope:
        net = conv2d(net, 64, [3, 3])

A function takes part once it is decorated with `add_arg_scope`; what a call says itself goes before what scopes say.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

#: the keyword arguments that each function is given, by its key
Scope = dict[str, dict[str, Any]]

_open: list[Scope] = [{}]
#: the names of the arguments that have defaults, of each decorated function
_decorated: dict[str, tuple[str, ...]] = {}


def arg_scope_func_key(op: Any) -> str:
    """What a function is called in a scope."""
    return getattr(op, "_key_op", str(op))


def current_arg_scope() -> Scope:
    """The innermost open scope."""
    return _open[-1]


def add_arg_scope(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function, so that scopes give it arguments."""
    key = arg_scope_func_key(func)
    code = getattr(func, "__code__", None)
    count = len(getattr(func, "__defaults__", None) or ())
    if code is not None:
        # as in TensorFlow 1: a function without defaults has all of its arguments named
        first = code.co_argcount - count if count else 0
        _decorated[key] = code.co_varnames[first : code.co_argcount]
    else:
        _decorated[key] = ()

    @functools.wraps(func)
    def scoped(*args: Any, **kwargs: Any) -> Any:
        held = current_arg_scope().get(key)
        return func(*args, **({**held, **kwargs} if held else kwargs))

    scoped.__dict__["_key_op"] = key
    return scoped


def has_arg_scope(func: Any) -> bool:
    """Whether a function is decorated."""
    return arg_scope_func_key(func) in _decorated


def arg_scoped_arguments(func: Any) -> tuple[str, ...]:
    """The arguments of a decorated function that have defaults.

    Raises:
        ValueError: it is not decorated.
    """
    _require_decorated(func)
    return _decorated[arg_scope_func_key(func)]


def _require_decorated(func: Any) -> None:
    if not has_arg_scope(func):
        name = f"{getattr(func, '__module__', '')}.{getattr(func, '__name__', func)}"
        raise ValueError(f"{name} takes no arguments from scopes; decorate it with add_arg_scope")


@contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Generator[Scope]:
    """Give functions keyword arguments inside of the block.

    Args:
        list_ops_or_scope: decorated functions; or a scope that an earlier block gave, to be put in force again.

    Raises:
        TypeError: neither a list nor a scope.
        ValueError: a function is not decorated, or a scope is given together with arguments.
    """
    if isinstance(list_ops_or_scope, dict):
        if kwargs:
            raise ValueError(f"a scope is put in force as it is; {', '.join(kwargs)} belong to a list of functions")
        scope: Scope = dict(list_ops_or_scope)  # pyright: ignore[reportUnknownArgumentType]  # what a block gave
    elif isinstance(list_ops_or_scope, list | tuple):
        scope = dict(current_arg_scope())
        op: Any
        for op in list_ops_or_scope:  # pyright: ignore[reportUnknownVariableType]  # whatever is given
            _require_decorated(op)
            key = arg_scope_func_key(op)
            scope[key] = {**scope.get(key, {}), **kwargs}
    else:
        raise TypeError(f"arg_scope takes a list of functions or a scope, not {type(list_ops_or_scope).__name__}")
    _open.append(scope)
    try:
        yield scope
    finally:
        _open.pop()
