"""Waiting for what must happen, however busy the machine is: no test is decided by a clock.

Deadlines only end a test that hangs, so they are minutes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

#: seconds after which something that was waited for will not happen any more
HUNG = 300.0
_TASKS = Path("/proc/self/task")


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition is true.

    Raises:
        AssertionError: it never became true.
    """
    deadline = time.monotonic() + HUNG
    while not condition():
        assert time.monotonic() < deadline, f"still waiting: {what}"
        time.sleep(0.002)


def others_sleep() -> bool:
    """Whether every other thread of this process waits for something: none of them runs, or would if it could.

    A thread that is woken counts as running from that moment on, even where all processors are taken. A thread that
    sleeps for a given time counts as waiting.
    """
    mine = str(threading.get_native_id())
    for task in _TASKS.iterdir():
        try:
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:  # it has just ended
            continue
        if state in "RD" and task.name != mine:
            return False
    return True


def ends(thread: threading.Thread, idle_s: float = 0.0) -> bool:
    """Wait until a thread ends, or until it never will: all threads have waited for some seconds.

    Args:
        idle_s: how long they must; 0 to find out whether the thread waits for another one.

    Returns:
        whether it has ended.
    """
    if not _TASKS.exists():  # no Linux: nothing tells who waits
        thread.join(max(idle_s, 0.1))
        return not thread.is_alive()
    deadline, since = time.monotonic() + HUNG, time.monotonic()
    quiet = 0
    while thread.is_alive() and time.monotonic() < deadline:
        thread.join(0.002)
        if others_sleep():
            quiet += 1
        else:
            quiet, since = 0, time.monotonic()
        if quiet >= 3 and time.monotonic() - since >= idle_s:
            break
    return not thread.is_alive()
