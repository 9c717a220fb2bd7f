"""Receives that are waited for together, as one asynchronous kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from toolkit.compiler.steps import Step
from toolkit.errors import GraphmillError
from toolkit.kernels.context import Done


def receiving(steps: Sequence[Step]) -> Callable[..., Any]:
    """The kernel of several receives: it is done when all of them are."""
    computes = [step.compute for step in steps]
    names = [step.node.name for step in steps]

    def compute(running: Any, done: Done) -> None:
        arriving = _Arriving(names, done)
        for number, receive in enumerate(computes):
            receive(running, partial(arriving.one, number))

    return compute


class _Arriving:
    """Values on their way."""

    __slots__ = ("_done", "_left", "_lock", "_names", "_values")

    def __init__(self, names: Sequence[str], done: Done):
        self._names = names
        self._done = done
        self._left = len(names)
        self._values: list[Any] = [None] * len(names)
        self._lock = threading.Lock()

    def one(self, number: int, value: Any) -> None:
        """One of them is there, or will never be; from any thread."""
        if value.__class__ is list or value.__class__ is tuple:
            value = value[0]
        failed = isinstance(value, BaseException)
        with self._lock:
            if self._left <= 0:
                return
            self._values[number] = value
            self._left = 0 if failed else self._left - 1
            is_last = not self._left
        if failed:
            self._done(value.at(node=self._names[number]) if isinstance(value, GraphmillError) else value)
        elif is_last:
            self._done(self._values)
