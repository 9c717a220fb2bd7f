"""The parts of a step side by side: all have ended when the step has, and the first real error is the step's."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping

from toolkit.limits.account import charging, current
from toolkit.runtime.device_threads import start
from toolkit.runtime.steps.failures import root_cause


def run_together(parts: Mapping[str, Callable[[], None]], cancel: Callable[[], None]) -> None:
    """Run all parts, the first in this thread and each other one in a thread of its own, and wait for all of them.

    Args:
        parts: by the name of what runs them.
        cancel: ends the other parts when one has failed; may be called more than once.

    Raises:
        BaseException: the first failure that is not the consequence of another.
    """
    errors: list[BaseException] = []
    lock = threading.Lock()
    account = current()

    def run_one(part: Callable[[], None]) -> None:
        try:
            with charging(account):  # holds for this thread
                part()
        except BaseException as error:
            with lock:
                errors.append(error)
            cancel()

    if not parts:  # nothing was asked for
        return
    first, *others = parts
    waits = [start(name, functools.partial(run_one, parts[name])) for name in others]
    run_one(parts[first])
    for wait in waits:
        wait()
    if errors:
        raise root_cause(errors)
