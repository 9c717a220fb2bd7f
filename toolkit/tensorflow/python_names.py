# What is put into the standard library's modules, and taken out again, has no types.
# pyright: basic
"""Names that Python 3's library had when TensorFlow 1's programs were written, for while such a program runs."""

from __future__ import annotations

import collections
import collections.abc
import inspect
import math
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


def _getargspec(func: Any) -> Any:
    """What Python 3.11 dropped: arguments, *args, **kwargs and defaults of a function.

    Raises:
        ValueError: it has arguments by name alone.
    """
    from toolkit.tensorflow.families.framework.internal_tools import getargspec

    if inspect.getfullargspec(func).kwonlyargs:
        raise ValueError("the function has arguments by name alone; write inspect.getfullargspec")
    return getargspec(func)


def _wanted() -> list[tuple[Any, str, Any]]:
    """What holds a name, the name, and what it stood for."""
    import base64
    import fractions

    kinds = [(collections, name, getattr(collections.abc, name)) for name in collections.abc.__all__]
    return [
        *kinds,
        (time, "clock", time.process_time),
        (inspect, "getargspec", _getargspec),
        (threading.Thread, "isAlive", threading.Thread.is_alive),
        (fractions, "gcd", math.gcd),
        (base64, "encodestring", base64.encodebytes),
        (base64, "decodestring", base64.decodebytes),
    ]


@contextmanager
def restored() -> Generator[None]:
    """Within this the library has the names that it lacks; those that it has stay as they are."""
    added = [(holder, name, value) for holder, name, value in _wanted() if not hasattr(holder, name)]
    for holder, name, value in added:
        setattr(holder, name, value)
    try:
        yield
    finally:
        for holder, name, _ in added:
            delattr(holder, name)
