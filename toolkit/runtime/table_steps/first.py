"""The first run of a step over a graph of which no node has been made; what is asked for again is made ready."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from toolkit.forks import free_in_children
from toolkit.runtime.executors.once import TooMuchError
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.steps.compiled import CompiledStep
from toolkit.runtime.table_steps.plan import TablePlan
from toolkit.runtime.table_steps.run import run_over_table
from toolkit.runtime.workers.local import LocalWorker


class TableStep(CompiledStep):
    """A step with a plan over a table, which becomes what `make` makes when it is run again, or asked anything else.

    Args:
        worker: runs it.
        make: makes it ready to run node by node, or compiled.
    """

    def __init__(self, plan: TablePlan, worker: LocalWorker, make: Callable[[], CompiledStep]):
        self._table_plan: TablePlan | None = plan
        self._names: Callable[[], set[str]] = plan.node_names
        self._worker = worker
        self._make = make
        self._has_run = False
        self._lock = threading.RLock()
        free_in_children(self, "_lock")
        self.run = self._run_first
        self.cleanup = worker.cleanup

    if not TYPE_CHECKING:  # which would let every name pass

        def __getattr__(self, name: str) -> Any:
            if name in ("stages", "_parts", "_members", "_transfers", "_chain", "_num_results"):
                self._become()
            return object.__getattribute__(self, name)

    def _become(self) -> None:
        """Be made ready, once."""
        with self._lock:
            if "stages" not in self.__dict__:
                made = self._make()
                if self._has_run:
                    self._worker.ran_before(made.handles)
                self._table_plan = None
                self.__dict__.update(made.__dict__)

    def _run_first(self, step_id: int, arguments: Sequence[Any], probe: Probe | None) -> list[Any]:
        with self._lock:
            plan, self._table_plan = self._table_plan, None
        if plan is not None and probe is None:
            try:
                results = self._worker.run_with(step_id, lambda running: run_over_table(plan, arguments, running))
            except TooMuchError:
                results, self._has_run = None, True  # it is compiled, and not tried again
            if results is not None:
                self._has_run = True
                return results
        self._become()
        return self.run(step_id, arguments, probe)

    def node_names(self) -> set[str]:
        return super().node_names() if "stages" in self.__dict__ else self._names()

    def cancel(self, step_id: int) -> None:
        if "stages" in self.__dict__:
            super().cancel(step_id)
        else:
            self._worker.cancel(step_id)

    def close(self) -> None:
        if "stages" in self.__dict__:
            super().close()
