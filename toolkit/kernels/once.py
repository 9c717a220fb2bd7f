"""Things of which a process has one, however many threads ask for it first."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from toolkit.forks import free_in_children

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Making:
    """Attributes:
    lock: of who makes something; what is made may ask for itself with other arguments.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        free_in_children(self, "lock")


def once(make: Callable[_P, _T]) -> Callable[_P, _T]:
    """`functools.cache` under a lock: of two threads that ask at the same time none makes a second thing.

    A second library of kernels, say, would have an engine of its own, whose streams the primitives of the first refuse.
    """
    making = _Making()

    @functools.cache
    def made(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return make(*args, **kwargs)

    @functools.cache  # without a lock where it is known
    @functools.wraps(make)
    def get(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with making.lock:
            return made(*args, **kwargs)

    return cast("Callable[_P, _T]", get)  # callers need nothing else of it
