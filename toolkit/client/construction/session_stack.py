"""The default-session stack of each thread.

Sessions live above this layer: the runtime pushes them here, so that `Tensor.eval()` and `Operation.run()`
find the one to use.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from toolkit.errors import ArgumentValueError


class SessionLike(Protocol):
    """What a default session must offer."""

    @property
    def graph(self) -> Any: ...

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any: ...


class _Stack(threading.local):
    def __init__(self) -> None:
        self.sessions: list[SessionLike] = []


_stack = _Stack()


def push(session: SessionLike) -> None:
    """Make a session the default of this thread until `pop` (interactive sessions use the pair directly)."""
    _stack.sessions.append(session)


def pop(session: SessionLike) -> None:
    """Take the session off the stack, wherever it is; nothing happens when it is not on it."""
    for position in reversed(range(len(_stack.sessions))):
        if _stack.sessions[position] is session:
            del _stack.sessions[position]
            return


@contextmanager
def default_session(session: SessionLike) -> Generator[SessionLike]:
    """Make a session the default of this thread inside the block."""
    push(session)
    try:
        yield session
    finally:
        pop(session)


def get_default_session() -> SessionLike | None:
    """The innermost default session of this thread, or None."""
    return _stack.sessions[-1] if _stack.sessions else None


def session_for(session: SessionLike | None, graph: Any, what: str) -> SessionLike:
    """The session to use: the one given, else the default one.

    Raises:
        ArgumentValueError: there is none, or it runs another graph.
    """
    found = session or get_default_session()
    if found is None:
        raise ArgumentValueError(f"{what} needs a session: use it inside 'with Session(graph):' or pass session=")
    if found.graph is not graph and getattr(found.graph, "core", found.graph) is not graph.core:
        raise ArgumentValueError(f"{what}: the session runs another graph; use the session of the graph it belongs to")
    return found
