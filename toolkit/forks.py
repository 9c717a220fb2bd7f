"""What children of this process have, whatever its other threads were doing when it forked.

A child has one thread, the one that forked. A lock that another one held would stay locked there for ever, and what it
guarded may be half made. There are two kinds of locks.

- Those of `held_over_forks` are taken by whoever forks, so that nobody else is within one: what they guard is whole in
  children. They are held for moments, or while something is imported: the locks of modules, of libraries that have
  locks of their own, and the interpreter's lock of imports, for a module that is half imported would stay so.
- Those of `free_in_children` are held for as long as a step takes or is compiled, and a fork does not wait for them:
  children get new ones. What these guard is as good as before: tables are changed by one operation of the
  interpreter's at a time, whose lock whoever forks has.

Threads that are kept for work are no more in a child; `renew_in_children` tells who has some.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

#: seconds that a fork waits for others altogether: LLVM's import takes over 5 where twenty threads and other processes
#: are busy. It has an end, for an import may wait for the forking thread itself
_LONGEST_WAIT = 60.0
#: packages that are imported when they are needed, in whichever thread that is; a program's own may import for ever
_IMPORTED_LATE = frozenset({"toolkit", "schemas", "llvmlite", "numpy", "ml_dtypes", "google"}) | sys.stdlib_module_names
#: seconds between two looks whether others still import
_LOOK = 0.001


class Renewed(Protocol):
    """Something with threads of its own."""

    def renew(self) -> None:
        """Forget threads, what waited for them, and locks. Called in a child, where nothing else runs yet."""
        ...


class _Lock(Protocol):
    """What a fork takes: an RLock, or what behaves as one."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...

    def release(self) -> None: ...


#: who has locks, under which names
_holders: weakref.WeakKeyDictionary[object, tuple[str, ...]] = weakref.WeakKeyDictionary()
_LOCK = type(threading.Lock())
_renewed: weakref.WeakSet[Renewed] = weakref.WeakSet()
_held: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
#: the locks that a thread which is forking has taken
_taken: dict[int, list[_Lock]] = {}


def held_over_forks(lock: Any = None) -> Any:
    """A lock within which no other thread is when this process is forked, for as long as it is there.

    Whoever holds it must not wait for another thread that may fork. The forking thread itself may hold it.

    Args:
        lock: an RLock that there is already; a new one by default.

    Returns:
        the RLock.
    """
    found = threading.RLock() if lock is None else lock
    _held[id(found)] = found
    return found


def free_in_children(holder: object, *names: str) -> None:
    """Have an object get new locks in place of those that it has under these names, in every child that is forked.

    Whoever forks within one of the locks releases the one that it took: `with` does so, and what calls `acquire` and
    `release` keeps the lock in a variable.
    """
    _holders[holder] = names


def renew_in_children(thing: Renewed) -> None:
    """Have `thing.renew()` called in every forked child, as long as the thing is there."""
    _renewed.add(thing)


class _Imports:
    """The interpreter's lock of imports, as long as no other thread is within one: nobody can begin another."""

    def __init__(self) -> None:
        self._of_interpreter: Any = importlib.import_module("_imp")

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it; False where others import, and have not ended in time."""
        until = time.monotonic() + timeout
        while True:
            # not waited for: whoever holds it may be about to wait for a lock that this thread has
            if not self._of_interpreter.lock_held():
                self._of_interpreter.acquire_lock()
                if not self._others_import():
                    return True
                self._of_interpreter.release_lock()
            if not blocking or time.monotonic() >= until:
                return False
            time.sleep(_LOOK)

    def release(self) -> None:
        """Let others import."""
        self._of_interpreter.release_lock()

    @staticmethod
    def _others_import() -> bool:
        """Whether a thread other than this one is importing a module that steps may need, or is about to."""
        bootstrap: Any = vars(importlib).get("_bootstrap")
        modules: dict[str, Any] = getattr(bootstrap, "_module_locks", {})
        locks = [lock() for name, lock in list(modules.items()) if name.partition(".")[0] in _IMPORTED_LATE]
        mine = threading.get_ident()
        return any(lock is not None and getattr(lock, "owner", mine) != mine for lock in locks)


_IMPORTS = _Imports()


def _take(locks: Sequence[_Lock], seconds: float) -> list[_Lock]:
    """All of these locks, or as many as there were in the end.

    Others take them in any order, some within others. So this thread waits for one of them only while it has none: for
    the one that was taken the last time that it tried, after which it tries to have all others at once.
    """
    until, wanted = time.monotonic() + seconds, list(locks)
    found: list[_Lock] = []
    try:
        while (remaining := until - time.monotonic()) > 0:
            missed = None
            for lock in wanted:
                if not (lock.acquire(blocking=False) if found else lock.acquire(timeout=remaining)):
                    missed = lock
                    break
                found.append(lock)
            if missed is None:
                return found
            _release(found)
            wanted = [missed, *(lock for lock in wanted if lock is not missed)]
        for lock in wanted:
            if lock.acquire(blocking=False):
                found.append(lock)
    except BaseException:  # an interrupt: nobody releases them after a fork
        _release(found)
        raise
    return found


def _release(locks: list[_Lock]) -> None:
    while locks:
        locks.pop().release()


def _all_held() -> list[Any]:
    return [lock for known in _held.valuerefs() if (lock := known()) is not None]


def _before() -> None:
    _taken[threading.get_ident()] = _take([_IMPORTS, *_all_held()], _LONGEST_WAIT)


def _after() -> None:
    _release(_taken.pop(threading.get_ident(), []))


def _in_child() -> None:
    mine = _taken.get(threading.get_ident(), [])
    for lock in _all_held():
        if not any(lock is each for each in mine):
            lock._at_fork_reinit()  # whoever held it for so long is not here
    _after()
    _taken.clear()
    for holder, names in list(_holders.items()):
        for name in names:
            is_plain = isinstance(getattr(holder, name), _LOCK)
            setattr(holder, name, threading.Lock() if is_plain else threading.RLock())
    for thing in list(_renewed):
        thing.renew()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
