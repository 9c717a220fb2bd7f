"""No cyclic garbage is looked for while a graph is read or placed, a program made, or modules imported.

A graph and the programs made of it are many small objects that point to each other, and nearly all of them live on. The
collector looks at every one of them again and again as their number grows: a quarter of the time that it takes to
compile ten thousand nodes. What is garbage is found when the program is there.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

from toolkit.forks import held_over_forks

_lock = held_over_forks()
#: objects that it takes some ten milliseconds to look at
_MANY = 200_000
#: the threads that make programs, once for each block that they are in, and whether the collector was on before
_makers: list[int] = []
_was_enabled = False
#: whether the collector is off until `resume`
_is_postponed = False


@contextmanager
def no_collection() -> Generator[None]:
    """Switch the collector off for the length of a `with` block or of a function that this decorates.

    It is on again, if it was on before, when no thread is in such a block any more. If a great many objects have been
    made by then, all that there are count as old: they are looked at with the next full collection, not at once.
    """
    global _was_enabled
    thread = threading.get_ident()
    with _lock:
        if not _makers:
            _was_enabled = gc.isenabled()
            gc.disable()
        _makers.append(thread)
    try:
        yield
    finally:
        with _lock:
            _makers.remove(thread)
            if not _makers and _was_enabled:
                if gc.get_count()[0] >= _MANY:
                    gc.freeze()  # into a generation of its own, and from there into the oldest one: nothing is visited
                    gc.unfreeze()
                gc.enable()


def _forget_others() -> None:
    """A child has none of the other threads that were making programs."""
    mine = [thread for thread in _makers if thread == threading.get_ident()]
    if _makers and not mine and _was_enabled:
        gc.enable()
    _makers[:] = mine


os.register_at_fork(after_in_child=_forget_others)


@contextmanager
def postponed() -> Generator[None]:
    """Switch the collector off, if it is on, until `resume` is called, or to the end of the block."""
    global _is_postponed
    if not gc.isenabled():
        yield
        return
    _is_postponed = True
    gc.disable()
    try:
        yield
    finally:
        _is_postponed = False
        gc.enable()


def resume() -> None:
    """Begin to look for garbage where that was postponed, among what is made from now on: all else is taken to live."""
    global _is_postponed
    if _is_postponed:
        _is_postponed = False
        gc.freeze()
        gc.enable()
