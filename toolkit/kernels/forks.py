"""What children of this process have anew, whatever its other threads were about to do when it forked.

A child has one thread, the one that forked; a lock that another one held would stay locked there for ever, and who
hands work to a thread that is kept would wait for one that there is not. What a lock guarded is as good as before:
tables are changed by one operation of the interpreter's at a time, whose lock whoever forks has.

The interpreter's own locks of modules cannot be had anew: a module that another thread was half through importing would
stay so in the child. A fork waits until nobody else imports.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
import weakref
from typing import Any, Protocol

#: seconds that a fork waits for the imports of other threads: LLVM's takes over 5 where twenty threads and other
#: processes are busy. It has an end, for an import may wait for the forking thread itself
_LONGEST_IMPORT = 60.0
#: packages that are imported when they are needed, in whichever thread that is; a program's own may import for ever
_IMPORTED_LATE = frozenset({"toolkit", "schemas", "llvmlite", "numpy", "ml_dtypes", "google"})


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


def _others_import() -> bool:
    """Whether a thread other than this one is importing a module that steps may need."""
    bootstrap: Any = vars(importlib).get("_bootstrap")
    modules: dict[str, Any] = getattr(bootstrap, "_module_locks", {})
    locks = [lock() for name, lock in list(modules.items()) if name.partition(".")[0] in _IMPORTED_LATE]
    mine = (None, threading.get_ident())
    return any(lock is not None and getattr(lock, "owner", None) not in mine for lock in locks)


def _wait_for_imports() -> None:
    until = time.monotonic() + _LONGEST_IMPORT
    while _others_import() and time.monotonic() < until:
        time.sleep(0.001)


os.register_at_fork(before=_wait_for_imports)
os.register_at_fork(after_in_child=_free_all)
os.register_at_fork(after_in_child=_renew_all)
