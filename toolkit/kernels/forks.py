"""What a forked child makes anew: it has none of its parent's threads, and what these held locked stays locked there.

Whoever hands work to threads that are kept would else wait in a child for a thread that there is not.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Renewed(Protocol):
    """Something with threads of its own."""

    def renew(self) -> None:
        """Forget threads, what waited for them, and locks. Called in a child, where nothing else runs yet."""
        ...


_known: weakref.WeakSet[Renewed] = weakref.WeakSet()


def renew_in_children(thing: Renewed) -> None:
    """Have `thing.renew()` called in every forked child, as long as the thing is there."""
    _known.add(thing)


def _renew() -> None:
    for thing in list(_known):
        thing.renew()


os.register_at_fork(after_in_child=_renew)
