"""No cyclic garbage is looked for while a program is made, or a graph placed.

A graph and the programs made of it are many small objects that point to each other, and nearly all of them live on. The
collector looks at every one of them again and again as their number grows: a quarter of the time that it takes to
compile ten thousand nodes. What is garbage is found when the program is there.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

_lock = threading.Lock()
#: how many programs are being made, in any thread, and whether the collector was on before the first
_makers = 0
_was_enabled = False


@contextmanager
def no_collection() -> Generator[None]:
    """Switch the collector off for the length of a `with` block or of a function that this decorates.

    It is on again, if it was on before, when no thread is in such a block any more.
    """
    global _makers, _was_enabled
    with _lock:
        if not _makers:
            _was_enabled = gc.isenabled()
            gc.disable()
        _makers += 1
    try:
        yield
    finally:
        with _lock:
            _makers -= 1
            if not _makers and _was_enabled:
                gc.enable()
