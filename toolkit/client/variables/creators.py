"""Functions that make variables in the place of the library's own (tf.variable_creator_scope)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

from toolkit.client.construction.context import get_default_graph

Creator = Callable[..., Any]


@contextmanager
def creator_scope(creator: Creator) -> Generator[None]:
    """Inside of the block `creator(next_creator, **kwargs)` makes the variables of the default graph.

    It may change the arguments, and returns what `next_creator(**kwargs)` does, or something in its place. Inner
    scopes come first.
    """
    entered = get_default_graph().extras.setdefault(__name__, [])
    entered.append(creator)
    try:
        yield
    finally:
        entered.remove(creator)


def created(make: Creator, arguments: dict[str, Any]) -> Any:
    """What the scopes around make of a variable's arguments; `make` is asked last."""
    for creator in get_default_graph().extras.get(__name__, ()):
        make = partial(creator, make)
    return make(**arguments)
