"""Forked children of a test."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from tests.patience import HUNG


def child_says(ask: Callable[[], bool]) -> bool:
    """What a forked child answers; False where it raises, dies, or waits until its time is over."""
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(HUNG))  # what waits for ever ends, and is seen to
        code = 1
        try:
            code = 0 if ask() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
