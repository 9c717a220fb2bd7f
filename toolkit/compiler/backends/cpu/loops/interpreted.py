"""Loops of which the interpreter runs every iteration, compiled when they are needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from toolkit.compiler.backends.cpu.emission.instance import Emitted
from toolkit.compiler.context import RunningStep

Fallback = Callable[[list[Any], RunningStep], list[Any]]


class Interpreted:
    """A loop for the interpreter, compiled when it is needed first.

    Args:
        compile: makes one iteration; called once.
        states: how many of its arguments change from iteration to iteration.
    """

    def __init__(self, compile: Callable[[], Emitted], states: int):
        self._compile = compile
        self._states = states
        self._emitted: Emitted | None = None
        self._lock = threading.Lock()

    @property
    def emitted(self) -> Emitted | None:
        """One iteration, None while nobody has needed it."""
        return self._emitted

    def __call__(self) -> Fallback:
        with self._lock:
            if self._emitted is None:
                self._emitted = self._compile()
            return _interpreted(self._emitted, self._states)


def _interpreted(emitted: Emitted, states: int) -> Fallback:
    """A loop of which the interpreter runs every iteration."""
    iteration = emitted.instantiate().run

    def run(arguments: list[Any], running: RunningStep) -> list[Any]:
        state, constant = list(arguments[:states]), list(arguments[states:])
        while True:
            after = iteration(state + constant, running)
            if after is None:
                return state
            if running.cancellation.is_cancelled:
                running.check_cancelled()
            state = after

    return run
