"""What children of this process have anew, whatever its other threads were about to do when it forked.

A child has one thread, the one that forked; a lock that another one held would stay locked there for ever, and who
hands work to a thread that is kept would wait for one that there is not. What a lock guarded is as good as before:
tables are changed by one operation of the interpreter's at a time, whose lock whoever forks has.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Renewed(Protocol):
    """Something with threads of its own."""

    def renew(self) -> None:
        """Forget threads, what waited for them, and locks. Called in a child, where nothing else runs yet."""
        ...


#: who has locks, under which names
_holders: weakref.WeakKeyDictionary[object, tuple[str, ...]] = weakref.WeakKeyDictionary()
_LOCK = type(threading.Lock())
_renewed: weakref.WeakSet[Renewed] = weakref.WeakSet()


def free_in_children(holder: object, *names: str) -> None:
    """Have an object get new locks in place of those that it has under these names, in every child that is forked.

    Whoever forks within one of the locks releases the one that it took: `with` does so, and what calls `acquire` and
    `release` keeps the lock in a variable.
    """
    _holders[holder] = names


def renew_in_children(thing: Renewed) -> None:
    """Have `thing.renew()` called in every forked child, as long as the thing is there."""
    _renewed.add(thing)


def _renew_all() -> None:
    for thing in list(_renewed):
        thing.renew()


def _free_all() -> None:
    for holder, names in list(_holders.items()):
        for name in names:
            is_plain = isinstance(getattr(holder, name), _LOCK)
            setattr(holder, name, threading.Lock() if is_plain else threading.RLock())


os.register_at_fork(after_in_child=_free_all)
os.register_at_fork(after_in_child=_renew_all)
