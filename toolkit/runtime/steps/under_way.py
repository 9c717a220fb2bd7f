"""Steps that somebody else may end while they run: cancellation and time limits."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from toolkit.errors import DeadlineExceededError, GraphmillError
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.steps.compiled import CompiledStep
from toolkit.runtime.steps.deadlines import DEADLINES

if TYPE_CHECKING:
    pass


class StepUnderWay:
    """A step that somebody else may cancel while it runs; what is cancelled after its end would be a step anew."""

    def __init__(self, compiled: CompiledStep, step_id: int):
        self._compiled = compiled
        self._step_id = step_id
        self._lock = threading.Lock()
        self._finished = False
        self.is_cancelled = False

    def cancel(self) -> None:
        """End it, unless it has ended."""
        with self._lock:
            if not self._finished:
                self.is_cancelled = True
                self._compiled.cancel(self._step_id)

    def finish(self) -> None:
        """It has ended."""
        with self._lock:
            self._finished = True


def run_within(
    compiled: CompiledStep, arguments: list[Any], step_id: int, timeout_ms: int, probe: Probe | None
) -> list[Any]:
    """Run a step, and cancel it after a time.

    Raises:
        DeadlineExceededError: it took longer.
        OpError: an operation failed.
    """
    under_way = StepUnderWay(compiled, step_id)
    deadline = DEADLINES.after(timeout_ms / 1000, under_way.cancel)
    try:
        return compiled.run(step_id, arguments, probe)
    except GraphmillError as error:
        if under_way.is_cancelled:
            raise DeadlineExceededError(f"the step took longer than {timeout_ms} ms") from error
        raise
    finally:
        deadline.call_off()
        under_way.finish()
