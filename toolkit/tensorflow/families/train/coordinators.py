# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Threads that stop together, with TensorFlow's arguments."""

from __future__ import annotations

import functools
from typing import Any

from toolkit.errors import OutOfRangeError
from toolkit.runtime.training import coordinator


class Coordinator(coordinator.Coordinator):
    """Stops threads together, and raises what the first of them raised."""

    def __init__(self, clean_stop_exception_types: Any = None):
        super().__init__((OutOfRangeError,) if clean_stop_exception_types is None else clean_stop_exception_types)

    def request_stop(self, ex: Any = None) -> None:
        """Ask all to stop; `ex`: why, an exception or what `sys.exc_info()` returns."""
        super().request_stop(ex[1] if isinstance(ex, tuple) else ex)

    def join(  # pyright: ignore[reportIncompatibleMethodOverride]  # TensorFlow's arguments
        self, threads: Any = None, stop_grace_period_secs: float = 120, ignore_live_threads: bool = False
    ) -> None:
        super().join(threads or (), stop_grace_period_secs, ignore_live_threads)


class LooperThread(coordinator.LooperThread):
    """Calls a function, or its own `run_loop`, every so many seconds until its coordinator stops."""

    def __init__(self, coord: Any, timer_interval_secs: Any, target: Any = None, args: Any = None, kwargs: Any = None):
        if not isinstance(coord, coordinator.Coordinator):
            raise ValueError(f"coord is a tf.train.Coordinator, not {type(coord).__name__}")
        if target is None and (args or kwargs):
            raise ValueError("args and kwargs are what target is called with; give target")
        call = target if target is None or not kwargs else functools.partial(target, **kwargs)
        super().__init__(coord, timer_interval_secs, call, tuple(args or ()))

    @staticmethod
    def loop(  # pyright: ignore[reportIncompatibleMethodOverride]  # TensorFlow's arguments
        coord: Any, timer_interval_secs: Any, target: Any, args: Any = None, kwargs: Any = None
    ) -> LooperThread:
        """Make a thread and start it."""
        thread = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        thread.start()
        return thread
